"""Every verb that writes, on disks that fill and killed midway: the old state, or the new one."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nacre import core, nac
from nacre.base.files import is_temporary
from nacre.compile.bundle import Bundle
from nacre.core.builder import Builder
from tests.base.faults import CALLS, failing, full_after
from tests.cli.runner import Outcome, environment, invoke

Capsys = pytest.CaptureFixture[str]
State = tuple[object, ...]
Fault = AbstractContextManager[list[int]]

PROGRAM = """
program clip:
buffer X : DDR (size=64)
buffer Y : DDR (size=64)
buffer L : L1 (size=64)
let v = region(L, 0, 64) elem=i8, shape=[64], layout=C
t = transfer.async(dst=v, src=region(X, 0, 64))
u = relu.async in v out v deps=[t]
w = store.async(dst=region(Y, 0, 64), src=v, deps=[u])
"""
UGLY = "const   X=1\nconst Y =  2\n"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of one structure, whose mixture would run, and what else verbs read."""
    folder = tmp_path_factory.mktemp("given")
    for seed in (1, 2):
        build = Builder()
        x = build.input("x", "f32", (4, 16))
        weights = np.random.default_rng(seed).normal(size=(16, 16)).astype(np.float32)
        out = build.add("Linear", x, build.constant(weights), build.constant(weights[0]))
        module = build.module(out)
        core.save(module, folder / f"m{seed}.core")
        nac.save(nac.build(module), folder / f"m{seed}.nac")
        total = build.add("Sum", out, axes=[0, 1], keepdims=False)
        summed = build.module(total)
        core.save(summed, folder / f"s{seed}.core")
        nac.save(nac.build(summed), folder / f"s{seed}.nac")
        plain = Builder()
        y = plain.input("x", "f32", (4, 16))
        core.save(plain.module(plain.add(("Relu", "Neg")[seed - 1], y)), folder / f"r{seed}.core")
        np.save(folder / f"x{seed}.npy", np.full((4, 16), seed, np.float32))
        np.save(folder / f"i{seed}.npy", np.full(64, seed, np.int8))
    (folder / "p.nem").write_text(PROGRAM)
    return folder


# What a folder holds, by what readers make of it.


def _evaluated(path: Path) -> object:
    if not path.exists():
        return None
    x = {"x": np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)}
    if path.suffix == ".nac":
        return tuple(array.tobytes() for array in nac.load(path).run(x))
    return tuple(array.tobytes() for array in core.evaluate(core.load(path), x))


def _model(name: str) -> Callable[[Path], State]:
    return lambda folder: (_evaluated(folder / name),)


def _bundle(folder: Path) -> State:
    if not (folder / "manifest.json").exists():
        return (None,)
    found = Bundle.load(folder)
    return (str(found.source), str(found.legal), found.program, found.weights)


def _plain(folder: Path) -> State:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not is_temporary(p.name))
    return tuple((str(path.relative_to(folder)), path.read_bytes()) for path in files)


def _demo(folder: Path) -> State:
    page = folder / "d" / "report.html"
    return (page.read_bytes() if page.exists() else None, *_bundle(folder / "d" / "bundle"))


@dataclass(frozen=True)
class Verb:
    """A verb that writes into a folder: one of two states."""

    arguments: Callable[[Path, Path, int], Sequence[object]]
    state: Callable[[Path], State] = _plain
    has_old: bool = True  # whether it writes over what is there
    old: str | None = None  # what is there before, where another has written it
    is_slow: bool = False


