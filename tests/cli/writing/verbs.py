"""Every verb that writes: how it is called for one of two states, and what readers then find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

import nacre
from nacre import core, nac, nem
from nacre.base.files import is_temporary
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.nac.synthesis.families import families_corpus
from tests.llm.letters import LETTER_KEYS, LETTERS
from tests.llm.reference import llama_bytes
from tests.nac.mep.carrying import successor, tokenizer_json

State = tuple[object, ...]

PROGRAM = """
# what it clips
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
MENDABLE = "const N : i32 = 4\nbuffer A : l2 (size=64)\n"
WRITING_PLAN = """
src_user_prompt %p, str, "p"
src_user_prompt %t, str, "t"
io_write %t, file, %p, plain
"""


def make_given(folder: Path) -> None:
    """Two models of one structure, whose mixture would run, and what else verbs read."""
    for seed in (1, 2):
        build = Builder()
        x = build.input("x", "f32", (4, 16))
        weights = np.random.default_rng(seed).normal(size=(16, 16)).astype(np.float32)
        out = build.add("Linear", x, build.constant(weights), build.constant(weights[0]))
        module = build.module(out)
        core.save(module, folder / f"m{seed}.core")
        (folder / f"letters{seed}.gguf").write_bytes(llama_bytes(LETTERS, seed, LETTER_KEYS))
        nac.save(nac.build(module), folder / f"m{seed}.nac")
        summed = build.module(build.add("Sum", out, axes=[0, 1], keepdims=False))
        core.save(summed, folder / f"s{seed}.core")
        nac.save(nac.build(summed), folder / f"s{seed}.nac")
        plain = Builder()
        y = plain.input("x", "f32", (4, 16))
        turned = plain.module(plain.add(("Relu", "Neg")[seed - 1], y))
        core.save(turned, folder / f"r{seed}.core")
        nacre.compile(turned, "npm4k").save(folder / f"b{seed}")
        np.save(folder / f"x{seed}.npy", np.full((4, 16), seed, np.float32))
        np.save(folder / f"i{seed}.npy", np.full(64, seed, np.int8))
        (folder / f"times{seed}.csv").write_text(_measured_transfers(seed))
        (folder / f"res{seed}.txt").write_text(str(seed) * 900)
        (folder / f"c{seed}.nem").write_text(f"const X = {seed}\n" * 200)
        (folder / f"c{seed}.mlir").write_text(nem.to_mlir(f"const X = {seed}\n" * 20))
    (folder / "p.nem").write_text(PROGRAM)
    networks = nac.synthesise(families_corpus(), (1, 1, 8, 8), params=2000, count=2)
    for seed, network in enumerate(networks, 1):
        nac.save(network.model, folder / f"net{seed}.nac")
    for seed in (1, 2):
        (folder / f"p{seed}.nemb").write_bytes(nem.pack(f"# {seed}\n{PROGRAM}"))
        image = nacre.bind(PROGRAM, ("npm4k", "ideal")[seed - 1])
        image.save(folder / f"p{seed}.tcb")
        (folder / f"p{seed}.tcb.txt").write_text(image.text)
    (folder / "tokenizer.json").write_text(tokenizer_json())
    (folder / "plan.txt").write_text(WRITING_PLAN)
    core.save(successor(), folder / "successor.core")


def _measured_transfers(seed: int) -> str:
    """A table of transfers whose latency is 100 cycles, or 200."""
    sizes = [256 << place for place in range(5)]
    rows = [f"transfer,{size},L2,L1,{100 * seed + size // 32}\n" for size in sizes]
    return "".join(["operation,bytes,from,to,cycles\n", *rows])


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


def bundle_state(folder: Path) -> State:
    if not (folder / "manifest.json").exists():
        return (None,)
    found = Bundle.load(folder)
    return (str(found.source), str(found.legal), found.program, found.weights)


def _llm_state(folder: Path) -> State:
    if not (folder / "llm.json").exists():
        return (None,)
    found = nacre.llm.LlmBundle.load(folder)
    return tuple((one.program, one.weights) for one in (found.prefill, found.decode))


