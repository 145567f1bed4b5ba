"""What a row of the operation table says, and how rows are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.values import Attributes
from nacre.kernels.registry import PRIMITIVES

Profile = Literal["core-v1", "nacre-1"]
PROFILES: tuple[Profile, ...] = ("core-v1", "nacre-1")
AttributeKind = Literal[
    "int", "float", "bool", "string", "word", "ints", "data", "dtype", "padding", "floats"
]
# `flat`: the result does not change in small steps, so that its gradient is zero. `opaque`: nothing
# of ours computes it.
Trait = Literal["commutative", "elementwise", "constant", "view", "reduction", "flat", "opaque"]
# Which element types an operand may have; `same` is that of the first operand of its class.
Accepts = Literal[
    "any", "number", "float", "integer", "bool", "logic", "index", "byte", "same", "mask"
]
Infer = Callable[[Sequence[TensorType], Attributes], TensorType | None]
# What is wrong with element types and attribute values together, where something is.
Problem = Callable[[Sequence[str], Mapping[str, Any]], str | None]
Result = Callable[[Sequence[TensorType], Mapping[str, Any]], str]  # the element type of the result

# The element types of the first profile.
V1_TYPES = frozenset({"i32", "i64", "f32", "f64"})

_FLOATS = frozenset(name for name, element in GRAPH_TYPES.items() if element.kind == "float")
_INTEGERS = frozenset(
    name for name, element in GRAPH_TYPES.items() if element.kind in ("signed", "unsigned")
)
CLASSES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "any": frozenset(GRAPH_TYPES),
        "number": _FLOATS | _INTEGERS,
        "float": _FLOATS,
        "integer": _INTEGERS,
        "bool": frozenset({"bool"}),
        "logic": _INTEGERS | {"bool"},
        "index": frozenset({"i32", "i64"}),
        "byte": frozenset({"i8", "u8", "i4", "u4", "i16", "u16", "i32", "f8e4m3", "f8e5m2"}),
        "mask": _FLOATS | {"bool"},
    }
)

# The same in messages: `expected ...`.
CLASS_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "any": "any element type",
        "number": "numbers",
        "float": "floats",
        "integer": "integers",
        "bool": "`bool`",
        "logic": "integers or `bool`",
        "index": "`i32` or `i64`",
        "byte": "a type that is quantised to",
        "mask": "floats or `bool`",
    }
)


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
    operands: tuple[str, ...]  # names; the last ones may be left out
    least: int  # operands that must be given
    most: int | None  # None: the last one may be repeated
    accepts: tuple[Accepts, ...]  # of each operand; rules of `core-v1` judge its own ops
    attributes: tuple[AttributeSpec, ...]
    profile: Profile
    infer: Infer
    aten: Mapping[str, tuple[str, ...]]  # by `op`, else under "": the ATen calls that compute it
    problem: Problem | None = None
    by_op: Mapping[str, Accepts] = MappingProxyType({})  # of the first operand, where `op` decides
    traits: frozenset[Trait] = frozenset()
    primitive: str | None = None  # in the kernels; None: the evaluator has nothing to compute
    no_gradient: str = ""  # why it has none, where it is refused

    def attribute(self, name: str) -> AttributeSpec | None:
        """The attribute of that name."""
        return next((spec for spec in self.attributes if spec.name == name), None)

    def with_defaults(self, attributes: Attributes) -> Mapping[str, Any]:
        """Attributes with the defaults of those that are left out."""
        left_out = {
            a.name: a.default
            for a in self.attributes
            if a.default is not None and a.name not in attributes
        }
        return {**left_out, **attributes} if left_out else attributes

    def accepted_types(self, index: int, op: object = None) -> Accepts:
        """The class of element types of an operand; `op` is the attribute of that name."""
        if index == 0 and isinstance(op, str) and op in self.by_op:
            return self.by_op[op]
        return self.accepts[min(index, len(self.accepts) - 1)]

    def takes(self, count: int) -> bool:
        """Whether it may have so many operands."""
        return count >= self.least and (self.most is None or count <= self.most)


def type_of_operand(index: int) -> Result:
    """The element type of an operand."""
    return lambda types, attributes: types[index].dtype


def fixed_type(dtype: str) -> Result:
    """One element type whatever the operands have."""
    return lambda types, attributes: dtype


def type_of_attribute(attribute: str) -> Result:
    """The element type that an attribute names."""
    return lambda types, attributes: str(attributes[attribute])


def required(name: str, kind: AttributeKind, *choices: str) -> AttributeSpec:
    """An attribute that must be given."""
    return AttributeSpec(name, kind, choices=choices)


def optional(name: str, kind: AttributeKind, default: object, *choices: str) -> AttributeSpec:
    """An attribute with a default."""
    return AttributeSpec(name, kind, default, choices, is_required=False)


def row(
    name: str,
    summary: str,
    operands: str,
    *attributes: AttributeSpec,
    result: Result | None = None,
    infer: Infer | None = None,
    traits: tuple[Trait, ...] = (),
    profile: Profile = "nacre-1",
    aten: str | Mapping[str, str] = "",
    by_op: Mapping[str, Accepts] | None = None,
    problem: Problem | None = None,
    no_gradient: str = "",
) -> OpSpec:
    """A row. Operands are written `x:float scale?:same`, `?` optional, `*` one or more.

    `aten` names the calls that compute the op, one after the other, for each `op` that it has.
    """
    parts = [part.partition(":") for part in operands.split()]
    primitive = f"core.{name}" if f"core.{name}" in PRIMITIVES else None
    calls = {"": aten} if isinstance(aten, str) else aten
    return OpSpec(
        name=name,
        summary=summary,
        operands=tuple(part[0].rstrip("?*") for part in parts),
        least=sum(not part[0].endswith("?") for part in parts),
        most=None if operands.partition(":")[0].endswith("*") else len(parts),
        accepts=tuple(part[2] or "any" for part in parts),  # type: ignore[misc]
        attributes=attributes,
        profile=profile,
        infer=infer or _from_primitive(f"core.{name}", result or type_of_operand(0), attributes),
        aten=MappingProxyType({word: tuple(text.split()) for word, text in calls.items()}),
        problem=problem,
        by_op=MappingProxyType({} if by_op is None else dict(by_op)),
        traits=frozenset(traits),
        primitive=primitive,
        no_gradient=no_gradient,
    )


def _from_primitive(name: str, result: Result, attributes: Sequence[AttributeSpec]) -> Infer:
    """The shape that the primitive gives, with an element type of the row's choice."""
    defaults = {a.name: a.default for a in attributes if a.default is not None}

    def infer(types: Sequence[TensorType], given: Attributes) -> TensorType | None:
        filled: Mapping[str, Any] = {**defaults, **given} if defaults else given
        shapes = PRIMITIVES[name].shape([t.shape for t in types], filled)
        return None if shapes is None else TensorType(result(types, filled), tuple(shapes[0]))

    return infer
