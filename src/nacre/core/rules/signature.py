"""MOD10-MOD13: opcodes, operand counts, attributes, and the declared type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.module import TensorType
from nacre.core.ops import V1_TYPES, AttributeSpec, OpSpec, Profile
from nacre.core.rules.facts import OperationFacts, operation_rule
from nacre.core.values import Attributes, Custom, Literal, Word

_MODEL = "IR module model"
_BOUND: int = 10**40  # larger numbers are not shown in a message
_I64 = GRAPH_TYPES["i64"]
_MOST_FLOAT = int(GRAPH_TYPES["f64"].largest_finite)
_MOST_ELEMENTS = (1 << 63) - 1
_MOST_AXES = 64  # arrays have no more

# Attributes that a rule of their own judges: which is missing, which is of another kind.
_MISSING_ELSEWHERE = {("ConstTensor", "dtype"), ("ConstTensor", "shape"), ("Input", "name")}
_KIND_ELSEWHERE = {
    ("ConstTensor", "dtype"),
    ("ConstTensor", "shape"),
    ("ConstTensor", "data"),
    ("ConstI64", "value"),
    ("Conv2d", "padding"),
}
# Numbers whose range a rule of their own judges.
_RANGE_ELSEWHERE = {("ConstF32", "value"), ("ConstF64", "value"), ("Reshape", "new_shape")}


@operation_rule("MOD10", "signature", _MODEL)
def signature(facts: OperationFacts) -> Iterator[str]:
    """The number of operands is wrong, an attribute is missing, unknown, or of another kind.

    An opcode that does not exist, or not in the profile, is reported with this code too.
    """
    yield from signature_problems(facts.spec, len(facts.types), facts.attributes)


def signature_problems(spec: OpSpec, count: int, attributes: Attributes) -> Iterator[str]:
    """What is wrong with the number of operands and with the attributes."""
    if not spec.takes(count):
        yield f"`{spec.name}` has {count} operands, expected {_count_text(spec)}"
    for wanted_one in spec.attributes:
        is_ours = (spec.name, wanted_one.name) not in _MISSING_ELSEWHERE
        if wanted_one.is_required and is_ours and wanted_one.name not in attributes:
            yield f"`{spec.name}` lacks the attribute `{wanted_one.name}`"
    known = [one.name for one in spec.attributes]
    for name, value in attributes.items():
        attribute = spec.attribute(name)
        if attribute is None:
            yield f"`{spec.name}` has no attribute {_name_text(name)}{_hint(name, known)}"
        elif (spec.name, name) in _KIND_ELSEWHERE:
            continue
        elif not is_of_kind(attribute, value):
            yield f"attribute `{name}` of `{spec.name}` is not {KINDS[attribute.kind]}"
        elif (spec.name, name) not in _RANGE_ELSEWHERE and not _is_in_range(attribute, value):
            message = f"attribute `{name}` of `{spec.name}` has a number outside of"
            yield f"{message} {_RANGES[attribute.kind]}"


def _count_text(spec: OpSpec) -> str:
    if spec.most is None:
        return f"at least {spec.least}"
    return str(spec.most) if spec.least == spec.most else f"{spec.least} to {spec.most}"


def _hint(name: object, known: list[str]) -> str:
    hint = did_you_mean(name, known) if isinstance(name, str) else None
    return f"; {hint}" if hint else ""


def _name_text(name: object) -> str:
    return backquote(name) if isinstance(name, str) else f"a {type(name).__name__}"


KINDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "`true` or `false`",
    "string": "a string in quotes",
    "word": "a word",
    "dtype": "an element type",
    "ints": "a list of integers",
    "floats": "a list of numbers",
    "data": "a number or nested lists of numbers",
    "padding": "`Valid`, `Same` or `Custom([[t, b], [l, r]])`",
}


def is_of_kind(spec: AttributeSpec, value: object) -> bool:
    """Whether a value is of the kind that an attribute asks for."""
    kind = spec.kind
    if kind == "bool":
        return isinstance(value, bool)
    if kind in ("word", "dtype"):
        return isinstance(value, Word)
    if kind == "string":
        return isinstance(value, str) and not isinstance(value, Word)
    if kind == "padding":
        return isinstance(value, Word | Custom)
    if kind == "data":
        return isinstance(value, Literal | tuple | bool | int | float)
    if kind == "int":
        return type(value) is int
    if kind == "float":
        return _is_number(value)
    if not isinstance(value, tuple):
        return False
    if kind == "ints":
        return all(type(item) is int for item in value)
    return all(_is_number(item) for item in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_i64(value: int) -> bool:
    """Whether an integer has a place in 64 bits."""
    return _I64.lowest <= value <= _I64.highest


def _is_in_range(spec: AttributeSpec, value: object) -> bool:
    """Whether integers can be what they are for: of 64 bits, or floats."""
    items = value if isinstance(value, tuple) else (value,)
    numbers = [item for item in items if isinstance(item, int)]
    if spec.kind in ("float", "floats"):
        return all(-_MOST_FLOAT <= number <= _MOST_FLOAT for number in numbers)
    return all(map(is_i64, numbers))


_RANGES = {
    **dict.fromkeys(("int", "ints"), "-2^63 to 2^63 - 1"),
    **dict.fromkeys(("float", "floats"), "what floats hold"),
}


def is_bounded(value: int) -> bool:
    """Whether an integer is short enough for a message."""
    return -_BOUND < value < _BOUND


def number_text(value: int) -> str:
    """An integer for a message, short whatever it is."""
    if is_bounded(value):
        return str(value)
    return "10^40 or more" if value > 0 else "-10^40 or less"


def shape_text(dims: Sequence[int]) -> str:
    """Dimensions or axes for a message, cut where there are many."""
    shown = ", ".join(map(number_text, dims[:8]))
    return f"[{shown}, ...]" if len(dims) > 8 else f"[{shown}]"


def type_text(type_: TensorType) -> str:
    """A type for a message: whole where it can be one, else cut."""
    is_short = type_.rank <= _MOST_AXES and all(map(is_bounded, type_.shape))
    return str(type_) if is_short else f"tensor<{type_.dtype}{shape_text(type_.shape)}>"


def element_count(dims: Iterable[int]) -> int:
    """How many elements a shape has; from 2^63 on always that many, so that numbers stay small."""
    count = 1
    for dim in dims:
        count = max(-1 - _MOST_ELEMENTS, min(count * dim, _MOST_ELEMENTS + 1))
    return count


def count_text(count: int) -> str:
    """A number of elements for a message."""
    return str(count) if count <= _MOST_ELEMENTS else "more than 2^63 - 1"


@operation_rule("MOD11", "declared-type", _MODEL)
def declared_type(facts: OperationFacts) -> Iterator[str]:
    """The declared result type is not the one that follows from operands and attributes."""
    inferred = facts.spec.infer(facts.types, facts.attributes)
    if inferred is None:
        if facts.spec.name != "Input":
            yield f"`{facts.opcode}` has no result for these operands and attributes"
    elif inferred != facts.type:
        yield f"`{facts.opcode}` gives {type_text(inferred)}, declared {type_text(facts.type)}"


@operation_rule("MOD12", "dimensions-positive", "Verification 3")
def dimensions_positive(facts: OperationFacts) -> Iterator[str]:
    """A dimension of a tensor is zero or negative, or there are too many elements or axes.

    A tensor has at most 2^63 - 1 elements and 64 axes.
    """
    problem = dimension_problem(facts.type)
    if problem is not None:
        yield problem


def dimension_problem(type_: TensorType) -> str | None:
    """What is wrong with the shape of a type."""
    if not is_well_formed(type_):
        return "the shape is not a list of integers"
    shape = type_.shape
    if len(shape) > _MOST_AXES:
        return f"the tensor has {len(shape)} axes, expected at most {_MOST_AXES}"
    for axis, dim in enumerate(shape):
        if dim <= 0:
            message = f"dimension {axis} of {type_text(type_)} is {number_text(dim)}"
            return f"{message}, expected a positive number"
    if element_count(shape) > _MOST_ELEMENTS:
        return f"{type_text(type_)} has more elements than 2^63 - 1"
    return None


def is_well_formed(type_: TensorType) -> bool:
    """Whether a shape is a tuple of integers."""
    shape: object = type_.shape
    return isinstance(shape, tuple) and all(type(d) is int for d in shape)


@operation_rule("MOD13", "element-type", "Instruction set and semantics")
def element_type(facts: OperationFacts) -> Iterator[str]:
    """The element type is not one of the profile's: `i32`, `i64`, `f32` and `f64` in `core-v1`."""
    problem = element_problem(facts.type, facts.profile)
    if problem is not None:
        yield problem


def element_problem(type_: TensorType, profile: Profile) -> str | None:
    """What is wrong with the element type of a type."""
    known = V1_TYPES if profile == "core-v1" else GRAPH_TYPES
    dtype: object = type_.dtype
    if isinstance(dtype, str) and dtype in known:
        return None
    return f"{_name_text(dtype)} is no element type of `{profile}`"
