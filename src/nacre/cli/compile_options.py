"""Options that `nacre compile` and `nacre estimate` share: how a model is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nacre.base.excerpt import backquote
from nacre.cli.arrays import option_value
from nacre.cli.calibration import calibration_for
from nacre.cli.machine import parse_size
from nacre.compile.options import MOST_DB, OBSERVERS, PRECISIONS
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

Kept = tuple[tuple[str, str], ...]  # layers and their precision, as the option gives them


def _parse_keep(text: str) -> tuple[str, str]:
    name, mark, precision = text.rpartition("=")
    if not (mark and name and precision):
        raise ValueError(f"{backquote(text)} is not `LAYER=PRECISION`, as in `head*=f16`")
    return name, precision


_DECIBELS = re.compile(r"(\d{1,4}(?:\.\d{1,9})?)\s*(?:dB)?", re.IGNORECASE | re.ASCII)


def _decibels(text: str) -> float:
    found = _DECIBELS.fullmatch(text.strip())
    if found is None or not 0 < float(found[1]) <= MOST_DB:
        told = f"expected a number of dB above 0 and up to {MOST_DB:g}, as in `30dB`"
        raise ValueError(f"{backquote(text)} is no ratio of signal to noise, {told}")
    return float(found[1])


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
        type=option_value(_parse_keep),
        metavar="LAYER=f16|i8",
        help="A layer, or a pattern of names, that stays f16 in an i8 plan, or on integers "
        "whatever it loses; may be repeated, the last that names a layer counts.",
    ),
    click.option(
        "--accuracy",
        type=option_value(_decibels),
        metavar="DB",
        help="The least SQNR of the outputs of an i8 plan, such as 30dB: layers stay f16 until "
        "the calibration data has it, and `validate` asks for it. Default: 15dB.",
    ),
    click.option(
        "--fallback/--no-fallback",
        default=True,
        help="Whether layers of an i8 plan stay f16 where --accuracy is missed. Default: they do.",
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


def compile_arguments(
    precision: str,
    calibrate: Path | None,
    observer: str,
    kept: Kept,
    accuracy: float | None,
    fallback: bool,
    ddr_size: int,
) -> dict[str, Any]:
    """The options as `nacre.compile` and `nacre.estimate` take them; a wrong usage is refused."""
    data = calibration_for(calibrate, precision)
    source = click.get_current_context().get_parameter_source("observer")
    of_integers = {
        "--precision-map": bool(kept),
        "--observer": source is ParameterSource.COMMANDLINE,
        "--accuracy": accuracy is not None,
        "--no-fallback": not fallback,
    }
    for name, is_given in of_integers.items():
        if is_given and precision != "i8":
            raise click.UsageError(f"{name} is for integers, and --precision is {precision}")
    return {
        "precision": precision,
        "calibration": data,
        "observer": observer,
        "precision_map": _in_order(kept),
        "accuracy_db": accuracy,
        "fallback": fallback,
        "ddr_bytes": ddr_size,
    }


def _in_order(kept: Kept) -> dict[str, str]:
    """Layers and their precisions; what is given twice counts where it was given last."""
    found: dict[str, str] = {}
    for layer, precision in kept:
        found.pop(layer, None)
        found[layer] = precision
    return found
