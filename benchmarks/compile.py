"""The compiler: what its plans cost against the bounds, how large they are, how long it takes.

Every trained model at f16 on npm4k and npm16k and at i8 on npm4k and npm64k; plans that do without
a feature; npm64k against npm4k; ResNet-50, a ViT, convolutions that stand alone; a functional run
beside onnxruntime. Each row has a process of its own. Cycles, bounds and sizes are the same on any
machine and under any load; seconds are processor time, which a busy machine lengthens somewhat.
Models are fetched with pip; one that cannot be had is shown as such.

    python benchmarks/compile.py                     everything
    python benchmarks/compile.py nudenet resnet-50   some of it
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Before NumPy is loaded: its BLAS reads them once.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.networks.made import SINGLE_CONVOLUTIONS, resnet, single_convolution, vit, wide
from tests.core.models.real_models import REAL_MODELS
from tools.fetch_models import MODELS, Unavailable, model_path

WAYS = (("npm4k", "f16"), ("npm16k", "f16"), ("npm4k", "i8"), ("npm64k", "i8"))
ABLATED, ABLATED_ON = ("ppocr-cls", "nudenet"), ("npm4k", "i8")
TRANSFORMER, LENGTH = "minilm", 128
TRAINED = (*(model.name for model in REAL_MODELS), TRANSFORMER)
WIDE, RESNET, VIT = "wide-cnn", "resnet-50", "vit-tiny"  # of `networks/made.py`
CONVOLUTIONS = "convolutions"  # twelve that stand alone
ABLATION = "ablation"  # plans that do without something
BORDERS = "transposes"  # those at the borders, which the host does then
RUN = "nudenet"  # at i8, beside onnxruntime
ROUNDS = 5
SECONDS = 3600  # for one row, on a machine with other work

Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A model on a device: what the plan costs and what making it took."""

    model: str
    device: str
    precision: str
    disabled: tuple[str, ...]
    cycles: int
    layer: float  # cycles over the bounds
    whole: float
    floor: float
    utilisation: float  # of the MACs of all NMUs
    vpu: float  # the share of the run in which the busiest VPU works
    l2: float | None  # peak over its lower bound; None where nothing lies in L2
    text: int  # bytes of NEM
    compile_seconds: float
    check_seconds: float
    run_seconds: float | None = None
    runtime_seconds: float | None = None  # of onnxruntime at f32


# What is compiled


def real_model(name: str) -> tuple[Any, Feeds]:
    """A model and inputs for it."""
    if name == TRANSFORMER:
        return transformer()
    model = next(model for model in REAL_MODELS if model.name == name)
    module = model.module()
    return module, dict(zip(module.input_types, model.feeds().values(), strict=True))


def transformer() -> tuple[Any, Feeds]:
    import torch

    from nacre.core.torch.importer import from_torch
    from tests.core.models.minilm import minilm, sentence

    network, given = minilm(model_path(TRANSFORMER)), sentence(LENGTH)
    module = from_torch(network, tuple(torch.from_numpy(array) for array in given))
    return module, dict(zip(module.input_types, given, strict=True))


MADE: Mapping[str, Callable[[], tuple[Any, Feeds]]] = {
    WIDE: wide,
    RESNET: resnet,
    VIT: vit,
    **{name: partial(single_convolution, name) for name in SINGLE_CONVOLUTIONS},
}


# Measuring


