"""Element types in ONNX, and which of them the operations of onnxruntime take."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.values import Array

# TensorProto.DataType.
CODES: Mapping[str, int] = MappingProxyType(
    {
        "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10,
        "f64": 11, "u32": 12, "bf16": 16, "f8e4m3": 17, "f8e5m2": 19, "u4": 21,
        "i4": 22,
    }
)  # fmt: skip

# Types that hold every value of a type, the nearest first.
_WIDER: Mapping[str, str] = MappingProxyType(
    {
        "bool": "bool u8 i32 i64", "i4": "i4 i8 i16 i32 i64", "u4": "u4 u8 i16 i32 i64",
        "i8": "i8 i16 i32 i64", "u8": "u8 i16 i32 i64", "i16": "i16 i32 i64",
        "u16": "u16 i32 i64", "i32": "i32 i64", "u32": "u32 i64", "i64": "i64",
        "f8e4m3": "f8e4m3 f32", "f8e5m2": "f8e5m2 f32", "f16": "f16 f32", "bf16": "bf16 f32",
        "f32": "f32", "f64": "f64",
    }
)  # fmt: skip

_NUMBERS = "i32 i64 f32 f64"
_REALS = "f32 f64"
_SINGLE = "f32"
_MOVED = "bool i8 u8 i16 u16 i32 u32 i64 f16 f32 f64"
_BITS = "i8 u8 i16 u16 i32 u32 i64"

# What the kernels of onnxruntime for processors take. Left out are floats below f32 where they
# compute: Core IR does that in f32 and rounds once. What is not here takes every type.
_KERNELS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Abs"), _NUMBERS),
        **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _NUMBERS),
        **dict.fromkeys(("CumSum", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin"), _NUMBERS),
        **dict.fromkeys(("MatMul", "Einsum", "TopK", "Clip", "Sign", "Neg"), _NUMBERS),
        **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _BITS),
        **dict.fromkeys(("Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Sin", "Cos"), _REALS),
        **dict.fromkeys(("Exp", "Log", "Tanh", "Sigmoid", "Pow", "IsNaN", "IsInf"), _REALS),
        **dict.fromkeys(("ReduceMean", "ReduceL1", "ReduceL2", "ReduceProd", "Gemm"), _REALS),
        **dict.fromkeys(("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"), _REALS),
        **dict.fromkeys(("Softmax", "LogSoftmax", "BatchNormalization"), _REALS),
        **dict.fromkeys(("Erf", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh"), _SINGLE),
        **dict.fromkeys(("Asinh", "Acosh", "Atanh", "Softplus", "Softsign", "Elu"), _SINGLE),
        **dict.fromkeys(("Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Gelu"), _SINGLE),
        **dict.fromkeys(("PRelu", "LRN", "Conv", "ConvTranspose", "AveragePool"), _SINGLE),
        **dict.fromkeys(("LpPool", "LayerNormalization", "GroupNormalization"), _SINGLE),
        **dict.fromkeys(("InstanceNormalization", "Resize"), _SINGLE),
        **dict.fromkeys(("Expand", "Tile"), _MOVED),
        **dict.fromkeys(("Slice", "Concat", "Gather", "GatherElements"), _MOVED + " bf16"),
        **dict.fromkeys(("GatherND", "ScatterElements", "ScatterND"), _MOVED + " bf16"),
        **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Transpose"), _MOVED + " bf16"),
        **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _REALS),
        "ReduceSum": "i64 f32 f64",  # by way of f64: of i32 it stops at the ends
        "Equal": "bool i32 i64 f32 f64",
        "Where": "u8 i32 i64 f32 f64",
        "Relu": "i8 i32 f32 f64",
        "Pad": "bool i8 u8 i32 u32 i64 f32 f64",
        "Trilu": "bool i64 f32 f64",
        "OneHot": "i64 f32",
        "MaxPool": "i8 u8 f32 f64",
        "QuantizeLinear": _SINGLE,
        "DequantizeLinear": "i8 u8 i16 u16 i32 i4 u4 f8e4m3 f8e5m2",
    }
)
KERNELS: Mapping[str, frozenset[str]] = MappingProxyType(
    {operation: frozenset(types.split()) for operation, types in _KERNELS.items()}
)
# Whose operand says which kernel it is, where that is not the first.
TELLING: Mapping[str, int] = MappingProxyType({"Where": 1, "OneHot": 2})


def takes(operation: str, dtype: str) -> bool:
    """Whether onnxruntime has an operation of that type."""
    return operation not in KERNELS or dtype in KERNELS[operation]


def wider_type(operation: str, dtype: str) -> str | None:
    """The nearest type that an operation takes, and that holds every value of another."""
    return next((wider for wider in _WIDER[dtype].split() if takes(operation, wider)), None)


def compute_type(dtype: str) -> str:
    """The type to compute in: f32 for the floats below it, for integers one of i32 and i64.

    What leaves the range of a narrower integer wraps when it is cast back.
    """
    return next(name for name in _WIDER[dtype].split() if name in ("i32", "i64", "f32", "f64"))


def raw_bytes(array: Array, dtype: str) -> bytes:
    """Elements as ONNX stores them: the lowest byte first, 4 bits two to a byte."""
    if GRAPH_TYPES[dtype].bits == 4:
        nibbles = np.zeros(array.size + array.size % 2, np.uint8)
        nibbles[: array.size] = array.reshape(-1).astype(np.int8).view(np.uint8) & 0xF
        return (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()
    size = array.dtype.itemsize
    # A scalar has no bits to look at before it has an axis.
    bits = np.ascontiguousarray(array).view(f"u{size}")
    return bits.astype(f"<u{size}", copy=False).tobytes()
