"""Hashes of plans, to see what a change to the compiler did to them.

usage: python -m tools.plan_hashes --write FILE      before the change
       python -m tools.plan_hashes --compare FILE    after it

Every model of `benchmarks/compile.py` on its devices, and small networks that need no download. A
plan has a hash for each of its texts, with the floats in them taken out, and apart from these one
for floats and constants: kernels that compute the same in another order change them in the last
bits. Texts and integers that differ make the exit status 1, floats and constants only with
`--exact`. A model that cannot be had here is named and left out.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.fetch_models import MODELS, Unavailable, model_path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "src" / "nacre" / "demo"
SECONDS = 3600  # for one plan, on a machine with other work
# Of an entry without a plan, the part that says why: the model is not here; a fault of ours.
UNAVAILABLE, FAILURE = "unavailable", "failure"
NUMBERS = "floats and constants"
# Of the manifest: which nacre wrote it, and hashes of files with the floats in them.
_LEFT_OUT = ("nacre", "sha256")

# Sums on several threads may round otherwise; processes are the parallel part.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?![\w.])")
_FOLDED = re.compile(r"\bdata=(?:\[[^\]]*\]|[^,\s}]+)")  # a small constant, written out
_STORED = re.compile(r"\b(\w+\.core)\.[0-9a-f]{8,}\.safetensors")

Hashes = Mapping[str, str]  # by the part of a plan
Feeds = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Entry:
    """A model that is compiled for a device."""

    model: str
    device: str
    precision: str

    def __str__(self) -> str:
        return f"{self.model} {self.device} {self.precision}"


# What is compiled


def digits() -> tuple[Any, Feeds]:
    """The network of `nacre demo`."""
    import numpy as np

    from nacre import core

    with np.load(DEMO / "samples.npz") as samples:
        image = samples["image"][0]
    return core.load(DEMO / "digits.core"), {"image": image}


def attention() -> tuple[Any, Feeds]:
    """A block of a transformer: a norm, attention of four heads, a residual, a GELU."""
    import numpy as np

    from nacre import core

    random, builder = np.random.default_rng(0), core.Builder("nacre-1")

    def constant(*shape: int) -> int:
        return builder.constant(random.standard_normal(shape, np.float32) / shape[0] ** 0.5)

    def heads(value: int, *permutation: int) -> int:
        projected = builder.add("MatMul", value, constant(64, 64))
        parts = builder.add("Reshape", projected, new_shape=(32, 4, 16))
        return builder.add("Transpose", parts, permutation=permutation)

    x = builder.input("x", "f32", (32, 64))
    norm = builder.add("LayerNorm", x, constant(64), constant(64), axis=1)
    scores = builder.add("MatMul", heads(norm, 1, 0, 2), heads(norm, 1, 2, 0))
    mixed = builder.add("MatMul", builder.add("Softmax", scores, axis=2), heads(norm, 1, 0, 2))
    together = builder.add("Transpose", mixed, permutation=(1, 0, 2))
    flat = builder.add("Reshape", together, new_shape=(32, 64))
    residual = builder.add("BinOp", x, flat, op="Add")
    wide = builder.add("Gelu", builder.add("MatMul", residual, constant(64, 128)))
    return builder.module(wide), {"x": random.standard_normal((32, 64), np.float32)}


SMALL: Mapping[str, Callable[[], tuple[Any, Feeds]]] = {"digits": digits, "attention": attention}
_SMALL_ON = (("npm4k", "f16"), ("npm16k", "f16"), ("npm4k", "i8"), ("npm64k", "i8"))


def entries() -> list[Entry]:
    """All of them: the small ones first."""
    from tests.core.models.real_models import REAL_MODELS

    benchmark = _benchmark()
    real = [*(model.name for model in REAL_MODELS), benchmark.TRANSFORMER]
    return [
        *(Entry(name, *way) for name in SMALL for way in _SMALL_ON),
        *(Entry(name, device, "f16") for name in benchmark.MADE for device in ("npm4k", "npm64k")),
        *(Entry(name, *way) for name in real for way in benchmark.WAYS),
    ]


@cache
def _benchmark() -> ModuleType:
    """`benchmarks/compile.py`, by its path: others install packages of that name."""
    spec = spec_from_file_location("compile_benchmark", ROOT / "benchmarks" / "compile.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("benchmarks/compile.py is not there")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def network(name: str) -> tuple[Any, Feeds]:
    """A model and inputs for it."""
    benchmark = _benchmark()
    makers = {**benchmark.MADE, **SMALL}
    made: tuple[Any, Feeds] = makers[name]() if name in makers else benchmark.real_model(name)
    return made


# Hashes of a plan


def plan_hashes(entry: Entry, keep: Path | None = None) -> Hashes:
    """Compile an entry and hash what is saved; `keep` is a folder that the plan stays in."""
    import nacre

    try:
        module, feeds = network(entry.model)
    except ImportError as error:
        return {UNAVAILABLE: str(error)}
    calibration = [dict(feeds)] if entry.precision == "i8" else None
    precision: Any = entry.precision
    try:
        bundle = nacre.compile(module, entry.device, precision, calibration=calibration)
    except nacre.InputError as error:
        return {"refusal": "; ".join(f"{d.code}: {d.message}" for d in error.diagnostics)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) if keep is None else keep / str(entry).replace(" ", "-")
        bundle.save(place, force=True)
        return folder_hashes(place)


def folder_hashes(folder: Path) -> Hashes:
    """Hashes of a bundle that was saved, by part."""
    manifest = json.loads((folder / "manifest.json").read_text())
    texts = {
        "model.nem": (folder / "model.nem").read_text(),
        "manifest.json": json.dumps({k: v for k, v in manifest.items() if k not in _LEFT_OUT}),
        "legal.core": (folder / "legal.core").read_text(),
    }
    apart = [(text, *numbers_apart(text)) for text in texts.values()]
    bare = {name: _digest([text]) for name, (_, text, _) in zip(texts, apart, strict=True)}
    arrays = sorted(folder.glob("legal.core.*.safetensors")) + sorted(folder.glob("weights.*"))
    numbers = [number for _, _, found in apart for number in found]
    return {**bare, NUMBERS: _digest([*numbers, *(path.read_bytes() for path in arrays)])}


def numbers_apart(text: str) -> tuple[str, list[str]]:
    """A text with marks in the place of floats and of folded constants, and these.

    Spaces count once: longer numbers break lines elsewhere.
    """
    numbers: list[str] = []

    def mark(found: re.Match[str]) -> str:
        numbers.append(found[0])
        return "#"

    bare = _FLOAT.sub(mark, _FOLDED.sub(mark, text))
    return " ".join(_STORED.sub(r"\1", bare).split()), numbers


def _digest(parts: Iterable[str | bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else part)
        found.update(b"\0")
    return found.hexdigest()[:16]


# Many of them


def in_own_process(entry: Entry, keep: Path | None) -> Hashes:
    """The hashes of an entry, or why there are none; a fault of ours is the last line it says."""
    if entry.model in MODELS:
        try:
            model_path(entry.model)
        except Unavailable as reason:
            return {UNAVAILABLE: str(reason)}
    request = json.dumps([entry.model, entry.device, entry.precision, keep and str(keep)])
    command = [sys.executable, "-m", "tools.plan_hashes", "--one", request]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | _ONE_THREAD,
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {FAILURE: f"it took more than {SECONDS} s"}
    if done.returncode:
        return {FAILURE: (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    found: Hashes = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def gather(wanted: Sequence[Entry], jobs: int, keep: Path | None) -> Iterator[tuple[Entry, Hashes]]:
    """The hashes of entries in their order, several processes at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(wanted, pool.map(lambda e: in_own_process(e, keep), wanted), strict=True)


