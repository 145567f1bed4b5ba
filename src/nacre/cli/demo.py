"""`nacre demo`: the whole road, from a trained network to a page that shows where its time goes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from nacre.base.diagnostics import InputError, InternalError
from nacre.base.excerpt import backquote, safe
from nacre.base.files import is_temporary, make_folder, write_together
from nacre.base.rendering import summary
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable
from nacre.cli.calibration import read_calibration
from nacre.cli.compile_options import read_device
from nacre.cli.core.files import report_findings
from nacre.cli.options import include_root_option, out_option
from nacre.compile.options import PRECISIONS, Precision

if TYPE_CHECKING:
    from nacre.compile.bundle.compiled_model import CompiledModel
    from nacre.compile.estimate.result import Estimate
    from nacre.core.module import Module
    from nacre.core.values import Array
    from nacre.nem.model.devices import Device

DEVICE = "npm4k"
CLOCK_MHZ = 1000.0
_FOLDER = "nacre-demo"
_PAGE, _BUNDLE = "report.html", "bundle"

T = TypeVar("T")


@click.command()
@click.option("--device", default=DEVICE, metavar="D", help=f"Default: {DEVICE}.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="i8",
)
@out_option(
    "FOLDER",
    f"Where the bundle and the report go. Default: {_FOLDER}.",
    is_folder=True,
    default=_FOLDER,
)
@include_root_option
def demo(device: str, precision: Precision, out: Path, include_roots: tuple[Path, ...]) -> int:
    """Take a small trained network from its file to a report.

    It is imported, compiled (in i8: quantised), checked, run, compared with the model, timed, and
    bound to hardware. The network reads handwritten digits; it and some of them come along. Nothing
    is downloaded.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(as_file(files("nacre") / "demo"))
        return report_findings(
            lambda: run_demo(folder, read_device(device, include_roots), precision, out)
        )


def run_demo(folder: Path, device: str | Device, precision: Precision, out: Path) -> None:
    """Every stage in turn, each with a line about what came out of it."""
    began = time.monotonic()
    with ExitStack() as stack:
        _open_folder(stack, out)
        written = _run_stages(folder, device, precision, out)
    click.echo(f"\nthe whole road took {time.monotonic() - began:.0f} s; what it made:")
    for path, what in written.items():
        click.echo(f"  {safe(str(path))}: {what}")


def _run_stages(
    folder: Path, device: str | Device, precision: Precision, out: Path
) -> dict[Path, str]:
    road = _StageRunner()
    module = road.stage("import the model", lambda: _import_model(folder))
    estimate = road.stage("compile it", lambda: _compile_plan(module, folder, device, precision))
    plan = estimate.plan
    assert plan is not None
    samples = _samples(folder)
    road.stage("check the plan", lambda: _check_plan(plan.bundle))
    road.stage(
        "run it, and compare it with the legalised model",
        lambda: _validate_plan(plan.bundle, samples),
    )
    road.stage("read digits with it", lambda: _recognise_digits(plan.bundle, module, samples))
    road.stage("time it", lambda: _time_plan(estimate))
    road.stage("bind it to the hardware", lambda: _bind_plan(plan.bundle))
    return road.stage("write the report", lambda: _write_report(estimate, out))


class _StageRunner:
    """Counts the stages and tells about each."""

    def __init__(self) -> None:
        self._number = 0

    def stage(self, title: str, work: Callable[[], tuple[T, str]]) -> T:
        """Do a stage's work, and say what came out of it."""
        self._number += 1
        click.echo(f"{self._number}. {title}")
        since = time.monotonic()
        result, text = work()
        click.echo(f"   {safe(text)} ({time.monotonic() - since:.1f} s)")
        return result


Samples = list[tuple[dict[str, "Array"], int]]  # inputs, and what they show


def _samples(folder: Path) -> Samples:
    arrays = read_calibration(folder / "samples.npz")
    labels = arrays.pop("label")
    return [
        ({name: array[index] for name, array in arrays.items()}, int(label))
        for index, label in enumerate(labels)
    ]


def _open_folder(stack: ExitStack, out: Path) -> None:
    """A folder that is new, empty or of an earlier run: nobody else's files are written over."""
    from nacre.compile.storage.names import require_own_folder

    with report_write_errors(out):
        others = sorted(set(os.listdir(out)) - {_PAGE, _BUNDLE}) if out.is_dir() else []
    others = [name for name in others if not is_temporary(name)]
    if others:
        problem = f"it is not empty, and holds {backquote(others[0])}"
        raise WrongUsage(f"cannot write to {safe(str(out))}: {problem}; choose a folder with -o")
    with report_write_errors(out):
        stack.enter_context(make_folder(out))
    require_own_folder(out / _BUNDLE)
    require_writable(out / _PAGE)


def _import_model(folder: Path) -> tuple[Module, str]:
    from nacre.core.evaluation.plan import macs_of
    from nacre.core.models import read_model
    from nacre.core.onnx.reading.files import onnx

    # Without the package `onnx` the same model is read from Core IR.
    path = folder / ("digits.onnx" if onnx is not None else "digits.core")
    module = read_model(path)
    constants = [op for op in module.operations if op.opcode == "ConstTensor"]
    parameters = sum(math.prod(op.type.shape) for op in constants)
    macs = sum(macs_of(op, module) for op in module.operations)
    counts = f"{len(module):,} operations, {parameters:,} parameters, {macs:,} MACs"
    return module, f"{path.name}: {counts}"