VERBS = {
    "core convert": Verb(
        lambda g, o, n: ["core", "convert", g / f"m{n}.core", "-o", o / "m.core"], _model("m.core")
    ),
    "core convert to ONNX": Verb(
        lambda g, o, n: ["core", "convert", g / f"m{n}.core", "-o", o / "m.onnx"]
    ),
    "core convert to MLIR": Verb(
        lambda g, o, n: ["core", "convert", g / f"r{n}.core", "-o", o / "m.mlir"]
    ),
    "core canon": Verb(
        lambda g, o, n: ["core", "canon", g / f"m{n}.core", "-o", o / "m.core"], _model("m.core")
    ),
    "core grad": Verb(
        lambda g, o, n: ["core", "grad", g / f"s{n}.core", "--wrt", "x", "-o", o / "m.core"],
        _model("m.core"),
    ),
    "core lower": Verb(
        lambda g, o, n: ["core", "lower", f"relu(x * {n}.5)", "--input", "x=f32[4,16]",
                         "-o", o / "m.core"],
        _model("m.core"),
    ),
    "core eval": Verb(
        lambda g, o, n: ["core", "eval", g / "m1.core", "--input", f"x={g}/x{n}.npy",
                         "--output", o / "all.npz", "--output", f"0={o}/y.npy"]
    ),
    "nac build": Verb(
        lambda g, o, n: ["nac", "build", g / f"m{n}.core", "-o", o / "m.nac"], _model("m.nac")
    ),
    "nac build external": Verb(
        lambda g, o, n: ["nac", "build", g / f"m{n}.core", "-o", o / "m.nac",
                         "--weights", "external"],
        _model("m.nac"),
    ),
    "nac convert": Verb(
        lambda g, o, n: ["nac", "convert", g / f"m{n}.nac", "-o", o / "m.core"], _model("m.core")
    ),
    "nac transplant": Verb(
        lambda g, o, n: ["nac", "transplant", g / f"m{n}.nac", g / f"m{3 - n}.nac",
                         "-o", o / "m.nac"],
        _model("m.nac"),
    ),
    "nac extract": Verb(
        lambda g, o, n: ["nac", "extract", g / f"m{n}.nac", "-o", o / "parts"], has_old=False
    ),
    "nac run": Verb(
        lambda g, o, n: ["nac", "run", g / "m1.nac", "--input", f"x={g}/x{n}.npy",
                         "--output", f"0={o}/y.npy"]
    ),
    "nac genome": Verb(
        lambda g, o, n: ["nac", "genome", *[g / "m1.nac", g / "m2.nac", g / "s1.nac"][: n + 1],
                         "--newick", o / "t.nwk", "--svg", o / "t.svg"]
    ),
    "compile": Verb(
        lambda g, o, n: ["compile", g / f"m{n}.core", "--device", "npm4k", "-o", o / "b"],
        lambda folder: _bundle(folder / "b"),
    ),
    "run": Verb(
        lambda g, o, n: ["run", g / "p.nem", "--input", f"X={g}/i{n}.npy", "--output",
                         f"Y={o}/y.npy", "--output", f"X={o}/a.npy", "--trace", o / "t.csv"]
    ),
    "run timed": Verb(
        lambda g, o, n: ["run", g / "p.nem", "--mode", "timed", "--input", f"X={g}/i{n}.npy",
                         "--output", f"Y={o}/y.npy", "--trace", o / "t.json",
                         "--report", o / "r.html"]
    ),
    "estimate": Verb(
        lambda g, o, n: ["estimate", g / f"m{n}.core", "--clock", str(500 * n),
                         "--device", "npm4k", "--report", o / "r.html"]
    ),
    "fmt": Verb(lambda g, o, n: ["fmt", o / "f.nem"], old=UGLY),
    "demo": Verb(
        lambda g, o, n: ["demo", "-o", o / "d", "--precision", ("f16", "i8")[n - 1]],
        _demo,
        is_slow=True,
    ),
}  # fmt: skip


class Bench:
    """Runs a verb again and again, each time in a folder of its own."""

    def __init__(self, name: str, given: Path, capsys: Capsys, tmp_path: Path) -> None:
        self.verb, self._capsys, self._top = VERBS[name], capsys, tmp_path
        self._given = given
        self._count = 0
        self.none = self.verb.state(self.folder(has_old=False))
        self._kept = self._made(1)
        self.old, self.new = self.verb.state(self._kept), self.verb.state(self._made(2))
        assert self.old != self.new

    def folder(self, *, has_old: bool = True) -> Path:
        """A new one, with the old state or with nothing."""
        self._count += 1
        out = self._top / f"out{self._count}"
        if has_old and hasattr(self, "_kept"):
            shutil.copytree(self._kept, out)
        else:
            out.mkdir()
        return out

    def _made(self, seed: int) -> Path:
        out = self.folder(has_old=False)
        if self.verb.old is not None:
            (out / "f.nem").write_text(self.verb.old)
        if self.verb.old is None or seed == 2:
            outcome = self.write(out, seed)
            assert outcome.status == 0, outcome.text
        return out

    def arguments(self, out: Path, seed: int) -> list[str]:
        return [str(part) for part in self.verb.arguments(self._given, out, seed)]

    def write(self, out: Path, seed: int = 2) -> Outcome:
        return invoke(self._capsys, *self.arguments(out, seed))

    def check(self, out: Path, outcome: Outcome, before: set[str], *, has_old: bool) -> bool:
        """Whether the new state is there; else it is the old one, and nothing is left behind."""
        assert outcome.status in (0, 1), outcome.text
        assert "internal error" not in outcome.err
        found = self.verb.state(out)
        if found == self.new:
            return True
        assert outcome.status == 1
        assert found == (self.old if has_old else self.none)
        assert _names(out) == before
        return False

    def faulty(self, fault: Callable[[], Fault], *, has_old: bool) -> tuple[bool, list[int]]:
        out = self.folder(has_old=has_old)
        before = _names(out)
        with fault() as count:
            outcome = self.write(out)
        is_new = self.check(out, outcome, before, has_old=has_old)
        shutil.rmtree(out)
        return is_new, count


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _moments(bench: Bench, numbers: Callable[[int], Sequence[int]], *, has_old: bool) -> int:
    """Calls of the system fail, by their number."""
    _, count = bench.faulty(lambda: failing(0, *CALLS), has_old=has_old)
    assert count[0] > 2
    chosen = numbers(count[0])
    for number in chosen:
        bench.faulty(lambda n=number: failing(n, *CALLS), has_old=has_old)  # type: ignore[misc]
    return len(chosen)


