"""A plan as the machine takes it: instructions, constants, where jumps lead; checked as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from nacre.base.diagnostics import Diagnostic, InputError, in_order
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.positions import BinarySource, Position, finding
from nacre.nac.format.reading import ReadContext
from nacre.nac.format.sections import orch
from nacre.nac.format.values import Constant, Header, Plan
from nacre.nac.mep.coding import Field, Step, decode_steps
from nacre.nac.mep.table import Operand
from nacre.nac.rules.container import NAC05
from nacre.nac.rules.plans import NAC84, NAC85, NAC86

TAG = b"ORCH"
CODE_AT = 12  # the bytecode begins behind the tag and two numbers
_MOST_FINDINGS = 100
_NAME = "<plan>"


@dataclass(frozen=True, eq=False)
class Program:
    """A plan whose instructions, jumps and constants are sound."""

    plan: Plan
    steps: tuple[Step, ...]
    starts: tuple[int, ...]  # where each instruction begins in the bytecode
    source: Source
    base: int = 0  # where the section begins in the source

    @cached_property
    def pool(self) -> Mapping[int, Constant]:
        """The constants by id."""
        return MappingProxyType({made.id: made for made in self.plan.constants})

    @cached_property
    def index_at(self) -> Mapping[int, int]:
        """Instructions by where they begin; the end of the bytecode counts as one."""
        ends = (*self.starts, len(self.plan.bytecode))
        return MappingProxyType({start: index for index, start in enumerate(ends)})

    @cached_property
    def loop_ends(self) -> Mapping[int, int]:
        """The end of each loop by its start; loops that lie in each other are told apart."""
        return MappingProxyType(dict(_loops(self.steps)))

    def target(self, index: int, jump: int) -> int | None:
        """The instruction that a jump leads to, None where none begins there."""
        return self.index_at.get(self.starts[index] + self.steps[index].size + jump)

    def finding(
        self, index: int | None, rule: Rule, message: str, help: str | None = None
    ) -> Diagnostic:
        """A finding about an instruction, or about the plan as a whole."""
        at = self.base if index is None else self.base + CODE_AT + self.starts[index]
        return finding(rule, self.source, Position(at, "ORCH", index), message, help)


def _loops(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    open_: list[int] = []
    for index, step in enumerate(steps):
        if step.row.mnemonic == "loop_start":
            open_.append(index)
        elif step.row.mnemonic == "loop_end" and open_:
            yield open_.pop(), index


def read(raw: bytes | bytearray | memoryview) -> Plan:
    """The plan of an ORCH section, tag included; InputError says what cannot be read."""
    view = memoryview(raw)
    reading = ReadContext(BinarySource(_NAME, len(view)), Header())
    plan = Plan()
    try:
        plan = _section(view, reading)
    except Broken as problem:
        reading.report_broken(problem)
    if reading.findings:
        raise InputError(in_order(reading.findings))
    return plan


def _section(view: memoryview, reading: ReadContext) -> Plan:
    tag = bytes(view[: len(TAG)])
    if tag != TAG:
        raise Broken(NAC05, Position(0, "ORCH"), f"the tag is {tag!r}, expected {TAG!r}")
    cursor = Cursor(view, "ORCH", len(TAG))
    plan = orch.read(cursor, reading)
    if cursor.remaining:
        raise Broken(
            NAC84, cursor.position(), f"{cursor.remaining:,} bytes follow the last constant"
        )
    return plan


def to_bytes(plan: Plan) -> bytes:
    """The ORCH section of a plan, tag included."""
    return TAG + orch.write(plan)


def program_of(
    plan: Plan | bytes | bytearray | memoryview, source: Source | None = None, base: int = 0
) -> Program:
    """A plan taken apart and checked; InputError has all that is wrong with it.

    With a source, places are those of the file whose section begins there.
    """
    parsed = plan if isinstance(plan, Plan) else read(plan)
    source = source or BinarySource(_NAME, len(to_bytes(parsed)))
    try:
        steps, starts = decode_steps(parsed.bytecode, base + CODE_AT)
    except Broken as problem:
        diagnostic = finding(problem.rule, source, problem.position, problem.message, problem.help)
        raise InputError([diagnostic]) from None
    program = Program(parsed, steps, starts, source, base)
    wrong = list(_findings(program))[:_MOST_FINDINGS]
    if wrong:
        raise InputError(wrong)
    return program


def _findings(program: Program) -> Iterator[Diagnostic]:
    for index, step in enumerate(program.steps):
        if step.row.mnemonic == "loop_start" and index not in program.loop_ends:
            yield program.finding(index, NAC85, "the loop that begins here has no end")
        for operand, field in step.operands_with_fields():
            if operand.kind in ("const", "text"):
                yield from _constant_findings(program, index, operand, field)
            elif operand.kind == "jump":
                yield from _jump_findings(program, index, field)


def _jump_findings(program: Program, index: int, field: Field) -> Iterator[Diagnostic]:
    assert isinstance(field, int)
    if program.target(index, field) is None:
        step = program.steps[index]
        at = program.starts[index] + step.size + field
        message = f"no instruction begins at byte {at:,} of the bytecode"
        yield program.finding(index, NAC85, f"`{step.row.mnemonic}`: {message}")


def _constant_findings(
    program: Program, index: int, operand: Operand, field: Field
) -> Iterator[Diagnostic]:
    assert isinstance(field, int)
    mnemonic = program.steps[index].row.mnemonic
    constant = program.pool.get(field)
    if constant is None:
        message = f"`{mnemonic}`: the pool has no constant {field}"
        yield program.finding(index, NAC86, message)
    elif operand.kind == "text" and not isinstance(constant.value, str):
        kind = type(constant.value).__name__
        message = f"`{mnemonic}`: `{operand.name}` is constant {field}, a {kind}, expected a text"
        yield program.finding(index, NAC86, message)
