"""What queues, banks, requests, arbiters and chains cost, counted by hand; what always holds."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

import nacre
from nacre.base.diagnostics import InputError
from nacre.base.terms import operation
from nacre.tcb.figures import FIGURES
from nacre.tcb.image import STREAM, Block, Image, Operand, Repeat, UnitUse, counter
from nacre.tcb.machine.timing import CAUSES, ImageTiming, time_image
from tests.effort import scaled
from tests.nem.run.timing.sketches import Sketch, program_text, sketches
from tests.tcb.machine.bound import EXAMPLES, bound, example, loaded
from tests.tcb.machine.figures import figures
from tests.tcb.machine.images import (
    Figures,
    after,
    at,
    compute,
    copy,
    image,
    machine,
    stream,
    tag,
)

A, B = at("DDR", 0, 64), at("L2", 0, 64)


def timed(of: Image) -> ImageTiming:
    result = time_image(of, compile=False)
    assert not result.is_stuck, result.diagnostics
    return result


def spans(timing: ImageTiming) -> list[tuple[int, int]]:
    return [(int(timing.start[n]), int(timing.end[n])) for n in range(timing.instances.count)]


def lost(timing: ImageTiming) -> dict[str, list[int]]:
    return {cause: c.tolist() for cause, c in timing.stalls.items() if c.any()}


def test_a_task_that_waits_for_tags() -> None:
    one = compute(0, "neg", (at("L1[0]", 0, 4),), at("L1[0]", 8, 4), signal=tag(0), cycles=7)
    two = copy(1, A, B, after(0), cycles=5)
    timing = timed(image(stream(one, two)))
    assert spans(timing) == [(0, 7), (7, 12)]
    assert lost(timing) == {"tags": [0, 7]}


def test_a_task_that_waits_for_its_unit() -> None:
    timing = timed(image(stream(copy(0, A, B, cycles=7), copy(1, A, B, cycles=5))))
    assert spans(timing) == [(0, 7), (7, 12)]
    assert lost(timing) == {"unit": [0, 7]}


def test_a_task_that_waits_for_a_token() -> None:
    first = replace(copy(0, A, B, cycles=7), has_token=True)
    naming = replace(copy(1, A, B, after(0), cycles=5), names=(0,))
    first = replace(first, signal=tag(0))
    other = replace(compute(2, "neg", (at("L1[0]", 0, 4),), at("L1[0]", 8, 4)), has_token=True)
    timing = timed(image(stream(first, naming, other), on=machine(tokens=1)))
    assert spans(timing) == [(0, 7), (7, 12), (7, 17)]
    assert lost(timing) == {"tags": [0, 7, 0], "token": [0, 0, 7]}


def queue_image(depth: int) -> Image:
    """A DMA whose first block waits for a product, and blocks behind it that wait for nothing."""
    product = compute(0, "neg", (at("L1[0]", 0, 4),), at("L1[0]", 8, 4), signal=tag(0), cycles=20)
    blocks = [copy(1, A, B, after(0)), copy(2, A, B), copy(3, A, B)]
    last = compute(4, "neg", (at("L1[0]", 16, 4),), at("L1[0]", 24, 4), unit="NMU", cycles=3)
    given: Figures = {"queue.depth": depth} if depth else {}
    return image(stream(product, *blocks, last), on=machine(given))


def test_a_queue_that_its_first_block_holds_up() -> None:
    assert spans(timed(queue_image(0))) == [(0, 20), (20, 30), (0, 10), (10, 20), (0, 3)]
    deep = timed(queue_image(3))
    assert spans(deep) == [(0, 20), (20, 30), (30, 40), (40, 50), (0, 3)]
    assert lost(deep) == {"tags": [0, 20, 0, 0, 0], "queue": [0, 0, 20, 20, 0],
                          "unit": [0, 0, 10, 20, 0]}  # fmt: skip


def test_a_full_queue_that_holds_up_its_stream() -> None:
    # The third DMA block finds no room until the second starts; so the NMU has to wait.
    short = timed(queue_image(2))
    assert spans(short) == [(0, 20), (20, 30), (30, 40), (40, 50), (20, 23)]
    assert lost(short)["queue"] == [0, 0, 20, 20, 20]
    assert spans(timed(queue_image(1)))[4] == (30, 33)


def test_joins_and_waits_take_no_room_in_queues() -> None:
    c = counter(0)
    body = (
        copy(1, A, B, signal=tag(0)),
        Block("join", 2, waits=(after(0, c),), signal=tag(1)),
        Block("wait", 3, waits=(after(1),)),
    )
    timing = timed(image(stream(Repeat(0, 4, body)), on=machine({"queue.depth": 1})))
    assert timing.cycles == 40


BANKS: Figures = {"l1.banks": 4, "l1.bank_width": 4, "l1.interleave": 16}


def two_at_once(one: int, other: int, figures: Figures) -> ImageTiming:
    """A relu and a copy of L1 side by side, 16 bytes read and 16 written each."""
    first = compute(0, "neg", (at("L1[0]", one, 16),), at("L1[0]", one, 16), cycles=10)
    second = copy(1, at("L1[0]", other, 16), at("L1[0]", other, 16), cycles=10)
    return timed(image(stream(first, second), on=machine(figures)))


def test_blocks_in_the_same_bank_get_in_each_others_way() -> None:
    # 32 bytes at 4 a cycle take 8 cycles of a bank: 16 for the second of two.
    apart = two_at_once(0, 16, BANKS)
    assert spans(apart) == [(0, 10), (0, 10)]
    together = two_at_once(0, 64, BANKS)
    assert spans(together) == [(0, 10), (0, 16)]
    assert lost(together) == {"bank": [0, 6]}
    assert spans(two_at_once(0, 64, {**BANKS, "l1.ports": 2})) == [(0, 10), (0, 10)]
    assert spans(two_at_once(0, 64, {})) == [(0, 10), (0, 10)]


def test_a_narrow_bank_slows_a_block_that_is_alone() -> None:
    alone = two_at_once(0, 16, {**BANKS, "l1.bank_width": 2})
    assert spans(alone) == [(0, 16), (0, 16)]


@pytest.mark.parametrize("step", [1, 8, 16, 40])
def test_each_turn_of_a_long_loop_uses_the_banks_that_its_bytes_lie_in(step: int) -> None:
    at_turn = operation("*", operation("mod", counter(0), 5), step)
    block = compute(1, "neg", (at("L1[0]", at_turn, 24),), at("L1[0]", at_turn, 24), cycles=2)
    timing = timed(image(stream(Repeat(0, 40, (block,))), on=machine(BANKS)))
    for turn, (start, end) in enumerate(spans(timing)):
        banks = {(turn % 5 * step + byte) // 16 % 4 for byte in range(24)}
        assert end - start == ceil(ceil(48 / len(banks)) / 4)


def test_slices_of_l2_are_shared_by_engines() -> None:
    blocks = [stream(copy(k, A, at("L2", 0, 64), cycles=8), engine=k) for k in (0, 1)]
    figures: Figures = {"l2.slices": 2, "l2.slice_width": 4, "l2.interleave": 32}
    timing = timed(image(*blocks, on=machine(figures, engines=2)))
    # 64 bytes in two slices, 4 a cycle: 8 cycles alone, 16 for the second.
    assert spans(timing) == [(0, 8), (0, 16)]


def one_transfer(source: Operand, figures: Figures, latency: int = 2) -> ImageTiming:
    block = copy(0, source, at("L2", 0, 64), cycles=10, latency=latency)
    return timed(image(stream(block), on=machine(figures)))


def test_requests_that_are_short_or_unaligned_take_longer() -> None:
    aligned: Figures = {"dma.burst": 16, "dma.burst_cycles": 1, "dma.align": 16}
    assert one_transfer(at("DDR", 0, 64), aligned).cycles == 10 + 4
    # 80 bytes are moved for 64: the work of 8 cycles takes 10, and 5 requests one each.
    unaligned = one_transfer(at("DDR", 8, 64), aligned)
    assert unaligned.cycles == 2 + 10 + 5
    assert lost(unaligned) == {"burst": [7]}
    # 4 rows of 16 bytes that lie 24 apart: each of two rows takes 32.
    rows = Operand("DDR", 0, "i8", (4, 16), (24, 1))
    block = Block("task", 0, "transfer", inputs=(rows,), outputs=(Operand("L2", 0, "i8", (4, 16)),),
                  units=(UnitUse("DMA", 2, 8),))  # fmt: skip
    timing = timed(image(stream(block), on=machine(aligned)))
    assert timing.cycles == 2 + 8 * 96 // 64 + 6


def test_few_requests_in_flight_wait_for_each_other() -> None:
    few: Figures = {"dma.burst": 16, "dma.outstanding": 1}
    assert one_transfer(at("DDR", 0, 64), few, latency=5).cycles == 5 + 4 * 5
    assert one_transfer(at("DDR", 0, 64), {**few, "dma.outstanding": 4}, latency=5).cycles == 10


def test_more_dimensions_than_a_descriptor_has_take_several() -> None:
    source, target = (Operand(m, 0, "i8", (2, 3, 4), (40, 8, 1)) for m in ("DDR", "L2"))
    block = Block("task", 0, "transfer", inputs=(source,), outputs=(target,),
                  units=(UnitUse("DMA", 3, 7),))  # fmt: skip
    cycles = [timed(image(stream(block), on=machine({"dma.dims": n} if n else {}))).cycles
              for n in (0, 2, 1)]  # fmt: skip
    assert cycles == [10, 10, 13]


def rivals(figures: Figures) -> ImageTiming:
    """Two streams that want the one sDMA, of which the second is more urgent."""

    def block(position: int, priority: int) -> Block:
        return copy(position, A, B, unit="sDMA", priority=priority)

    one = stream(block(0, 0), block(1, 0), block(2, 0), engine=0)
    other = stream(block(3, 1), block(4, 1), engine=1)
    return timed(image(one, other, on=machine(figures, engines=2)))


def test_arbiters_prefer_classes_then_the_oldest_or_each_in_turn() -> None:
    given: dict[str, Figures] = {
        "ideal": {},
        "classes": {"arbitration.classes": 2},
        "in turn": {"arbitration.rule": "round_robin"},
    }
    starts = {n: [start for start, _ in spans(rivals(figures))] for n, figures in given.items()}
    assert starts == {
        "ideal": [0, 10, 20, 30, 40],
        "classes": [20, 30, 40, 0, 10],
        "in turn": [0, 20, 40, 10, 30],
    }
    classes = lost(rivals({"arbitration.classes": 2}))
    assert classes["arbitration"][0] == 20
    assert classes["unit"][4] == 10


def chained(latency: int, second: int, tags: bool = False) -> ImageTiming:
    streamed = Operand(STREAM, 0, "i8", (4,))
    one = compute(0, "neg", (at("L1[0]", 0, 4),), streamed, unit="NMU", cycles=20, latency=latency,
                  is_chained=True, signal=tag(0))  # fmt: skip
    two = compute(1, "neg", (streamed,), at("L1[0]", 8, 4), *([after(0)] if tags else []),
                  cycles=second)  # fmt: skip
    return timed(image(stream(one, two)))


def test_a_consumer_starts_with_the_first_result_and_ends_with_the_last() -> None:
    assert spans(chained(4, 30)) == [(0, 20), (4, 34)]
    short = chained(4, 5)
    assert spans(short) == [(0, 20), (4, 20)]
    assert lost(short) == {"tags": [0, 4], "chain": [0, 11]}
    assert spans(chained(4, 5, tags=True)) == [(0, 20), (20, 25)]


def test_parts_of_a_cstl_work_apart() -> None:
    def block(position: int, part: str | None) -> Block:
        made = compute(position, "neg", (at("L1[0]", 0, 4),), at("L1[0]", 8, 4))
        return replace(made, units=(UnitUse("CSTL", 0, 10, part=part),))

    items = stream(block(0, "CSTLA"), block(1, "CSTLB"), block(2, None))
    assert timed(image(items, on=machine())).cycles == 30
    apart = timed(image(items, on=machine({"cstl.parts": 2})))
    assert spans(apart) == [(0, 10), (0, 10), (10, 20)]
    assert apart.unit_names(2) == ("CSTLA[0]@0", "CSTLB[0]@0")


def test_a_timed_run_that_cannot_go_on_says_who_waits() -> None:
    result = time_image(image(stream(copy(0, A, B, after(3)))))
    assert result.is_stuck
    (finding,) = result.diagnostics
    assert finding.code == "TCB51"
    assert "waits for d.t3 at 1 (it is at 0)" in finding.message


def test_three_units_are_held_together() -> None:
    units = tuple(UnitUse(unit, 0, 10 * n) for n, unit in enumerate(("DMA", "NMU", "CSTL"), 1))
    both = [replace(copy(at, A, B), units=units) for at in range(2)]
    alone = replace(copy(2, A, B), units=units[2:])
    result = time_image(image(stream(*both, alone)))
    assert spans(result) == [(0, 30), (30, 60), (60, 90)]
    assert result.unit_names(0) == ("DMA[0]@0", "NMU[0]@0", "CSTL[0]@0")


@pytest.mark.parametrize("unit", ["VPU", "four"])
def test_units_that_are_not_there_are_refused(unit: str) -> None:
    block = copy(0, A, B, unit=unit)
    if unit == "four":
        block = replace(
            block, units=tuple(UnitUse(u, 0, 1) for u in ("DMA", "NMU", "CSTL", "sDMA"))
        )
    with pytest.raises(InputError, match="TCB52"):
        time_image(image(stream(block)))


def with_figures(of: Image, given: Figures) -> Image:
    return replace(of, machine=replace(of.machine, figures=tuple(given.items())))


def test_every_figure_at_its_default_is_ideal_hardware() -> None:
    defaults = {key: spec.default for key, spec in FIGURES.items()}
    for path in EXAMPLES:
        of = bound(example(path))
        ideal, same = timed(of), timed(with_figures(of, defaults))
        assert spans(ideal) == spans(same)


@settings(max_examples=scaled(100))
@given(sketches(), figures())
def test_tasks_keep_the_order_of_tags_on_any_hardware(
    sketch: Sketch, given: dict[str, int | str]
) -> None:
    try:
        of = bound(loaded(program_text(*sketch), None))
    except InputError as refused:  # it needs more tokens than there are
        if {finding.code for finding in refused.diagnostics} != {"BND04"}:
            raise
        return
    of = with_figures(of, given)
    timing = timed(replace(of, machine=replace(of.machine, token_limit=None)))
    assert all(column.min(initial=0) >= 0 for column in timing.stalls.values())
    assert tuple(timing.stalls) == CAUSES
    counts = [0] * timing.instances.tags.count
    require_waits_hold(timing, counts)


def require_waits_hold(timing: ImageTiming, counts: list[int]) -> None:
    """In the order of time, nothing starts before tags have reached what it waits for."""
    instances = timing.instances
    ends = sorted(range(instances.count), key=lambda n: (int(timing.end[n]), n))
    tags, values = (column.tolist() for column in instances.waits.columns)
    reached: dict[tuple[int, int], int] = {}
    for number in ends:
        for place in range(instances.raises.first[number], instances.raises.first[number + 1]):
            first, count, value = (int(column[place]) for column in instances.raises.columns)
            for tag_number in range(first, first + count):
                for step in range(counts[tag_number] + 1, value + 1):
                    reached[tag_number, step] = int(timing.end[number])
                counts[tag_number] = max(counts[tag_number], value)
        signal = int(instances.signal[number])
        if signal >= 0:
            counts[signal] += 1
            reached[signal, counts[signal]] = int(timing.end[number])
    for number in range(instances.count):
        for place in range(instances.waits.first[number], instances.waits.first[number + 1]):
            since = 0 if values[place] <= 0 else reached[tags[place], values[place]]
            assert since <= timing.start[number]


LONG = """include "npm4k.nem"
device npm4k
program long:
buffer X : DDR (size=67108864)
buffer Y : DDR (size=67108864)
loop i in [0..{last}]:
t = transfer.async(dst=region(Y, 0, {size}), src=region(X, 0, {size}))
wait(t)
endloop
"""


@pytest.mark.parametrize(
    ("size", "last", "message"),
    [(1 << 26, 0, "`t[0]`"), (1 << 23, 0, "`t[0]`"), (1 << 18, 40, "the tasks together")],
)
def test_more_cycles_than_can_be_counted_are_refused(
    tmp_path: Path, size: int, last: int, message: str
) -> None:
    uarch = tmp_path / "h.uarch"
    uarch.write_text("uarch h { dma { burst = 1 burst_cycles = 1099511627775 } }")
    found = nacre.bind(LONG.format(size=size, last=last), uarch)
    with pytest.raises(InputError) as raised:
        found.time()
    (finding,) = raised.value.diagnostics
    assert finding.code == "TCB52"
    assert finding.message.startswith(message)
