"""Tags within their number: where there are too few, the place of most pressure, or more order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.bind.order import OrderBody
from nacre.bind.tag_findings import LeastTags, too_few_tags
from nacre.bind.tags import BodyTags, TagLimit, share_tags
from nacre.nem.model.program import Loop, Program
from nacre.tcb.image import DEVICE


class TagCounts(Struct, frozen=True):
    """How many tags a device has; None: as many as anybody wants."""

    engine: int | None = None
    device: int | None = None

    def of(self, space: int) -> int | None:
        """Those of a space."""
        return self.device if space == DEVICE else self.engine


NO_WINDOWS: Mapping[int, int] = MappingProxyType({})


class Serialisation(Struct, frozen=True):
    """A body that has more order than the program asks for, so that tags or tokens are enough."""

    loop: Loop | None  # None: what stands outside of all loops
    window: tuple[int, int] | None = None  # iterations in flight, before and after
    chains: tuple[int, int] | None = None  # what may happen at once, before and after
    for_want_of: Literal["tags", "tokens"] = "tags"


class FittedTags(Struct, frozen=True, eq=False):
    """The tags of a program within their number, and what that cost."""

    tags: BodyTags
    serialised: tuple[Serialisation, ...] = ()


def fit_tags(
    program: Program,
    order: OrderBody,
    stream_of: Mapping[int, int],
    counts: TagCounts,
    windows: Mapping[int, int] = NO_WINDOWS,
    *,
    may_serialise: bool,
) -> FittedTags:
    """The tags of a program; InputError where there are too few and order may not be added.

    `windows` are those of loops that have been narrowed for want of tokens, by position.
    """
    limits = {position: TagLimit(window=window) for position, window in windows.items()}
    first = share_tags(order, stream_of)
    tags = share_tags(order, stream_of, limits) if limits else first
    while (space := _space_that_is_full(tags, counts)) is not None:
        path = _pressure(tags, space)
        limit = _narrower(path, space, limits) if may_serialise else None
        if limit is None:
            least = _least_tags(order, stream_of, space)
            raise InputError([too_few_tags(program, path, space, counts.of(space) or 0, least)])
        limits |= limit
        tags = share_tags(order, stream_of, limits)
    if tags is first:
        return FittedTags(tags)
    return FittedTags(tags, tuple(_serialisations(first, tags, windows)))


def _space_that_is_full(tags: BodyTags, counts: TagCounts) -> int | None:
    for space in sorted(tags.spaces):
        most = counts.of(space)
        if most is not None and tags.area(space).size > most:
            return space
    return None


def _pressure(tags: BodyTags, space: int) -> list[BodyTags]:
    """The bodies inside each other that take most tags, the outermost first."""
    path = [tags]
    while inner := [t for t in path[-1].inner.values() if t.area(space).size]:
        path.append(max(inner, key=lambda t: t.area(space).size))
    return path


def _narrower(
    path: Sequence[BodyTags], space: int, limits: Mapping[int, TagLimit]
) -> dict[int, TagLimit] | None:
    """A tighter limit for one of some bodies; None where all are as tight as can be.

    Windows first: half of the iterations in flight leave the order within each as it is.
    """
    windows = [tags for tags in path if tags.window > 1]
    if windows:
        widest = max(windows, key=lambda tags: tags.area(space).stride * tags.window)
        position = widest.body.position
        limit = limits.get(position, TagLimit())
        return {position: replace(limit, window=-(-widest.window // 2))}
    broad = [tags for tags in path if tags.area(space).own > 1]
    if not broad:
        return None
    broadest = max(broad, key=lambda tags: tags.area(space).own)
    position = broadest.body.position
    limit = limits.get(position, TagLimit())
    return {position: replace(limit, chains=-(-broadest.area(space).own // 2))}


def _least_tags(order: OrderBody, stream_of: Mapping[int, int], space: int) -> LeastTags:
    """How few tags of a space do, with one iteration at a time, and with one task at a time."""

    def needed(limit: TagLimit) -> int:
        limits = {body.position: limit for body in order.walk()}
        return share_tags(order, stream_of, limits).area(space).size

    return LeastTags(needed(TagLimit(window=1)), needed(TagLimit(window=1, chains=1)))


def _serialisations(
    before: BodyTags, after: BodyTags, windows: Mapping[int, int]
) -> list[Serialisation]:
    """What became of every body that has less at once than before."""
    found = []
    window = (before.window, after.window)
    chains = (len(before.chains.lengths), len(after.chains.lengths))
    if window[0] != window[1] or chains[0] != chains[1]:
        found.append(
            Serialisation(
                before.body.loop,
                window if window[0] != window[1] else None,
                chains if chains[0] != chains[1] else None,
                "tokens" if window[1] == windows.get(before.body.position) else "tags",
            )
        )
    for position, inner in before.inner.items():
        found += _serialisations(inner, after.inner[position], windows)
    return found
