"""What opcodes can compute with: the element types of a variant, and the type that sums have."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.families import ABSENT, ANY, QUANT, REQUIRED, Instance, input_type
from nacre.nem.spec.opcodes import Opcode

Judge = Callable[[Opcode, Instance], str | None]


def bound_types(opcode: Opcode, instance: Instance, directions: Iterable[str]) -> list[str]:
    """The element types that a variant gives to operands, indices and positions left out."""
    types = []
    for name, type_ in instance.operands.items():
        specs = [
            o
            for o in opcode.operands_bound_to(name)
            if o.direction in directions and o.elem is None
        ]
        if specs and type_ in ELEMENT_TYPES:
            types.append(type_)
    return types


def type_problem(opcode: Opcode, instance: Instance) -> str | None:
    """Why an opcode cannot compute with the types of a variant; None where it can."""
    problem = _binding_problem(opcode, instance) or _position_problem(opcode, instance)
    if problem is not None:
        return problem
    judge = _JUDGES.get(opcode.name) or _JUDGES.get(opcode.category)
    return judge(opcode, instance) if judge is not None else None


def _binding_problem(opcode: Opcode, instance: Instance) -> str | None:
    """Why the operands of an opcode have no types, or two of them, by a variant."""
    input_ = input_type(opcode, instance)
    for operand in opcode.operands:
        names = [name for name in instance.operands if operand in opcode.operands_bound_to(name)]
        types = {instance.operands[name] for name in names}
        if len(names) > 1:
            listed = " and ".join(f"`{name}`" for name in names)
            return f"operand `{operand.name}` of `{opcode.name}` is bound twice, as {listed}"
        if operand.required and types == {ABSENT}:
            return f"operand `{operand.name}` of `{opcode.name}` cannot be absent"
        if operand.required and operand.elem is None and not types and input_ is None:
            return f"operand `{operand.name}` of `{opcode.name}` has no type"
        if ANY in types and opcode.name != "cast":
            return f"operand `{operand.name}` of `{opcode.name}` is {ANY}, which only `cast` takes"
    return None


def _position_problem(opcode: Opcode, instance: Instance) -> str | None:
    for name, type_ in instance.operands.items():
        specs = [o for o in opcode.operands_bound_to(name) if o.elem == "integer"]
        if specs and not _is_integer(type_) and type_ not in (ABSENT, ANY):
            return f"`{name}` of `{opcode.name}` is {type_}, expected an integer type"
    return None


def _changed_type_problem(opcode: Opcode, instance: Instance) -> str | None:
    types = list(dict.fromkeys(bound_types(opcode, instance, ("in", "out"))))
    if len(types) <= 1 or opcode.name in ("argmax", "argmin"):
        return None
    return f"`{opcode.name}` keeps the element type, found {' and '.join(types)}"


def _integer_problem(opcode: Opcode, instance: Instance) -> str | None:
    types = list(dict.fromkeys(bound_types(opcode, instance, ("in", "out"))))
    integers = [t for t in types if _is_integer(t)]
    if len(types) <= 1 or not integers or _asks_for_quant(instance):
        return None
    return (
        f"`{opcode.name}` cannot mix {' and '.join(types)}; "
        "with `quant = required` it would compute on real values"
    )


def _conversion_judge(kinds: tuple[bool, bool], words: str) -> Judge:
    def judge(opcode: Opcode, instance: Instance) -> str | None:
        for direction, is_integer in zip(("in", "out"), kinds, strict=True):
            if any(_is_integer(t) != is_integer for t in bound_types(opcode, instance, direction)):
                return f"`{opcode.name}` goes from {words}"
        return None

    return judge


def _asks_for_quant(instance: Instance) -> bool:
    return instance.attributes.get(QUANT) == REQUIRED and instance.quant_on is None


def _is_integer(type_: str) -> bool:
    return type_ in ELEMENT_TYPES and ELEMENT_TYPES[type_].is_integer


_JUDGES: dict[str, Judge] = {
    "view": _changed_type_problem,
    "pooling": _changed_type_problem,
    "reduction": _changed_type_problem,
    "elementwise_unary": _integer_problem,
    "elementwise_binary": _integer_problem,
    "elementwise_other": _integer_problem,
    "normalization": _integer_problem,
    "softmax": _integer_problem,
    "quantize": _conversion_judge((False, True), "floats to integers"),
    "store": _conversion_judge((False, True), "floats to integers where it converts"),
    "dequantize": _conversion_judge((True, False), "integers to floats"),
}


def accumulator_of(opcode: Opcode, instance: Instance) -> str:
    """The type in which the sums of a product are kept."""
    types = bound_types(opcode, instance, ("in",))
    mains = {o.name for o in opcode.operands if o.role in ("input", "weight")}
    named = [
        type_
        for name, type_ in instance.operands.items()
        if any(o.name in mains for o in opcode.operands_bound_to(name))
    ]
    return "i32" if all(_is_integer(t) for t in named or types) else "f32"
