"""BUF: buffers, and whether they fit in the device's memories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.hints import setting
from nacre.base.rules import Check, declare, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import device_text
from nacre.nem.model.program import Buffer
from nacre.nem.syntax.ast import Expr

_BUFFERS = "Core Program Objects / Buffers"
_CAPACITY = "Device Configuration / Schema Rules 6 (Memory capacity rule)"


@rule("BUF01", "buffer-size-not-positive", _BUFFERS)
def buffer_size_not_positive(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer's size is zero or negative.

    Bad (-) and good (+):

        - buffer B : L2 (size=0)
        + buffer B : L2 (size=64)
    """
    for buffer in facts.program.buffers:
        if buffer.size is not None and buffer.size <= 0 and buffer.node.size is not None:
            message = f"buffer `{buffer.name}` has size {buffer.size}, expected more than 0"
            yield buffer_size_not_positive.at(facts.span(buffer.node.size), message)


@rule("BUF02", "buffer-size-not-an-integer", _BUFFERS)
def buffer_size_not_an_integer(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer's size is not a whole number of bytes: a string, list, boolean or region.

    A float gets LEX04.

    Bad (-) and good (+):

        - buffer B : L2 (size="64")
        + buffer B : L2 (size=64)
    """
    for buffer in facts.program.buffers:
        size = buffer.node.size
        if size is not None and not isinstance(size, Expr):
            message = f"the size of buffer `{buffer.name}` is not a number of bytes"
            yield buffer_size_not_an_integer.at(facts.span(size), message)


@rule("BUF03", "alignment-not-a-power-of-two", _BUFFERS)
def alignment_not_a_power_of_two(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer's alignment is not a power of two.

    Bad (-) and good (+):

        - buffer B : L2 (size=64, align=48)
        + buffer B : L2 (size=64, align=64)
    """
    for buffer in facts.program.buffers:
        if buffer.node.align is not None and not _is_power_of_two(buffer.align):
            yield alignment_not_a_power_of_two.at(
                facts.span(buffer.node.align),
                f"alignment {buffer.align} of buffer `{buffer.name}` is not a power of two",
                help=_near_powers(buffer.align),
            )


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _near_powers(value: int) -> str:
    if value < 1:
        return "the least alignment is 1"
    below = 1 << (value.bit_length() - 1)
    return f"take {below} or {below * 2}"


declare(
    "BUF04",
    "buffer-holds-its-regions",
    _BUFFERS,
    """
    A buffer is large enough for the elements of its regions.

    This follows from the rules on regions: EXT01 when a region reaches past its buffer, EXT02
    and EXT03 when a region is too small for its elements. No diagnostic carries this code.
    """,
    behaviour=True,
)


@rule("BUF05", "no-such-engine", "Abstract Machine Model / Engines")
def no_such_engine(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer lies in the L1 of an engine that the device does not have.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device npm_lite
        - buffer B : L1[4] (size=64)
        + buffer B : L1[0] (size=64)
    """
    engines = facts.device.num_engines
    for buffer in facts.program.buffers:
        level = buffer.node.level
        if level is None or facts.device.is_abstract or _has_engine(facts, buffer):
            continue
        last = f"L1[0] to L1[{engines - 1}]" if engines > 1 else "L1[0] only"
        here = f"buffer `{buffer.name}` is in L1[{buffer.engine}]"
        message = f"{here}, but {device_text(facts)} has {last}"
        yield no_such_engine.at(facts.span(level), message, help=_name_a_device(facts))


def _has_engine(facts: ProgramFacts, buffer: Buffer) -> bool:
    return buffer.engine is None or 0 <= buffer.engine < facts.device.num_engines


def _name_a_device(facts: ProgramFacts) -> str | None:
    if facts.device_is_named:
        return None
    named = setting("`--device`", "`device=`")
    return f"name the device that the program is for, with a `device` directive or {named}"


@rule("BUF06", "l2-too-small", _CAPACITY)
def l2_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The buffers in L2 need more bytes than L2 has.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device npm_lite
        - buffer A : L2 (size=1048576)
        + buffer A : L2 (size=1048575)
          buffer B : L2 (size=1)
    """
    yield from _over_capacity(facts, "L2", l2_too_small)


@rule("BUF07", "l1-too-small", _CAPACITY)
def l1_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The buffers in one engine's L1 need more bytes than it has.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device npm_lite
        - buffer A : L1 (size=524288)
        + buffer A : L1 (size=524287)
          buffer B : L1 (size=1)
    """
    yield from _over_capacity(facts, "L1", l1_too_small)


@rule("BUF10", "ddr-too-small", _CAPACITY)
def ddr_too_small(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The buffers in DDR need more bytes than DDR has (256 MiB unless more is asked for).

    Bad (-) and good (+):

        - buffer A : DDR (size=268435457)
        + buffer A : DDR (size=268435456)
    """
    yield from _over_capacity(facts, "DDR", ddr_too_small)


def _over_capacity(
    facts: ProgramFacts, level: str, check: Check[ProgramFacts]
) -> Iterator[Diagnostic]:
    capacity = _capacity(facts, level)
    for memory, buffers in _by_memory(facts, level).items():
        needed = sum(buffer.size or 0 for buffer in buffers)
        if capacity is not None and needed > capacity:
            yield _capacity_finding(facts, check, memory, buffers, needed, capacity)


def _capacity_finding(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    memory: str,
    buffers: list[Buffer],
    needed: int,
    capacity: int,
) -> Diagnostic:
    """Blame the buffer at which the memory overflows, and list the largest."""
    total, culprit = 0, buffers[-1]
    for buffer in buffers:
        total += buffer.size or 0
        if total > capacity:
            culprit = buffer
            break
    largest = sorted(buffers, key=lambda b: -(b.size or 0))[:5]
    related = tuple(
        Related(facts.span(b.node.name), f"`{b.name}` takes {b.size} bytes")
        for b in largest
        if b is not culprit
    )
    many = f"the buffers in {memory} take {needed} bytes, `{culprit.name}` {culprit.size} of them"
    alone = f"buffer `{culprit.name}` in {memory} takes {needed} bytes"
    return check.at(
        facts.span(culprit.node.name),
        f"{many if len(buffers) > 1 else alone}, but {device_text(facts)} has {capacity}",
        related=related,
        help=_name_a_device(facts),
    )


def _by_memory(facts: ProgramFacts, level: str) -> dict[str, list[Buffer]]:
    """The buffers of a level by memory, without those that other rules have something against."""
    by_memory: dict[str, list[Buffer]] = defaultdict(list)
    seen: set[str] = set()
    for buffer in facts.program.buffers:
        is_sound = buffer.size is not None and buffer.size > 0 and _has_engine(facts, buffer)
        if buffer.level == level and is_sound and buffer.name not in seen:
            by_memory[buffer.memory].append(buffer)
        seen.add(buffer.name)
    return by_memory


def _capacity(facts: ProgramFacts, level: str) -> int | None:
    topology = facts.device.topology
    if level == "DDR":
        return facts.ddr_size_bytes
    if topology is None:
        return None
    size = topology.l2_size_bytes if level == "L2" else topology.l1_size_bytes
    return size if size is not None and size > 0 else None


@rule("BUF08", "padding-does-not-fit", _CAPACITY)
def padding_does_not_fit(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The buffers fit in a memory, but not with the gaps that their alignments ask for.

    Buffers are placed one after the other in the order of their declarations.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device npm_lite
        + buffer B : L1 (size=524287, align=64)
          buffer A : L1 (size=1)
        - buffer B : L1 (size=524287, align=64)
    """
    for level in ("L2", "L1", "DDR"):
        capacity = _capacity(facts, level)
        for memory, buffers in _by_memory(facts, level).items():
            needed = sum(buffer.size or 0 for buffer in buffers)
            if capacity is None or needed > capacity:
                continue
            end = 0
            for buffer in buffers:
                end = _align_up(end, buffer.align) + (buffer.size or 0)
                if end > capacity:
                    yield padding_does_not_fit.at(
                        facts.span(buffer.node.name),
                        f"buffer `{buffer.name}` ends at byte {end} of {memory} when aligned to "
                        f"{buffer.align}, but {device_text(facts)} has {capacity}",
                        help="declare the buffers with large alignments first",
                    )
                    break


def _align_up(offset: int, alignment: int) -> int:
    # An alignment that is no power of two has been reported.
    return -(-offset // alignment) * alignment if _is_power_of_two(alignment) else offset


@rule("BUF09", "buffer-inside-loop", _BUFFERS)
def buffer_inside_loop(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer is declared inside a loop.

    Buffers live as long as the program; what varies by iteration is the region.

    Bad (-) and good (+):

        + buffer B : L1 (size=64)
          loop i in [0..3]:
        -     buffer B : L1 (size=64)
          endloop
    """
    for buffer in facts.program.buffers:
        if buffer.in_loop:
            message = f"buffer `{buffer.name}` is declared inside a loop"
            help_ = "move it before the loop"
            yield buffer_inside_loop.at(facts.span(buffer.node.name), message, help=help_)
