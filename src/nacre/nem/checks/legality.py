"""Which rule a task's types break: the specific one before the general one, one for each cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.tasks import compute_tasks
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
    matches: TypeMatches
    nearest: Match  # on the device where the device is the matter, else in all families
    differences: Differences

    @property
    def operands(self) -> list[Operand]:
        """The operands that the rule speaks of."""
        return [self.task.operands[index] for d in self.differences for index in d.operand_indices]


MatchedTask = tuple[Task, Opcode, TypeMatches]
_by_plan: WeakKeyDictionary[Plan, list[MatchedTask]] = WeakKeyDictionary()


def type_matches(facts: ProgramFacts) -> list[MatchedTask]:
    """Every task that families govern, with what they say about it; made once for a program."""
    if facts.plan not in _by_plan:
        matcher = Matcher(facts.device)
        pairs = ((task, opcode, matcher.match(task)) for task, opcode in compute_tasks(facts))
        _by_plan[facts.plan] = [
            (task, opcode, matches) for task, opcode, matches in pairs if matches
        ]
    return _by_plan[facts.plan]


def violations(facts: ProgramFacts, code: str) -> Iterator[Violation]:
    """The tasks whose types break a rule."""
    for task, opcode, matches in type_matches(facts):
        if matches.is_legal or matches.nearest_known is None:
            continue
        known = matches.nearest_known
        for cause, differences in causes(opcode, matches, known):
            if cause == code:
                yield Violation(task, opcode, matches, known, differences)


def causes(opcode: Opcode, matches: TypeMatches, known: Match) -> Iterator[Cause]:
    """The rules that a task breaks which is not legal on its device."""
    if known.is_exact:
        yield "TYP02", ()
        return
    judge = _JUDGES.get(known.instance.family, _operand_causes)
    yield from (
        judge(opcode, matches, known)
        if _element_differences(known)
        else _operand_causes(opcode, matches, known)
    )


def _element_differences(known: Match) -> Differences:
    return tuple(d for d in known.differences if d.kind == "elem")


def _operand_causes(opcode: Opcode, matches: TypeMatches, known: Match) -> Iterator[Cause]:
    """Families that tell operands apart; where a main operand is another type, that is all."""
    if any(_role(opcode, d) != "bias" for d in _element_differences(known)):
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


def _one_type_judge(inputs_differ: str, output_differs: str) -> Judge:
    """Families with one type for all that they bind."""

    def judge(opcode: Opcode, matches: TypeMatches, known: Match) -> Iterator[Cause]:
        bound = {
            spec.name for name in known.instance.operands for spec in opcode.operands_bound_to(name)
        }
        uses = [use for use in matches.signature.uses if use.name in bound]
        outputs = {spec.name for spec in opcode.outputs}
        inputs = {use.elem for use in uses if use.name not in outputs}
        if len(inputs) > 1:
            yield inputs_differ, _element_differences(known)
        elif any(use.elem not in inputs for use in uses):
            yield output_differs, _element_differences(known)
        else:
            yield "TYP16", _element_differences(known)

    return judge


def _float_causes(opcode: Opcode, matches: TypeMatches, known: Match) -> Iterator[Cause]:
    """Normalisation and softmax: floats only, and scales of the input's type."""
    main = {spec.name for spec in opcode.operands if spec.is_main}
    types = {use.elem for use in matches.signature.uses if use.name in main}
    if any(ELEMENT_TYPES[elem].is_integer for elem in types):
        yield "TYP11", _element_differences(known)
    elif any(name in main for d in _element_differences(known) for name in d.names):
        yield "TYP01", known.differences
    else:
        yield "TYP10", _element_differences(known)


def _pair_judge(code: str) -> Judge:
    """Conversions: the two types make a pair."""

    def judge(opcode: Opcode, matches: TypeMatches, known: Match) -> Iterator[Cause]:
        yield code, _element_differences(known)

    return judge


_JUDGES: dict[str, Judge] = {
    "eltwise": _one_type_judge("TYP07", "TYP08"),
    "view": _one_type_judge("TYP09", "TYP09"),
    "norm": _float_causes,
    "softmax": _float_causes,
    "quantize": _pair_judge("TYP12"),
    "dequantize": _pair_judge("TYP13"),
}
