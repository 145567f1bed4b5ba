"""What tasks cost, against the formulas of the definition, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.resources import NoUnitError
from nacre.nem.run.timing.timeline import time_steps
from neminterp import NemInterpreter
from tests.nem.run.timing.sketches import Machine
from tests.nem.run.timing.timed import timed

HEAD = """
program costs:
buffer D : DDR (size=400000)
buffer M : L2 (size=400000)
buffer N : L2 (size=400000)
buffer P : L1[0] (size=294912)
buffer Q : L1[0] (size=131072)
buffer R : L1[0] (size=65536)
"""
QUANT = "quant=per_tensor(scale=0.5, zero_point=0)"
_LAYOUTS = {1: "C", 2: "MN"}
_BITS = {"i4": 4, "i8": 8, "i16": 16, "i32": 32, "f16": 16, "bf16": 16, "f32": 32}


def tensor(buffer: str, elem: str, *shape: int, quant: str = "", layout: str = "") -> str:
    bits = _BITS[elem]
    for size in shape:
        bits *= size
    sizes = ", ".join(map(str, shape))
    order = layout or _LAYOUTS[len(shape)]
    types = f"elem={elem}, shape=[{sizes}], layout={order}{', ' + quant if quant else ''}"
    return f"region({buffer}, 0, {(bits + 7) // 8}) {types}"


def cycles(
    task: str, device: str = "npm_lite", profile: Mapping[str, Mapping[str, Any]] | None = None
) -> int:
    text = f'include "{device}.nem"\ndevice {device}\n{HEAD}t = {task}\n'
    return timed(text, profile).cycles


def gemm(elem: str, m: int, n: int, k: int, weights: str = "", out: str = "") -> str:
    quant = "" if elem.startswith(("f", "b")) else QUANT
    a = tensor("P", elem, m, k, quant=quant, layout="MK")
    b = tensor("Q", weights or elem, k, n, quant=quant, layout="KN")
    y = tensor("R", out or elem, m, n, quant=quant, layout="MN")
    return f"gemm.async in {a}, {b} out {y} accum_type={'i32' if quant else 'f32'}"


def conv2d(groups: int = 1) -> str:
    x = tensor("P", "i8", 1, 16, 16, 64, quant=QUANT, layout="NHWC")
    w = tensor("Q", "i8", 3, 3, 64 // groups, 128, quant=QUANT, layout="HWIO")
    y = tensor("R", "i8", 1, 14, 14, 128, quant=QUANT, layout="NHWC")
    attributes = f"pads=[0, 0, 0, 0] strides=[1, 1] dilations=[1, 1] groups={groups}"
    return f"conv2d.async in {x}, {w} out {y} {attributes} accum_type=i32"


def move(target: str, source: str, size: int, op: str = "transfer") -> str:
    return f"{op}.async(dst=region({target}, 0, {size}), src=region({source}, 0, {size}))"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (move("P", "M", 16384), 516),  # the X tile
        (move("P", "M", 294912), 9220),  # the weights of the whitepaper, as it prints them
        (move("M", "P", 25088, "store"), 788),
        (f"relu.async in {tensor('P', 'i8', 25088)} out {tensor('Q', 'i8', 25088)}", 99),
        (conv2d(), 3528 + 2),
        (gemm("f16", 64, 128, 256), 1024 + 2),
        (gemm("i8", 64, 128, 256), 512 + 2),
    ],
)
def test_the_published_numbers(task: str, expected: int) -> None:
    assert cycles(task) == expected


def test_the_published_number_of_a_flat_rate() -> None:
    assert cycles(gemm("f16", 64, 128, 256), profile={"NMU": {"mac_throughput": 4096}}) == 512 + 2


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("M", "D", 16 + 4),  # sDMA
        ("D", "M", 16 + 4),
        ("P", "M", 4 + 4),  # DMA
        ("M", "P", 4 + 4),
        ("N", "M", 4 + 4),
        ("Q", "P", 4 + 4),
        ("P", "D", 16 + 4),  # the slower of the two
        ("D", "P", 16 + 4),
    ],
)
def test_a_path_costs_what_its_unit_does(target: str, source: str, expected: int) -> None:
    assert cycles(move(target, source, 100)) == expected  # ceil(100 / 32) = 4


@pytest.mark.parametrize(
    ("elem", "expected"),
    [
        # 64 * 128 * 256 = 2097152 MACs; nem_reference: int8 8192, fp16 4096 a cycle.
        ("f16", 2 + 512),
        ("bf16", 2 + 512),
        ("f32", 2 + 1024),  # half of fp16
        ("i8", 2 + 256),
    ],
)
def test_products_run_at_the_rate_of_their_types(elem: str, expected: int) -> None:
    assert cycles(gemm(elem, 64, 128, 256), "nem_reference") == expected


def test_narrow_weights_are_faster_and_a_wide_output_changes_nothing() -> None:
    assert cycles(gemm("i8", 64, 128, 256, weights="i4"), "nem_reference") == 2 + 64  # 32768
    bias = tensor("N", "i32", 128, layout="C")
    wide = gemm("i8", 64, 128, 256, out="i16").replace(" out ", f", {bias} out ")
    assert cycles(wide, "nem_reference") == 2 + 256


def test_groups_stand_side_by_side_in_the_array() -> None:
    lanes = {"NMU": {"lanes": [32, 128]}}
    # 64 // 2 = 32 channels in and 128 out fill it; one channel in leaves 31 of 32 rows empty.
    assert cycles(conv2d(groups=2), profile=lanes) == 1764 + 2
    assert cycles(conv2d(groups=64), profile=lanes) == 1764 + 2


def test_a_grouped_convolution_counts_the_channels_of_a_group() -> None:
    # 14 * 14 * 128 * 9 * 32 MACs
    assert cycles(conv2d(groups=2)) == 1764 + 2


def same(op: str, elem: str, *shape: int, attributes: str = "") -> str:
    return f"{op}.async in {tensor('P', elem, *shape)} out {tensor('Q', elem, *shape)} {attributes}"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (same("gelu", "f16", 1000), 1 + 4),
        (same("softmax", "f16", 10, 100, attributes="axis=1"), 1 + 12),  # 3000 / 256
        (same("layernorm", "f16", 10, 100, attributes="axis=1 epsilon=1.0e-5"), 1 + 8),  # 2000
        (same("rmsnorm", "f16", 10, 100, attributes="axis=1 epsilon=1.0e-5"), 1 + 8),
        (
            f"maxpool.async in {tensor('P', 'f16', 1, 16, 16, 32, layout='NHWC')} "
            f"out {tensor('Q', 'f16', 1, 8, 8, 32, layout='NHWC')} "
            "kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]",
            1 + 32,  # 2048 outputs of a window of 4
        ),
        (
            f"transpose.async in {tensor('P', 'f16', 10, 100)} out {tensor('Q', 'f16', 100, 10)} "
            "perm=[1, 0]",
            1 + 4,
        ),
        (
            f"slice.async in {tensor('P', 'f16', 10, 100)} out {tensor('Q', 'f16', 3, 100)} "
            "starts=[0] ends=[3] axes=[0] steps=[1]",
            1 + 2,  # outputs, not inputs
        ),
        (
            f"transpose.async in {tensor('P', 'f16', 10, 100)} out {tensor('Q', 'f16', 100, 10)} "
            "perm=[1, 0] @resource(DMA[0])",
            4 + 63,  # 2000 bytes on a DMA
        ),
        (f"cast.async in {tensor('P', 'f16', 1000)} out {tensor('Q', 'f32', 1000)}", 1 + 4),
        (
            f"quantize.async in {tensor('P', 'f16', 1000)} "
            f"out {tensor('Q', 'i8', 1000, quant=QUANT)}",
            4 + 32,  # VPU, 32 a cycle
        ),
        (same("relu", "f16", 1000, attributes="@resource(VPU[0])"), 4 + 32),
        (gemm("f16", 8, 8, 8) + " @resource(VPU[0])", 4 + 16),
    ],
)
def test_other_tasks_count_elements(task: str, expected: int) -> None:
    assert cycles(task, "nem_reference") == expected


def test_a_reduction_counts_its_inputs() -> None:
    source, target = tensor("P", "f16", 10, 100), tensor("Q", "f16", 10, 1)
    task = f"reduce_sum.async in {source} out {target} axes=[1] keepdims=true"
    assert cycles(task, "nem_reference") == 4 + 32


def strided(rows: int, width: int, pitch: int, op: str = "transfer") -> str:
    """Rows that lie apart in L2 (for a store: in L1) come to lie side by side."""
    extent = (rows - 1) * pitch + width
    source, target = ("P", "M") if op == "store" else ("M", "P")
    return (
        f"{op}.async("
        f"dst=region({target}, 0, {rows * width}) elem=i8, shape=[{rows}, {width}], "
        f"strides=[{width}, 1], "
        f"src=region({source}, 0, {extent}) elem=i8, shape=[{rows}, {width}], strides=[{pitch}, 1])"
    )


@pytest.mark.parametrize(
    ("rows", "width", "pitch", "expected"),
    [
        (10, 40, 64, 4 + 10 * 2),  # each run is rounded up
        (10, 32, 64, 4 + 10 * 1),
        (3, 1, 2, 4 + 3 * 1),
        (1, 100, 200, 4 + 4),
    ],
)
def test_a_strided_copy_pays_for_every_run(
    rows: int, width: int, pitch: int, expected: int
) -> None:
    assert cycles(strided(rows, width, pitch)) == expected
    assert cycles(strided(rows, width, pitch, "store")) == expected


def test_a_burst_costs_extra_for_every_run_of_a_dma() -> None:
    burst = {"DMA": {"burst": 3}}
    assert cycles(move("P", "M", 1024), profile=burst) == 4 + 3 + 32
    assert cycles(move("M", "D", 1024), profile=burst) == 16 + 3 + 32
    assert cycles(strided(10, 40, 64), profile=burst) == 4 + 10 * (3 + 2)
    assert cycles(strided(10, 40, 64, "store"), profile=burst) == 4 + 10 * 2


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 128, 256), 2 + 512),  # K 256 and N 128 fill 32 x 128 lanes
        ((64, 129, 256), 2 + 1024),  # N becomes 256
        ((64, 128, 33), 2 + 128),  # K becomes 64
        ((1, 1, 1), 2 + 1),  # 32 * 128 = 4096
    ],
)
def test_lanes_that_stay_empty_cost_as_much_as_full_ones(
    shape: tuple[int, int, int], expected: int
) -> None:
    assert cycles(gemm("i8", *shape), profile={"NMU": {"lanes": [32, 128]}}) == expected


def test_durations_may_depend_on_the_iteration() -> None:
    body = (
        "loop i in [0..2]:\n"
        "  a = transfer.async(dst=region(P, 0, i * 320 + 32), src=region(M, 0, i * 320 + 32))\n"
        "  r = relu.async in region(P, 0, i * 512 + 64) elem=f16, shape=[i * 256 + 32], layout=C\n"
        "      out region(Q, 0, i * 512 + 64) elem=f16, shape=[i * 256 + 32], layout=C\n"
        "endloop\n"
    )
    result = timed(f'include "npm_lite.nem"\ndevice npm_lite\n{HEAD}{body}')
    found = [task["end"] - task["start"] for task in result.tasks]
    assert found == [4 + 1, 1 + 1, 4 + 11, 1 + 2, 4 + 21, 1 + 3]


def test_without_an_sdma_nothing_comes_from_ddr() -> None:
    text = Machine(counts={"sDMA": 0}).text() + HEAD + f"t = {move('M', 'D', 64)}\n"
    program = NemInterpreter().load_string(text)
    assert {d.code for d in program.diagnostics if d.severity == "error"} == {"PLC07"}
    with pytest.raises(NoUnitError, match="no unit of the device can run `transfer`"):
        time_steps(number_steps(program.plan), program.device, timing_profile(program.device))
