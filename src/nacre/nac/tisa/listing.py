"""Programs as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from nacre.nac.tisa import manifest
from nacre.nac.tisa.bundle import broken_as_input_error, split
from nacre.nac.tisa.instructions import (
    BEHAVIOURS,
    TAKES_LEFT,
    TAKES_RIGHT,
    WHOLE_WORD,
    CutRule,
    Instruction,
    Item,
    Operand,
    SoughtToken,
)

_LONGEST_RUN = 3  # REPLACEs of single characters to the same value that are shown one by one
_LONGEST_PATTERN = 72
_LISTED = ("rules", "tokens")  # operands that have a line for each of theirs
_ASKED = {WHOLE_WORD: "WHOLE_WORD", TAKES_LEFT: "TAKES_LEFT", TAKES_RIGHT: "TAKES_RIGHT"}


def disassemble(raw: bytes) -> str:
    """The instructions of a program, one a line; rules and long runs have lines of their own."""
    bundle = split(bytes(raw))
    with broken_as_input_error(len(raw)):
        instructions = manifest.read(bundle.manifest)
    lines = ["TISA 1"]
    lines += _lines(instructions)
    lines += [f"resource {name}: {len(data):,} bytes" for name, data in bundle.resources.items()]
    return "\n".join(lines) + "\n"


def _lines(instructions: Sequence[Instruction]) -> Iterator[str]:
    numbered = list(enumerate(instructions))
    for target, group in groupby(numbered, lambda pair: _replacement_of_one(pair[1])):
        run = list(group)
        if target is not None and len(run) > _LONGEST_RUN:
            first, last = run[0][0], run[-1][0]
            yield f"{first:>4}-{last}  REPLACE {_code_point_range(run)} {target!r}"
            continue
        for index, instruction in run:
            yield from _instruction_lines(index, instruction)


def _replacement_of_one(instruction: Instruction) -> str | None:
    """What a REPLACE of one character makes of it; None for anything else."""
    if instruction.operation.name != "REPLACE" or len(cast(str, instruction.operands[0])) != 1:
        return None
    return cast(str, instruction.operands[1])


def _code_point_range(run: Sequence[tuple[int, Instruction]]) -> str:
    shown = [f"U+{ord(cast(str, i.operands[0])):04X}" for _, i in run]
    return f"{shown[0]} .. {shown[-1]} ({len(shown):,} characters)"


def _instruction_lines(index: int, instruction: Instruction) -> Iterator[str]:
    operation = instruction.operation
    named = [
        (field, value)
        for (_, field), value in zip(operation.operands, instruction.operands, strict=True)
        if value is not None
    ]
    plain = [_operand(value) for field, value in named if field not in _LISTED]
    yield " ".join([f"{index:>4}  {operation.name}", *plain])
    for field, value in named:
        if field in _LISTED:
            rows = cast(tuple[CutRule | SoughtToken, ...], value)
            yield from (f"        {_row(row)}" for row in rows)


def _operand(value: Operand) -> str:
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    return " ".join(_item(cast(str | Item, item)) for item in value or ())


def _row(row: CutRule | SoughtToken) -> str:
    return _rule(row) if isinstance(row, CutRule) else _token(row)


def _token(token: SoughtToken) -> str:
    asked = [word for flag, word in _ASKED.items() if token.flags & flag]
    return " ".join([str(token.id), repr(token.text), *asked])


def _item(item: str | Item) -> str:
    if isinstance(item, Item):
        return "$ids" if item.value is None else repr(item.value)
    return str(item)


def _rule(rule: CutRule) -> str:
    words = ["PROTECTED"] if rule.protected else []
    if rule.behaviour is not None:
        words.append(BEHAVIOURS[rule.behaviour])
    pattern = rule.pattern
    if len(pattern) > _LONGEST_PATTERN:
        pattern = f"{pattern[:_LONGEST_PATTERN]}... ({len(rule.pattern):,} characters)"
    words.append(ascii(pattern)[1:-1].replace("\\\\", "\\"))
    if rule.trim is not None:
        words.append(f"trim {rule.trim!r}")
    return " ".join(words)
