"""Workloads, programs, models and bundles as rows; and what of them cannot be one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.calibrate import Measurement, ModelFile, NemFile, Workload, fit
from nacre.calibrate.subjects import load_subjects
from nacre.calibrate.timed_rows import TimedRows
from nacre.core.builder import Builder
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.api.timing import time_plan
from nacre.nem.model.target import builtin_device
from nacre.nem.spec.opcodes import OPCODES
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

DEVICE = builtin_device("npm4k")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def cycles(*rows: Measurement) -> list[float]:
    subjects, index = load_subjects(rows, DEVICE)
    return [float(time) for time in TimedRows(subjects, index, [True] * len(rows), ()).times(())]


def problems(*rows: Measurement) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as error:
        load_subjects(rows, DEVICE)
    return [(d.code, d.message) for d in error.value.diagnostics]


def network(folder: Path, name: str, width: int) -> Path:
    build = Builder()
    x = build.input("x", "f32", (8, width))
    weights = np.ones((width, width), np.float32)
    core.save(build.module(build.add("Relu", build.add("MatMul", x, build.constant(weights)))),
              folder / f"{name}.core")  # fmt: skip
    return folder / f"{name}.core"


# What the device has for one of the two types only.
LACKING = {
    *((name, "i8") for name in ("layernorm", "rmsnorm", "softmax", "log_softmax", "quantize")),
    ("dequantize", "f16"),
}


@pytest.mark.parametrize("elem", ["i8", "f16"])
@pytest.mark.parametrize("name", sorted(PRIMITIVES.keys() & OPCODES.keys()))
def test_every_opcode_that_the_device_has_is_a_workload(name: str, elem: str) -> None:
    opcode, example = OPCODES[name], PRIMITIVES[name].examples[0]
    count = len(example.shapes) if opcode.inputs[0].variadic else opcode.min_inputs
    shapes = tuple(tuple(shape) for shape in example.shapes[:count])
    row = Measurement(Workload(name, shapes, elem, example.attributes), 1.0)
    if (name, elem) in LACKING:
        assert problems(row) == [("CAL06", f"device `npm4k` has no `{name}` of {elem}")]
    else:
        assert cycles(row)[0] > 0


def test_a_product_takes_its_macs_over_the_rate() -> None:
    one = Workload("gemm", ((64, 128), (128, 256)))
    macs = 64 * 128 * 256
    assert cycles(Measurement(one, 1.0)) == [2 + macs // 4096]


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Workload("gemm", ((4, 8), (9, 4))), "the shapes of gemm 4x8 9x4 i8 do not fit each other"),
        (Workload("gemm", ((4, 8),)), "`gemm` has 1 inputs, expected 2 to 3"),
        (Workload("softmax", ((4, 8),), "f16"), "`softmax` needs `axis`"),
        (Workload("relu", ((4, 8),), "f32"), "device `npm4k` has no `relu` of f32"),
        (Workload("relu", ((4, 8),), attributes={"axis": 1}), "`relu` has no attribute `axis`"),
        (Workload("nothing", ((4, 8),)), "`nothing` is no opcode"),
        (Workload("transfer"), "a transfer needs a number of bytes and two memories"),
    ],
)
def test_a_workload_that_is_no_task_of_the_device_is_refused(
    workload: Workload, message: str
) -> None:
    assert problems(Measurement(workload, 1.0)) == [("CAL06", message)]


def test_a_workload_that_is_too_large_is_refused_with_the_reason() -> None:
    found = problems(Measurement(Workload("relu", ((1024, 1024),)), 1.0))
    assert [code for code, _ in found] == ["CAL06"]
    assert "[BUF07]" in found[0][1]


def test_a_program_is_timed_as_it_is_run(tmp_path: Path) -> None:
    path = EXAMPLES / "conv2d_relu.nem"
    program = tmp_path / "broken.nem"
    program.write_text("buffer A : L2 (size=0)\n")
    assert cycles(Measurement(NemFile(path), 1.0)) == [_program_cycles(path)]
    found = problems(
        Measurement(NemFile(program), 1.0), Measurement(NemFile(tmp_path / "no.nem"), 1.0)
    )
    assert [code for code, _ in found] == ["CAL06", "CAL06"]
    assert "[BUF01]" in found[0][1]
    assert "does not exist" in found[1][1]


def _program_cycles(path: Path) -> int:
    from nacre.base.source import Source
    from nacre.nem.api.programs import LoadedProgram
    from nacre.nem.checks.engine import CheckOptions

    program = LoadedProgram(Source("p", path.read_text(), path), CheckOptions(device=DEVICE))
    return time_plan(program.plan, DEVICE).cycles


def test_a_model_and_its_bundle_take_the_same_time(tmp_path: Path) -> None:
    model = network(tmp_path, "net", 64)
    bundle = nacre.compile(model, "npm4k")
    bundle.save(tmp_path / "bundle")
    rows = [Measurement(ModelFile(path), 1.0) for path in (model, tmp_path / "bundle")]
    assert cycles(*rows) == [bundle.time().cycles] * 2
    assert cycles(Measurement(ModelFile(model, "i8"), 1.0))[0] > 0


def test_models_that_are_missing_or_damaged_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.core"
    damaged.write_text("nothing of the kind")
    (tmp_path / "empty").mkdir()
    rows = [
        Measurement(ModelFile(tmp_path / name), 1.0)
        for name in ("no.core", "damaged.core", "empty")
    ]
    assert [code for code, _ in problems(*rows)] == ["CAL06"] * 3


def test_networks_are_fitted_without_being_compiled_again(tmp_path: Path) -> None:
    models = [network(tmp_path, f"net{width}", width) for width in (16, 32, 64, 128, 256)]
    hidden = {"sDMA": {"latency": 400}}
    rows = [
        Measurement(ModelFile(path), float(nacre.compile(path, "npm4k").time(hidden).cycles))
        for path in models
    ]
    found = fit("npm4k", rows, {"sDMA.latency": (0, 5000)}, starts=1)
    assert found.figures[0].value == pytest.approx(400, rel=0.02)
    # Tiles are chosen by it: plans for the fitted device may be others.
    assert [d.code for d in found.warnings] == ["CAL16"]


def test_what_times_alone_depend_on_needs_no_other_plan(tmp_path: Path) -> None:
    nacre.compile(network(tmp_path, "net", 16), "npm4k").save(tmp_path / "bundle")
    rows = [Measurement(ModelFile(tmp_path / "bundle"), 5000.0 + t, group=str(t)) for t in range(5)]
    found = fit("npm4k", rows, {"SEQ.call": (1, 50_000)}, starts=1)
    assert "CAL16" not in {d.code for d in found.warnings}


DIMS = st.integers(0, 5) | st.sampled_from([64, 10**6, 10**9])


@settings(max_examples=scaled(120), deadline=None)
@given(
    name=st.sampled_from(sorted(OPCODES)),
    shapes=st.lists(st.lists(DIMS, max_size=5).map(tuple), max_size=4).map(tuple),
    elem=st.sampled_from(["i4", "i8", "u8", "f16", "f32"]),
    pair=st.tuples(st.integers(-1, 3), st.integers(-1, 3)),
)
def test_no_workload_is_more_than_refused(
    name: str, shapes: tuple[tuple[int, ...], ...], elem: str, pair: tuple[int, int]
) -> None:
    lists = [a.name for a in OPCODES[name].attributes if a.type == "int_list" and a.length == 2]
    workload = Workload(name, shapes, elem, dict.fromkeys(lists, pair))
    try:
        codes = ["CAL06"] if cycles(Measurement(workload, 1.0))[0] > 0 else []
    except InputError as error:
        codes = [d.code for d in error.diagnostics]
    assert codes == ["CAL06"]
