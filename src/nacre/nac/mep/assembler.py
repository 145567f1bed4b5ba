"""Plans as text: labels, named slots, named and pooled constants, comments.

    .const word = "again"                           ; comments go to the end of a line
            src_user_prompt %count, int, "count"    ; a literal is a constant without a name
            src_constant    %word, $word
            src_constant    %text, ""
            loop_start      %count
    next:   string_format   %text, "{}{} ", [%text, %word]
            loop_end        next
            return          [%text]

Slots are `%name` or `%12`, constants `$name`, `$12` or a literal: a text as in JSON, a number,
`true`, `false`, `null`, `[1, 2]`, `[0.5, 1]`, or `raw TYPE LENGTH "hexadecimal"` for bytes that no
literal says. A name gets the lowest slot that is free; the same text always gives the same bytes.
"""

from __future__ import annotations

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.nac.format.values import Constant
from nacre.nac.mep.lines import Line, LineError
from nacre.nac.mep.numbering import MOST_FINDINGS, Assembly, NumberAllocator
from nacre.nac.mep.operands import (
    MOST_ID,
    READERS,
    Instruction,
    Written,
    choice,
    literal,
    small_number,
)
from nacre.nac.mep.program import to_bytes
from nacre.nac.mep.table import ROWS_OF_MNEMONIC, Operand, Row
from nacre.nac.rules.plans import NAC80, NAC81


def assemble(text: str, name: str = "<plan>") -> bytes:
    """The ORCH section of a plan; InputError has everything that is wrong with the text."""
    source = Source(name, text)
    assembly = Assembly(source)
    for number in range(1, len(source.line_starts) + 1):
        try:
            _line(assembly, Line(source, number))
        except LineError as problem:
            assembly.findings.append(problem.diagnostic)
        if len(assembly.findings) >= MOST_FINDINGS:
            break
    if not assembly.findings:
        plan = NumberAllocator(assembly).plan()
    if assembly.findings:
        raise InputError(assembly.findings)
    return to_bytes(plan)


def _line(assembly: Assembly, line: Line) -> None:
    while line.has("word") and line.has("mark", ":", ahead=1):
        label = line.take("word", "a label")
        line.take_mark(":")
        if label.text in assembly.labels:
            message = f"label {backquote(label.text)} is defined twice"
            raise LineError(NAC81, label.span, message)
        assembly.labels[label.text] = len(assembly.steps)
    if line.next is None:
        return
    if line.next.kind == "directive":
        _directive(assembly, line)
    else:
        assembly.steps.append(_instruction(line))
    if line.next is not None:
        message = f"found {backquote(line.next.text)}, expected the end of the line"
        raise LineError(NAC80, line.next.span, message)


def _directive(assembly: Assembly, line: Line) -> None:
    line.take("directive", "`.const`", ".const")
    key = line.take("number" if line.has("number") else "word", "the name or id of a constant")
    line.take_mark("=")
    if key.kind == "word":
        is_twice = key.text in assembly.named
        assembly.named[key.text] = literal(line)
    else:
        id_ = small_number(key, MOST_ID, "the id of a constant")
        is_twice = id_ in assembly.given
        value = literal(line)
        assembly.given[id_] = Constant(id_, value.tag, value.payload, value.ignored)
    if is_twice:
        raise LineError(NAC81, key.span, f"constant {backquote(key.text)} is defined twice")


def _instruction(line: Line) -> Instruction:
    word = line.take("word", "an instruction")
    rows = ROWS_OF_MNEMONIC.get(word.text.lower())
    if rows is None:
        hint = did_you_mean(word.text, ROWS_OF_MNEMONIC)
        raise LineError(NAC80, word.span, f"there is no instruction {backquote(word.text)}", hint)
    row = _choose_row(rows, line)
    operands: list[Written] = []
    for place, operand in enumerate(row.operands):
        if place:
            line.take_mark(",")
        operands.append(READERS[operand.kind](line, operand))
    return Instruction(row, tuple(operands), word.span)


def _choose_row(rows: tuple[Row, ...], line: Line) -> Row:
    """The row whose first choice the line makes; reading that choice reports what is none."""
    if len(rows) == 1:
        return rows[0]
    known = {word: row for row in rows for word in row.operands[0].words.values()}
    if line.next is None or line.next.text not in known:
        choice(line, Operand(rows[0].operands[0].name, "choice", dict(enumerate(known))))
    assert line.next is not None
    return known[line.next.text]
