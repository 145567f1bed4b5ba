"""ONNX files: read with care, weights beside them mapped, never followed out of the folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from nacre.core.onnx.findings import Unsound, refusal
from nacre.core.rules.onnx import ONX03, ONX05, ONX07
from nacre.core.values import Array

try:
    import onnx as _onnx
except ImportError:  # an extra
    onnx: Any = None
else:
    onnx = _onnx

# Element types of which two share a byte.
_PACKED = frozenset({"int4", "uint4", "float4_e2m1fn"})
_MOST_BYTES = 1 << 31  # protobuf has no larger messages


def require_onnx() -> None:
    """Raise InputError where the package is missing."""
    if onnx is None:
        help_ = 'pip install "nacre[onnx]"'
        raise refusal(ONX07, "onnx", "ONNX models need the package `onnx`", help_)


def read_model(path: Path) -> Any:  # noqa: ANN401 - onnx.ModelProto
    """The model of a file, its external weights not yet read."""
    require_onnx()
    name = str(path)
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise refusal(ONX03, name, f"the file has {size:,} bytes; no ONNX model is as large")
        raw = path.read_bytes()
    except OSError as error:
        raise refusal(ONX03, name, f"cannot read the file: {error.strerror}") from None
    return parsed_model(raw, name)


def parsed_model(raw: bytes, name: str) -> Any:  # noqa: ANN401 - onnx.ModelProto
    """The model in some bytes."""
    require_onnx()
    model = onnx.ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception as error:  # protobuf's own kinds of error differ between its versions
        raise refusal(ONX03, name, f"this is no ONNX model: {str(error)[:80]}") from None
    if not model.graph.node and not model.graph.output:
        raise refusal(ONX03, name, "this is no ONNX model: it has no graph")
    return model


def tensor_array(tensor: Any, folder: Path | None, name: str) -> Array:  # noqa: ANN401
    """The elements of a TensorProto; external ones are mapped, not copied."""
    if any(dim < 0 for dim in tensor.dims):
        raise Unsound(f"tensor `{tensor.name}` has a negative dimension")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, folder, name)
    try:
        array: Array = onnx.numpy_helper.to_array(tensor)
    except Exception as error:
        raise Unsound(f"tensor `{tensor.name}` cannot be read: {str(error)[:80]}") from None
    return array


def _external(tensor: Any, folder: Path | None, name: str) -> Array:  # noqa: ANN401
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(entries.get("location", ""), folder, name, tensor.name)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    shape = tuple(tensor.dims)
    offset = _number(entries.get("offset", "0"), tensor.name, "offset")
    is_packed = dtype.name in _PACKED
    needed = -(-math.prod(shape) // 2) if is_packed else math.prod(shape) * dtype.itemsize
    length = _number(entries.get("length", str(needed)), tensor.name, "length")
    size = path.stat().st_size
    if length != needed or offset + needed > size:
        message = f"tensor `{tensor.name}` takes {needed} bytes from {offset} on"
        given = f"the model says {length} and {path.name} has {size}"
        raise refusal(ONX05, name, f"{message}, but {given}")
    if is_packed:
        return _unpacked(tensor, path, offset, needed)
    if not needed:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def _unpacked(tensor: Any, path: Path, offset: int, size: int) -> Array:  # noqa: ANN401
    """Elements of half a byte, read as if they stood in the model."""
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(size)
    inline = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    array: Array = onnx.numpy_helper.to_array(inline)
    return array


def _number(text: str, tensor: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        message = f"the {what} of tensor `{tensor}` is {text[:20]!r}, expected a number of bytes"
        raise Unsound(message)
    return int(text)


def _inside(location: str, folder: Path | None, name: str, tensor: str) -> Path:
    """A file of the model's folder."""
    if folder is None:
        raise refusal(ONX05, name, f"tensor `{tensor}` lies in a file, the model in none")
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        is_there = path.is_file()
    except (ValueError, OSError) as error:  # a name that no file can have
        raise refusal(
            ONX05, name, f"tensor `{tensor}` lies in a file with no name: {error}"
        ) from None
    if not location or not path.is_relative_to(root) or path == root:
        raise refusal(ONX05, name, f"tensor `{tensor}` lies in {location!r}, outside of the folder")
    if not is_there:
        raise refusal(ONX05, name, f"tensor `{tensor}` lies in {location!r}, which does not exist")
    return path
