"""Opening a file takes memory by what the file has, not by what it says or may have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre import core, nac
from nacre.cli.calibration import read_calibration
from nacre.core.builder import Builder
from nacre.core.models import read_model
from nacre.core.module import Module
from nacre.nem.api import NemInterpreter
from nacre.nem.api.ddr import load_npy

SIDE = 512
SIZE = 4 * SIDE * SIDE  # bytes of weights


def big_model() -> Module:
    build = Builder()
    x = build.input("x", "f32", (4, SIDE))
    weights = np.random.default_rng(1).normal(size=(SIDE, SIDE)).astype(np.float32)
    return build.module(build.add("MatMul", x, build.constant(weights)))


MODULE = big_model()
ARRAY = np.random.default_rng(2).normal(size=(SIDE, SIDE)).astype(np.float32)


def _bundle(path: Path) -> Callable[[], object]:
    nacre.compile(MODULE, "npm4k").save(path / "b")
    return lambda: nacre.Bundle.load(path / "b")


def _core(path: Path) -> Callable[[], object]:
    core.save(MODULE, path / "m.core")
    return lambda: core.load(path / "m.core")


def _nac(path: Path) -> Callable[[], object]:
    nac.save(nac.build(MODULE), path / "m.nac")
    return lambda: nac.load(path / "m.nac")


def _external_nac(path: Path) -> Callable[[], object]:
    nac.save(nac.build(MODULE), path / "m.nac", weights="external")
    return lambda: nac.load(path / "m.nac")


def _npy(path: Path) -> Callable[[], object]:
    np.save(path / "x.npy", ARRAY)
    return lambda: load_npy(path / "x.npy")


def _npz(path: Path) -> Callable[[], object]:
    np.savez(path / "x.npz", x=ARRAY)
    return lambda: read_calibration(path / "x.npz")


def _bytes_into_memory(path: Path) -> Callable[[], object]:
    (path / "x.bin").write_bytes(ARRAY.tobytes())
    machine = NemInterpreter(ddr_size=1 << 26)
    machine.ddr_load_file(0, path / "x.bin")  # DDR itself is there from now on
    return lambda: machine.ddr_load_file(0, path / "x.bin")


def _onnx(path: Path) -> Callable[[], object]:
    core.to_onnx(MODULE, path / "m.onnx")
    return lambda: read_model(path / "m.onnx")


def _external_onnx(path: Path) -> Callable[[], object]:
    onnx = pytest.importorskip("onnx")
    core.to_onnx(MODULE, path / "m.onnx")
    proto = onnx.load(path / "m.onnx")
    onnx.save(proto, path / "e.onnx", save_as_external_data=True, location="e.data")
    return lambda: read_model(path / "e.onnx")


def _pt2(path: Path) -> Callable[[], object]:
    torch = pytest.importorskip("torch")
    program = torch.export.export(torch.nn.Linear(SIDE, SIDE), (torch.zeros(4, SIDE),))
    torch.export.save(program, path / "m.pt2")
    return lambda: read_model(path / "m.pt2")


# How many times its size opening may take: copies of the arrays, and of what is read before them.
MOST: dict[Callable[[Path], Callable[[], object]], int] = {
    _bundle: 8, _core: 3, _nac: 3, _external_nac: 3, _npy: 1, _npz: 3, _bytes_into_memory: 3,
    _onnx: 3, _external_onnx: 3, _pt2: 8,
}  # fmt: skip
_FIXED = 2 << 20  # whatever else is made


@pytest.mark.parametrize(
    "opened", [pytest.param(o, marks=[pytest.mark.full] * (o in (_pt2, _bundle))) for o in MOST]
)
@pytest.mark.filterwarnings("ignore")
def test_opening_takes_memory_by_the_file(
    opened: Callable[[Path], Callable[[], object]], tmp_path: Path
) -> None:
    read = opened(tmp_path)
    read()  # what is imported on the way does not count
    tracemalloc.start()
    try:
        read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST[opened] * SIZE + _FIXED


class _Stream:
    """A file that notes how much was asked of it."""

    def __init__(self, size: int) -> None:
        self.left, self.asked = size, 0

    def read(self, count: int = -1) -> bytes:
        assert count >= 0
        self.asked = max(self.asked, count)
        given = min(count, self.left)
        self.left -= given
        return bytes(given)


@pytest.mark.parametrize("size", [0, 1, 1000, 70_000, 3_000_000])
@pytest.mark.parametrize("expected", [0, 1 << 16])
def test_a_stream_is_asked_for_what_it_can_have(size: int, expected: int) -> None:
    from nacre.base.source import _CHUNK_BYTES, read_stream

    stream = _Stream(size)
    assert len(read_stream(stream, 1 << 34, expected)) == size  # type: ignore[arg-type]
    assert stream.asked <= max(size, expected + 1, _CHUNK_BYTES)
