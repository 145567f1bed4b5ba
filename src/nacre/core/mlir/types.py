"""Element types, tensor types and constants as MLIR writes them."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.values import Array
from nacre.kernels.interface.runs import quietly

INDEX = "index"  # MLIR's type of positions; Core IR has none like it
# Integers have no sign in MLIR: operations that need to know it exist twice.
_SPELLED = {"bool": "i1", "f8e4m3": "f8E4M3FN", "f8e5m2": "f8E5M2", INDEX: INDEX}

MOST_LISTED = 16  # elements that are written as numbers; more become bytes


@cache
def element_text(dtype: str) -> str:
    """An element type."""
    if dtype in _SPELLED:
        return _SPELLED[dtype]
    element = GRAPH_TYPES[dtype]
    return f"i{element.bits}" if element.is_integer else element.name


@lru_cache
def tensor_text(type_: TensorType) -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{dim}x' for dim in type_.shape)}{element_text(type_.dtype)}>"


def is_float(dtype: str) -> bool:
    """Whether values are floats; positions are not."""
    return dtype != INDEX and GRAPH_TYPES[dtype].kind == "float"


def is_unsigned(dtype: str) -> bool:
    """Whether values are integers without a sign."""
    return dtype != INDEX and GRAPH_TYPES[dtype].kind in ("unsigned", "bool")


def bits_of(dtype: str) -> int:
    """How wide an element is; a truth value has one bit."""
    return 1 if dtype == "bool" else GRAPH_TYPES[dtype].bits


def compute_type(dtype: str) -> str:
    """The type that is computed in: f32 for the floats below it, otherwise the type itself."""
    return "f32" if is_float(dtype) and bits_of(dtype) < 32 else dtype


def number_text(value: float, dtype: str) -> str:
    """A finite number of an element type."""
    if dtype == "bool":
        return "true" if value else "false"
    return _float_text(float(value), dtype) if is_float(dtype) else str(int(value))


def _float_text(value: float, dtype: str) -> str:
    """Digits that read back to the same bits; MLIR wants a point in them."""
    text = repr(value)
    if dtype == "f32":
        # Readers go by way of f64, and rounding twice may miss what the fewest digits mean.
        shortest = str(np.float32(value))
        text = shortest if np.float32(float(shortest)) == np.float32(value) else text
    digits, e, exponent = text.partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{e}{exponent}"


def dense_text(array: Array, dtype: str) -> str:
    """The elements of a constant, exactly: numbers if they are few and finite, else bytes."""
    has_bytes = bits_of(dtype) >= 8  # smaller ones are packed by some and not by others
    bits = _bits(array)
    is_uniform = bool((bits == bits.flat[0]).all())
    kept = array.reshape(-1)[:1].reshape(()) if is_uniform else array
    is_finite = not is_float(dtype) or bool(quietly(np.isfinite, kept).all())
    is_listed = kept.size <= MOST_LISTED and is_finite
    if has_bytes and not is_listed:
        return f'dense<"0x{_bits(kept).tobytes().hex()}">'
    return f"dense<{_nested_text(kept.tolist(), dtype)}>"


def _bits(array: Array) -> Array:
    """The elements as integers without a sign, the lowest byte first on every machine."""
    size = array.dtype.itemsize
    return np.ascontiguousarray(array).view(f"u{size}").astype(f"<u{size}", copy=False)


def _nested_text(elements: object, dtype: str) -> str:
    if isinstance(elements, list):
        return f"[{', '.join(_nested_text(element, dtype) for element in elements)}]"
    assert isinstance(elements, int | float)
    return number_text(elements, dtype)
