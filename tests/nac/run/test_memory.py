"""What a run takes is what it says: freed weights are gone, what is kept is bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nacre import nac
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.run.memory import Memory
from nacre.nac.run.model import NacModel
from tests.cli.runner import environment, invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

LAYERS, WIDTH = 8, 512
WEIGHT = WIDTH * WIDTH * 4  # bytes
X = np.linspace(-1, 1, WIDTH, dtype=np.float32).reshape(1, WIDTH)
RNG = np.random.default_rng(0)
QUANTS = ("fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group")

MEASURE = """
import json, sys, tracemalloc
import numpy as np
from nacre import nac
path, keep, optimise = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
x = np.linspace(-1, 1, {width}, dtype=np.float32).reshape(1, -1)
nac.load(path).run({{"x": x}})  # whatever is loaded once
tracemalloc.start()
model = nac.load(path, keep_bytes=keep)
before, _ = tracemalloc.get_traced_memory()
tracemalloc.reset_peak()
session = model.session(optimise=optimise)
for _ in range(3):
    session.run({{"x": x}})
after, most = tracemalloc.get_traced_memory()
print(json.dumps([most - before, after - before, session.peak_bytes, session.kept_bytes]))
"""


def stack(layers: int = LAYERS) -> Module:
    build = Builder()
    value = build.input("x", "f32", (1, WIDTH))
    for _ in range(layers):
        weight = RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5
        value = build.add("Relu", build.add("Linear", value, build.constant(weight)))
    return build.module(value)


def test_values_are_counted_apart_from_weights_that_are_kept() -> None:
    memory = Memory(1000)
    weight, first, second = (np.zeros(size, np.int8) for size in (100, 40, 60))
    memory.hold(weight, is_kept=True)
    memory.hold(weight.reshape(10, 10), is_kept=True)
    assert (memory.live, memory.peak, memory.value_peak) == (100, 100, 0)
    memory.hold([first, first[:20]])
    assert (memory.live, memory.peak, memory.value_peak) == (140, 140, 40)
    memory.drop(weight)
    assert memory.live == 140
    memory.drop(weight)
    memory.hold(second)
    assert (memory.live, memory.peak, memory.value_peak) == (100, 140, 100)
    assert memory.has_room(900)
    assert (memory.peak, memory.value_peak) == (1000, 1000)
    assert not memory.has_room(901)


@pytest.fixture(scope="module", params=["internal", "external"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stack")
    module = stack()
    for quant in ("none", *QUANTS):
        nac.save(nac.build(module, quant), folder / f"{quant}.nac", request.param)
    return folder


def measured(path: Path, keep: int | None, *, optimise: bool = True) -> list[int]:
    """The most bytes that were taken, those that stayed, and what the session says of both."""
    given = [MEASURE.format(width=WIDTH), path, json.dumps(keep), json.dumps(optimise)]
    command = [sys.executable, "-c", *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    found: list[int] = json.loads(done.stdout)
    return found


@pytest.mark.full
@pytest.mark.parametrize("quant", ["int8_tensor", "block_fp8"])
def test_freed_weights_are_gone(files: Path, quant: str) -> None:
    most, stays, peak, kept = measured(files / f"{quant}.nac", 0)
    assert kept == 0
    assert peak < 3 * WEIGHT  # one in use, and the next one loaded ahead
    assert most < peak + WEIGHT / 2
    assert stays < WEIGHT / 2


@pytest.mark.full
def test_what_is_kept_is_part_of_the_peak(files: Path) -> None:
    most, stays, peak, kept = measured(files / "int8_channel.nac", None)
    assert LAYERS * WEIGHT <= kept <= 2 * LAYERS * WEIGHT  # kernels prepare small ones
    assert kept <= peak < kept + WEIGHT
    assert most < peak + WEIGHT
    assert stays < kept + WEIGHT / 2


@pytest.mark.sampled(6)
@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_no_more_is_kept_than_may_be(files: Path, quant: str, share: float, optimise: bool) -> None:
    bound = int(share * LAYERS * WEIGHT)
    model = nac.load(files / f"{quant}.nac", keep_bytes=bound)
    wanted = nac.load(files / f"{quant}.nac").run({"x": X})[0]
    session = model.session(optimise=optimise)
    for _ in range(2):
        np.testing.assert_allclose(session.run({"x": X})[0], wanted, rtol=1e-4, atol=1e-6)
    assert session.kept_bytes <= bound
    assert session.kept_bytes == (bound if share == 1 else 0)  # a part would be of little use
    assert session.peak_bytes >= session.kept_bytes


def test_sessions_share_what_is_kept(files: Path) -> None:
    model = nac.load(files / "int8_tensor.nac")
    kept = []
    for session in (model.session(), model.session(), model.session()):
        session.run({"x": X})
        kept.append(session.kept_bytes)
    assert len(set(kept)) == 1


def test_mapped_weights_take_nothing_between_runs(tmp_path: Path) -> None:
    nac.save(nac.build(stack(2)), tmp_path / "m.nac", "external")
    model = nac.load(tmp_path / "m.nac")
    session = model.session(optimise=False)
    session.run({"x": X})
    assert session.kept_bytes == 0
    assert session.peak_bytes >= WEIGHT


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_command_says_what_is_kept(
    files: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", X)
    run = ("nac", "run", files / "int8_tensor.nac", "--input", f"x={tmp_path / 'x.npy'}")
    kept = invoke(capsys, *run, "--format", form)
    bare = invoke(capsys, *run, "--format", form, "--keep-bytes", "0")
    if form == "json":
        assert json.loads(kept.out)["kept_bytes"] >= LAYERS * WEIGHT
        assert json.loads(bare.out)["kept_bytes"] == 0
    else:
        assert kept.out.splitlines()[-1].endswith(" of them kept")
        assert bare.out.splitlines()[-1].endswith(" bytes")


# What may be taken follows from what is computed, not from how weights are stored


def attention(heads: int, length: int) -> Module:
    """Small weights, and tensors between that are much larger."""
    build = Builder()
    x = build.input("x", "f32", (1, 16))
    table = build.constant(RNG.standard_normal((heads * length, 16)).astype(np.float32))
    scores = build.add("Linear", x, table)
    rows = build.add("Reshape", scores, new_shape=(heads * length, 1))
    columns = build.add("Reshape", scores, new_shape=(1, heads * length))
    pairs = build.add("BinOp", rows, columns, op="Mul")
    return build.module(build.add("Sum", pairs, axes=(0,), keepdims=False))


@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("storage", ["internal", "external"])
def test_what_runs_in_f32_runs_however_it_is_stored(
    quant: str, storage: str, tmp_path: Path
) -> None:
    x = {"x": np.ones((1, 16), np.float32)}

    def limit(kind: str) -> int:
        path = tmp_path / f"{kind}.nac"
        nac.save(nac.build(attention(4, 700), kind), path, storage)  # type: ignore[arg-type]
        model: NacModel = nac.load(path)
        model.run(x)
        assert [d for d in nac.verify(path) if d.severity == "error"] == []
        return model.file_bytes

    assert limit(quant) >= limit("none") - 512  # headers differ by some bytes
