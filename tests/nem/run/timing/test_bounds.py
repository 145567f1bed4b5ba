"""What must hold for every timed run: bounds, busy time, exclusion, limits, legal orders, scale."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.run.timing.result import TimedResult
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.sketches import read
from tests.nem.run.programs import Items, contents, instance_name, loaded, runnable, stored
from tests.nem.run.programs import text as text_of
from tests.nem.run.timing.cases import BUFFERS, LITE, MID, copy, lite, load
from tests.nem.run.timing.oracle import Oracle, has_token
from tests.nem.run.timing.sketches import (
    Linear,
    Machine,
    Sketch,
    Task,
    changed,
    program_text,
    sketches,
)
from tests.nem.run.timing.timed import timed

few = settings(max_examples=scaled(30), suppress_health_check=[HealthCheck.filter_too_much])
UNITS = ("NMU", "CSTL", "DMA", "VPU", "sDMA")


def run(sketch: Sketch) -> TimedResult:
    items, machine = sketch
    return timed(program_text(items, machine), machine.profile)


@few
@given(sketches())
def test_no_run_is_shorter_than_its_bounds(sketch: Sketch) -> None:
    result = run(sketch)
    bounds = result.bounds
    assert bounds.largest == max(bounds.compute, bounds.dma, bounds.ddr, bounds.chain)
    if result.status == "completed":
        assert result.cycles >= bounds.largest
        assert result.cycles >= max(bounds.by_unit.values())


@few
@given(sketches())
def test_a_unit_s_bound_is_its_work_shared_by_its_instances(sketch: Sketch) -> None:
    items, machine = sketch
    busy: dict[str, int] = defaultdict(int)
    held: dict[tuple[str, int], int] = defaultdict(int)
    for step in Oracle(items, machine).tasks:
        for unit, bound in step.units:
            name = unit if unit == "sDMA" else f"{unit}@{step.engine}"
            busy[name] += step.cycles
            if bound is not None:
                held[name, bound] += step.cycles
    for name, found in run(sketch).bounds.by_unit.items():
        shared = -(-busy[name] // machine.count(name.partition("@")[0]))
        assert found == max([shared, *(n for (at, _), n in held.items() if at == name)])


@few
@given(sketches())
def test_the_chain_is_the_run_on_a_device_where_nothing_is_scarce(sketch: Sketch) -> None:
    items, machine = sketch
    items = changed(items, lambda task: replace(task, resource=None))
    plenty = replace(machine, counts=dict.fromkeys(UNITS, 300), tokens=None)
    assert run((items, machine)).bounds.chain == Oracle(items, plenty).cycles


@few
@given(sketches())
def test_busy_time_is_conserved_and_no_unit_runs_two_tasks_at_once(sketch: Sketch) -> None:
    result = run(sketch)
    by_unit: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for task in result.tasks:
        for unit in task["unit"].split("+") if task["unit"] else []:
            by_unit[unit].append((task["start"], task["end"]))
    assert set(by_unit) <= set(result.units)
    for name, entry in result.units.items():
        spans = sorted(by_unit[name])
        assert entry == {"busy": sum(end - start for start, end in spans), "tasks": len(spans)}
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@few
@given(sketches())
def test_live_tokens_never_exceed_the_limit(sketch: Sketch) -> None:
    items, machine = sketch
    limited = replace(machine, tokens=machine.tokens or 2)
    result = run((items, limited))
    # The oracle says who names whom; the times are the machine's.
    steps = Oracle(items, limited).steps
    timeline = result.timeline
    start = dict(zip(steps, timeline.start.tolist(), strict=True))
    end = dict(zip(steps, timeline.end.tolist(), strict=True))
    for now in sorted({*start.values(), *end.values()} - {-1}):
        live: dict[int, int] = defaultdict(int)
        for step in steps:
            if has_token(step) and 0 <= start[step] <= now:
                is_named = all(0 <= start[namer] <= now for namer in step.named_by)
                live[step.engine] += end[step] > now or not is_named
        assert max(live.values(), default=0) <= (limited.tokens or 0)


@few
@given(sketches())
def test_a_machine_of_half_the_speed_takes_twice_as_long(sketch: Sketch) -> None:
    items, machine = sketch
    # Sizes that divide evenly, or rounding up would show.
    items = changed(
        items,
        lambda task: replace(
            task, size=replace(task.size, base=task.size.base // 32 * 32), product=(8, 8, 8)
        ),
    )
    fast, slow = (
        list(run((items, replace(machine, profile=speed(slow)))).tasks) for slow in (1, 2)
    )
    for one, two in zip(fast, slow, strict=True):
        times = [max(-1, 2 * one["start"]), max(-1, 2 * one["end"])]
        assert [two["start"], two["end"], two["unit"]] == [*times, one["unit"]]
        assert two["stall"] == {cause: 2 * cycles for cause, cycles in one["stall"].items()}


def speed(slow: int) -> dict[str, dict[str, int]]:
    """Every figure of a profile, so many times slower."""
    return {
        "NMU": {"mac_throughput": 256 // slow, "latency": 2 * slow},
        "CSTL": {
            "eltwise_throughput": 32 // slow,
            "latency": slow,
            "store_bandwidth": 32 // slow,
            "store_latency": 3 * slow,
        },
        "DMA": {"bandwidth": 32 // slow, "latency": 4 * slow},
        "sDMA": {"bandwidth": 16 // slow, "latency": 5 * slow},
        "VPU": {"throughput": 32 // slow, "latency": 4 * slow},
    }


@st.composite
def chains(draw: st.DrawFn) -> tuple[Task, ...]:
    """Tasks each of which waits for the one before."""
    kinds = [
        Task("transfer", "DDR", "L2"),
        Task("transfer", "L2", "L1[0]"),
        Task("transfer", "DDR", "L1[0]"),
        Task("store", "L1[0]", "L2"),
        Task("relu", "L1[0]", "L1[0]"),
        Task("relu", "L1[0]", "L1[0]", resource=("VPU", Linear(0))),
        Task("gemm", "L1[0]", "L1[0]", product=(8, 16, 32)),
    ]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6))
    sizes = [draw(st.sampled_from([32, 100, 2048])) for _ in chosen]
    return tuple(
        replace(task, size=Linear(size), token=f"t{n}", deps=(f"t{n - 1}",) if n else ())
        for n, (task, size) in enumerate(zip(chosen, sizes, strict=True))
    )


FASTER = [
    {"NMU": {"fp16_macs": 8192}},
    {"NMU": {"latency": 0}},
    {"CSTL": {"eltwise_throughput": 1000, "store_latency": 1}},
    {"CSTL": {"store_bandwidth": 33}},
    {"DMA": {"bandwidth": 64}},
    {"DMA": {"latency": 3}},
    {"sDMA": {"bandwidth": 48, "latency": 16}},
    {"VPU": {"throughput": 64}},
]


@few
@given(chains(), st.sampled_from(FASTER))
def test_a_faster_unit_never_lengthens_a_chain(
    chain: tuple[Task, ...], faster: dict[str, dict[str, int]]
) -> None:
    before, after = run((chain, Machine())), run((chain, Machine(profile=faster)))
    assert after.cycles <= before.cycles
    # Nothing in a chain waits for anything but the task before.
    durations = [task["end"] - task["start"] for task in after.tasks]
    assert after.cycles == sum(durations) == after.bounds.chain


def test_with_contention_a_faster_unit_can_lengthen_a_run() -> None:
    # A list schedule is not monotonic. The NMU is faster: `f` then comes before `d` to the only
    # free DMA, and the long chain behind `d` starts later.
    lines = [
        f"a = {load(1024, on='@resource(DMA[0])')}",
        "g = gemm.async in G, G out H accum_type=f32",
        f"f = {load(2048, 'g', '@resource(DMA[0])')}",
        f"d = {load(32, 'a', '@resource(DMA[0])')}",
        f"z = {copy('D', 'N', 4096, 'd')}",
    ]
    regions = (
        "let G = region(P, 0, 8192) elem=f16, shape=[64, 64], layout=MK\n"
        "let H = region(Q, 0, 8192) elem=f16, shape=[64, 64], layout=MN\n"
    )
    text = LITE + BUFFERS + regions + "\n".join(lines) + "\n"
    # 64^3 MACs: 128 + 2 at 2048 a cycle, 32 + 2 at 8192. `d` runs 36..41, or after `f`, 104..109.
    slow, fast = timed(text), timed(text, {"NMU": {"fp16_macs": 8192}})
    assert (slow.cycles, fast.cycles) == (198, 253)


@few
@given(runnable())
def test_a_timed_run_is_a_legal_order_and_computes_the_same_bytes(items: Items) -> None:
    result = timed(text_of(items))
    timeline = result.timeline
    steps = timeline.steps
    at = {steps.name(n): n for n in range(steps.count)}
    reading = read(items)
    for u in reading.instances:
        for v in reading.instances:
            if reading.is_before(u, v):
                before, after = at[instance_name(u)], at[instance_name(v)]
                assert timeline.end[before] <= timeline.start[after], text_of(items)
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    order = [steps.name(int(step)) for step in timeline.order]
    in_time = interpreter.run(program, contents(1), order=order)
    in_order = interpreter.run(program, contents(1))
    assert in_time.status == in_order.status == "completed"
    assert in_time.session is not None
    assert in_order.session is not None
    assert stored(in_time.session) == stored(in_order.session)


def test_more_tasks_than_units_have_a_chain_too() -> None:
    # Found as a crash: without units, more tasks run at once than the device has instances.
    result = lite(*(f"t{n} = {load()}" for n in range(40)))
    assert (result.cycles, result.bounds.chain, result.bounds.dma) == (720, 36, 720)


def test_a_run_is_not_shorter_than_ddr_s_bandwidth_allows() -> None:
    text = LITE + BUFFERS + f"a = {copy('M', 'D', 4096)}\n"
    result = timed(text, {"DDR": {"bandwidth": 1}})
    assert result.cycles >= result.bounds.ddr == 4096


def test_all_sdmas_share_ddr_s_bandwidth() -> None:
    # Two copies of 4096 bytes on two sDMAs: 16 + 4096 / 32 = 144 cycles each, side by side.
    text = MID + BUFFERS + f"a = {copy('M', 'D', 4096)}\nb = {copy('N', 'E', 4096)}\n"
    free = timed(text)
    assert [(row["start"], row["end"]) for row in free.tasks] == [(0, 144), (0, 144)]
    # 64 bytes a cycle: each takes all of it for 64 cycles, so the second starts 64 cycles later.
    shared = timed(text, {"DDR": {"bandwidth": 64}})
    assert [(row["start"], row["end"]) for row in shared.tasks] == [(0, 144), (64, 208)]
    assert list(shared.tasks)[1]["stall"]["unit"] == 64
    # 16 bytes a cycle: slower than an sDMA, so it decides.
    slow = timed(text, {"DDR": {"bandwidth": 16}})
    assert [(row["start"], row["end"]) for row in slow.tasks] == [(0, 256), (256, 512)]
    assert slow.bounds.ddr == slow.cycles == 512
