"""How the findings about types are worded, and what they advise."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.base.diagnostics import Diagnostic
from nacre.base.hints import setting
from nacre.base.rules import Check
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import Violation
from nacre.nem.checks.tasks import operand_declaration, operand_span
from nacre.nem.model.matching import Difference, Match, join_names
from nacre.nem.spec.opcodes import Opcode

REFERENCE = "nem_reference"  # the built-in device that has every variant


def available_text(facts: ProgramFacts, violation: Violation) -> str:
    """What the device has for the opcode; how to get more where no device is named."""
    ids = [match.instance.id for match in violation.matches.available]
    where = f"`{facts.device.name}`" if facts.device_is_named else "every device"
    listed = ", ".join(ids) if ids else "none"
    text = f"variants for `{violation.task.op}` on {where}: {listed}"
    if facts.device_is_named:
        return text
    named = setting("`--device`", "`device=`")
    return f"{text}; name a device that has more, such as `{REFERENCE}`, by `device` or {named}"


def cast_help(opcode: Opcode, nearest: Match | None) -> str | None:
    """Which operands to convert, where that alone would make the task legal."""
    if nearest is None or not nearest.differences:
        return None
    if any(d.kind != "elem" for d in nearest.differences):
        return None
    outputs = {spec.name for spec in opcode.outputs}
    before = [d for d in nearest.differences if d.names[0] not in outputs]
    after = [d for d in nearest.differences if d.names[0] in outputs]
    parts = []
    if before:
        parts.append(f"`cast` {_casts_text(before)} first")
    if after:
        parts.append(f"write {join_names(_names(after))} as {after[0].wanted} and `cast` it after")
    return ", ".join(parts)


def _casts_text(differences: Sequence[Difference]) -> str:
    by_type: dict[str, list[Difference]] = {}
    for difference in differences:
        by_type.setdefault(difference.wanted, []).append(difference)
    return ", ".join(f"{join_names(_names(group))} to {elem}" for elem, group in by_type.items())


def _names(differences: Sequence[Difference]) -> list[str]:
    return list(dict.fromkeys(name for d in differences for name in d.names))


def first_operand_finding(
    facts: ProgramFacts, check: Check[ProgramFacts], violation: Violation, message: str
) -> Diagnostic:
    """Blame the first operand that differs from the nearest variant that the device has."""
    nearest = violation.matches.nearest or violation.nearest
    operand = violation.task.operands[
        next(p for d in nearest.differences for p in d.operand_indices)
    ]
    return check.at(
        operand_span(facts, operand, "elem"),
        message,
        related=operand_declaration(facts, operand, "elem"),
        help=cast_help(violation.opcode, nearest),
    )


def bindings_text(violation: Violation) -> str:
    """`` `A` is i8, `B` is i16 ``: what families bind, in order."""
    bound = {
        s.name
        for name in violation.nearest.instance.operands
        for s in violation.opcode.operands_bound_to(name)
    }
    uses = [use for use in violation.matches.signature.uses if use.name in bound]
    pairs = dict.fromkeys((use.name, use.elem) for use in uses)
    return ", ".join(f"`{name}` is {elem}" for name, elem in pairs)
