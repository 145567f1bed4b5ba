"""The report's data and its text; how the page behaves is in test_report_page.py."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nem.model.program import Task
from nacre.nem.run.timing.result import TimedResult
from nacre.viz.binding_page import BINDING
from nacre.viz.blockers import blockers
from nacre.viz.occupancy import occupancy
from nacre.viz.packing import pack_column
from nacre.viz.report import REPORT, render_report, write_report
from nacre.viz.report_data import report_data
from nacre.viz.roofline import roofline
from nacre.viz.utilisation import utilisation
from tests.nem.run.timing.timed import timed
from tests.viz.reports import (
    EXAMPLES,
    HOSTILE,
    HOSTILE_TITLE,
    LITE,
    NESTED,
    NOTHING,
    ONE_TOKEN,
    STUCK,
    example,
    gemm,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

INT64 = st.integers(-(2**63), 2**63 - 1)


def unpacked(text: str) -> list[int]:
    """What `packed` says it wrote, read number by number."""
    data = base64.b64decode(text)
    stream = iter(data[1:])

    def number() -> int | None:
        value = 0
        for shift in itertools.count(0, 7):
            byte = next(stream, None)
            if byte is None:
                return None
            value |= (byte & 127) << shift
            if byte < 128:
                break
        return value

    values: list[int] = []
    while (value := number()) is not None:
        if value == 0:
            values += [0] * (number() or 0)
        else:
            values.append(-(value + 1) // 2 if value % 2 else value // 2)
    for _ in range(data[0]):
        values = list(itertools.accumulate(values))
    return [(v + 2**63) % 2**64 - 2**63 for v in values]


@given(st.lists(st.one_of(st.just(0), st.integers(-300, 300), INT64)))
def test_a_packed_column_reads_back(values: list[int]) -> None:
    assert unpacked(pack_column(np.array(values, np.int64))) == values


def test_a_steady_rise_packs_into_a_few_bytes() -> None:
    assert len(pack_column(np.arange(100_000, dtype=np.int64) * 144)) < 16


RESULTS = {
    "conv2d_relu": lambda: example("conv2d_relu"),
    "two_engines": lambda: example("two_engines"),
    "multi_cstl": lambda: example("multi_cstl"),
    "nested": lambda: timed(NESTED),
    "gemm": lambda: gemm(20),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request: pytest.FixtureRequest) -> TimedResult:
    return RESULTS[request.param]()


def test_columns_hold_what_the_result_says_task_by_task(result: TimedResult) -> None:
    data = report_data(result)
    columns = {name: unpacked(text) for name, text in data["tasks"].items()}
    steps = result.timeline.steps
    tasks = [t for t in steps.plan.program.tasks if t.position in steps.numbers]
    order = [int(s) for task in tasks for s in steps.numbers[task.position]]
    names = [unit["name"] for unit in data["units"]]
    for page, step in enumerate(order):
        row = result.task_row(step)
        assert columns["start"][page] == row["start"]
        assert columns["duration"][page] == row["end"] - row["start"]
        units = [columns[slot][page] for slot in ("unit", "second_unit")]
        assert "+".join(names[u] for u in units if u >= 0) == row["unit"]
        causes = ("window", "dependence", "token", "unit_wait")
        assert [columns[c][page] for c in causes] == list(row["stall"].values())
    path = [order[page] for page in unpacked(data["critical"]["task"])]
    assert path == [link.step for link in result.critical_path]


def test_a_blocker_ended_as_the_task_became_ready(result: TimedResult) -> None:
    t = result.timeline
    for step, blocker in enumerate(blockers(t)):
        if isinstance(t.steps.statement(step), Task) and t.ready[step] > 0:
            assert blocker >= 0
            assert isinstance(t.steps.statement(int(blocker)), Task)
            assert t.end[blocker] == t.ready[step]
        elif t.ready[step] == 0:
            assert blocker == -1


def idle_cycle_by_cycle(result: TimedResult, unit: int) -> dict[str, int]:
    """Each idle cycle of a unit, by what its next task waits for in that cycle."""
    t, found = result.timeline, dict[str, int]()
    held = [s for s in range(t.steps.count) if unit in t.unit[s]]
    busy = {c for s in held for c in range(int(t.start[s]), int(t.end[s]))}
    for cycle in range(result.cycles):
        if cycle in busy:
            continue
        coming = [s for s in held if t.start[s] > cycle]
        cause = "no more work" if held else "never used"
        if coming:
            step = min(coming, key=lambda s: t.start[s])
            at = int(t.start[step] - t.stalls.total[step])
            cause = "not reached"
            for name in ("window", "dependence", "token", "unit"):
                if cycle >= at:
                    cause = name
                at += int(getattr(t.stalls, name)[step])
        found[cause] = found.get(cause, 0) + 1
    return found


def test_idle_cycles_go_to_what_the_next_task_waits_for(result: TimedResult) -> None:
    for index, use in enumerate(utilisation(result.timeline)):
        assert use.idle == idle_cycle_by_cycle(result, index)
        assert {"busy": use.busy, "tasks": use.tasks} == result.units[use.name]


def test_a_unit_is_busy_or_idle_in_every_cycle(result: TimedResult) -> None:
    for use in utilisation(result.timeline):
        assert use.busy + sum(use.idle.values()) == result.cycles


def test_memory_is_occupied_from_the_first_touch_to_the_last() -> None:
    text = (
        LITE
        + """
