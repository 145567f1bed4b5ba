"""TYP20: the attributes of type families."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean
from nacre.nem.checks.family_types import accumulator_of, bound_types
from nacre.nem.model.families import (
    ABSENT,
    ACCUM,
    ACCUMULATOR,
    QUANT,
    REQUIRED,
    Family,
    attribute_name,
    governs,
    is_bound_type,
)
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec, Opcode
from nacre.nem.syntax.ast import AttributeBinding

_MATCHING = "Opcode Type Legality and Type Families / Type Family Matching Rule"
Problem = tuple[str, str | None]  # the message and the help


@rule("TYP20", "attribute-without-meaning", _MATCHING)
def attribute_without_meaning(family: Family) -> Iterator[Diagnostic]:
    """A family says something about an attribute that means nothing.

    `quant` is `required`, on one operand if so said, or `absent`, where integers can carry it.
    `accum` is the type that sums are kept in: i32 of integers, f32 of floats. Attributes of the
    family's opcodes that are words have one of their values: `mode = constant`, `keepdims = true`.
    Whether an attribute must be given is for the opcode registry to say, not for families.

    Bad (-) and good (+):

          type_family pad.zeros<T: {i32}> {
              input: T
              output: T
        -     quant = maybe
        -     mode = zeros
        +     quant = required
        +     mode = constant
              variants:
                  default: {} conformance: { MAY <i32> }
          }
    """
    opcodes = [opcode for opcode in OPCODES.values() if governs(family.name, opcode)]
    seen: set[str] = set()
    for binding in family.node.attributes:
        name = attribute_name(binding.name.name)
        if name in seen:
            problem: Problem | None = (f"`{name}` is given twice", None)
        else:
            problem = _problem(family, opcodes, binding)
        seen.add(name)
        if problem is not None:
            message, help_ = problem
            span = family.source.span(binding.start, binding.end)
            yield attribute_without_meaning.at(span, message, help=help_)


def _problem(family: Family, opcodes: list[Opcode], binding: AttributeBinding) -> Problem | None:
    name = attribute_name(binding.name.name)
    if name == QUANT:
        return _quant_problem(family, opcodes, binding)
    if binding.on is not None:
        return f"`on` belongs to `quant = required`, not to {backquote(name)}", None
    if not opcodes:  # TYP18: nothing will use it
        return None
    if name == ACCUM:
        return _accumulator_problem(family, opcodes, binding)
    specs = [spec for opcode in opcodes if (spec := opcode.attribute(name)) is not None]
    if not specs:
        known = {a.name for opcode in opcodes for a in opcode.attributes} | {QUANT}
        message = f"no opcode of `{family.name}` has an attribute {backquote(name)}"
        listed = ", ".join(f"`{k}`" for k in sorted(known))
        return message, did_you_mean(name, known) or f"known are {listed}"
    return _value_problem(specs[0], binding.value.name)


def _quant_problem(
    family: Family, opcodes: list[Opcode], binding: AttributeBinding
) -> Problem | None:
    value, on = binding.value.name, binding.on
    if value not in (REQUIRED, ABSENT):
        help_ = "leave it out where operands may carry `quant` and need not"
        return f"`quant` is `required` or `absent`, found {backquote(value)}", help_
    if on is not None and value == ABSENT:
        return "`on` belongs to `quant = required`, not to `quant = absent`", None
    operands = (*family.node.operands, *(o for v in family.node.variants for o in v.operands))
    if on is not None and all(o.operand.name != on.name for o in operands):
        names = ", ".join(f"`{o.operand.name}`" for o in operands)
        return f"the family has no operand {backquote(on.name)}", f"its operands are {names}"
    if value == ABSENT or not opcodes:
        return None
    if all(opcode.name == "cast" for opcode in opcodes):
        return (
            "`cast` looks at stored values and never at `quant`",
            "use `quantize` or `dequantize` where real values are meant",
        )
    if not _has_integers(family, opcodes, on.name if on is not None else None):
        what = f"`{on.name}` is" if on is not None else "its operands are"
        return f"`quant` is for integers, and {what} never one", "leave `quant` out"
    return None


def _has_integers(family: Family, opcodes: list[Opcode], on: str | None) -> bool:
    """Whether some variant has an integer operand, or the one that is named is an integer."""
    for instance in family.instances.values():
        for opcode in opcodes:
            types = bound_types(opcode, instance, ("in", "out"))
            if on is not None:
                types = [instance.operands.get(on, "")]
            if any(t in ELEMENT_TYPES and ELEMENT_TYPES[t].is_integer for t in types):
                return True
    return not family.instances  # without a variant there is nothing to judge


def _accumulator_problem(
    family: Family, opcodes: list[Opcode], binding: AttributeBinding
) -> Problem | None:
    summing = [opcode for opcode in opcodes if opcode.attribute(ACCUMULATOR) is not None]
    if not summing:
        return f"no opcode of `{family.name}` has `{ACCUMULATOR}`", "leave `accum` out"
    value = binding.value.name
    if value in (REQUIRED, ABSENT) or not is_bound_type(value, family.node):
        return (
            f"`accum` is an element type, found {backquote(value)}",
            "write `accum = f32` or `i32`",
        )
    for instance in family.instances.values():
        wanted = accumulator_of(summing[0], instance)
        accumulator = instance.attributes[ACCUM]
        if accumulator != wanted:
            return (
                f"`{instance.id}` sums in {accumulator}, "
                f"but the operands' sums are kept in {wanted}",
                f"write `accum = {wanted}`",
            )
    return None


def _value_problem(spec: AttributeSpec, value: str) -> Problem | None:
    if value in (REQUIRED, ABSENT):
        state = "required" if spec.required else "optional"
        return (
            f"`{spec.name}` is {state} by the opcode registry; a family cannot make it `{value}`",
            "name a value, or leave it out",
        )
    allowed = _words(spec)
    if allowed is None:
        return f"`{spec.name}` holds {_KINDS[spec.type]}, which a family cannot ask for", None
    if allowed and value not in allowed:
        listed = ", ".join(f"`{word}`" for word in allowed)
        return f"`{spec.name}` has no value {backquote(value)}", f"its values are {listed}"
    return None


def _words(spec: AttributeSpec) -> tuple[str, ...] | None:
    """The words that an attribute may hold, empty for any; None where it holds no words."""
    if spec.type == "bool":
        return ("true", "false")
    if spec.type == "elem_type":
        return tuple(ELEMENT_TYPES)
    return spec.allowed if spec.type == "id" else None


_KINDS = {
    "int": "an integer",
    "float": "a number",
    "int_list": "integers",
    "string": "text",
}
