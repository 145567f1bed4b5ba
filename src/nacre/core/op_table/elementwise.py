"""Operations of `nacre-1` on one element at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nacre.core.module import TensorType
from nacre.core.specs import (
    Accepts,
    Trait,
    fixed_type,
    optional,
    required,
    row,
    type_of_attribute,
    type_of_operand,
)

_COMPARE = {
    "Eq": "eq.Tensor", "Ne": "ne.Tensor", "Lt": "lt.Tensor", "Le": "le.Tensor",
    "Gt": "gt.Tensor", "Ge": "ge.Tensor",
}  # fmt: skip
_UNARY = {
    "Abs": "abs.default", "Sign": "sign.default", "Ceil": "ceil.default",
    "Floor": "floor.default", "Round": "round.default", "Trunc": "trunc.default",
    "Sqrt": "sqrt.default", "Rsqrt": "rsqrt.default", "Reciprocal": "reciprocal.default",
    "Erf": "erf.default", "Sin": "sin.default", "Cos": "cos.default", "Tan": "tan.default",
    "Asin": "asin.default", "Acos": "acos.default", "Atan": "atan.default",
    "Sinh": "sinh.default", "Cosh": "cosh.default", "Asinh": "asinh.default",
    "Acosh": "acosh.default", "Atanh": "atanh.default", "Tanh": "tanh.default",
    "Sigmoid": "sigmoid.default", "Softplus": "softplus.default",
    "Softsign": "abs.default add.Scalar div.Tensor", "Not": "bitwise_not.default",
    "IsNan": "isnan.default", "IsInf": "isinf.default", "Log1p": "log1p.default",
    "Expm1": "expm1.default", "Log2": "log2.default", "Log10": "log10.default",
    "Exp2": "exp2.default",
}  # fmt: skip
_TESTS = frozenset({"IsNan", "IsInf"})
_NUMBERS = frozenset({"Abs", "Sign"})


def _accepted_types(function: str) -> Accepts:
    """The element types that a function of one element is for."""
    return "logic" if function == "Not" else "number" if function in _NUMBERS else "float"


def _unary_result(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> str:
    return "bool" if attributes.get("op") in _TESTS else types[0].dtype


_EACH: tuple[Trait, ...] = ("elementwise",)
_MIN = optional("min", "float", float("-inf"))
_MAX = optional("max", "float", float("inf"))

ELEMENTWISE = (
    row("Compare", "whether a relation holds, broadcast", "lhs:any rhs:same",
        required("op", "word", *_COMPARE), result=fixed_type("bool"),
        traits=("elementwise", "commutative", "flat"), aten=_COMPARE),
    row("Where", "elements of the one or the other, broadcast", "condition:bool a:any b:same",
        result=type_of_operand(1), traits=_EACH, aten="where.self"),
    row("Unary", "a function of each element", "input:any", required("op", "word", *_UNARY),
        result=_unary_result, traits=_EACH, aten=_UNARY,
        by_op={name: _accepted_types(name) for name in _UNARY}),
    row("ReluNan", "the larger of x and 0; NaN stays NaN", "input:number", traits=_EACH,
        aten="relu.default"),
    row("LeakyRelu", "x, below 0 times alpha", "input:float", optional("alpha", "float", 0.01),
        traits=_EACH, aten="leaky_relu.default"),
    row("Elu", "x, below 0 alpha * (e^x - 1)", "input:float", optional("alpha", "float", 1.0),
        traits=_EACH, aten="elu.default"),
    row("Selu", "gamma times Elu", "input:float",
        optional("alpha", "float", 1.6732632423543772),
        optional("gamma", "float", 1.0507009873554805), traits=_EACH, aten="elu.default"),
    row("HardSigmoid", "alpha * x + beta, held between 0 and 1", "input:float",
        optional("alpha", "float", 0.2), optional("beta", "float", 0.5), traits=_EACH,
        aten="mul.Scalar add.Scalar clamp.default"),
    row("HardSwish", "x times min(max(x + 3, 0), 6) / 6", "input:float", traits=_EACH,
        aten="hardswish.default"),
    row("Gelu", "x times the normal distribution function of x", "input:float",
        optional("approximate", "word", "none", "none", "tanh"), traits=_EACH,
        aten="gelu.default"),
    row("Silu", "x times Sigmoid of x", "input:float", traits=_EACH, aten="silu.default"),
    row("Clip", "x held between two numbers", "input:number", _MIN, _MAX, traits=_EACH,
        aten="clamp.default"),
    row("PRelu", "x, below 0 times a slope that broadcasts to x", "input:float slope:same",
        traits=_EACH, aten="gt.Scalar mul.Tensor where.self"),
    row("Cast", "the same values in another element type", "input:any",
        required("to", "dtype"), optional("saturate", "bool", False),
        result=type_of_attribute("to"), traits=_EACH, aten="_to_copy.default"),
)  # fmt: skip
