"""Whether an image keeps the promises of the format, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import prod

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.source import Span
from nacre.tcb.image import DEVICE, STREAM, Block, Image, Item, Operand, Repeat, Stream
from nacre.tcb.judging.blocks import BlockJudge
from nacre.tcb.judging.memories import (
    capacities,
    judge_constants,
    judge_machine,
    judge_origins,
    judge_placements,
    judge_ports,
)
from nacre.tcb.judging.problems import Problem, Problems, findings_of
from nacre.tcb.judging.ranges import Scope, outside, term_problem
from nacre.tcb.limits import MAX_DEPTH, MAX_FINDINGS
from nacre.tcb.rules.image import TCB27, TCB28, TCB32, TCB34, TCB35
from nacre.tcb.text.disassembly import Place


def judge(
    image: Image, name: str = "<image>", spans: Mapping[Place, Span] | None = None
) -> list[Diagnostic]:
    """All that is wrong with an image; the first hundred findings.

    They stand in the text that it was read from, where spans of that are given, else in its own.
    """
    problems: list[Problem] = []
    for problem in _problems(image):
        problems.append(problem)
        if len(problems) >= MAX_FINDINGS:
            break
    return findings_of(image, problems, name, spans)


def _problems(image: Image) -> Problems:
    yield from judge_machine(image.machine)
    known = capacities(image.machine)
    yield from judge_placements(image, known)
    yield from judge_ports(image, known)
    yield from judge_constants(image, known)
    yield from judge_origins(image)
    yield from _judge_streams(image)
    judge_stream = _StreamJudge(BlockJudge(image.machine, known))
    outermost = Scope(())
    for stream in image.streams:
        yield from judge_stream.items(stream.items, stream, outermost)


def _judge_streams(image: Image) -> Problems:
    seen: set[int] = set()
    for at, stream in enumerate(image.streams):
        place = ("stream", at)
        if not DEVICE <= stream.engine < image.machine.engines:
            message = f"a stream is of engine {stream.engine:,}, the machine has "
            yield Problem(TCB34, place, f"{message}{image.machine.engines:,}")
        elif stream.engine in seen:
            owner = "the device" if stream.engine == DEVICE else f"engine {stream.engine}"
            yield Problem(TCB34, place, f"{owner} has two streams")
        seen.add(stream.engine)


class _StreamJudge:
    """Goes down streams, and numbers items as their text does."""

    def __init__(self, blocks: BlockJudge) -> None:
        self._blocks = blocks
        self._numbers = count()

    def items(self, items: Sequence[Item], stream: Stream, scope: Scope) -> Problems:
        before: Item | None = None
        least = scope.repeats[-1].position + 1 if scope.repeats else None
        for at, (item, behind) in enumerate(zip(items, _positions_before(items), strict=True)):
            place = ("item", next(self._numbers))
            if behind is not None and item.position < behind:
                message = f"position {item.position:,} stands behind {behind:,}"
                yield Problem(TCB32, place, message)
            elif least is not None and item.position < least:
                message = f"position {item.position:,} stands in the repeat at {least - 1:,}"
                yield Problem(TCB32, place, message)
            if isinstance(item, Repeat):
                yield from self._repeat(item, stream, scope, place)
            else:
                yield from self._blocks.problems(item, stream.engine, scope, place)
                following = items[at + 1] if at + 1 < len(items) else None
                yield from _judge_chain(item, before, following, place)
            before = item

    def _repeat(self, repeat: Repeat, stream: Stream, scope: Scope, place: Place) -> Problems:
        if scope.depth >= MAX_DEPTH:
            yield Problem(TCB35, place, f"repeats stand at most {MAX_DEPTH} deep in each other")
            self._skip(repeat.items)
            return
        unsound = term_problem(repeat.count, scope.depth)
        found = None if unsound else outside(repeat.count, scope, 0, 1 << 62)
        if unsound or isinstance(found, str):
            yield Problem(TCB27, place, f"the number of iterations: {unsound or found}")
            self._skip(repeat.items)
            return
        if found is not None or repeat.start < 0:
            low = repeat.count if found is None else found[0]
            message = f"a repeat of {low} iterations from {repeat.start:,} on"
            yield Problem(TCB35, place, message)
            self._skip(repeat.items)
            return
        yield from self.items(repeat.items, stream, scope.inside(repeat))

    def _skip(self, items: Sequence[Item]) -> None:
        """Go over items that cannot be judged."""
        for item in items:
            next(self._numbers)
            if isinstance(item, Repeat):
                self._skip(item.items)


def _positions_before(items: Sequence[Item]) -> Iterator[int | None]:
    """The highest position that an item may not be below; None before the first.

    A chain stands where its last block does: blocks that stream into it are of statements that may
    come before others that stand above it, and are ordered among themselves.
    """
    ended: int | None = None  # the position of the last item that ends a chain, as most do alone
    streamed: int | None = None  # of the block before, where it streams into this one
    for item in items:
        is_chained = isinstance(item, Block) and item.is_chained
        known = (streamed,) if is_chained else (ended, streamed)
        yield max((position for position in known if position is not None), default=None)
        streamed = item.position if is_chained else None
        ended = ended if is_chained else item.position


def _judge_chain(
    block: Block, before: Item | None, following: Item | None, place: Place
) -> Problems:
    is_fed = isinstance(before, Block) and before.is_chained
    streamed = [o for o in block.inputs if o is not None and o.memory == STREAM]
    if bool(streamed) != is_fed:
        before_is = "is" if is_fed else "is not"
        message = f"{len(streamed)} inputs are streamed, the block before {before_is} chained"
        yield Problem(TCB28, place, message)
    written = [at for at, o in enumerate(block.outputs) if o.memory == STREAM]
    if written != [0] * block.is_chained:
        message = f"outputs {written} are streamed, expected {[0] * block.is_chained}"
        yield Problem(TCB28, place, message)
    elif block.is_chained and not _reads(following, block.outputs[0]):
        message = "the block is chained, and the next one does not read what it streams"
        yield Problem(TCB28, place, message)


def _reads(item: Item | None, streamed: Operand) -> bool:
    if not isinstance(item, Block):
        return False
    found = [o for o in item.inputs if o is not None and o.memory == STREAM]
    return bool(found) and all(_is_same_stream(operand, streamed) for operand in found)


def _is_same_stream(a: Operand, b: Operand) -> bool:
    """Whether elements lie alike; a store may take those that are dense as bytes."""
    if (a.elem, a.dims, a.strides) == (b.elem, b.dims, b.strides):
        return True
    size = _stream_bytes(a)
    return size is not None and size == _stream_bytes(b)


def _stream_bytes(operand: Operand) -> int | None:
    """The bytes of dense elements; None where they are not."""
    element = ELEMENT_TYPES.get(operand.elem)
    is_dense = operand.strides is None and operand.compression is None
    return bytes_needed(prod(operand.dims), element) if element and is_dense else None
