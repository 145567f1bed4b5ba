"""How each operation is written in MLIR: one row an opcode. `Input`s are arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.core.mlir.elementwise import binop, constant, elementwise, exp, log, neg, relu
from nacre.core.mlir.products import conv2d, matmul
from nacre.core.mlir.reductions import mean, sum_
from nacre.core.mlir.shape_ops import gather, index, reshape, slice_, transpose
from nacre.core.mlir.writer import MlirWriter, Value

Lowering = Callable[[MlirWriter], Value]

LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "ConstI64": constant,
        "ConstF32": constant,
        "ConstF64": constant,
        "ConstTensor": constant,
        "BinOp": binop,
        "Sum": sum_,
        "Mean": mean,
        "Reshape": reshape,
        "Transpose": transpose,
        "ExpandDims": reshape,
        "Squeeze": reshape,
        "Index": index,
        "Slice": slice_,
        "Gather": gather,
        "Dot": matmul,
        "MatMul": matmul,
        "Conv2d": conv2d,
        "Relu": elementwise(relu),
        "Neg": elementwise(neg),
        "Exp": elementwise(exp),
        "Log": elementwise(log),
    }
)