def measure(name: str, device: str, precision: str, disabled: Sequence[str]) -> Row:
    from nacre.compile.estimate.bounds import model_bounds
    from nacre.compile.options import Options
    from nacre.compile.pipeline import compile_module
    from nacre.compile.target import target_of
    from nacre.nem.api.documents import check
    from nacre.nem.run.timing.profile import timing_profile

    module, feeds = MADE[name]() if name in MADE else real_model(name)
    target, seen = target_of(device), dict[str, Any]()
    calibration = [dict(feeds)] if precision == "i8" else None
    left_out = set(disabled)
    options = Options(
        target.device,
        precision,  # type: ignore[arg-type]
        calibration=calibration,
        disabled=frozenset(left_out - {BORDERS}),
        io_layout="native" if BORDERS in left_out else "model",
    )
    bundle, compiling = timed(lambda: compile_module(module, target, options, seen.__setitem__))
    found, checking = timed(lambda: check(bundle.program, strict=True))
    problems = [str(d) for d in found if d.severity != "info"]
    if problems:
        raise RuntimeError(f"the plan is not clean: {problems[0]}")
    made = seen["partition"]
    profile = timing_profile(target.device)
    bounds = model_bounds(
        made.legal.module, made.layers, target.device, profile, made.legal.escaped
    )
    result, manifest = bundle.time(), bundle.manifest
    cycles = result.cycles
    busy = [entry["busy"] for unit, entry in result.units.items() if unit.startswith("VPU")]
    beside = name == RUN and (device, precision) == ("npm4k", "i8") and not disabled
    runs = beside_onnxruntime(name, bundle, feeds) if beside else (None, None)
    return Row(
        name, device, precision, tuple(disabled), cycles,
        cycles / bounds.layer, cycles / bounds.whole, cycles / bounds.floor,
        sum(float(layer.nmu) for layer in bounds.layers) / cycles, max(busy, default=0) / cycles,
        manifest.l2_peak / manifest.l2_bound if manifest.l2_bound else None,
        len(bundle.program.encode()), compiling, checking, *runs,
    )  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its processor time."""
    start = time.process_time()
    made = call()
    return made, time.process_time() - start


def beside_onnxruntime(name: str, bundle: Any, feeds: Feeds) -> tuple[float, float]:  # noqa: ANN401
    """The best run of the plan, and the best of onnxruntime at f32, in turns on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    runtime = onnxruntime.InferenceSession(model_path(name).read_bytes(), options)
    named = dict(zip((one.name for one in runtime.get_inputs()), feeds.values(), strict=True))
    session = bundle.session()
    session.run(feeds)
    pairs = [
        (timed(lambda: session.run(feeds))[1], timed(lambda: runtime.run(None, named))[1])
        for _ in range(ROUNDS)
    ]
    return min(ours for ours, _ in pairs), min(theirs for _, theirs in pairs)


def in_own_process(
    name: str, device: str, precision: str, disabled: Sequence[str] = ()
) -> Row | str:
    """What was measured, or why it could not be."""
    if name in MODELS:
        try:
            model_path(name)
        except Unavailable as reason:
            return str(reason)
    request = json.dumps([name, device, precision, list(disabled)])
    command = [sys.executable, __file__, "--one", request]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    row = json.loads(done.stdout.strip().splitlines()[-1])
    return Row(**{**row, "disabled": tuple(row["disabled"])})


# Telling

HEADINGS = (
    "model", "device", "precision", "without", "cycles", "/layer", "/whole", "/floor", "MACs",
    "VPU", "L2", "text", "compile", "check",
)  # fmt: skip
WIDTHS = (20, 7, 9, 21, 11, 7, 7, 7, 6, 6, 6, 8, 9, 8)


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.model, row.device, row.precision, "+".join(row.disabled) or "-", f"{row.cycles:,}",
        f"{row.layer:.2f}x", f"{row.whole:.2f}x", f"{row.floor:.2f}x",
        f"{row.utilisation:.0%}", f"{row.vpu:.1%}", "-" if row.l2 is None else f"{row.l2:.2f}x",
        f"{row.text / 1000:,.0f} kB", f"{row.compile_seconds:.1f} s", f"{row.check_seconds:.1f} s",
    )  # fmt: skip


def line(texts: Sequence[str]) -> str:
    """Words to the left, numbers to the right."""
    padded = [
        text.ljust(width) if index < 4 else text.rjust(width)
        for index, (text, width) in enumerate(zip(texts, WIDTHS, strict=True))
    ]
    return " ".join(padded).rstrip()


Plan = tuple[str, str, str, tuple[str, ...]]  # model, device, precision, what it does without


def plans(names: Sequence[str]) -> list[Plan]:
    """What is compiled, in the order of the table."""
    from nacre.compile.options import FEATURES

    wanted: list[Plan] = []
    for name in names:
        if name in TRAINED:
            wanted += [(name, *way, ()) for way in WAYS]
            wanted.append((name, "npm4k", "i8", (BORDERS,)))
        elif name == CONVOLUTIONS:
            ways: tuple[tuple[str, ...], ...] = ((), (BORDERS,))
            wanted += [(one, "npm4k", "i8", way) for one in SINGLE_CONVOLUTIONS for way in ways]
        elif name in (WIDE, RESNET, VIT):
            kinds = ("f16",) if name == WIDE else ("f16", "i8")
            wanted += [(name, device, kind, ()) for kind in kinds for device in ("npm4k", "npm64k")]
    if ABLATION in names:
        for name in ABLATED:
            if name not in names:
                wanted.append((name, *ABLATED_ON, ()))
            wanted += [(name, *ABLATED_ON, left) for left in ((f,) for f in FEATURES)]
            wanted.append((name, *ABLATED_ON, FEATURES))
    return wanted


