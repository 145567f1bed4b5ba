"""Runs within a limit of memory: what they take by the system's own counters, and why not."""

from __future__ import annotations

import json
import mmap
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.format.pages import empty_array, mapped_pages
from nacre.nac.run.limits import Limits
from nacre.nac.run.memory_plan import plan_memory
from tests.cli.runner import environment, invoke
from tests.effort import scaled
from tests.nac.program.test_choices import SHAPE, draw_module

pytestmark = pytest.mark.sampled(2)  # together they take long

WIDTH = 256
WEIGHT = WIDTH * WIDTH * 4  # bytes
ROWS = np.linspace(-1, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
ROW_BYTES = ROWS.nbytes
LEAST = WEIGHT + 2 * ROW_BYTES  # a weight, what it is multiplied with, and the result
QUANTS = ("none", "fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group")
LIMITS = Limits(1 << 40, 1 << 60)


def stack(layers: int = 6, is_tied: bool = False) -> Module:
    """Linear layers; tied: the first and the last have the same weight."""
    rng = np.random.default_rng(0)
    build = Builder()
    value = build.input("x", "f32", (4, WIDTH))
    weights = [
        build.constant(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5)
        for _ in range(layers - is_tied)
    ]
    for weight in [*weights, *weights[: int(is_tied)]]:
        value = build.add("Relu", build.add("Linear", value, weight))
    return build.module(value)


@pytest.fixture(scope="module", params=["internal", "external"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stack")
    for quant in QUANTS:
        nac.save(nac.build(stack(), quant), folder / f"{quant}.nac", request.param)
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("limit", [LEAST, 2 * LEAST, 5 * LEAST])
def test_a_run_takes_no_more_and_gives_the_same(files: Path, quant: str, limit: int) -> None:
    path = files / f"{quant}.nac"
    (wanted,) = nac.load(path).session(optimise=False).run({"x": ROWS})
    session = nac.load(path, memory_limit=limit).session()
    for _ in range(2):
        (found,) = session.run({"x": ROWS})
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
        assert 0 < session.peak_bytes <= limit
    assert session.kept_bytes == 0


def branches(layers: int = 3) -> Module:
    """Linear layers, of which the sum of the input chooses one half, and one for both."""
    rng = np.random.default_rng(0)
    build = Builder()
    x = build.input("x", "f32", (4, WIDTH))
    total = build.add("Sum", x, axes=(0, 1), keepdims=False)
    yes = build.add("Compare", total, build.constant(np.float32(0)), op="Gt")
    sides = []
    for function in ("Tanh", "Abs"):
        value = x
        for _ in range(layers):
            weight = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5
            linear = build.add("Linear", value, build.constant(weight))
            value = build.add("Unary", linear, op=function)
        sides.append(value)
    last = build.constant(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5)
    return build.module(build.add("Linear", build.add("Where", yes, *sides), last))


def least_limit(path: Path, given: dict[str, np.ndarray]) -> int:
    """The least limit that a refusal names, which all say."""
    with pytest.raises(InputError, match="NAC54") as refused:
        nac.load(path, memory_limit=1).run(given)
    (finding,) = refused.value.diagnostics
    (told,) = nac.verify(path, memory_limit=1)
    assert finding.message == told.message
    found = re.search(r"memory_limit=(\d+)", str(finding.help))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("quant", ["none", "int8_channel"])
def test_a_limit_is_met_by_weights_of_the_branch_that_is_taken(tmp_path: Path, quant: str) -> None:
    path = tmp_path / "m.nac"
    nac.save(nac.build(branches(), quant), path)
    least = least_limit(path, {"x": ROWS})
    assert WEIGHT < least <= LEAST + 2 * ROW_BYTES
    for limit in (least, 3 * least):
        session = nac.load(path, memory_limit=limit).session()
        for rows in (ROWS + 1, ROWS - 1):
            (wanted,) = nac.load(path).session(optimise=False).run({"x": rows})
            (found,) = session.run({"x": rows})
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
            assert 0 < session.peak_bytes <= limit


@settings(max_examples=scaled(30))
@example(1370)  # without weights: rewritten, it would take more
@given(st.integers(0, 1 << 32))
def test_random_choices_run_within_the_least_limit(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.nac")
        nac.save(nac.build(draw_module(random.Random(seed))), path)
        given_ = {"x": np.ones(SHAPE, np.float32)}
        least = least_limit(path, given_)
        session = nac.load(path, memory_limit=least).session()
        for sign in (1, -1, 0):
            rows = {"x": sign * given_["x"]}
            for one, other in zip(session.run(rows), nac.load(path).run(rows), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
            assert session.peak_bytes <= least


def test_the_peak_of_a_run_is_that_of_its_plan(files: Path) -> None:
    model = nac.load(files / "none.nac", memory_limit=3 * LEAST)
    plan = plan_memory(model, {0: ROWS}, {}, LIMITS, 3 * LEAST)
    session = model.session()
    session.run({"x": ROWS})
    assert session.peak_bytes == plan.peak_bytes <= 3 * LEAST


def test_weights_come_several_calls_ahead_where_there_is_room(files: Path) -> None:
    model = nac.load(files / "none.nac")
    user = len(model.program) - 3  # of the last weight; behind it Relu and the output
    ahead = []
    for limit in (LEAST, 2 * LEAST, 100 * LEAST):
        loads = plan_memory(model, {0: ROWS}, {}, LIMITS, limit).schedule.loads
        ahead.append(user - next(tick for tick, some in enumerate(loads) if user - 1 in some))
    # The least limit has room for it while Relu runs, which needs no weight.
    assert ahead == [3, 6, 9]


def test_a_limit_that_cannot_be_met_says_why(files: Path) -> None:
    with pytest.raises(InputError) as caught:
        nac.load(files / "none.nac", memory_limit=LEAST - 1).run({"x": ROWS})
    (found,) = caught.value.diagnostics
    assert found.code == "NAC54"
    assert f"a memory limit of {LEAST - 1:,} bytes cannot be met" in found.message
    assert f"needs {LEAST:,} bytes at once: weight `c1` {WEIGHT:,}" in found.message
    assert f"`memory_limit={LEAST}`" in str(found.help)


def test_verify_and_run_take_the_limit_at_the_command_line(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, x = files / "int8_channel.nac", tmp_path / "x.npy"
    np.save(x, ROWS)
    refused = invoke(capsys, "nac", "verify", "--memory-limit", "1000", str(path))
    assert refused.status == 1
    assert "NAC54" in refused.out + refused.err
    least = re.search(r"--memory-limit (\d+)", refused.out + refused.err)
    assert least is not None
    assert int(least[1]) == LEAST
    for verb in (["verify"], ["run", "--input", f"x={x}"]):
        assert invoke(capsys, "nac", *verb, "--memory-limit", least[1], str(path)).status == 0


@pytest.mark.parametrize("option", ["--memory-limit", "--keep-bytes", "--max-bytes"])
def test_bytes_are_told_with_letters(
    option: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, x = files / "int8_channel.nac", tmp_path / "x.npy"
    np.save(x, ROWS)
    run = ("nac", "run", str(path), "--input", f"x={x}", option)
    assert invoke(capsys, *run, "64M").status == 0
    assert "is no size such as 4096, 512M or 1G" in invoke(capsys, *run, "64X").err


def test_a_tied_weight_is_kept_or_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "tied.nac"
    nac.save(nac.build(stack(is_tied=True)), path, "external")
    (wanted,) = nac.load(path).session(optimise=False).run({"x": ROWS})
    loads = []
    for limit in (LEAST, 8 * LEAST):
        model = nac.load(path, memory_limit=limit)
        np.testing.assert_allclose(model.run({"x": ROWS})[0], wanted, rtol=1e-4, atol=1e-6)
        loads.append(plan_memory(model, {0: ROWS}, {}, LIMITS, limit).loads)
    assert loads == [6, 5]


@pytest.mark.parametrize("quant", ["none", "int8_tensor"])
def test_weights_that_are_looked_at_or_returned_stay(tmp_path: Path, quant: str) -> None:
    build = Builder()
    x = build.input("x", "f32", (4, WIDTH))
    weight = build.constant(np.arange(WIDTH * WIDTH, dtype=np.float32).reshape(-1) / WIDTH**2)
    square = build.add("Reshape", weight, new_shape=(WIDTH, WIDTH))
    value = build.add("Linear", build.add("Linear", x, square), square)
    path = tmp_path / "views.nac"
    nac.save(nac.build(build.module(value, weight), quant), path, "external")
    wanted = nac.load(path).session(optimise=False).run({"x": ROWS})
    found = nac.load(path, memory_limit=2 * LEAST).run({"x": ROWS})
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_a_limit_above_everything_runs_as_without_one(files: Path) -> None:
    path = files / "none.nac"
    session = nac.load(path, memory_limit=1 << 30).session()
    np.testing.assert_array_equal(session.run({"x": ROWS})[0], nac.load(path).run({"x": ROWS})[0])


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="counters of Linux")
def test_pages_of_a_file_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(bytes(1 << 22))
    with path.open("rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    pages = mapped_pages(view[5000:])
    assert pages is not None
    pages.read_ahead()
    assert resident_bytes(path) >= (1 << 22) - 5000
    pages.give_back()
    assert resident_bytes(path) <= 5000
    assert mapped_pages(b"abc") is None


def resident_bytes(path: Path) -> int:
    """The bytes of a mapped file that are in memory, as the system counts them."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.endswith(str(path)):
            return next(int(one.split()[1]) for one in lines if one.startswith("Rss:")) * 1024
    return 0


def test_large_arrays_have_pages_of_their_own() -> None:
    small, large = (empty_array((size,), np.dtype(np.float32)) for size in (10, 1 << 20))
    assert small.base is None
    assert isinstance(large.base, mmap.mmap)
    large[:] = 1
    assert large.sum() == 1 << 20


MEASURE = """
import json, sys
import numpy as np
from nacre import nac

def counter(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

warm, path, limit, shape = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
session = nac.load(warm, memory_limit=300_000).session()  # whatever is loaded once
session.run({"x": np.ones((4, 256), np.float32)})
np.ones((512, 512), np.float32) @ np.ones((512, 512), np.float32)
before = counter("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
session = nac.load(path, memory_limit=limit).session()
for _ in range(2):
    session.run({"x": np.ones(shape, np.float32)})
print(json.dumps([counter("VmHWM") - before, session.peak_bytes]))
"""


def deep(kind: str, layers: int) -> tuple[Module, tuple[int, ...]]:
    """A network of about 400 MB, and the shape of its input."""
    rng = np.random.default_rng(0)
    build = Builder()
    shape: tuple[int, ...] = (8, 2048) if kind == "linear" else (1, 512, 14, 14)
    value = build.input("x", "f32", shape)
    for _ in range(layers):
        size = (2048, 2048) if kind == "linear" else (512, 512, 3, 3)
        weight = build.constant(rng.standard_normal(size, np.float32) * 0.02)
        pads = {} if kind == "linear" else {"pads": (1, 1, 1, 1)}
        value = build.add("Relu", build.add(kind.title(), value, weight, **pads))
    return build.module(value), shape


def measure(folder: Path, path: Path, limit: int, shape: tuple[int, ...]) -> tuple[int, int]:
    """The peak by the system's counters, without what was there before, and the schedule's own."""
    nac.save(nac.build(stack()), folder / "warm.nac", "external")
    arguments = [str(folder / "warm.nac"), str(path), str(limit), json.dumps(shape)]
    command = [sys.executable, "-c", MEASURE, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment(), timeout=600
    )
    resident, scheduled = json.loads(done.stdout)
    return resident, scheduled


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="counters of Linux")
@pytest.mark.parametrize(
    ("kind", "quant", "weights"),
    [
        ("linear", "none", "external"),
        ("linear", "none", "internal"),
        ("linear", "int8_channel", "external"),
        ("linear", "block_fp8", "internal"),
        ("linear", "int4_group", "internal"),
        ("linear", "block_fp8", "external"),
        ("linear", "int4_group", "external"),
        ("conv", "none", "external"),
        ("conv", "int8_tensor", "internal"),
    ],
)
def test_the_resident_peak_is_that_of_the_schedule(
    tmp_path: Path, kind: str, quant: str, weights: str
) -> None:
    layers, limit = (24, 100_000_000) if kind == "linear" else (44, 100_000_000)
    module, shape = deep(kind, layers)
    path = tmp_path / "deep.nac"
    nac.save(nac.build(module, quant), path, "external" if weights == "external" else "internal")
    del module
    assert nac.load(path).weights.wide_bytes >= 4 * limit
    resident, scheduled = measure(tmp_path, path, limit, shape)
    assert scheduled <= limit
    assert resident <= 1.1 * scheduled + 20_000_000