def contents(folder: Path) -> State:
    """Its files but those that an interrupted write has left."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    kept = sorted(name for name in files if not any(map(is_temporary, name.parts)))
    return tuple((str(name), files[name].read_bytes()) for name in kept)


def _demo(folder: Path) -> State:
    page = folder / "d" / "report.html"
    return (page.read_bytes() if page.exists() else None, *bundle_state(folder / "d" / "bundle"))


@dataclass(frozen=True)
class Verb:
    """A verb that writes into a folder: one of two states."""

    arguments: Callable[[Path, Path, int], Sequence[object]]
    state: Callable[[Path], State] = contents
    has_old: bool = True  # whether it writes over what is there
    old: str | None = None  # what is there before, where another has written it
    is_loose: bool = False  # whether it writes several files that no file names
    is_slow: bool = False


CORE, NAC = _model("m.core"), _model("m.nac")

VERBS = {
    "core convert": Verb(
        lambda g, o, n: ["core", "convert", g / f"m{n}.core", "-o", o / "m.core"], CORE
    ),
    "core convert to ONNX": Verb(
        lambda g, o, n: ["core", "convert", g / f"m{n}.core", "-o", o / "m.onnx"]
    ),
    "core convert to MLIR": Verb(
        lambda g, o, n: ["core", "convert", g / f"r{n}.core", "-o", o / "m.mlir"]
    ),
    "core canon": Verb(
        lambda g, o, n: ["core", "canon", g / f"m{n}.core", "-o", o / "m.core"], CORE
    ),
    "core grad": Verb(
        lambda g, o, n: ["core", "grad", g / f"s{n}.core", "--wrt", "x", "-o", o / "m.core"], CORE
    ),
    "core lower": Verb(
        lambda g, o, n: ["core", "lower", f"relu(x * {n}.5)", "--input", "x=f32[4,16]",
                         "-o", o / "m.core"],
        CORE,
    ),
    "core eval": Verb(
        lambda g, o, n: ["core", "eval", g / "m1.core", "--input", f"x={g}/x{n}.npy",
                         "--output", o / "all.npz", "--output", f"0={o}/y.npy"],
        is_loose=True,
    ),
    "nac build": Verb(
        lambda g, o, n: ["nac", "build", g / f"m{n}.core", "-o", o / "m.nac"], NAC
    ),
    "nac build external": Verb(
        lambda g, o, n: ["nac", "build", g / f"m{n}.core", "-o", o / "m.nac",
                         "--weights", "external"],
        NAC,
    ),
    "nac build quantised": Verb(
        lambda g, o, n: ["nac", "build", g / f"m{n}.core", "-o", o / "m.nac",
                         "--quant", "int8_tensor", "--weights", "external"],
        NAC,
    ),
    "nac build with a plan": Verb(
        lambda g, o, n: ["nac", "build", g / "successor.core", "-o", o / "m.nac", "--plan",
                         "greedy", "--tokenizer", g / "tokenizer.json",
                         "--resource", g / f"res{n}.txt"]
    ),
    "nac convert": Verb(
        lambda g, o, n: ["nac", "convert", g / f"m{n}.nac", "-o", o / "m.core"], CORE
    ),
    "nac convert external": Verb(
        lambda g, o, n: ["nac", "convert", g / f"m{n}.nac", "-o", o / "m.nac",
                         "--weights", "external"],
        NAC,
    ),
    "nac transplant": Verb(
        lambda g, o, n: ["nac", "transplant", g / f"m{n}.nac", g / f"m{3 - n}.nac",
                         "-o", o / "m.nac"],
        NAC,
    ),
    "nac extract": Verb(
        lambda g, o, n: ["nac", "extract", g / f"m{n}.nac", "-o", o / "parts"],
        lambda folder: contents(folder / "parts"),
        has_old=False,
    ),
    "nac run": Verb(
        lambda g, o, n: ["nac", "run", g / "m1.nac", "--input", f"x={g}/x{n}.npy",
                         "--output", f"0={o}/y.npy"]
    ),
    "nac run of a plan": Verb(
        lambda g, o, n: ["nac", "run", g / "plan.nac", "--answer", "p=f.txt", "--answer",
                         f"t={'text ' * n}", "--root", o, "--write"]
    ),
    "nac genome": Verb(
        lambda g, o, n: ["nac", "genome", *[g / "m1.nac", g / "m2.nac", g / "s1.nac"][: n + 1],
                         "--newick", o / "t.nwk", "--svg", o / "t.svg"],
        is_loose=True,
    ),
    "nac grammar": Verb(
        lambda g, o, n: ["nac", "grammar", g / f"net{n}.nac", "-o", o / "g.json"]
    ),
    "nac synthesise": Verb(
        lambda g, o, n: ["nac", "synthesise", "--like", g / "net1.nac", "--input", "1x1x8x8",
                         "--params", str(1000 * n), "--count", "2", "-o", o / "made"],
        lambda folder: contents(folder / "made"),
        has_old=False,
    ),
    "nac search": Verb(
        lambda g, o, n: ["nac", "search", "--params", str(1000 * n), "--evaluations", "1",
                         "--steps", "1", "--data", "figures", "--html", o / "page.html",
                         "-o", o / "front"],
        lambda folder: (contents(folder / "front"), contents(folder)[-1:]),
        has_old=False,
        is_loose=True,
        is_slow=True,
    ),
    "compile": Verb(
        lambda g, o, n: ["compile", g / f"m{n}.core", "--device", "npm4k", "-o", o / "b"],
        lambda folder: bundle_state(folder / "b"),
    ),
    "compile without the model": Verb(
        lambda g, o, n: ["compile", g / f"m{n}.core", "--device", "npm4k", "-o", o / "b",
                         "--no-reference"],
        lambda folder: bundle_state(folder / "b"),
    ),
    "llm build": Verb(
        lambda g, o, n: ["llm", "build", g / f"letters{n}.gguf", "--device", "npm4k",
                         "--context", "8", "--chunk", "2", "-o", o / "b"],
        lambda folder: _llm_state(folder / "b"),
        is_slow=True,
    ),
    "run": Verb(
        lambda g, o, n: ["run", g / "p.nem", "--input", f"X={g}/i{n}.npy", "--output",
                         f"Y={o}/y.npy", "--output", f"X={o}/a.npy", "--trace", o / "t.csv"],
        is_loose=True,
    ),
    "run timed": Verb(
        lambda g, o, n: ["run", g / "p.nem", "--mode", "timed", "--input", f"X={g}/i{n}.npy",
                         "--output", f"Y={o}/y.npy", "--trace", o / "t.json",
                         "--report", o / "r.html"],
        is_loose=True,
    ),
    "run with a Perfetto trace": Verb(
        lambda g, o, n: ["run", g / "p.nem", "--mode", "timed", "--input", f"X={g}/i{n}.npy",
                         "--output", f"Y={o}/y.npy", "--trace", o / "t.perfetto-trace"],
        is_loose=True,
    ),
    "estimate": Verb(
        lambda g, o, n: ["estimate", g / f"m{n}.core", "--clock", str(500 * n),
                         "--device", "npm4k", "--report", o / "r.html"]
    ),
    "validate": Verb(
        lambda g, o, n: ["validate", g / f"b{n}", "--blame", "--report", o / "r.html"]
    ),
    "calibrate": Verb(
        lambda g, o, n: ["calibrate", "npm_lite", g / f"times{n}.csv", "--free",
                         "DMA.latency=0..5000", "--starts", "1", "-o", o / "d.nem", "--force"],
        is_loose=True,
        is_slow=True,
    ),
    "bind": Verb(
        lambda g, o, n: ["bind", g / "p.nem", "--uarch", ("npm4k", "ideal")[n - 1],
                         "-o", o / "p.tcb", "--report", o / "p.txt"],
        is_loose=True,
    ),
    "tcb dis": Verb(lambda g, o, n: ["tcb", "dis", g / f"p{n}.tcb", "-o", o / "p.txt"]),
    "tcb asm": Verb(lambda g, o, n: ["tcb", "asm", g / f"p{n}.tcb.txt", "-o", o / "p.tcb"]),
    "tcb run": Verb(
        lambda g, o, n: ["tcb", "run", g / "p1.tcb", "--input", f"X={g}/i{n}.npy", "--output",
                         f"Y={o}/y.npy", "--output", f"X={o}/a.npy"],
        is_loose=True,
    ),
    "nem to-mlir": Verb(
        lambda g, o, n: ["nem", "to-mlir", g / f"c{n}.nem", "-o", o / "c.mlir"]
    ),
    "nem from-mlir": Verb(
        lambda g, o, n: ["nem", "from-mlir", g / f"c{n}.mlir", "-o", o / "c.nem", "--force"]
    ),
    "nem irdl": Verb(lambda g, o, n: ["nem", "irdl", "-o", o / "f.mlir"], has_old=False),
    "nem new": Verb(
        lambda g, o, n: ["nem", "new", f"p{n}", "--template", "gemm", "--device", "npm_lite",
                         "-o", o / "p.nem"],
        has_old=False,
    ),
    "pack": Verb(
        lambda g, o, n: ["pack", g / "p.nem", *(["--no-comments"] if n == 2 else []),
                         "-o", o / "p.nemb"]
    ),
    "unpack": Verb(lambda g, o, n: ["unpack", g / f"p{n}.nemb", "-o", o / "p.nem", "--force"]),
    "fmt": Verb(lambda g, o, n: ["fmt", o / "f.nem"], old=UGLY),
    "check --fix": Verb(lambda g, o, n: ["check", "--fix", o / "f.nem"], old=MENDABLE),
    "demo": Verb(
        lambda g, o, n: ["demo", "-o", o / "d", "--precision", ("f16", "i8")[n - 1]],
        _demo,
        is_loose=True,
        is_slow=True,
    ),
}  # fmt: skip

# Options that say what is written, and verbs that write without one.
_WRITING = {"-o", "--output", "--trace", "--report", "--newick", "--svg", "--fix", "--write"}
_REWRITING = {"fmt"}
_JUDGING = {"evaluate"}  # its `--output` names the output that it looks at


def writes(name: str, command: click.Command) -> bool:
    """Whether a verb writes more than its answer to the terminal."""
    options = {option for parameter in command.params for option in parameter.opts}
    return name in _REWRITING or (bool(options & _WRITING) and name not in _JUDGING)
