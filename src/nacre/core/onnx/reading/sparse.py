"""Sparse tensors of ONNX, filled up: most of what they hold is 0."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound, refusal
from nacre.core.onnx.reading.files import tensor_array
from nacre.core.rules.onnx import ONX01
from nacre.core.values import Array

_MOST_ELEMENTS = 1 << 28  # when filled up: a short file may say that it is as large as it likes
_SMALLER = "cut it into parts, or leave out what nothing uses"


def densify(sparse: Any, folder: Path | None, name: str) -> Array:  # noqa: ANN401
    """A SparseTensorProto as an array with all of its elements.

    Places are numbers of elements in row-major order, or a row of indices each.
    """
    title, dims = backquote(sparse.values.name), tuple(sparse.dims)
    if any(dim < 0 for dim in dims):
        raise Unsound(f"the sparse tensor {title} has a negative dimension")
    if prod(dims) > _MOST_ELEMENTS:
        message = f"the sparse tensor {title} has {prod(dims):,} elements"
        raise refusal(ONX01, name, f"{message}, expected {_MOST_ELEMENTS:,} at most", _SMALLER)
    values = tensor_array(sparse.values, folder, name)
    places = _element_numbers(tensor_array(sparse.indices, folder, name), dims, title)
    if values.ndim != 1 or values.shape != places.shape:
        message = f"{list(values.shape)} values at {list(places.shape)} places"
        raise Unsound(f"the sparse tensor {title} has {message}, expected one value for each place")
    dense = np.zeros(prod(dims), values.dtype)
    dense[places] = values
    return dense.reshape(dims)


def _element_numbers(indices: Array, dims: tuple[int, ...], title: str) -> Array:
    """Where values stand, as numbers of elements."""
    if indices.dtype != np.int64 or indices.ndim not in (1, 2):
        description = f"{indices.dtype.name}{list(indices.shape)}"
        raise Unsound(
            f"the places of the sparse tensor {title} are {description}, expected int64[n]"
        )
    if indices.ndim == 1:
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < prod(dims):
            raise Unsound(f"a place of the sparse tensor {title} is outside of it")
        return indices
    if indices.shape[1] != len(dims):
        description = f"{indices.shape[1]} indices each, it has {len(dims)} axes"
        raise Unsound(f"the places of the sparse tensor {title} have {description}")
    if indices.size and (indices.min() < 0 or bool((indices >= np.array(dims)).any())):
        raise Unsound(f"a place of the sparse tensor {title} is outside of it")
    if not indices.size:
        return np.zeros(len(indices), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(indices.T), dims))