buffer M : L2 (size=64)
buffer P : L1 (size=128)
buffer Q : L1 (size=256)
t0 = transfer.sync(dst=region(P, 0, 64), src=region(M, 0, 64))
t1 = transfer.sync(dst=region(Q, 0, 64), src=region(M, 0, 64))
t2 = transfer.sync(dst=region(Q, 64, 64), src=region(M, 0, 64))
"""
    )
    l2, l1 = occupancy(timed(text).timeline)  # every transfer takes 4 + 64 / 32 cycles
    assert (l2.place, l2.capacity, l2.peak) == ("L2", 1048576, 64)
    assert (l2.times.tolist(), l2.alive.tolist()) == ([0, 18], [64, 0])
    assert (l1.place, l1.capacity, l1.peak) == ("L1[0]", 524288, 256)
    assert (l1.times.tolist(), l1.alive.tolist()) == ([0, 6, 18], [128, 256, 0])
    assert [(b.buffer.name, b.begin, b.end) for b in l1.buffers] == [("P", 0, 6), ("Q", 6, 18)]


def test_memories_come_from_the_outside_in() -> None:
    places = [memory.place for memory in occupancy(example("two_engines").timeline)]
    assert places == ["DDR", "L2", "L1[0]", "L1[1]"]


def test_bytes_from_ddr_are_charged_to_the_products_that_they_feed() -> None:
    made = roofline(example("two_engines").timeline)
    assert made is not None
    tile_a, tile_b, tile_y = 64 * 256 * 2, 256 * 128 * 2, 64 * 128 * 2
    share = 4 * (tile_a + tile_y) + tile_b / 2  # B serves both engines
    assert [(p.name, p.bytes_moved) for p in made.points] == [("tG0", share), ("tG1", share)]
    assert [p.macs for p in made.points] == [4 * 64 * 256 * 128] * 2
    assert (made.border, made.bytes_moved, made.bytes_per_cycle) == ("DDR", 2 * share, 2 * 32)
    # Two engines with one NMU each, 2048 f16 MACs a cycle.
    assert [(r.types, r.macs_per_cycle) for r in made.roofs] == [("f16", 4096)]


def test_a_program_that_leaves_ddr_alone_is_measured_at_l2() -> None:
    made = roofline(example("conv2d_relu").timeline)
    assert made is not None
    assert made.border == "L2"
    assert made.bytes_moved == 3 * 3 * 64 * 128 + 4 * (16 * 16 * 64 + 14 * 14 * 128)
    assert [p.bytes_moved for p in made.points] == [made.bytes_moved]


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "nested"])
def test_no_program_is_faster_than_its_roof(name: str) -> None:
    made = roofline(RESULTS[name]().timeline)
    assert made is not None
    peak = max(roof.macs_per_cycle for roof in made.roofs)
    rate = made.macs / made.cycles
    assert rate <= peak
    assert rate <= made.bytes_per_cycle * made.macs / made.bytes_moved


def test_without_products_there_is_no_roofline() -> None:
    assert roofline(timed(NESTED).timeline) is None


# The text of the page


def data_of(page: str) -> Any:  # noqa: ANN401 - as the page's script gets it
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def test_hostile_text_stays_text() -> None:
    page = render_report(timed(HOSTILE), title=HOSTILE_TITLE)
    data = data_of(page)
    assert data["source"] == HOSTILE
    assert data["title"] == HOSTILE_TITLE
    assert len(re.findall(r"<script", page, re.I)) == 2
    assert len(re.findall(r"</script", page, re.I)) == 2
    assert "<img" not in page
    assert "<title>&lt;/title&gt;&lt;script&gt;" in page


def test_the_policy_allows_only_the_pages_own_script_and_style() -> None:
    page = render_report(timed(HOSTILE), title=HOSTILE_TITLE)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert policy
    assert script
    assert style
    assert policy[1].startswith("default-src 'none'; ")
    for kind, text in (("script", script[1]), ("style", style[1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1]


def test_the_page_refers_to_nothing_outside_itself() -> None:
    page = render_report(example("two_engines"), title="two engines")
    page = page.replace("http://www.w3.org/2000/svg", "")  # a name, not a place
    page = re.sub(r'id="data">.*?</script>', "", page, flags=re.S)  # the program's own text
    assert re.findall(r"https?:|//\w+\.|@import|url\(|<link|\ssrc=|fetch\(", page) == []


def test_every_asset_is_part_of_a_page() -> None:
    folder = EXAMPLES.parent / "src/nacre/viz/assets"
    used = {n for kind in (REPORT, BINDING) for n in (kind.template, *kind.scripts, *kind.styles)}
    assert {path.name for path in folder.iterdir()} == used


def test_the_header_says_the_bottleneck_without_scripts() -> None:
    page = render_report(example("conv2d_relu"), title="conv")
    assert "NMU@0 is the bottleneck: its work alone needs 14,120 cycles" in page
    page = render_report(example("two_engines"), title="two")
    assert ">Dependences and windows alone need 10,390 cycles" in page


def test_a_report_is_written_whole_under_the_programs_name(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(example("conv2d_relu"), path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert "<title>conv2d_relu</title>" in text
    write_report(example("conv2d_relu"), path, title="surrogate \udcff")
    assert "<title>surrogate ?</title>" in path.read_text(encoding="utf-8")


def test_a_long_source_travels_deflated() -> None:
    text = timed(LITE + "# " + "long " * 50_000 + "\n")
    data = report_data(text)
    assert isinstance(data["source"], dict)
    assert len(data["source"]["deflated"]) < 5_000


def test_nothing_to_do_and_a_stuck_run_have_reports_too() -> None:
    nothing = data_of(render_report(timed(NOTHING), title="nothing"))
    assert nothing["cycles"] == 0
    assert nothing["statements"]["name"] == []
    stuck = data_of(render_report(timed(STUCK, ONE_TOKEN), title="stuck"))
    assert (stuck["status"], stuck["waiting"]) == ("deadlock", ["t1", "t2"])
    assert unpacked(stuck["tasks"]["start"]) == [0, -1, -1]
    assert unpacked(stuck["tasks"]["unit_wait"]) == [0, 0, 0]
