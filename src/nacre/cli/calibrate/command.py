"""`nacre calibrate`: figures of a device fitted to measured times."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import backquote, safe
from nacre.base.rendering import render_json
from nacre.cli.arrays import (
    WrongUsage,
    option_value,
    require_writable,
    unreadable_reason,
    write_all_or_none,
)
from nacre.cli.core.files import print_warnings, report_findings
from nacre.cli.exit_status import ERRORS_FOUND
from nacre.cli.options import (
    WholeNumber,
    form_option,
    include_root_option,
    out_option,
    repeated_option,
)
from nacre.cli.outputs import (
    echo_written,
    force_option,
    require_distinct_files,
    require_unchanged,
)

if TYPE_CHECKING:
    from nacre.calibrate.device_file import DeviceFile
    from nacre.calibrate.fit import Fit

_ENDING = ".nem"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SET = re.compile(r"(?P<name>[^=]+)=(?P<value>\d{1,13})", re.ASCII)

Range = tuple[int, int]


def _parse_free(text: str) -> tuple[str, Range | None]:
    from nacre.calibrate.free_figures import parse_free

    return parse_free(text)


def _parse_set(text: str) -> tuple[str, int]:
    found = _SET.fullmatch(text)
    if found is None:
        raise ValueError(f"{backquote(text)} is no figure such as NMU.latency=120")
    return found["name"], int(found["value"])


def _parse_name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(f"{backquote(text)} is no name of a device")
    return text


@click.command()
@click.argument("device", metavar="DEVICE")
@click.argument("rows", metavar="ROWS.csv", type=click.Path(path_type=Path))
@repeated_option(
    "--free",
    "free",
    _parse_free,
    "FIGURE[=LOW..HIGH]",
    "A figure that is fitted, and its range; may be repeated.",
)
@repeated_option(
    "--set",
    "fixed",
    _parse_set,
    "FIGURE=VALUE",
    "A figure that is set for good; may be repeated.",
)
@click.option(
    "--clock",
    type=WholeNumber(1, 1_000_000),
    metavar="MHZ",
    help="The clock that cycles are counted in, short for --set NMU.clock=MHZ: seconds need it.",
)
@click.option(
    "--starts",
    type=WholeNumber(1, 1000),
    default=None,
    metavar="N",
    help="From how many places the fit starts: 4, or 1 where whole networks are timed.",
)
@click.option(
    "--name",
    type=option_value(_parse_name),
    metavar="NAME",
    help="What the fitted device is called. Default: as its file.",
)
@click.option(
    "--source", default="", metavar="TEXT", help="Where the measurements are from, in words."
)
@include_root_option
@out_option("FILE.nem", "Write the fitted device here, and FILE.calibration.json beside it.")
@force_option
@form_option
def calibrate(
    device: str,
    rows: Path,
    free: tuple[tuple[str, Range | None], ...],
    fixed: tuple[tuple[str, int], ...],
    clock: int | None,
    starts: int | None,
    name: str | None,
    source: str,
    include_roots: tuple[Path, ...],
    out: Path | None,
    force: bool,
    form: str,
) -> int:
    """Fit figures of DEVICE to the measured times of ROWS.csv.

    A row is a task of the device (an opcode with shapes), a NEM program, or a model, and its time.
    Whole groups of rows are left out in turn to see how far times are off; the report says what the
    rows cannot tell apart. A fit at the edge of a range is reported and not written.

    Exit status: 0 fitted, 1 something is wrong with the rows, the figures or the fit, 2 wrong
    usage.
    """
    _require_packages()
    _require_files(device, rows, out)
    settings = _unique_settings(fixed)
    fits: list[Fit] = []

    def work() -> None:
        from nacre.calibrate.fit import fit

        found = fit(
            device,
            rows,
            free,
            fixed=settings,
            clock_mhz=clock,
            include_roots=include_roots,
            starts=starts,
        )
        fits.append(found)
        file = _device_file(found, out, name, source or rows.name)
        if file is not None:
            require_unchanged(file.contents, force)
            with write_all_or_none():
                file.save()
        _print_fit(found, form)
        if file is not None and form == "text":
            for path in file.contents:
                echo_written(path, "")

    status = report_findings(work, form)
    return ERRORS_FOUND if any(found.problems for found in fits) else status


def _require_packages() -> None:
    try:
        import scipy.optimize  # noqa: F401 - whether it is there
    except ImportError:
        raise WrongUsage("calibrate needs scipy: install `nacre[calibrate]`") from None


def _require_files(device: str, rows: Path, out: Path | None) -> None:
    from nacre.nem.model.calibration import companion_path

    reason = unreadable_reason(rows)
    if reason is not None:
        raise WrongUsage(reason)
    if out is None:
        return
    if out.suffix != _ENDING:
        raise click.UsageError(f"a device's file ends in {_ENDING}, found {safe(out.name)}")
    written = [out, companion_path(out)]
    for path in written:
        require_writable(path)
    require_distinct_files(written, (device, rows))


def _unique_settings(fixed: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    settings: dict[str, int] = {}
    for name, value in fixed:
        if name in settings:
            raise click.UsageError(f"{backquote(name)} is set twice")
        settings[name] = value
    return settings


def _device_file(found: Fit, out: Path | None, name: str | None, source: str) -> DeviceFile | None:
    """What is to be written; nothing where the fit is not sound."""
    from nacre.calibrate.device_file import device_file

    return None if out is None or found.problems else device_file(found, out, name, source)


def _print_fit(found: Fit, form: str) -> None:
    from nacre.calibrate.report import fit_json, fit_text

    findings = (*found.warnings, *found.problems)
    if form == "json":
        report = {**fit_json(found), "findings": json.loads(render_json(findings))}
        click.echo(json.dumps(report, indent=2))
        return
    click.echo(fit_text(found))
    print_warnings(findings)
