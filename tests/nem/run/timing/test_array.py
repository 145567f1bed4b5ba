"""The shape of an array: tiles, fetches and weights, counted one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.spec.figures import PARAMETERS

DEVICE = """include "nem_baseline_1.0.nem"
device tile extends nem_baseline_1_0 {{
    topology {{
        num_engines = 1
        l2_size_bytes = 4194304
        device_units {{ sDMA = 1  WDM = 0 }}
        per_engine {{ NMU = 1  CSTL = 1  DMA = 1  VPU = 1  SEQ = 1  l1_size_bytes = 16777216 }}
    }}
    unit_characteristics {{ {units} }}
}}
"""
RATE = 1024
Nmu = Mapping[str, int]


def device_text(**units: Mapping[str, int]) -> str:
    """A device with one unit of each kind and these figures."""
    figures = {"NMU": {"int8_macs": 2 * RATE, "fp16_macs": RATE, "latency": 7}}
    for unit, entries in units.items():
        figures[unit] = {**figures.get(unit, {}), **entries}
    groups = (
        f"{unit} {{ {'  '.join(f'{k} = {v}' for k, v in entries.items())} }}"
        for unit, entries in figures.items()
    )
    return DEVICE.format(units="  ".join(groups))


def one_task(shapes: Mapping[str, tuple[int, ...]], task: str, weights: str = "HWIO") -> str:
    """A program of one task in f16, its operands in L1."""
    lines = ["program task:"]
    for name, shape in shapes.items():
        size = 2
        for extent in shape:
            size *= extent
        layout = {"A": "MK", "B": "KN", "W": weights}.get(name, "NHWC" if len(shape) == 4 else "MN")
        lines += [
            f"buffer {name} : L1 (size={size})",
            f"let {name.lower()} = region({name}, 0, {size}) elem=f16, "
            f"shape=[{', '.join(map(str, shape))}], layout={layout}",
        ]
    return "\n".join([*lines, f"t = {task}", ""])


def cycles(text: str, profile: Mapping[str, Any] | None = None) -> int:
    """What the timed machine says of a program."""
    program = LoadedProgram(Source("task.nem", text), CheckOptions())
    program.require_runnable()
    return int(time_plan(program.plan, program.device, profile).cycles)


def convolution(h: int, w: int, c: int, oc: int, k: int, groups: int = 1) -> str:
    """A convolution with a window of k x k whose result has h x w places."""
    shapes = {
        "X": (1, h + k - 1, w + k - 1, c),
        "W": (k, k, c // groups, oc),
        "Y": (1, h, w, oc),
    }
    return one_task(
        shapes,
        "conv2d.sync in x, w out y strides=[1,1] pads=[0,0,0,0] dilations=[1,1] accum_type=f32"
        f" groups={groups}",
    )


def counted(h: int, w: int, c: int, oc: int, k: int, groups: int, nmu: Nmu) -> int:
    """The same cycles, every tile by itself."""
    th, tw = nmu.get("tile_height") or 1, nmu.get("tile_width") or 1
    tc, td = nmu.get("tile_channels") or 1, nmu.get("tile_depth") or 1
    tiles, places, macs = 0, 0, 0
    for _ in range(0, h, th):
        for _ in range(0, w, tw):
            places += th * tw
            for _ in range(0, oc, tc):
                tiles += 1
                for _ in range(0, c // groups, td):
                    macs += th * tw * tc * td * counted_taps(c, k, groups, td, nmu)
    computed = -(-macs // RATE)
    fetched, line = 0, nmu.get("operand_line") or 1
    if port := nmu.get("operand_bandwidth"):
        lines = sum(1 for _ in range(0, 2 * c, line))
        fetched = -(-places * k * k * lines * line // port)
    loaded = 0
    if rate := nmu.get("weight_bandwidth"):
        loaded = -(-2 * k * k * (c // groups) * oc // rate)
    return 7 + max(computed, fetched) + tiles * nmu.get("tile_issue", 0) + loaded


def counted_taps(c: int, k: int, groups: int, td: int, nmu: Nmu) -> int:
    """Steps through a window: places share one as long as all their channels fit into the depth."""
    steps, together = 0, 0
    for _ in range(k * k):
        is_full = groups > 1 or together + 1 > nmu.get("tile_taps", 0) or (together + 1) * c > td
        steps, together = (steps + 1, 1) if is_full or not together else (steps, together + 1)
    return steps


FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "tile_taps": st.integers(0, 9),
        "tile_width": st.integers(0, 9),
        "tile_height": st.integers(0, 9),
        "tile_channels": st.sampled_from([0, 1, 3, 16, 32]),
        "tile_depth": st.sampled_from([0, 1, 3, 16, 32]),
        "tile_issue": st.integers(0, 40),
        "operand_bandwidth": st.integers(0, 200),
        "operand_line": st.sampled_from([0, 1, 16, 32, 48]),
        "weight_bandwidth": st.integers(0, 64),
    },
)


@given(
    st.integers(1, 9), st.integers(1, 20), st.integers(1, 3), st.integers(1, 20),
    st.integers(1, 12), st.sampled_from([1, 2, 3]), FIGURES,
)  # fmt: skip
def test_a_convolution_costs_what_its_tiles_cost(
    h: int, w: int, groups: int, depth: int, columns: int, k: int, nmu: Nmu
) -> None:
    c, oc = groups * depth, groups * columns
    text = device_text(NMU=nmu) + convolution(h, w, c, oc, k, groups)
    assert cycles(text) == counted(h, w, c, oc, k, groups, nmu)


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), FIGURES)
def test_rows_of_a_matrix_fill_tiles_wherever_they_lie(
    rows: int, depth: int, columns: int, nmu: Nmu
) -> None:
    text = one_task(
        {"A": (rows, depth), "B": (depth, columns), "Y": (rows, columns)},
        "matmul.sync in a, b out y accum_type=f32",
    )
    places = (nmu.get("tile_width") or 1) * (nmu.get("tile_height") or 1)
    flat = {**nmu, "tile_width": places, "tile_height": 1}
    assert cycles(device_text(NMU=nmu) + text) == counted(1, rows, depth, columns, 1, 1, flat)


def test_without_figures_of_a_calibrated_device_nothing_changes() -> None:
    # 0 is off: today's cycles, whatever the task.
    added = [p for p in PARAMETERS if p.source == "a calibrated device"]
    off: dict[str, dict[str, int]] = {}
    for parameter in added:
        off.setdefault(parameter.unit, {})[parameter.key] = 0
    text = convolution(5, 9, 20, 24, 3)
    assert cycles(device_text(**off) + text) == cycles(device_text() + text)
    assert len(added) > 15


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ({}, 7 + 60),
        ({"NMU": {"clock": 1300}}, 7 + 60),
        ({"NMU": {"clock": 1000}, "CSTL": {"clock": 500}}, 7 + 60),
        ({"SEQ": {"call": 5000}}, 5000 + 7 + 60),
    ],
)
def test_cycles_are_those_of_the_array(units: Mapping[str, Nmu], expected: int) -> None:
    # 16 x 16 places, 16 by 15 channels: 61440 MACs at 1024.
    assert cycles(device_text(**units) + convolution(16, 16, 16, 15, 1)) == expected


ADD = one_task(
    {"X": (1, 8, 8, 16), "W": (1, 8, 8, 16), "Y": (1, 8, 8, 16)}, "add.sync in x, w out y", "NHWC"
)
RELU = one_task({"X": (1, 8, 8, 16), "Y": (1, 8, 8, 16)}, "relu.sync in x out y", "NHWC")
SOFTMAX = one_task(
    {"X": (1, 8, 8, 16), "Y": (1, 8, 8, 16)}, "softmax.sync in x out y axis=3", "NHWC"
)
GELU = one_task({"X": (1, 8, 8, 16), "Y": (1, 8, 8, 16)}, "gelu.sync in x out y", "NHWC")


@pytest.mark.parametrize(
    ("text", "cstl", "expected"),
    [
        (ADD, {}, 1 + 4),  # 1024 elements at 256
        (ADD, {"transcendental_throughput": 16}, 1 + 4),
        (ADD, {"vector_bytes": 128}, 1 + 16),  # 2048 bytes
        (ADD, {"vector_bytes": 4096}, 1 + 4),
        (RELU, {"vector_bytes": 128}, 1 + 16),
        (RELU, {"vector_bytes": 128, "clamp_throughput": 512}, 1 + 2),
        (RELU, {"clamp_throughput": 0}, 1 + 4),
        (ADD, {"clamp_throughput": 512}, 1 + 4),
        (GELU, {"transcendental_throughput": 16}, 1 + 64),
        (SOFTMAX, {}, 1 + 12),  # three passes
        (SOFTMAX, {"transcendental_throughput": 16}, 1 + 8 + 64),  # of which one takes exp
        (SOFTMAX, {"transcendental_throughput": 512, "vector_bytes": 128}, 1 + 48),
        (GELU, {"transcendental_throughput": 16, "clock": 400}, 2 * (1 + 64)),
    ],
)
def test_elements_cost_by_class_and_by_bytes(text: str, cstl: Nmu, expected: int) -> None:
    units = {"CSTL": cstl, "NMU": {"clock": 800}} if "clock" in cstl else {"CSTL": cstl}
    assert cycles(device_text(**units) + text) == expected


TRANSFER = """program move:
buffer D : DDR (size=65536)
buffer S : L2 (size=65536)
let d = region(D, 0, 65536)
let s = region(S, 0, 65536)
"""
INWARDS, OUTWARDS = "t = transfer.sync(dst=s, src=d)\n", "t = transfer.sync(dst=d, src=s)\n"


@pytest.mark.parametrize(
    ("task", "units", "expected"),
    [
        (INWARDS, {}, 16 + 2048),
        (OUTWARDS, {}, 16 + 2048),
        (INWARDS, {"sDMA": {"write_latency": 100, "write_bandwidth": 16}}, 16 + 2048),
        (OUTWARDS, {"sDMA": {"write_latency": 100, "write_bandwidth": 16}}, 100 + 4096),
        (OUTWARDS, {"sDMA": {"write_bandwidth": 64}}, 16 + 1024),
        (INWARDS, {"sDMA": {"clock": 500}, "NMU": {"clock": 1000}}, 2 * (16 + 2048)),
        (INWARDS, {"sDMA": {"clock": 975}, "NMU": {"clock": 1700}}, -(-2064 * 1700 // 975)),
        (INWARDS, {"sDMA": {"clock": 975}}, 16 + 2048),  # nothing to count it in
        (INWARDS, {"DDR": {"bandwidth": 8}}, 8192),
        (INWARDS, {"DDR": {"bandwidth": 8, "clock": 500}, "NMU": {"clock": 1000}}, 16384),
    ],
)
def test_transfers_by_direction_and_clock(
    task: str, units: Mapping[str, Nmu], expected: int
) -> None:
    assert cycles(device_text(**units) + TRANSFER + task) == expected
