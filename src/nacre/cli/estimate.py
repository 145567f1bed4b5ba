"""`nacre estimate`: does a model fit, how fast is it, where does the time go?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.stages import stage
from nacre.cli.arrays import (
    option_value,
    report_write_errors,
    require_writable,
    write_all_or_none,
)
from nacre.cli.calibration import place_in_file
from nacre.cli.compile_options import CompileOptions, compile_options, read_device
from nacre.cli.core.files import (
    Constants,
    Shapes,
    constant_option,
    read_module,
    report_findings,
    shape_option,
)
from nacre.cli.exit_status import ERRORS_FOUND
from nacre.cli.llm.estimate import estimate_language_model
from nacre.cli.llm.group import is_language_model
from nacre.cli.options import WholeNumber, form_option, include_root_option, parse_real
from nacre.cli.outputs import require_distinct_files, require_page_name
from nacre.llm.estimate.sizes import PRECISIONS as LLM_PRECISIONS

if TYPE_CHECKING:
    from nacre.compile.estimate.result import Estimate

# Options that bundles and language models take, too.
_OF_BUNDLES = frozenset({"model", "clock", "most", "shows_losses", "report", "form"})
_OF_LANGUAGE_MODELS = frozenset(
    {
        "model", "devices", "include_roots", "precision", "group_size", "ddr_size", "context",
        "clock", "form",
    }
)  # fmt: skip


def _parse_layer_count(text: str) -> int | None:
    if text == "all":
        return sys.maxsize
    if not (is_digits(text) and len(text) < 10):
        raise ValueError(f"{backquote(text)} is neither a number nor `all`")
    return int(text)


def _parse_clock(text: str) -> float:
    try:
        clock = parse_real(text)
    except ValueError:
        clock = -1.0
    if clock <= 0:
        raise ValueError(f"{backquote(text)} is no clock, expected a positive number of MHz")
    return clock


@click.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="D",
    help="A built-in device or a file; may be repeated, to compare them. Needed for a model.",
)
@include_root_option
@shape_option
@constant_option
@compile_options
@click.option(
    "--clock",
    type=option_value(_parse_clock),
    metavar="MHZ",
    help="For milliseconds. Default: 1000, as an assumption.",
)
@click.option(
    "--context",
    type=WholeNumber(min=1),
    metavar="N",
    help="Rows of a language model's cache. Default: 2,048, or what it knows if that is less.",
)
@click.option(
    "--layers",
    "most",
    type=option_value(_parse_layer_count),
    metavar="N|all",
    help="How many layers are shown, the costliest first.",
)
@click.option(
    "--why",
    "shows_losses",
    is_flag=True,
    help="Show where the plan takes longer than its bounds, and what helps.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write a page with the layers and the timeline; of several devices, one each.",
)
@form_option
def estimate(
    model: str,
    devices: tuple[str, ...],
    include_roots: tuple[Path, ...],
    shapes: Shapes,
    constants: Constants,
    options: CompileOptions,
    clock: float | None,
    context: int | None,
    most: int | None,
    shows_losses: bool,
    report: Path | None,
    form: str,
) -> int:
    """Say whether MODEL (.core, .onnx, .pt2 or .nac) fits devices, how fast it is and why.

    The model is compiled and the plan timed: with the device's own figures, and derated by what
    they leave out. Bounds come from the model and the device, never from the plan. MODEL may be
    the folder of a bundle: then its own plan is timed, on the device that it is for. Of a language
    model (.gguf, a folder of transformers or its config.json) bounds are given without a plan.

    Exit status: 0 it fits every device, 1 it does not or something is wrong with it, 2 wrong
    usage.
    """
    is_llm = Path(model).suffix.lower() == ".json" or is_language_model(model)
    is_bundle = os.path.isdir(model) and not is_llm
    _require_options(is_bundle, is_llm, devices)
    if is_llm:
        return _estimate_llm(model, devices, include_roots, options, context, clock, form)
    pages = _pages(report, (model,) if is_bundle else devices)
    calibration = [options.calibrate] if options.calibrate else []
    require_distinct_files(pages.values(), (model, *devices, *calibration))
    estimates: dict[str, Estimate] = {}

    def work() -> None:
        from nacre.compile.estimate.estimate import estimate as estimated

        page_of = pages
        arguments = options.arguments()
        if is_bundle:
            of_bundle = _estimate_bundle(model, clock)
            estimates[of_bundle.device.name] = of_bundle
            page_of = dict(zip(estimates, pages.values(), strict=False))
        else:
            module = read_module(model, shapes, constants)
            for device in dict.fromkeys(devices):
                known = read_device(device, include_roots)
                with stage(f"estimating for {safe(device)}"), place_in_file(options.calibrate):
                    estimates[device] = estimated(module, known, clock_mhz=clock, **arguments)
        with write_all_or_none():
            _write(page_of, estimates, model)
        click.echo(_format_estimates(model, estimates, most, form, shows_losses))
        if form == "text":
            written = (page for name, page in page_of.items() if estimates[name].fits)
            for page in written:
                click.echo(f"\nwrote {safe(str(page))}: layers and timeline")

    status = report_findings(work, form)
    is_fit = all(one.fits for one in estimates.values())
    return status if is_fit else status or ERRORS_FOUND


def _require_options(is_bundle: bool, is_llm: bool, devices: tuple[str, ...]) -> None:
    """A model needs a device; a bundle has all that compiling asks for in it."""
    if not is_bundle and not devices:
        raise click.UsageError("Missing option '--device'.")
    given = _given_options()
    if is_bundle:
        reason = "is for models: a bundle is compiled already, for one device"
        _refuse(given.keys() - _OF_BUNDLES, given, reason)
    elif is_llm:
        reason = "is for plans: of a language model bounds are given, see `nacre llm build`"
        _refuse(given.keys() - _OF_LANGUAGE_MODELS, given, reason)
    else:
        _refuse(given.keys() & {"context"}, given, "is for language models")


def _given_options() -> dict[str, str]:
    """Options that the command line has, by what they are called inside."""
    context = click.get_current_context()
    return {
        option.name or "": option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    }


def _refuse(names: Set[str], given: Mapping[str, str], reason: str) -> None:
    for name, option in given.items():
        if name in names:
            raise click.UsageError(f"{option} {reason}")


def _estimate_llm(
    model: str,
    devices: tuple[str, ...],
    include_roots: tuple[Path, ...],
    options: CompileOptions,
    context: int | None,
    clock: float | None,
    form: str,
) -> int:
    """The same as `nacre llm estimate`."""
    if options.precision not in LLM_PRECISIONS:
        known = ", ".join(LLM_PRECISIONS)
        message = f"--precision is {options.precision}, and a language model is estimated at"
        raise click.UsageError(f"{message} {known}")
    options.arguments()  # what does not go together is refused
    return estimate_language_model(
        model, devices, include_roots, options.precision, options.group_size, context, clock,
        options.ddr_size, form,
    )  # fmt: skip


def _estimate_bundle(folder: str, clock: float | None) -> Estimate:
    from nacre.compile.bundle.bundle import Bundle

    bundle = Bundle.load(folder, cache=True)
    with stage(f"estimating for {safe(bundle.manifest.device)}"):
        return bundle.estimate(clock)


def _format_estimates(
    model: str,
    estimates: Mapping[str, Estimate],
    most: int | None,
    form: str,
    shows_losses: bool,
) -> str:
    from nacre.compile.estimate.text import estimate_text

    if form == "json":
        return json.dumps({name: one.as_json() for name, one in estimates.items()}, indent=2)
    title = Path(model).name or model
    return estimate_text(title, estimates, most, shows_losses=shows_losses)


def _pages(report: Path | None, devices: tuple[str, ...]) -> dict[str, Path]:
    """Where the page of each device goes: the file itself, or one beside it for each of several."""
    if report is None:
        return {}
    require_page_name(report, "a report")
    names = list(dict.fromkeys(devices))
    pages = {name: report.with_name(f"{report.stem}-{Path(name).stem}{report.suffix}")
             for name in names}  # fmt: skip
    if len(names) == 1:
        pages = {names[0]: report}
    if len(set(pages.values())) < len(pages):
        raise click.UsageError("two devices would share a page: give their pages one by one")
    for page in pages.values():
        require_writable(page)
    return pages


def _write(pages: Mapping[str, Path], estimates: Mapping[str, Estimate], model: str) -> None:
    from nacre.viz.layers import write_estimate

    for name, page in pages.items():
        if not estimates[name].fits:
            continue
        with report_write_errors(page), stage("writing the report"):
            write_estimate(estimates[name], page, title=Path(model).name)
