"""Too few tags, in words: who takes how many, and with how many the program could be bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic
from nacre.base.hints import setting
from nacre.bind.rules import BND01
from nacre.bind.tags import BodyTags
from nacre.nem.model.program import Loop, Program
from nacre.tcb.image import DEVICE

ALLOW = setting("`--allow-serialise`", "`allow_serialise=True`")


class LeastTags(Struct, frozen=True):
    """How many tags a program takes at least."""

    narrow: int  # with one iteration of every loop in flight
    serial: int  # with one task at a time, which is as few as can be


def too_few_tags(
    program: Program, path: Sequence[BodyTags], space: int, most: int, least: LeastTags
) -> Diagnostic:
    """The finding at the innermost loop of most pressure; `path` leads to it."""
    needed = path[0].area(space).size
    loop = next((tags.body.loop for tags in reversed(path) if tags.body.loop is not None), None)
    span = program.source.span(0, 0) if loop is None else program.span(loop.node)
    whose = "the device" if space == DEVICE else f"engine {space}"
    shares = ", ".join(_shares(path, space))
    message = f"the order takes {needed} tags of {whose}, which has {most}: {shares}"
    return BND01.at(span, message, help=_remedy(path, space, most, least, loop))


def _remedy(
    path: Sequence[BodyTags], space: int, most: int, least: LeastTags, here: Loop | None
) -> str:
    """What helps, and only that."""
    figure = "tags.device" if space == DEVICE else "tags.engine"
    if least.serial > most:
        return (
            f"with one task at a time it still takes {least.serial}: give `{figure}` at least "
            "that many, or put fewer loops into each other"
        )
    allow = f"allow the binder to add order with {ALLOW}: {least.serial} tags are enough then"
    widest = max(path, key=lambda tags: tags.window)
    if widest.window == 1 or least.narrow > most:
        return allow
    loop = widest.body.loop
    where = "here" if loop is None or loop is here else f"of loop `{loop.variable.name}`"
    return f"narrow `@max_in_flight` {where}, or {allow}"


def _shares(path: Sequence[BodyTags], space: int) -> Iterator[str]:
    """What each body takes, which is all together; of one inside a loop, in all its iterations."""
    times = 1
    for tags in path:
        area = tags.area(space)
        taken = times * (area.slots * area.own + area.counts_iterations)
        if tags.body.loop is None:
            yield f"{taken} outside of loops"
        elif taken:
            each = f"{area.slots} times {area.own}" if area.slots > 1 else str(area.own)
            each += " and 1 to count iterations" if area.counts_iterations else ""
            around = f", in each of {times} iterations around it" if times > 1 else ""
            yield f"{taken} in loop `{tags.body.loop.variable.name}` ({each}{around})"
        times *= area.slots
