"""Every operation of Core IR, declared once: operands, attributes, profile, primitive, traits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from nacre.core.module import TensorType
from nacre.core.values import Attributes
from nacre.kernels.registry import PRIMITIVES

Profile = Literal["core-v1", "nacre-1"]
PROFILES: tuple[Profile, ...] = ("core-v1", "nacre-1")
AttributeKind = Literal[
    "int", "float", "bool", "string", "word", "ints", "data", "dtype", "padding", "floats"
]
Trait = Literal["commutative", "elementwise", "constant", "view", "reduction"]

# The element types of each profile.
V1_TYPES = frozenset({"i32", "i64", "f32", "f64"})


class AttributeSpec(Struct, frozen=True):
    """One attribute; an optional one has a default."""

    name: str
    kind: AttributeKind
    default: Any = None
    choices: tuple[str, ...] = ()  # of a word, in the op's own profile
    is_required: bool = True


class OpSpec(Struct, frozen=True):
    """One row of the table."""

    name: str
    summary: str
    operands: tuple[str, ...]  # names; the last `least` .. may be left out
    least: int  # operands that must be given
    attributes: tuple[AttributeSpec, ...]
    profile: Profile
    infer: Callable[[Sequence[TensorType], Attributes], TensorType | None]
    traits: frozenset[Trait] = frozenset()
    primitive: str | None = None  # in the kernels; None: the evaluator has nothing to compute

    def attribute(self, name: str) -> AttributeSpec | None:
        """The attribute of that name."""
        return next((spec for spec in self.attributes if spec.name == name), None)


def _from_primitive(name: str, like: int = 0) -> Callable[..., TensorType | None]:
    """The shape that the primitive gives, with the element type of an operand."""

    def infer(types: Sequence[TensorType], attributes: Attributes) -> TensorType | None:
        shapes = PRIMITIVES[name].shape([t.shape for t in types], attributes)
        return None if shapes is None else TensorType(types[like].dtype, tuple(shapes[0]))

    return infer


def _scalar(dtype: str) -> Callable[..., TensorType | None]:
    return lambda types, attributes: TensorType(dtype)


def _declared(types: Sequence[TensorType], attributes: Attributes) -> TensorType | None:
    """A tensor literal says its type itself."""
    dtype, shape = attributes.get("dtype"), attributes.get("shape")
    return TensorType(str(dtype), shape) if dtype and isinstance(shape, tuple) else None


def _open(types: Sequence[TensorType], attributes: Attributes) -> TensorType | None:
    """An input has whatever type it is given."""
    return None


def _row(
    name: str,
    summary: str,
    operands: tuple[str, ...],
    *attributes: AttributeSpec,
    infer: Callable[..., TensorType | None] | None = None,
    traits: tuple[Trait, ...] = (),
    profile: Profile = "core-v1",
) -> OpSpec:
    primitive = f"core.{name}"
    has_kernel = primitive in PRIMITIVES
    function = infer if infer is not None else _from_primitive(primitive)
    return OpSpec(
        name,
        summary,
        operands,
        len(operands),
        attributes,
        profile,
        function,
        frozenset(traits),
        primitive if has_kernel else None,
    )


_A = AttributeSpec
_AXES = _A("axes", "ints")
_KEEPDIMS = _A("keepdims", "bool", default=False, is_required=False)
_ROWS = (
    _row("Input", "a tensor from outside", (), _A("name", "string"), infer=_open),
    _row("ConstI64", "an integer", (), _A("value", "int"), infer=_scalar("i64"),
         traits=("constant",)),
    _row("ConstF32", "a float", (), _A("value", "float"), infer=_scalar("f32"),
         traits=("constant",)),
    _row("ConstF64", "a double", (), _A("value", "float"), infer=_scalar("f64"),
         traits=("constant",)),
    _row("ConstTensor", "a tensor given element by element", (), _A("data", "data"),
         _A("dtype", "dtype"), _A("shape", "ints"), infer=_declared, traits=("constant",)),
    _row("BinOp", "two tensors element by element, broadcast", ("lhs", "rhs"),
         _A("op", "word", choices=("Add", "Sub", "Mul")), traits=("elementwise", "commutative")),
    _row("Sum", "the sum over axes; over all where none is named", ("input",), _AXES, _KEEPDIMS,
         traits=("reduction",)),
    _row("Mean", "the mean over axes; over all where none is named", ("input",), _AXES, _KEEPDIMS,
         traits=("reduction",)),
    _row("Reshape", "the same elements under another shape", ("input",), _A("new_shape", "ints"),
         traits=("view",)),
    _row("Transpose", "the axes in another order", ("input",), _A("permutation", "ints"),
         traits=("view",)),
    _row("ExpandDims", "axes of size 1 inserted", ("input",), _AXES, traits=("view",)),
    _row("Squeeze", "axes of size 1 removed", ("input",), _AXES, traits=("view",)),
    _row("Index", "one element", ("input",), _A("indices", "ints")),
    _row("Slice", "a regular part", ("input",), _A("starts", "ints"), _A("ends", "ints"),
         _A("steps", "ints"), traits=("view",)),
    _row("Gather", "rows by index", ("input", "indices")),
    _row("Dot", "the product of vectors and matrices", ("lhs", "rhs")),
    _row("MatMul", "the product of matrices, batched", ("lhs", "rhs")),
    _row("Conv2d", "two-dimensional convolution, NHWC by HWCF", ("input", "filter"),
         _A("strides", "ints"), _A("padding", "padding", choices=("Valid", "Same"))),
    _row("Relu", "the larger of x and 0", ("input",), traits=("elementwise",)),
    _row("Neg", "x with the opposite sign", ("input",), traits=("elementwise",)),
    _row("Exp", "e to the power x", ("input",), traits=("elementwise",)),
    _row("Log", "the natural logarithm of x", ("input",), traits=("elementwise",)),
)  # fmt: skip

OPS: Mapping[str, OpSpec] = MappingProxyType({row.name: row for row in _ROWS})


def is_commutative(opcode: str, attributes: Attributes) -> bool:
    """Whether an operation's operands may change places."""
    spec = OPS.get(opcode)
    if spec is None or "commutative" not in spec.traits:
        return False
    return attributes.get("op") in ("Add", "Mul", "Min", "Max", "And", "Or", "Xor", "Eq", "Ne")