def _compile_plan(
    module: Module, folder: Path, device: str | Device, precision: Precision
) -> tuple[Estimate, str]:
    from nacre.compile.estimate.estimate import estimate

    calibration, how = None, str(precision)
    if precision not in ("f16", "f32"):
        calibration = read_calibration(folder / "calibration.npz")
        how += f", calibrated with {len(next(iter(calibration.values())))} images"
    result = estimate(module, device, precision, calibration=calibration, clock_mhz=CLOCK_MHZ)
    if result.plan is None:
        raise InputError(result.problems)
    bundle = result.plan.bundle
    lines = bundle.program.count("\n")
    return result, (
        f"for {result.device.name} in {how}: {len(bundle.manifest.layers)} layers, "
        f"{len(bundle.weights):,} bytes of weights, {lines:,} lines of NEM"
    )


def _check_plan(bundle: CompiledModel) -> tuple[None, str]:
    from nacre.nem.api.documents import check

    findings = [d for d in check(bundle.program, strict=True) if d.severity != "info"]
    if findings:
        raise InternalError(f"the plan is not clean: {summary(findings)}")
    return None, "strict: no error, no warning, and no race in any order"


def _validate_plan(bundle: CompiledModel, samples: Samples) -> tuple[None, str]:
    from nacre.compile.bundle.validation import validate_bundle

    validation = validate_bundle(bundle, samples[0][0])
    if validation.first_difference is not None:
        raise InternalError(f"the plan is not right: {validation.first_difference}")
    return None, str(validation)


def _recognise_digits(bundle: CompiledModel, module: Module, samples: Samples) -> tuple[None, str]:
    """The digits that the plan finds, beside those of the model in its own precision."""
    import numpy as np

    from nacre.compile.labelled.evaluation import evaluate_labelled
    from nacre.compile.labelled.metrics import metric_of
    from nacre.core.evaluation.evaluate import evaluate

    names = samples[0][0]
    data = {name: np.stack([inputs[name] for inputs, _ in samples]) for name in names}
    labels = np.array([label for _, label in samples])
    scores = evaluate_labelled(bundle, {**data, "label": labels}, metric_of("top1"))
    session, noise = bundle.session(), []
    for inputs, _ in samples:
        (actual,) = session.run(inputs).values()
        noise.append(_decibels(actual, evaluate(module, inputs)[0]))
    assert scores.plan is not None
    assert scores.agreement is not None
    right, same = (round(share * len(samples)) for share in (scores.plan, scores.agreement))
    return None, (
        f"{right} of {len(samples)} digits that the model has never seen are right; {same} are "
        f"what the model says in its own precision, with a signal-to-noise ratio of at least "
        f"{min(noise):.1f} dB"
    )


def _decibels(actual: Array, expected: Array) -> float:
    """How far the signal is above the error."""
    import numpy as np

    error = float(np.square(actual.astype(np.float64) - expected).sum())
    signal = float(np.square(expected.astype(np.float64)).sum())
    return 10 * math.log10(signal / error) if error else math.inf


def _time_plan(estimate: Estimate) -> tuple[None, str]:
    assert estimate.plan is not None
    assert estimate.bounds is not None
    timed = estimate.plan.ideal
    bounds = (estimate.bounds.layer, estimate.bounds.whole, estimate.bounds.floor)
    over = [f"{timed.cycles / bound:.2f}x" for bound in bounds]
    return None, (
        f"{timed.cycles:,} cycles, {timed.milliseconds or 0:.4g} ms at {CLOCK_MHZ:,.0f} MHz; "
        f"{over[0]} the layer bound, {over[1]} the whole bound, {over[2]} the floor; derated "
        f"{estimate.plan.derated.cycles:,} cycles"
    )


def _bind_plan(bundle: CompiledModel) -> tuple[None, str]:
    from nacre.binding import bind
    from nacre.compile.bundle.bundle import Bundle

    found = Bundle.of(bundle)
    image = bind(found, allow_serialise=True)
    findings = image.verify(found)
    if findings:
        raise InternalError(f"the bound plan means something else: {summary(findings)}")
    assert image.bound is not None
    blocks = sum(1 for stream in image.image.streams for _ in stream.blocks())
    chains = len(image.bound.fused.chains)
    return None, (
        f"{blocks:,} blocks for {image.image.machine.uarch}, {chains:,} chains, proved to mean "
        f"what the plan means; {image.time().cycles:,} cycles with queues, banks and requests"
    )


def _write_report(estimate: Estimate, out: Path) -> tuple[dict[Path, str], str]:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.viz.layers import write_estimate

    assert estimate.plan is not None
    page, folder = out / _PAGE, out / _BUNDLE
    with report_write_errors(out), write_together():
        write_estimate(estimate, page, title="Handwritten digits")
        Bundle.of(estimate.plan.bundle).save(folder)
    written = {
        page: "layers and timeline, for a browser",
        folder: "the plan, its weights, its manifest and the model",
        folder / "model.nem": "the plan itself: check, run, time and debug it",
    }
    return written, f"{page.stat().st_size:,} bytes of page, which need no network"
