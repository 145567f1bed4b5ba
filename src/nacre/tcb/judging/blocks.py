"""Promises of blocks: their parts, units, tags and engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.base.terms import Term
from nacre.tcb.block_table import BLOCK, FieldValue
from nacre.tcb.image import DEVICE, Block, Machine, Operand, Tag
from nacre.tcb.judging.operands import judge_operand
from nacre.tcb.judging.problems import Problem, Problems
from nacre.tcb.judging.ranges import Scope, outside, term_problem
from nacre.tcb.rules.image import TCB24, TCB25, TCB26, TCB27, TCB33, TCB36, TCB38
from nacre.tcb.text.disassembly import Place

_MOVES = ("transfer", "store")


class BlockJudge:
    """Judges blocks of one machine."""

    def __init__(self, machine: Machine, memories: Mapping[str, int]) -> None:
        # Here: the primitives take a while to load, and only who judges needs their names.
        from nacre.kernels.registry import PRIMITIVES

        self._machine = machine
        self._memories = memories
        self._units = {**dict(machine.device_units), **dict(machine.units)}
        self._operations = frozenset({*PRIMITIVES, *_MOVES})

    def problems(self, block: Block, stream: int, scope: Scope, place: Place) -> Problems:
        """All that is wrong with a block."""
        yield from _judge_kind(block, place)
        if block.op and block.op not in self._operations:
            help_ = did_you_mean(block.op, self._operations)
            yield Problem(TCB26, place, f"there is no operation {backquote(block.op)}", help_)
        for name, value in block.attributes:
            if isinstance(value, float) and isnan(value):
                yield Problem(TCB36, place, f"attribute {backquote(name)} is no number")
        for name, operand in _operands(block):
            yield from judge_operand(operand, name, scope, self._memories, place)
        yield from self._judge_units(block, scope, place)
        yield from self._judge_tags(block, stream, scope, place)
        yield from self._judge_engine(block, stream, scope, place)

    def _judge_units(self, block: Block, scope: Scope, place: Place) -> Problems:
        for use in block.units:
            count = self._units.get(use.unit)
            if not count:
                help_ = did_you_mean(use.unit, self._units)
                message = f"the machine has no unit {backquote(use.unit)}"
                yield Problem(TCB25, place, message, help_)
            elif use.instance is not None:
                what = f"the instance of {backquote(use.unit)}"
                found = _values(use.instance, scope, 0, count - 1, what, place)
                if isinstance(found, Problem):
                    yield found
                elif found is not None:
                    message = f"{what} is {_range_text(found)}, there are {count}"
                    yield Problem(TCB25, place, message)
            if use.latency < 0 or use.work < 0:
                message = f"{backquote(use.unit)} takes {use.latency:,} and {use.work:,} cycles"
                yield Problem(TCB25, place, message)

    def _judge_tags(self, block: Block, stream: int, scope: Scope, place: Place) -> Problems:
        for wait in block.waits:
            yield from self._judge_tag(wait.tag, 1, stream, scope, place)
            yield from _judge_term(wait.value, "the value of a wait", scope, place)
        if block.signal is not None:
            yield from self._judge_tag(block.signal, 1, stream, scope, place)
        for each in block.sets:
            yield from self._judge_tag(each.tag, each.count, stream, scope, place)
            yield from _judge_term(each.value, "the value of a set", scope, place)

    def _judge_tag(self, tag: Tag, count: int, stream: int, scope: Scope, place: Place) -> Problems:
        owner = "the device" if tag.engine == DEVICE else f"engine {tag.engine}"
        is_there = DEVICE <= tag.engine < self._machine.engines
        if not is_there or (stream != DEVICE and tag.engine not in (stream, DEVICE)):
            message = f"a tag of {owner} is not seen by the stream of engine {stream}"
            absent = f"the machine has no engine {tag.engine} with tags"
            yield Problem(TCB24, place, message if is_there else absent)
            return
        limit = self._machine.device_tags if tag.engine == DEVICE else self._machine.tags
        last = None if limit is None else limit - count
        found = _values(tag.index, scope, 0, last, "the index of a tag", place)
        if isinstance(found, Problem):
            yield found
        elif found is not None:
            first = _range_text(found)
            tags = f"tag {first}" if count == 1 else f"{count:,} tags from {first} on"
            has = "has any number" if limit is None else f"has {limit:,}"
            yield Problem(TCB24, place, f"the block names {tags}, and {owner} {has}")
        if count < 1:
            yield Problem(TCB24, place, f"the block sets {count:,} tags")

    def _judge_engine(self, block: Block, stream: int, scope: Scope, place: Place) -> Problems:
        if block.engine is None:
            return
        if stream != DEVICE:
            message = f"the block names an engine, and stands in the stream of engine {stream}"
            yield Problem(TCB38, place, message)
            return
        last = self._machine.engines - 1
        found = _values(block.engine, scope, 0, last, "the engine of a task", place)
        if isinstance(found, Problem):
            yield found
        elif found is not None:
            message = f"the task runs on engine {_range_text(found)}, the machine has {last + 1}"
            yield Problem(TCB38, place, message)


def _operands(block: Block) -> Iterator[tuple[str, Operand]]:
    for at, operand in enumerate(block.inputs):
        if operand is not None:
            yield f"input {at}", operand
    for at, operand in enumerate(block.outputs):
        yield f"output {at}", operand


def _judge_kind(block: Block, place: Place) -> Problems:
    """A kind has its own parts, and all that it needs."""
    for field in BLOCK.fields:
        value: FieldValue = getattr(block, field.name)
        if field.default is ... or value == field.default:
            continue
        if block.kind not in field.blocks:
            word = field.keyword or field.name
            yield Problem(TCB33, place, f"a `{block.kind}` has no `{word}`")
        elif field.kind == "integer" and value < 0:
            yield Problem(TCB33, place, f"`{field.keyword}` is {value:,}, below 0")
    if block.kind == "task" and not block.op:
        yield Problem(TCB33, place, "the task has no operation")
    if block.kind == "task" and not block.outputs:
        yield Problem(TCB33, place, "the task has no output")


def _judge_term(term: Term, what: str, scope: Scope, place: Place) -> Problems:
    found = _values(term, scope, -(1 << 63), None, what, place)
    if isinstance(found, Problem):
        yield found


def _values(
    term: Term, scope: Scope, low: int, high: int | None, what: str, place: Place
) -> tuple[int, int] | Problem | None:
    """The values of a term if some are outside, or what is wrong with it."""
    unsound = term_problem(term, scope.depth)
    if unsound is not None:
        return Problem(TCB27, place, f"{what}: {unsound}")
    found = outside(term, scope, low, high)
    return Problem(TCB27, place, f"{what}: {found}") if isinstance(found, str) else found


def _range_text(found: tuple[int, int]) -> str:
    return f"{found[0]:,}" if found[0] == found[1] else f"{found[0]:,} to {found[1]:,}"
