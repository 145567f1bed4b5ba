"""What tasks wait for, against every pair of them: those that conflict come in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.program import Affine, Region
from nacre.compile.schedule.order import Order, Touch, touch_of


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """Plain bytes, or elements with gaps."""
    buffer = draw(st.sampled_from("AB"))
    offset = draw(st.integers(0, 40))
    if draw(st.booleans()):
        return Region(buffer, Affine(offset), draw(st.integers(1, 24)))
    shape = draw(st.tuples(*[st.integers(1, 4)] * draw(st.integers(1, 3))))
    # Rows with a gap between them, as tiles of columns have; the last axis is close or not.
    strides = [draw(st.sampled_from((1, 1, 2)))]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size + draw(st.sampled_from((0, 0, 1, 3, 8))))
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return Region(buffer, Affine(offset), reach, "i8", shape, strides=tuple(strides))


def bytes_of(region: Region) -> set[tuple[str, int]]:
    """Every byte that a region touches."""
    first = region.offset.constant
    if not region.strides:
        return {(region.buffer, first + i) for i in range(region.size)}
    return {
        (region.buffer, first + sum(i * s for i, s in zip(index, region.strides, strict=True)))
        for index in product(*map(range, region.shape))
    }


@dataclass(frozen=True)
class Made:
    """A task, and what it was told to wait for."""

    reads: tuple[Region, ...]
    writes: tuple[Region, ...]

    def touches(self) -> list[Touch]:
        return [touch_of(r, False) for r in self.reads] + [touch_of(r, True) for r in self.writes]

    def conflicts(self, other: Made) -> bool:
        """By brute force."""
        mine, theirs = (
            (set().union(*map(bytes_of, t.reads)), set().union(*map(bytes_of, t.writes)))
            for t in (self, other)
        )
        return bool(mine[1] & (theirs[0] | theirs[1]) or theirs[1] & mine[0])


tasks = st.builds(
    Made,
    st.lists(regions(), max_size=2).map(tuple),
    st.lists(regions(), min_size=1, max_size=1).map(tuple),
)


@given(regions(), regions())
def test_regions_that_share_a_byte_overlap(a: Region, b: Region) -> None:
    if bytes_of(a) & bytes_of(b):
        assert touch_of(a, True).overlaps(touch_of(b, False))
        assert touch_of(b, False).overlaps(touch_of(a, True))


def test_columns_side_by_side_do_not_overlap() -> None:
    left, right = (
        Region("A", Affine(8 * i), 8 + 3 * 16, "i8", (4, 8), strides=(16, 1)) for i in range(2)
    )
    assert not bytes_of(left) & bytes_of(right)
    assert not touch_of(left, True).overlaps(touch_of(right, True))


@given(st.lists(tasks, min_size=2, max_size=12), st.data())
def test_every_pair_that_conflicts_is_ordered(made: list[Made], data: st.DataObject) -> None:
    order = Order()
    before: list[set[int]] = []  # by task: those that it comes after
    waited: set[int] = set()
    for number, task in enumerate(made):
        if number and data.draw(st.integers(0, 5)) == 0:
            named = order.conflicts(task.touches())
            order.settle(named)
            for token in named:
                waited |= {int(token), *before[int(token)]}
        deps = order.conflicts(task.touches())
        order.add(str(number), deps, task.touches())
        before.append(set(waited).union(*({int(d), *before[int(d)]} for d in deps)))
    for first, second in combinations(range(len(made)), 2):
        if made[first].conflicts(made[second]):
            assert first in before[second], (made[first], made[second])


@given(st.lists(tasks, min_size=2, max_size=12))
def test_no_task_waits_for_what_another_already_waited_for(made: list[Made]) -> None:
    order = Order()
    before: dict[str, set[str]] = {}
    for number, task in enumerate(made):
        deps = order.conflicts(task.touches())
        assert not any(a in before[b] for a in deps for b in deps)
        order.add(str(number), deps, task.touches())
        before[str(number)] = set(deps).union(*(before[d] for d in deps))
    order.settle(order.open_tokens)
    assert order.open_tokens == ()
