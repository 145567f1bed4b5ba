"""Options that `nacre compile` and `nacre estimate` share: how a model is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nacre.base.excerpt import quoted
from nacre.cli.arrays import option_value
from nacre.cli.calibration import calibration_for
from nacre.cli.machine import parse_size
from nacre.compile.options import OBSERVERS, PRECISIONS
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

Kept = tuple[tuple[str, str], ...]  # layers and their precision, as the option gives them


def _kept(text: str) -> tuple[str, str]:
    name, mark, precision = text.rpartition("=")
    if not (mark and name and precision):
        raise ValueError(f"{quoted(text)} is not `LAYER=PRECISION`, as in `head*=f16`")
    return name, precision


_OPTIONS = (
    click.option("--precision", type=click.Choice(PRECISIONS), default="f16"),
    click.option(
        "--calibrate",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE.npz",
        help="Inputs to quantise with, by name, samples along the first axis.",
    ),
    click.option(
        "--observer",
        type=click.Choice(OBSERVERS),
        default="mse",
        help="How a range of floats becomes a scale.",
    ),
    click.option(
        "--precision-map",
        "kept",
        multiple=True,
        type=option_value(_kept),
        metavar="LAYER=f16",
        help="A layer, or a pattern of names, that stays f16 in an i8 plan; may be repeated.",
    ),
    click.option(
        "--ddr-size",
        type=option_value(parse_size),
        default=DEFAULT_DDR_BYTES,
        metavar="BYTES",
        help="How large DDR is: 4096, 512M, 1G. Default: 256M.",
    ),
)


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options, in the order in which its help shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asked(
    precision: str, calibrate: Path | None, observer: str, kept: Kept, ddr_size: int
) -> dict[str, Any]:
    """The options as `nacre.compile` and `nacre.estimate` take them; a wrong usage is refused."""
    data = calibration_for(calibrate, precision)
    if kept and precision != "i8":
        raise click.UsageError(f"--precision-map is for integers, and --precision is {precision}")
    source = click.get_current_context().get_parameter_source("observer")
    if source is ParameterSource.COMMANDLINE and precision != "i8":
        raise click.UsageError(f"--observer is for integers, and --precision is {precision}")
    return {
        "precision": precision,
        "calibration": data,
        "observer": observer,
        "precision_map": dict(kept),
        "ddr_bytes": ddr_size,
    }
