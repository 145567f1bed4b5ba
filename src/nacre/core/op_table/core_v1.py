"""The operations of Core v1, exactly as its text has them; `nacre-1` adds to those of `BinOp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nacre.core.module import TensorType
from nacre.core.specs import Accepts, optional, required, row
from nacre.core.values import Attributes


def _scalar(dtype: str) -> Callable[..., TensorType | None]:
    return lambda types, attributes: TensorType(dtype)


def _declared_type(types: Sequence[TensorType], attributes: Attributes) -> TensorType | None:
    """A tensor literal says its type itself."""
    dtype, shape = attributes.get("dtype"), attributes.get("shape")
    return TensorType(str(dtype), shape) if dtype and isinstance(shape, tuple) else None


def _no_type(types: Sequence[TensorType], attributes: Attributes) -> TensorType | None:
    """An input has whatever type it is given."""
    return None


_v1 = partial(row, profile="core-v1")
_BINARY = {
    "Add": "add.Tensor", "Sub": "sub.Tensor", "Mul": "mul.Tensor", "Div": "div.Tensor",
    "Pow": "pow.Tensor_Tensor", "Mod": "remainder.Tensor", "Rem": "fmod.Tensor",
    "Min": "minimum.default", "Max": "maximum.default", "And": "bitwise_and.Tensor",
    "Or": "bitwise_or.Tensor", "Xor": "bitwise_xor.Tensor",
    "ShiftLeft": "bitwise_left_shift.Tensor", "ShiftRight": "bitwise_right_shift.Tensor",
}  # fmt: skip
_LOGIC = ("And", "Or", "Xor")
_SHIFTS = ("ShiftLeft", "ShiftRight")
_ACCEPTED: dict[str, Accepts] = {
    **dict.fromkeys(_BINARY, "number"),
    **dict.fromkeys(_LOGIC, "logic"),
    **dict.fromkeys(_SHIFTS, "integer"),
}
_AXES = required("axes", "ints")
_KEEPDIMS = optional("keepdims", "bool", False)

FIRST = (
    _v1("Input", "a tensor from outside", "", required("name", "string"), infer=_no_type),
    _v1("ConstI64", "an integer", "", required("value", "int"), infer=_scalar("i64"),
        traits=("constant",)),
    _v1("ConstF32", "a float", "", required("value", "float"), infer=_scalar("f32"),
        traits=("constant",)),
    _v1("ConstF64", "a double", "", required("value", "float"), infer=_scalar("f64"),
        traits=("constant",)),
    _v1("ConstTensor", "a tensor given element by element", "", required("data", "data"),
        required("dtype", "dtype"), required("shape", "ints"), infer=_declared_type,
        traits=("constant",)),
    _v1("BinOp", "two tensors element by element, broadcast", "lhs rhs",
        required("op", "word", *_BINARY), traits=("elementwise", "commutative"), aten=_BINARY,
        by_op=_ACCEPTED),
    _v1("Sum", "the sum over axes; over all where none is named", "input", _AXES, _KEEPDIMS,
        traits=("reduction",), aten="sum.dim_IntList"),
    _v1("Mean", "the mean over axes; over all where none is named", "input", _AXES, _KEEPDIMS,
        traits=("reduction",), aten="mean.dim"),
    _v1("Reshape", "the same elements under another shape", "input", required("new_shape", "ints"),
        traits=("view",), aten="view.default"),
    _v1("Transpose", "the axes in another order", "input", required("permutation", "ints"),
        traits=("view",), aten="permute.default"),
    _v1("ExpandDims", "axes of size 1 inserted", "input", _AXES, traits=("view",),
        aten="unsqueeze.default"),
    _v1("Squeeze", "axes of size 1 removed", "input", _AXES, traits=("view",),
        aten="squeeze.dims"),
    _v1("Index", "one element", "input", required("indices", "ints"), aten="select.int"),
    _v1("Slice", "a regular part", "input", required("starts", "ints"), required("ends", "ints"),
        required("steps", "ints"), traits=("view",), aten="slice.Tensor"),
    _v1("Gather", "rows by index", "input indices", aten="embedding.default"),
    _v1("Dot", "the product of vectors and matrices", "lhs rhs", aten="matmul.default"),
    _v1("MatMul", "the product of matrices, batched", "lhs rhs", aten="matmul.default"),
    _v1("Conv2d", "two-dimensional convolution, NHWC by HWCF", "input filter",
        required("strides", "ints"), required("padding", "padding", "Valid", "Same"),
        aten="permute.default convolution.default permute.default"),
    _v1("Relu", "the larger of x and 0", "input", traits=("elementwise",),
        aten="gt.Scalar where.self"),
    _v1("Neg", "x with the opposite sign", "input", traits=("elementwise",), aten="neg.default"),
    _v1("Exp", "e to the power x", "input", traits=("elementwise",), aten="exp.default"),
    _v1("Log", "the natural logarithm of x", "input", traits=("elementwise",), aten="log.default"),
)  # fmt: skip
