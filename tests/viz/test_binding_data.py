"""The page about a binding: its data and its text; how it behaves is in test_binding_page.py."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.bind.measure.measured import MeasuredBinding
from nacre.binding import prove_binding
from nacre.tcb.machine.timing import CAUSES
from nacre.viz import binding_decisions, binding_runs
from nacre.viz.binding_data import binding_data
from nacre.viz.binding_page import render_binding
from nacre.viz.binding_runs import BoundRuns
from tests.bind.programs import PROGRAMS as LOOPS
from tests.bind.programs import program
from tests.bind.test_banks import HEAD as BANK_HEAD
from tests.bind.test_banks import SIDE_BY_SIDE
from tests.bind.test_fusion import PROGRAM as CHAINED
from tests.bind.test_store_formats import BODY, HEAD
from tests.viz.reports import EXAMPLES, HOSTILE, HOSTILE_TITLE, LITE, gemm_text
from tests.viz.test_report import unpacked


def measured(text: str | Path, uarch: str | None = None) -> MeasuredBinding:
    return nacre.bind(text, uarch).measure()


def data_of(text: str | Path, uarch: str | None = None) -> dict[str, Any]:
    found = measured(text, uarch)
    page = render_binding(found, prove_binding(found))
    embedded = re.search(r'id="data">(.*?)</script>', page, flags=re.S)
    assert embedded is not None
    return dict(json.loads(embedded[1]))


def words(raw: dict[str, Any]) -> list[str]:
    return [raw["words"][index] for index in unpacked(raw["at"])]


CONVERTED = HEAD + BODY
PROGRAMS: dict[str, str | Path] = {
    "conv2d_relu": EXAMPLES / "conv2d_relu.nem",
    "two_engines": EXAMPLES / "two_engines.nem",
    "nested": program(LOOPS["nest"]),
    "chained": CHAINED,
    "converted": CONVERTED,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_stand_beside_their_tasks(name: str) -> None:
    """On ideal hardware a block runs as its task does, whatever number it has."""
    runs = BoundRuns(measured(PROGRAMS[name], "ideal"))
    for column in ("start", "duration"):
        assert np.array_equal(runs.program[column], runs.image[column])


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_hold_what_the_machines_say(name: str) -> None:
    found = measured(PROGRAMS[name])
    data, runs = binding_data(found, None), BoundRuns(found)
    columns = {key: unpacked(text) for key, text in data["image_tasks"].items()}
    timing = found.timing
    names = [unit["name"] for unit in data["units"]]
    for at, instance in enumerate(runs.order.tolist()):
        if instance < 0:
            assert columns["start"][at] == -1
            assert columns["duration"][at] == columns["lost_tags"][at] == 0
            continue
        assert columns["start"][at] == timing.start[instance]
        assert columns["start"][at] + columns["duration"][at] == timing.end[instance]
        units = [columns[key][at] for key in ("unit", "second_unit", "third_unit")]
        used = [data["units"][unit] for unit in units if unit >= 0]
        assert tuple(unit["name"] for unit in used) == timing.unit_names(instance)
        assert {unit["side"] for unit in used} <= {"image"}
        for cause in CAUSES:
            assert columns[f"lost_{cause}"][at] == timing.stalls[cause][instance]
    program = unpacked(data["tasks"]["unit"])
    assert {data["units"][unit]["side"] for unit in program if unit >= 0} == {"program"}
    assert [names[u] for u in program] == [
        found.program.unit_names(step)[0]
        for task in runs.tasks
        for step in runs.timeline.steps.numbers[task.position].tolist()
    ]


def test_a_conversion_goes_with_its_store() -> None:
    data = data_of(CONVERTED)
    names = data["statements"]["name"]
    into = unpacked(data["placed_blocks"]["merged_into"])
    assert [names[at] if at >= 0 else None for at in into] == [None, "s", None]
    (one,) = data["conversions"]
    assert (one["task"], one["store"], one["format"]) == ("q", "s", "i8")
    because = words(data["decisions"]["because"])
    assert (
        "it does q on its way: nothing else sees the value, and `store.formats` has it" in because
    )


def test_units_of_an_engine_stand_together() -> None:
    units = data_of(EXAMPLES / "two_engines.nem")["units"]
    places = [(unit["engine"], unit["side"]) for unit in units]
    assert list(dict.fromkeys(places)) == [
        (0, "program"), (0, "image"), (1, "program"), (1, "image"), (None, "program"),
        (None, "image"),
    ]  # fmt: skip


def test_sums_and_causes_add_up() -> None:
    data = data_of(EXAMPLES / "conv2d_relu.nem")
    cycles = data["run_cycles"]
    assert (cycles["program"], cycles["ideal"], cycles["image"]) == (17315, 17315, 17603)
    assert sum(cause["added"] for cause in data["causes"]) == cycles["image"] - cycles["program"]
    for cause in CAUSES:
        assert sum(unpacked(data["sums"][f"lost_{cause}"])) == data["stalls"][cause]
    busy = sum(unit["busy"] for unit in data["units"] if unit["name"] == "NMU[0]@0")
    assert busy == 2 * 4 * 3530


def test_blocks_say_what_they_wait_for_and_signal() -> None:
    data = data_of(EXAMPLES / "conv2d_relu.nem")
    names = data["statements"]["name"]
    at = names.index("tC")
    blocks = data["placed_blocks"]
    assert words(blocks["waits"])[at] == "e0.t(c0 mod 2 + 2) ≥ (c0/2)*4 + 1, e0.t0 ≥ 1"
    assert words(blocks["signal"])[at] == "e0.t(c0 mod 2 + 2)"


def test_decisions_have_reasons() -> None:
    data = data_of(CHAINED)
    columns = {k: words(data["decisions"][k]) for k in ("kind", "subject", "decided", "because")}
    rows = set(zip(*columns.values(), strict=True))
    assert ("units", "c", "NMU", "any that can run it") in rows
    assert ("format", "s", "raw", "elements are written as they are") in rows
    assert {"tags", "address", "tag"} <= set(columns["kind"])
    assert all(columns["because"])
    assert data["decisions"]["count"] == len(rows)
    (chain,) = data["chains"]
    assert chain["tasks"] == ["c", "r", "s"]


def test_a_buffer_that_was_pushed_back_says_why(tmp_path: Path) -> None:
    four = tmp_path / "four.uarch"
    four.write_text("uarch four { l1 { banks = 4 interleave = 64 bank_width = 1 ports = 1 } }")
    data = data_of(BANK_HEAD + SIDE_BY_SIDE, str(four))
    l1 = next(memory for memory in data["memories"] if memory["memory"] == "L1[0]")
    assert (l1["choice"]["conflicts"], l1["choice"]["packed_conflicts"]) == (0, 1)
    assert {row[0]: row[5:] for row in l1["buffers"]} == {"A": [0, 3, 4], "B": [1, 0, 4]}
    why = dict(zip(*(words(data["decisions"][k]) for k in ("subject", "because")), strict=True))
    assert why["B"].startswith("pushed back by 64 bytes, to other banks: as few banks in common")


def test_pairs_that_are_not_fused_stand_under_their_reason() -> None:
    (group,) = data_of(EXAMPLES / "conv2d_relu.nem")["not_fused"]
    assert (group["because"], group["count"]) == ("`@materialized` forbids it", 2)
    assert group["places"] == [["tC", "tR", 83, "on `Y_pp_i`"], ["tR", "tS", 85, "on `Y_pp_i`"]]


def test_very_many_tasks_become_shares_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(EXAMPLES / "conv2d_relu.nem")
    whole = binding_data(found, None)
    monkeypatch.setattr(binding_runs, "MOST_TASKS", 10)
    data = binding_data(found, None)
    assert (data["tasks"], data["image_tasks"], data["task_count"]) == (None, None, 17)
    assert data["sums"] == whole["sums"]
    for unit in data["units"]:
        shares = unpacked(unit["shares"])
        assert len(shares) == binding_runs.SHARE_STEPS
        assert sum(shares) == unit["busy"]
        assert max(shares) <= -(-data["cycles"] // len(shares))


def test_very_many_decisions_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding_decisions, "MOST_DECISIONS", 3)
    decisions = binding_data(measured(EXAMPLES / "conv2d_relu.nem"), None)["decisions"]
    assert (decisions["count"], len(words(decisions["kind"]))) == (19, 3)


@pytest.mark.full
def test_a_hundred_thousand_tasks_make_no_large_page() -> None:
    found = measured(gemm_text(21_000))
    assert BoundRuns(found).count == 105_001
    assert len(render_binding(found)) < 500_000


def test_the_same_image_makes_the_same_page_however_long_its_proof_took() -> None:
    found = measured(CHAINED)
    proof = prove_binding(found)
    slower = dataclasses.replace(proof, seconds=proof.seconds + 1)
    assert render_binding(found, proof) == render_binding(found, slower)


def test_hostile_text_is_escaped() -> None:
    page = render_binding(measured(HOSTILE), title=HOSTILE_TITLE)
    assert len(re.findall(r"<script", page, re.I)) == len(re.findall(r"</script", page, re.I)) == 2
    assert "<img" not in page
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(3)" in page


def test_the_page_refers_to_nothing_outside_itself() -> None:
    page = render_binding(measured(EXAMPLES / "two_engines.nem"))
    page = page.replace("http://www.w3.org/2000/svg", "")  # a name, not a place
    page = re.sub(r'id="data">.*?</script>', "", page, flags=re.S)  # the program's own text
    assert re.findall(r"https?:|//\w+\.|@import|url\(|<link|\ssrc=|fetch\(", page) == []


def test_the_header_compares_without_scripts() -> None:
    page = render_binding(measured(EXAMPLES / "conv2d_relu.nem"))
    assert (
        ">The image takes 17,603 cycles on npm_lite, 288 or 1.7% more than the program on ideal "
        "hardware, mostly for bursts (288)." in page
    )
    page = render_binding(measured(EXAMPLES / "conv2d_relu.nem", "ideal"))
    assert "17,315 cycles on ideal, as many as the program on ideal hardware." in page


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "c.html"
    nacre.bind(LITE + "buffer A : L2 (size=64)\n").report(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert "<title>case</title>" in text
