"""The element types and quantisations that an opcode must work with, from registry and families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.families import (
    ABSENT,
    ANY,
    Instance,
    effective_by_opcode,
    standard_families,
)
from nacre.nem.model.target import builtin_device
from nacre.nem.spec.opcodes import OPCODES, Opcode

# plain: no `quant` at all; raw_output: on the inputs alone; else: on every operand that can.
Form = Literal["plain", "per_tensor", "per_channel", "per_group", "raw_output"]

# A store that quantises is no opcode of its own, and no backend is asked for it.
STORE = "store"
_STORE_FORMS: tuple[Form, ...] = ("per_tensor", "per_channel")

_CONVOLUTION_FAMILIES = "conv2d"  # its combinations stand for convolutions without a family
_RESCALING = frozenset({"pad", "avgpool", "reduce_sum", "reduce_max", "reduce_min"})


@dataclass(frozen=True)
class TypeCombination:
    """One combination of element types, by operand; what is not named is left out."""

    elems: Mapping[str, str]
    form: Form
    accumulator: str | None

    def label(self, opcode: Opcode) -> str:
        """`i8, i8, i32 -> i8 per_channel`, or one name where all are of one type."""
        inputs = [self.elems[o.name] for o in opcode.inputs if o.name in self.elems]
        outputs = [self.elems[o.name] for o in opcode.outputs]
        is_one = len({*inputs, *outputs}) == 1 and opcode.category != "conversion"
        text = inputs[0] if is_one else f"{', '.join(inputs)} -> {', '.join(outputs)}"
        has_bias = opcode.category in ("linear_algebra", "convolution") and len(inputs) > 2
        mark = " with bias" if is_one and has_bias else ""
        return f"{text}{mark}" if self.form == "plain" else f"{text} {self.form}"


def type_combinations(opcode: Opcode) -> Iterator[TypeCombination]:
    """Every combination that a family has or, without family, the definition of numbers allows."""
    for elems, accumulator in _element_choices(opcode):
        for form in _forms(opcode, elems):
            yield TypeCombination(elems, form, accumulator)


def _element_choices(opcode: Opcode) -> Iterator[tuple[dict[str, str], str | None]]:
    if opcode.families:
        for instance in _instances()[opcode.name]:
            for elems in _bind_types(opcode, instance):
                yield elems, instance.attributes.get("accum")
    elif opcode.category == "convolution":
        for instance in _instances()[_CONVOLUTION_FAMILIES]:
            (elems,) = _bind_types(opcode, instance)
            if len({elems[name] for name in opcode.same_elem}) == 1:
                yield elems, instance.attributes.get("accum")
    else:
        yield from ((elems, None) for elems in _choose_free_types(opcode, {}))


@cache
def _instances() -> dict[str, list[Instance]]:
    known = standard_families().values()
    return effective_by_opcode(i for family in known for i in family.instances.values())


def _bind_types(opcode: Opcode, instance: Instance) -> Iterator[dict[str, str]]:
    """The operands' types in a variant; every type there is for those that it leaves open."""
    fixed = {
        operand.name: elem
        for family_operand, elem in instance.operands.items()
        for operand in opcode.operands_bound_to(family_operand)
        if elem not in (ABSENT, ANY)
    }
    absent = {n for n, elem in instance.operands.items() if elem == ABSENT}
    yield from _choose_free_types(opcode, fixed, absent)


def _choose_free_types(
    opcode: Opcode, fixed: Mapping[str, str], absent: set[str] | None = None
) -> Iterator[dict[str, str]]:
    """The fixed types with every choice for the other operands; some share one choice."""
    names = [o.name for o in opcode.operands if o.name not in (absent or ())]
    leaders = {name: opcode.same_elem[0] for name in opcode.same_elem if name not in fixed}
    slots = dict.fromkeys(leaders.get(name, name) for name in names if name not in fixed)
    for chosen in product(*(_choices(opcode, slot) for slot in slots)):
        by_slot = dict(zip(slots, chosen, strict=True))
        yield {n: fixed[n] if n in fixed else by_slot[leaders.get(n, n)] for n in names}


def _choices(opcode: Opcode, operand: str) -> list[str]:
    spec = opcode.operand(operand)
    integers_only = spec is not None and spec.elem == "integer"
    return [e.name for e in ELEMENT_TYPES.values() if e.is_integer or not integers_only]


def _forms(opcode: Opcode, elems: Mapping[str, str]) -> tuple[Form, ...]:
    if opcode.name in ("quantize", "dequantize"):
        return "per_tensor", "per_channel", "per_group"
    if not all(ELEMENT_TYPES[elem].is_integer for elem in elems.values()):
        return ("plain",)
    if opcode.category in ("linear_algebra", "convolution"):
        return "per_tensor", "per_channel", "per_group", "raw_output"
    if opcode.category.startswith("elementwise"):
        needs_quant = "integers_need_quant" in opcode.traits
        return (*(() if needs_quant else ("plain",)), "per_tensor", "per_channel")
    return ("plain", "per_tensor") if opcode.name in _RESCALING else ("plain",)


def store_combinations() -> Iterator[TypeCombination]:
    """The types between which a store can quantise, as `quantize` names them."""
    quantize = OPCODES["quantize"]
    (source,), (target,) = quantize.inputs, quantize.outputs
    for instance in builtin_device("nem_reference").effective_by_opcode["store"]:
        elems = {source.name: instance.operands["src"], target.name: instance.operands["dst"]}
        for form in _STORE_FORMS:
            yield TypeCombination(elems, form, None)


def tried_names() -> tuple[str, ...]:
    """What can be tried by its name: those that compute, and stores that quantise."""
    return (*(opcode.name for opcode in tried_opcodes()), STORE)


def tried_opcodes() -> tuple[Opcode, ...]:
    """The opcodes that compute something by themselves."""
    aside = ("data_movement", "generic")
    return tuple(o for o in OPCODES.values() if o.category not in aside)
