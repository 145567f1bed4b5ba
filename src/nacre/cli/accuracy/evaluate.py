"""`nacre evaluate`: a metric over labelled data, of a plan beside its model."""

from __future__ import annotations

import json
import os
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import safe
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage, unreadable_reason
from nacre.cli.calibration import place_in_file, read_calibration
from nacre.cli.core.files import (
    Constants,
    Shapes,
    constant_option,
    read_module,
    report_findings,
    shape_option,
)
from nacre.cli.options import WholeNumber, form_option
from nacre.cli.terminal.progress import show_stages

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.labelled.metrics import Metric
    from nacre.core.module import Module


@click.command()
@click.argument("source", metavar="BUNDLE|MODEL")
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz|FOLDER",
    help="Arrays by the model's names and the labels, samples along the first axis; or a folder "
    "of pictures, a folder a class.",
)
@click.option(
    "--metric",
    "metric_name",
    default="top1",
    show_default=True,
    metavar="M",
    help="top1, top5 or another topN, f1, map, wer, perplexity, or a FILE.py with "
    "`metric(outputs, labels)`.",
)
@click.option(
    "--preprocess",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="How pictures become inputs; for a folder.",
)
@click.option("--label", default="label", show_default=True, help="What the labels are called.")
@click.option("--output", default=None, help="The output that is judged. Default: the first.")
@click.option(
    "--blank",
    type=WholeNumber(min=0),
    default=0,
    show_default=True,
    help="For wer, of outputs of scores: the class of CTC that stands for nothing.",
)
@shape_option
@constant_option
@form_option
def evaluate(
    source: str,
    data: Path,
    metric_name: str,
    preprocess: Path | None,
    label: str,
    output: str | None,
    blank: int,
    shapes: Shapes,
    constants: Constants,
    form: str,
) -> int:
    """Measure BUNDLE beside its model, or MODEL alone, on labelled data.

    Exit status: 0, 1 errors in the model or the data, 2 wrong usage.
    """
    _require_sense(source, data, preprocess, bool(shapes or constants))

    def work() -> None:
        from nacre.compile.bundle.bundle import Bundle
        from nacre.compile.labelled.evaluation import evaluate_labelled

        # What a metric of the user's prints is no part of the result.
        with show_stages(), redirect_stdout(sys.stderr):
            metric = _metric(metric_name, blank)
            with stage("loading"):
                model = _read(source, shapes, constants)
                arrays = _arrays(data, preprocess, label)
            with place_in_file(data):
                found = evaluate_labelled(
                    model, arrays, metric, label=label, output=output,
                    beside_model=not isinstance(model, Bundle) or model.has_reference,
                )  # fmt: skip
        click.echo(json.dumps(found.as_json(), indent=2) if form == "json" else safe(str(found)))

    return report_findings(work, form)


def _read(source: str, shapes: Shapes, constants: Constants) -> Bundle | Module:
    from nacre.compile.bundle.bundle import Bundle

    if os.path.isdir(source):
        return Bundle.load(source, cache=True)
    return read_module(source, shapes, constants)


def _require_sense(source: str, data: Path, preprocess: Path | None, has_sizes: bool) -> None:
    if os.path.isdir(source) and has_sizes:
        raise click.UsageError(
            "--shape and --constant are for models: a bundle is compiled already"
        )
    is_folder = os.path.isdir(data)
    if preprocess is not None and not is_folder:
        raise click.UsageError("--preprocess is for a folder of pictures")
    if is_folder and preprocess is None:
        raise click.UsageError("a folder of pictures needs --preprocess FILE.toml")
    for path in (*([] if is_folder else [data]), *([] if preprocess is None else [preprocess])):
        reason = unreadable_reason(path)
        if reason is not None:
            raise WrongUsage(reason)


def _arrays(data: Path, preprocess: Path | None, label: str) -> dict[str, Any]:
    if preprocess is None:
        return read_calibration(data)
    from nacre.compile.labelled.pictures import read_pictures
    from nacre.compile.labelled.preprocessing import read_preprocessing

    with stage("reading pictures"):
        return read_pictures(data, read_preprocessing(preprocess), label)


def _metric(name: str, blank: int) -> Metric:
    from nacre.compile.labelled.metrics import data_error, metric_from, metric_of

    if not name.endswith(".py"):
        return metric_of(name, blank)
    reason = unreadable_reason(Path(name))
    if reason is not None:
        raise WrongUsage(reason)
    try:
        functions = runpy.run_path(name, run_name="metric")  # the user's own code
    except (Exception, SystemExit) as error:  # which would end us, too
        raise data_error(f"it failed: {type(error).__name__}: {error}", file=name) from error
    return metric_from(functions, name)
