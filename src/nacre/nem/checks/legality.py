"""Which rule a task's types break: the specific one before the general one, one for each cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.tasks import computes
from nacre.nem.model.families import Instance
from nacre.nem.model.matching import Difference, Match, Matcher, TypeMatches, quantised_operands
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.plan import Plan
from nacre.nem.spec.opcode_rows import Role
from nacre.nem.spec.opcodes import Opcode

Differences = tuple[Difference, ...]
Cause = tuple[str, Differences]  # the code of a rule, and what it is about


class Violation(Struct, frozen=True):
    """A task that matches no variant of its device, and what a rule has against it."""

    task: Task
    opcode: Opcode
    typing: TypeMatches
    nearest: Match  # on the device where the device is the matter, else in all families
    differences: Differences

    @property
    def operands(self) -> list[Operand]:
        """The operands that the rule speaks of."""
        return [self.task.operands[place] for d in self.differences for place in d.operand_indices]


Typed = tuple[Task, Opcode, TypeMatches]
_made: WeakKeyDictionary[Plan, list[Typed]] = WeakKeyDictionary()


def typings(facts: ProgramFacts) -> list[Typed]:
    """Every task that families govern, with what they say about it; made once for a program."""
    if facts.plan not in _made:
        matcher = Matcher(facts.device)
        pairs = ((task, opcode, matcher.match(task)) for task, opcode in computes(facts))
        _made[facts.plan] = [(task, opcode, typing) for task, opcode, typing in pairs if typing]
    return _made[facts.plan]


def violations(facts: ProgramFacts, code: str) -> Iterator[Violation]:
    """The tasks whose types break a rule."""
    for task, opcode, typing in typings(facts):
        if typing.is_legal or typing.nearest_known is None:
            continue
        known = typing.nearest_known
        for cause, differences in causes(opcode, typing, known):
            if cause == code:
                yield Violation(task, opcode, typing, known, differences)


def causes(opcode: Opcode, typing: TypeMatches, known: Match) -> Iterator[Cause]:
    """The rules that a task breaks which is not legal on its device."""
    if known.is_exact:
        yield "TYP02", ()
        return
    judge = _JUDGES.get(known.instance.family, _by_operand)
    yield from (
        judge(opcode, typing, known) if _elements(known) else _by_operand(opcode, typing, known)
    )


def _elements(known: Match) -> Differences:
    return tuple(d for d in known.differences if d.kind == "elem")


def _by_operand(opcode: Opcode, typing: TypeMatches, known: Match) -> Iterator[Cause]:
    """Families that tell operands apart; where a main operand is another type, that is all."""
    if any(_role(opcode, d) != "bias" for d in _elements(known)):
        yield "TYP01", known.differences
        return
    for difference in known.differences:
        yield _code_of(opcode, known.instance, difference), (difference,)


def _role(opcode: Opcode, difference: Difference) -> Role | None:
    spec = opcode.operand(difference.names[0])
    return spec.role if spec is not None else None


def _code_of(opcode: Opcode, instance: Instance, difference: Difference) -> str:
    if difference.kind == "elem":
        return "TYP06" if ELEMENT_TYPES[difference.wanted].is_integer else "TYP01"
    if difference.kind == "accum":
        return "TYP04"
    if difference.kind == "attribute":
        return "TYP22"
    if difference.kind == "has_quant":
        return "QNT11"
    if difference.kind == "lacks_quant":
        return _quant_code(opcode, instance)
    return "TYP05"


def _quant_code(opcode: Opcode, instance: Instance) -> str:
    roles = {spec.role for spec in quantised_operands(opcode, instance)}
    if instance.quant_on is not None:
        if opcode.category == "conversion":
            return "QNT12" if roles == {"output"} else "QNT13"
    elif opcode.is_product:
        return "QNT10" if roles == {"weight"} else "QNT09"
    return "QNT18"


Judge = Callable[[Opcode, TypeMatches, Match], Iterator[Cause]]


def _one_type(inputs_differ: str, output_differs: str) -> Judge:
    """Families with one type for all that they bind."""

    def judge(opcode: Opcode, typing: TypeMatches, known: Match) -> Iterator[Cause]:
        bound = {
            spec.name for name in known.instance.operands for spec in opcode.operands_bound_to(name)
        }
        uses = [use for use in typing.signature.uses if use.name in bound]
        outputs = {spec.name for spec in opcode.outputs}
        inputs = {use.elem for use in uses if use.name not in outputs}
        if len(inputs) > 1:
            yield inputs_differ, _elements(known)
        elif any(use.elem not in inputs for use in uses):
            yield output_differs, _elements(known)
        else:
            yield "TYP16", _elements(known)

    return judge


def _floats(opcode: Opcode, typing: TypeMatches, known: Match) -> Iterator[Cause]:
    """Normalisation and softmax: floats only, and scales of the input's type."""
    main = {spec.name for spec in opcode.operands if spec.is_main}
    found = {use.elem for use in typing.signature.uses if use.name in main}
    if any(ELEMENT_TYPES[elem].is_integer for elem in found):
        yield "TYP11", _elements(known)
    elif any(name in main for d in _elements(known) for name in d.names):
        yield "TYP01", known.differences
    else:
        yield "TYP10", _elements(known)


def _pairs(code: str) -> Judge:
    """Conversions: the two types make a pair."""

    def judge(opcode: Opcode, typing: TypeMatches, known: Match) -> Iterator[Cause]:
        yield code, _elements(known)

    return judge


_JUDGES: dict[str, Judge] = {
    "eltwise": _one_type("TYP07", "TYP08"),
    "view": _one_type("TYP09", "TYP09"),
    "norm": _floats,
    "softmax": _floats,
    "quantize": _pairs("TYP12"),
    "dequantize": _pairs("TYP13"),
}
