"""Element types of PyTorch and of Core IR, and tensors as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from nacre.base.elements import GRAPH_TYPES
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import CAST
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
        "int32": "i32", "uint32": "u32", "int64": "i64", "float16": "f16", "bfloat16": "bf16",
        "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    }
)  # fmt: skip


@cache
def _elements() -> Mapping[Any, str]:
    library = torch()
    found = {getattr(library, name, None): element for name, element in _NAMES.items()}
    found.pop(None, None)
    return MappingProxyType(found)


def _rewrite(dtype: Any) -> str:  # noqa: ANN401 - torch.dtype
    if getattr(dtype, "is_complex", False):
        return "write it with real and imaginary parts apart, as two tensors or a last axis of 2"
    return CAST


def element_name(dtype: Any) -> str:  # noqa: ANN401 - torch.dtype
    """The element type of a tensor type."""
    found = _elements().get(dtype)
    if found is None:
        raise Unsupported(
            f"element type {str(dtype).removeprefix('torch.')} is not one of Core IR's",
            _rewrite(dtype),
        )
    return found


def dtype_of(element: str) -> Any:  # noqa: ANN401 - torch.dtype
    """The tensor type of an element type."""
    return next(dtype for dtype, name in _elements().items() if name == element)


def array_of(tensor: Any) -> Array:  # noqa: ANN401 - torch.Tensor
    """The elements of a tensor, copied: whoever owns it may go on training."""
    library = torch()
    wanted = GRAPH_TYPES[element_name(tensor.dtype)].dtype
    plain = tensor.detach().cpu().contiguous()
    if wanted.kind == "V":  # NumPy lacks it: the same bits as integers, then under their own type
        bits = {1: library.uint8, 2: library.int16}[wanted.itemsize]
        found: Array = plain.view(bits).numpy().view(wanted).copy()
        return found
    copied: Array = plain.numpy().astype(wanted, copy=True)
    return copied
