"""Options that `nacre compile` and `nacre estimate` share: how a model is compiled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base.excerpt import backquote
from nacre.cli.arrays import option_value
from nacre.cli.calibration import calibration_for
from nacre.cli.options import ddr_size_option, options_of, repeated_option
from nacre.compile.options import (
    COMPRESS,
    GROUP_SIZE,
    GROUP_SIZES,
    IO_LAYOUTS,
    MOST_DB,
    OBSERVERS,
    PRECISION_ALIASES,
    PRECISIONS,
    WEIGHT_BITS,
    is_judged,
    uses_calibration,
)
from nacre.compile.quantise_stages import STAGE_NAMES, stage_problem

if TYPE_CHECKING:
    from nacre.nem.model.devices import Device

# Layers and their precision, as the option gives them.
LayerPrecisions = tuple[tuple[str, str], ...]


def _parse_layer_precision(text: str) -> tuple[str, str]:
    name, mark, precision = text.rpartition("=")
    if not (mark and name and precision):
        raise ValueError(f"{backquote(text)} is not `LAYER=PRECISION`, as in `head*=f16`")
    return name, precision


_DECIBELS = re.compile(r"(\d{1,4}(?:\.\d{1,9})?)\s*(?:dB)?", re.IGNORECASE | re.ASCII)


def _decibels(text: str) -> float:
    value = _DECIBELS.fullmatch(text.strip())
    if value is None or not 0 < float(value[1]) <= MOST_DB:
        expected = f"expected a number of dB above 0 and up to {MOST_DB:g}, as in `30dB`"
        raise ValueError(f"{backquote(text)} is no ratio of signal to noise, {expected}")
    return float(value[1])


def _stage_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if text))


@dataclass(frozen=True)
class CompileOptions:
    """How a model is compiled, as the options say."""

    precision: str
    calibrate: Path | None
    observer: str
    layer_precisions: LayerPrecisions
    accuracy: float | None
    fallback: bool
    compress: str | None
    group_size: str | None
    quantise_without: tuple[str, ...]
    io_layout: str
    ddr_size: int

    def arguments(self) -> dict[str, Any]:
        """As `nacre.compile` and `nacre.estimate` take them; a wrong usage is refused."""
        has_ratio = is_judged(self.precision, self.compress)
        is_used = uses_calibration(self.precision, self.compress)
        data = calibration_for(self.calibrate, self.precision, is_used=is_used)
        source = click.get_current_context().get_parameter_source("observer")
        of_integers = {
            "--precision-map": bool(self.layer_precisions),
            "--observer": source is ParameterSource.COMMANDLINE,
            "--accuracy": self.accuracy is not None and not has_ratio,
            "--no-fallback": not self.fallback,
        }
        for name, is_given in of_integers.items():
            if is_given and self.precision != "i8":
                reason = f"--precision is {self.precision}"
                raise click.UsageError(f"{name} is for integers, and {reason}")
        if self.group_size is not None and self.precision not in WEIGHT_BITS:
            known, reason = " and ".join(WEIGHT_BITS), f"--precision is {self.precision}"
            raise click.UsageError(f"--group-size is for {known}, and {reason}")
        problem = stage_problem(self.quantise_without, self.precision)
        if problem is not None:
            message = "; ".join(part for part in problem if part is not None)
            raise click.UsageError(f"--quantise-without: {message}")
        return {
            "precision": self.precision,
            "calibration": data,
            "observer": self.observer,
            "precision_map": _latest_precisions(self.layer_precisions),
            "accuracy_db": self.accuracy,
            "fallback": self.fallback,
            "compress": self.compress,
            "group_size": None if self.group_size is None else int(self.group_size),
            "quantise_without": self.quantise_without,
            "io_layout": self.io_layout,
            "ddr_bytes": self.ddr_size,
        }


class PrecisionName(click.Choice[str]):
    """A precision by its name, or by what others call it."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name that is ours."""
        name = super().convert(value, param, ctx)
        return PRECISION_ALIASES.get(name, name)


group_size_option = click.option(
    "--group-size",
    type=click.Choice(tuple(map(str, GROUP_SIZES))),
    help="How many weights of w8f16 and w4f16 share a scale at the most. "
    f"Default: {', '.join(f'{size} for {name}' for name, size in GROUP_SIZE.items())}.",
)

compile_options = options_of(
    CompileOptions,
    "options",
    click.option(
        "--precision",
        type=PrecisionName((*PRECISIONS, *PRECISION_ALIASES)),
        metavar=f"[{'|'.join(PRECISIONS)}]",
        default="f16",
        help="What is computed in; `w8f16` and `w4f16` are weights of 8 and 4 bits beside f16, "
        f"which {' and '.join(map('`{}`'.format, PRECISION_ALIASES))} mean, too.",
    ),
    group_size_option,
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
    repeated_option(
        "--precision-map",
        "layer_precisions",
        _parse_layer_precision,
        "LAYER=f16|i8",
        "A layer, or a pattern of names, that stays f16 in an i8 plan, or on integers "
        "whatever it loses; may be repeated, the last that names a layer counts.",
    ),
    click.option(
        "--accuracy",
        type=option_value(_decibels),
        metavar="DB",
        help="The least SQNR of the outputs of an i8 plan, or with --compress=cluster, such as "
        "30dB: layers stay f16, and weights as they are, until the calibration data has it, and "
        "`validate` asks for it. Default: 15dB.",
    ),
    click.option(
        "--fallback/--no-fallback",
        default=True,
        help="Whether layers of an i8 plan stay f16 where --accuracy is missed. Default: they do.",
    ),
    click.option(
        "--compress",
        type=click.Choice(COMPRESS),
        is_flag=False,
        flag_value="exact",
        help="Weights that the device decompresses on their way: without a word, or with `exact`, "
        "where that saves bytes; with `cluster` weights are also changed such that it does, as "
        "far as outputs allow.",
    ),
    click.option(
        "--quantise-without",
        type=option_value(_stage_names),
        default="",
        metavar="NAME,...",
        help=f"Stages of quantisation to leave out, to compare: {', '.join(STAGE_NAMES)}.",
    ),
    click.option(
        "--io-layout",
        type=click.Choice(IO_LAYOUTS),
        default="model",
        help="In which order memory has the axes of inputs and outputs: the model's, or with "
        "`native` the device's, so that it transposes none; the host does it then. What `run`, "
        "`validate` and Python take and give stays as the model has it.",
    ),
    ddr_size_option,
)


def _latest_precisions(layer_precisions: LayerPrecisions) -> dict[str, str]:
    """Layers and their precisions; what is given twice counts where it was given last."""
    precisions: dict[str, str] = {}
    for layer, precision in layer_precisions:
        precisions.pop(layer, None)
        precisions[layer] = precision
    return precisions


def read_device(name: str, include_roots: tuple[Path, ...]) -> str | Device:
    """The device that an option names; read here where its includes may lead further."""
    if not include_roots:
        return name
    from nacre.compile.target import target_of

    return target_of(name, include_roots).device