def differences(before: Hashes, after: Hashes) -> tuple[str, ...]:
    """The parts of a plan that are others than before."""
    parts = dict.fromkeys((*before, *after))
    return tuple(part for part in parts if before.get(part) != after.get(part))


def verdict(before: Hashes | None, after: Hashes) -> str:
    """What became of an entry, in words."""
    if FAILURE in after:
        return f"failed, {after[FAILURE]}"
    if UNAVAILABLE in after:
        return f"left out, {after[UNAVAILABLE]}"
    if before is None or not before.keys().isdisjoint((UNAVAILABLE, FAILURE)):
        return "not compared, there is nothing from before"
    changed = differences(before, after)
    lines = (f"{part}: {before.get(part, 'none')} -> {after.get(part, 'none')}" for part in changed)
    return "differs\n    " + "\n    ".join(lines) if changed else "same"


def is_broken(before: Hashes | None, after: Hashes, exact: bool) -> bool:
    """Whether it failed, or differs in what must stay."""
    if before is None or not {UNAVAILABLE, FAILURE}.isdisjoint((*before, *after)):
        return FAILURE in after
    return bool(set(differences(before, after)) - (set() if exact else {NUMBERS}))


def main(arguments: Sequence[str]) -> int:
    """Write or compare; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the hashes go")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="hashes that were written")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="such as 'digits * i8'")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the plans, for diff")
    parser.add_argument("--exact", action="store_true", help="floats and constants count, too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one:
        warnings.simplefilter("ignore")  # of the tools that models come from
        *which, keep = json.loads(asked.one)
        print(json.dumps(plan_hashes(Entry(*which), Path(keep) if keep else None)))
        return 0
    wanted = [e for e in entries() if fnmatch.fnmatch(str(e), asked.only)]
    if not wanted:
        parser.error(f"nothing matches {asked.only!r}, expected some of: {_examples()}")
    old = json.loads(asked.compare.read_text()) if asked.compare else None
    keep = asked.keep and asked.keep.resolve()
    return _report(gather(wanted, asked.jobs, keep), old, asked.write, asked.exact)


def _examples() -> str:
    return ", ".join(f"`{entry}`" for entry in entries()[:4]) + ", .."


def _report(
    found: Iterable[tuple[Entry, Hashes]],
    old: Mapping[str, Hashes] | None,
    path: Path | None,
    exact: bool,
) -> int:
    """A line for each entry as it comes, and a summary."""
    new: dict[str, Hashes] = {}
    broken: list[str] = []
    for entry, hashes in found:
        new[str(entry)] = hashes
        if path is not None:
            path.write_text(json.dumps(new, indent=1) + "\n")
        before = hashes if old is None else old.get(str(entry))
        said = verdict(before, hashes)
        print(f"{entry}: {'hashed' if old is None and said == 'same' else said}", flush=True)
        broken += [str(entry)] if is_broken(before, hashes, exact) else []
    print(f"{len(new)} plans, {len(broken)} failed or differ: {', '.join(broken) or 'none'}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
