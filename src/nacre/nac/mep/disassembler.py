"""The text of a plan; assembling it gives the same bytes."""

from __future__ import annotations

from nacre.nac.format.values import Plan
from nacre.nac.mep.coding import Field
from nacre.nac.mep.literals import format_literal
from nacre.nac.mep.program import Program, program_of
from nacre.nac.mep.table import Operand

_INDENT = 8
_MNEMONIC = 17  # columns of the longest names in use
_COMMENT = 48  # the column of comments


def disassemble(program: bytes | bytearray | memoryview | Plan) -> str:
    """The text of an ORCH section; InputError has what is wrong with it."""
    taken = program_of(program)
    lines = [f".const {made.id} = {format_literal(made)}" for made in taken.plan.constants]
    labels = _labels(taken)
    for index in range(len(taken.steps)):
        lines.append(_line(taken, index, labels))
    if len(taken.steps) in labels:
        lines.append(f"{labels[len(taken.steps)]}:")
    return "".join(f"{line}\n" for line in lines)


def _labels(program: Program) -> dict[int, str]:
    """A label for each instruction that a jump leads to."""
    targets = {
        target
        for index, step in enumerate(program.steps)
        for operand, field in step.operands_with_fields()
        if operand.kind == "jump" and isinstance(field, int)
        if (target := program.target(index, field)) is not None
    }
    return {target: f"L{target}" for target in sorted(targets)}


def _line(program: Program, index: int, labels: dict[int, str]) -> str:
    step = program.steps[index]
    label = f"{labels[index]}:" if index in labels else ""
    shown: list[str] = []
    comments: list[str] = []
    for operand, field in step.operands_with_fields():
        if operand.kind == "jump" and isinstance(field, int):
            target = program.target(index, field)
            assert target is not None
            shown.append(labels[target])
        else:
            shown.append(_operand(operand, field))
        if operand.kind in ("const", "text") and isinstance(field, int):
            comments.append(_short(format_literal(program.pool[field])))
    text = f"{step.row.mnemonic:{_MNEMONIC}} {', '.join(shown)}".rstrip()
    line = f"{label:{_INDENT}}{text}" if len(label) < _INDENT else f"{label} {text}"
    return f"{line:{_COMMENT}}; {', '.join(comments)}" if comments else line


def _operand(operand: Operand, field: Field) -> str:
    if isinstance(field, tuple):
        return f"[{', '.join(f'%{slot}' for slot in field)}]"
    if operand.kind == "choice":
        return operand.words[field]
    marks = {**dict.fromkeys(("slot", "out", "optional_out"), "%"), "const": "$", "text": "$"}
    return marks.get(operand.kind, "") + str(field)


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
