"""A binding measured: causes that add up, banks counted by another way, compressed bytes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.bind.measure.bank_map import BankMap
from nacre.bind.measure.measured import MeasuredBinding
from nacre.core.builder import Builder
from nacre.tcb.figures import Figures
from nacre.tcb.machine.hardware import bank_kinds
from tests.bind.test_fusion import PROGRAM as CHAINED
from tests.bind.test_store_formats import BODY, HEAD

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIGHT = """uarch tight {
    l1 { banks = 4 bank_width = 8 interleave = 64 }
    l2 { slices = 2 slice_width = 16 interleave = 4096 }
    dma { burst = 64 burst_cycles = 2 align = 64 outstanding = 2 }
    tags { engine = 3 device = 8 }
    queue { depth = 1 }
    chain { links = [NMU_CSTLA, CSTLA_CSTLB] depth = 3 }
    cstl { parts = 2 }
    arbitration { classes = 2 rule = round_robin }
}
"""


@cache
def weighted_bundle() -> nacre.Bundle:
    build = Builder()
    x = build.input("x", "f32", (4, 16))
    out = build.add("Linear", x, build.constant(np.eye(16, dtype=np.float32)))
    return nacre.compile(build.module(out), "npm16k")


def tight(tmp_path: Path) -> Path:
    path = tmp_path / "tight.uarch"
    path.write_text(TIGHT)
    return path


def measured(name: str, tmp_path: Path) -> MeasuredBinding:
    if name == "bundle":
        return nacre.bind(weighted_bundle()).measure()
    if name in ("chained", "converted"):
        return nacre.bind(CHAINED if name == "chained" else HEAD + BODY).measure()
    path = EXAMPLES / f"{name.removesuffix(' on tight')}.nem"
    uarch = tight(tmp_path) if name.endswith("on tight") else None
    return nacre.bind(path, uarch, allow_serialise=True).measure()


NAMES = ("conv2d_relu", "two_engines", "gemm_bias_relu", "chained", "converted", "bundle",
         "conv2d_relu on tight", "gemm_rmsnorm on tight", "multi_cstl on tight")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_causes_add_up_to_the_difference(name: str, tmp_path: Path) -> None:
    found = measured(name, tmp_path)
    steps = found.steps
    image = nacre.TcbImage(found.bound.image)
    assert steps.image == image.time().cycles
    assert steps.program == steps.ideal == found.program.cycles
    assert steps.program + sum(cause.added for cause in steps.causes) == steps.image
    before = steps.program
    for cause in steps.causes:
        assert cause.cycles == before + cause.added
        before = cause.cycles
    by_name = {cause.cause: cause for cause in steps.causes}
    assert by_name["tags"].cycles == image.time(ideal=True).cycles
    assert [cause["added"] for cause in found.as_json()["causes"]] == [
        cause.added for cause in steps.causes
    ]


def test_what_was_not_decided_costs_nothing(tmp_path: Path) -> None:
    added = {c.cause: c.added for c in measured("conv2d_relu", tmp_path).steps.causes}
    assert added == {
        "fusion": 0, "wdm": 0, "tags": 0, "parts": 0, "burst": 288, "queue": 0, "bank": 0,
        "arbitration": 0,
    }  # fmt: skip
    added = {c.cause: c.added for c in measured("conv2d_relu on tight", tmp_path).steps.causes}
    assert added["tags"] == 21524 - 17315  # one iteration in flight instead of two
    assert added["bank"] > 0


def test_wdm_saves_what_it_saves_on_ideal_hardware() -> None:
    found = nacre.bind(weighted_bundle()).measure()
    plain = nacre.bind(weighted_bundle(), wdm=False)
    added = {cause.cause: cause.cycles for cause in found.steps.causes}
    assert added["fusion"] == plain.time(ideal=True).cycles
    assert added["wdm"] == nacre.TcbImage(found.bound.image).time(ideal=True).cycles
    sizes = Counter[str]()
    for one in found.compressed:
        sizes += Counter({"before": one.bytes, "after": one.compressed_bytes})
        assert one.mode == "palette of 1 bits"
    assert (sizes["before"], sizes["after"]) == (512, 36)  # once for all engines


def naive_conflicts(found: MeasuredBinding, memory: BankMap) -> list[int]:
    """Tasks that start where as many as a bank has ports use it already, one by one."""
    timing, instances = found.timing, found.timing.instances
    kind = bank_kinds(Figures(dict(instances.image.machine.figures)))[memory.memory == "L2"]
    runs: dict[int, list[tuple[int, int]]] = {}
    for task in timing.tasks.tolist():
        placed, row = instances.block_of(task), int(instances.row[task])
        banks = set()
        for operand in (*placed.block.inputs, *placed.block.outputs):
            if operand is not None and operand.memory == memory.memory:
                address = int(placed.grid.column(operand.address)[row])
                span = operand.compressed_bytes or np.prod(operand.dims) * (
                    {"f16": 2, "i32": 4}.get(operand.elem, 1)
                )
                banks |= {a // kind.interleave % kind.banks for a in range(address, address + span)}
        for bank in banks:
            runs.setdefault(bank, []).append((int(timing.start[task]), int(timing.end[task])))
    counts = []
    for bank in range(kind.banks):
        seen: list[tuple[int, int]] = []
        conflicts = 0
        for start, end in sorted(runs.get(bank, [])):
            conflicts += sum(e > start for _, e in seen) >= kind.ports
            seen.append((start, end))
        counts.append(conflicts)
    return counts


@pytest.mark.parametrize("name", ["conv2d_relu", "conv2d_relu on tight"])
def test_conflicts_are_counted_by_bank(name: str, tmp_path: Path) -> None:
    found = measured(name, tmp_path)
    for memory in found.banks:
        assert [bank.conflicts for bank in memory.banks] == naive_conflicts(found, memory)
        held = {placement.buffer: placement for placement in found.bound.image.placements}
        size = sum(held[buffer.buffer].size for buffer in memory.buffers)
        assert sum(bank.bytes for bank in memory.banks) == size
    assert sum(memory.lost for memory in found.banks) == found.timing.stall_totals["bank"]


def test_memory_that_tasks_touch(tmp_path: Path) -> None:
    found = measured("conv2d_relu", tmp_path)
    l2, l1 = found.banks
    assert (l2.memory, l1.memory) == ("L2", "L1[0]")
    buffers = {buffer.buffer: buffer for buffer in (*l2.buffers, *l1.buffers)}
    assert buffers["W_L2"].first == 0  # the host fills it
    assert buffers["Y_L2"].last == found.steps.image
    counts = l1.touches.counts
    assert counts.min() >= 0
    weights = int(0x8000 * counts.shape[0] // l1.touches.end) + 2
    assert counts[weights, 1] > 0  # of W_L1, as it comes in
    assert counts[weights, -1] == 0


def test_hardware_without_banks_has_none(tmp_path: Path) -> None:
    path = EXAMPLES / "two_engines.nem"
    for memory in nacre.bind(path, "ideal").measure().banks:
        assert memory.banks == ()
        assert {buffer.banks for buffer in memory.buffers} == {(-1, -1, 0)}


def test_an_image_from_a_file_has_no_decisions(tmp_path: Path) -> None:
    image = nacre.bind(EXAMPLES / "conv2d_relu.nem")
    image.save(tmp_path / "c.tcb")
    with pytest.raises(ValueError, match="bind its program"):
        nacre.TcbImage.load(tmp_path / "c.tcb").report(tmp_path / "c.html")