def summary(rows: Sequence[Row]) -> list[str]:
    told = []
    plain = {model.name for model in REAL_MODELS if model.is_cnn and not model.is_recurrent}
    mixed = {model.name for model in REAL_MODELS if model.is_cnn and model.is_recurrent}
    for kind, names in (("CNNs", plain | {WIDE, RESNET}), ("CNNs with an LSTM", mixed)):
        held = [r for r in rows if r.model in names and r.device == "npm4k" and not r.disabled]
        told += [line for p in ("f16", "i8") for line in over_bounds(kind, p, held)]
    by_key = {(r.model, r.device, r.precision, r.disabled): r for r in rows}
    for what, left in (("", ()), (" in the device's own layout", (BORDERS,))):
        single = [r for r in rows if r.model in SINGLE_CONVOLUTIONS and r.disabled == left]
        if single:
            worst = max(single, key=lambda row: row.whole)
            told.append(f"single convolutions{what}: at most {worst.whole:.2f} times the whole "
                        f"bound ({worst.model})")  # fmt: skip
    small, large = (by_key.get((WIDE, d, "f16", ())) for d in ("npm4k", "npm64k"))
    if small and large:
        told.append(f"npm64k is {small.cycles / large.cycles:.1f} times as fast as npm4k ({WIDE})")
    made = by_key.get((RESNET, "npm4k", "f16", ()))
    if made:
        told.append(f"{RESNET}: compiled in {made.compile_seconds:.1f} s, "
                    f"its plan of {made.text / 1e6:.2f} MB checked in "
                    f"{made.check_seconds:.1f} s")  # fmt: skip
    for name in ABLATED:
        told += ablation([row for row in rows if row.model == name and row.disabled], by_key)
    for row in rows:
        if row.run_seconds is not None and row.runtime_seconds is not None:
            told.append(
                f"a run of {row.model} at i8 takes {row.run_seconds * 1e3:.0f} ms, onnxruntime "
                f"at f32 {row.runtime_seconds * 1e3:.1f} ms: "
                f"{row.run_seconds / row.runtime_seconds:.1f} times as long"
            )
    return told


def over_bounds(kind: str, precision: str, rows: Sequence[Row]) -> list[str]:
    """The worst of some models at a precision."""
    own = [row for row in rows if row.precision == precision]
    if not own:
        return []
    worst = max(own, key=lambda row: row.layer)
    return [
        f"{kind} on npm4k at {precision}: at most {worst.layer:.2f} times the layer bound "
        f"({worst.model}), at most {max(row.vpu for row in own):.1%} of the cycles on VPU"
    ]


def ablation(rows: Sequence[Row], by_key: Mapping[Any, Row]) -> list[str]:
    told = []
    for row in rows:
        whole = by_key.get((row.model, row.device, row.precision, ()))
        if whole:
            told.append(f"{row.model} without {' and '.join(row.disabled)}: "
                        f"{row.cycles / whole.cycles:.2f} times the cycles")  # fmt: skip
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = (*TRAINED, WIDE, RESNET, VIT, CONVOLUTIONS, ABLATION)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in known]
    if unknown:
        parser.error(f"no model `{unknown[0]}`, expected some of: {', '.join(known)}")
    if chosen.one:
        warnings.simplefilter("ignore")  # of the tools that models come from
        print(json.dumps(asdict(measure(*json.loads(chosen.one)))))
        return
    print(line(HEADINGS))
    rows = []
    for name, device, precision, disabled in plans(chosen.names or known):
        found = in_own_process(name, device, precision, disabled)
        start = (name, device, precision, "+".join(disabled) or "-")
        print(
            line(cells(found)) if isinstance(found, Row) else f"{' '.join(start)}: {found}",
            flush=True,
        )
        rows += [found] if isinstance(found, Row) else []
    print("", *summary(rows), sep="\n")


if __name__ == "__main__":
    main()