def _fills(bench: Bench, sizes: Callable[[int], Sequence[int]], *, has_old: bool) -> int:
    """The disk fills after so many bytes: nothing has come to its place."""
    most = 1 << 40
    _, left = bench.faulty(lambda: full_after(most), has_old=has_old)
    chosen = sizes(most - left[0])
    for size in chosen:
        is_new, _ = bench.faulty(lambda s=size: full_after(s), has_old=has_old)  # type: ignore[misc]
        assert not is_new
    return len(chosen)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.full] * verb.is_slow) for n, verb in VERBS.items()],
)
def test_a_verb_whose_disk_is_full(name: str, given: Path, capsys: Capsys, tmp_path: Path) -> None:
    bench = Bench(name, given, capsys, tmp_path)
    has_old = bench.verb.has_old
    _moments(bench, lambda count: [1, count // 2 + 1], has_old=has_old)
    _fills(bench, lambda size: [size - 1], has_old=has_old)


@pytest.mark.parametrize(
    "name", ["core convert", "nac extract", "run", "fmt", "nac build external"]
)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errno.EACCES, 2), (errno.EROFS, 2), (errno.EISDIR, 2),
        (errno.EDQUOT, 1), (errno.EIO, 1), (errno.EFBIG, 1),
    ],
)  # fmt: skip
def test_what_the_exit_status_says(
    name: str, error: int, status: int, given: Path, capsys: Capsys, tmp_path: Path
) -> None:
    """A name that cannot be written is wrong usage; a machine that cannot write is not."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "f.nem").write_text(UGLY)
    before = _names(out)
    arguments = [str(part) for part in VERBS[name].arguments(given, out, 1)]
    with failing(1, "open", error=error):
        outcome = invoke(capsys, *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.err.startswith("nacre: cannot write ")
    assert os.strerror(error) in outcome.err
    assert _names(out) == before


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_whose_disk_fills_at_every_moment(
    name: str, given: Path, capsys: Capsys, tmp_path: Path
) -> None:
    bench = Bench(name, given, capsys, tmp_path)
    chance = random.Random(26)
    most = 8 if bench.verb.is_slow else 200

    def sizes(total: int) -> Sequence[int]:
        if total <= 4096 and not bench.verb.is_slow:
            return range(total)
        return chance.sample(range(total), most)

    for has_old in {bench.verb.has_old, bench.verb.old is not None}:
        assert _moments(bench, lambda count: range(1, count + 1)[:most], has_old=has_old)
        assert _fills(bench, sizes, has_old=has_old)


KILLED = ("core convert", "nac build external", "compile", "core eval", "run")


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("name", KILLED)
def test_a_process_that_is_killed(name: str, given: Path, capsys: Capsys, tmp_path: Path) -> None:
    bench = Bench(name, given, capsys, tmp_path)
    out = bench.folder()
    chance = random.Random(27)
    took = _lasting(bench.arguments(out, 2), None)
    assert bench.verb.state(out) == bench.new
    killed = 0
    for turn in range(200 // len(KILLED)):
        took_now = _lasting(bench.arguments(out, 1 + turn % 2), chance.uniform(0.5, 1.1) * took)
        killed += took_now < 0
        if name == "core eval" or name == "run":  # several files that no other file names
            for found in bench.verb.state(out):
                assert found in (*bench.old, *bench.new)
        else:
            assert bench.verb.state(out) in (bench.old, bench.new)
    assert killed > 3


def _lasting(arguments: Sequence[str], until: float | None) -> float:
    """Run in a process of its own; how long it took, negative where it was killed."""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "nacre", *arguments],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            process.wait(until)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return -1.0
    return time.monotonic() - began
