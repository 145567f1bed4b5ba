"""Options that several verbs take, each declared once, and groups of them as one value."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from nacre.base.excerpt import backquote
from nacre.cli.arrays import option_value
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES, MAX_TASK_INSTANCES

Option = Callable[[Callable[..., Any]], Callable[..., Any]]  # as click has them: decorators
Command = Callable[..., int]

_SIZE = re.compile(r"(?P<number>[0-9]{1,18})(?P<unit>[KMGT]?)(?:i?B)?", re.I | re.A)
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_REAL = re.compile(r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,4})?")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


class WholeNumber(click.IntRange):
    """Of an option that counts: the digits 0 to 9, where `int` reads those of any script."""

    def convert(
        self, value: int | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The number; `value` may be a default, which is one already."""
        if isinstance(value, str) and not _WHOLE.fullmatch(value):
            self.fail(f"{backquote(value)} is not a whole number such as 16", param, ctx)
        number: int = super().convert(int(value), param, ctx)
        return number


class RealNumber(click.FloatRange):
    """Of an option that measures: finite, and in the digits 0 to 9."""

    def convert(
        self, value: float | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; `value` may be a default, which is one already."""
        try:
            measured = parse_real(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)
        number: float = super().convert(measured, param, ctx)
        return number


def parse_real(text: str) -> float:
    """A finite number in the digits 0 to 9; ValueError for what is none."""
    number = float(text) if _REAL.fullmatch(text) else math.inf
    if not math.isfinite(number):
        raise ValueError(f"{backquote(text)} is not a finite number such as 0.5")
    return number


def options_of(value: type[Any], name: str, *options: Option) -> Callable[[Command], Command]:
    """A decorator: the command has the options, in this order, and gets them as one value.

    The fields of the value's class are what the options are called.
    """
    names = [field.name for field in fields(value)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run_with_options(**arguments: Any) -> int:  # noqa: ANN401 - what click hands over
            options_value = value(**{field: arguments.pop(field) for field in names})
            return command(**{name: options_value}, **arguments)

        for option in reversed(options):
            option(run_with_options)
        return run_with_options

    return decorate


def repeated_option(
    name: str, target: str, read: Callable[[str], Any], metavar: str, help: str
) -> Option:
    """An option that may be given several times, each value read by a function."""
    type_ = option_value(read)
    return click.option(name, target, multiple=True, type=type_, metavar=metavar, help=help)


def out_option(
    metavar: str,
    help: str,
    *,
    is_folder: bool = False,
    prints: bool = False,
    **more: Any,  # noqa: ANN401
) -> Option:
    """Where a verb writes; one that `prints` knows `-` as standard output."""
    more = {"type": click.Path(path_type=Path, file_okay=not is_folder), **more}
    if not prints:
        more["callback"] = _refuse_dash
    return click.option("-o", "out", metavar=metavar, help=help, **more)


def _refuse_dash(
    context: click.Context, option: click.Parameter, value: Path | None
) -> Path | None:
    if str(value) == "-":
        raise click.UsageError("`-` is standard output, and -o needs a name; see /dev/stdout")
    return value


def parse_size(text: str | int, least: int = 1) -> int:
    """A number of bytes: `4096`, `512M`, `1G`; the letters are powers of 1024."""
    match = _SIZE.fullmatch(str(text).strip())
    size = int(match["number"]) << _UNITS[match["unit"].upper()] if match is not None else -1
    if size < least:
        raise ValueError(f"{backquote(str(text))} is no size such as 4096, 512M or 1G")
    return size


def bytes_option(name: str, help: str, *, least: int = 1) -> Option:
    """An option that takes a number of bytes, with K, M, G or T where one likes."""
    read = option_value(functools.partial(parse_size, least=least))
    return click.option(name, type=read, metavar="BYTES", help=help)


def pair_parser(form: str) -> Callable[[str], tuple[str, str]]:
    """A reader of option values of the form `NAME=VALUE`; names may hold `=` signs."""

    def parse(text: str) -> tuple[str, str]:
        name, sign, value = text.rpartition("=")
        if not (name and sign and value) or "\0" in value:
            raise ValueError(f"{backquote(text)} does not have the form {form}")
        return name, value

    return parse


def unique_by_name(pairs: Iterable[tuple[str, str]], what: str) -> dict[str, str]:
    """Pairs by name; UsageError for a name that is given twice."""
    by_name: dict[str, str] = {}
    for name, value in pairs:
        if name in by_name:
            raise click.UsageError(f"{what} {backquote(name)} is given twice")
        by_name[name] = value
    return by_name


seed_option = click.option(
    "--seed", type=WholeNumber(min=0), default=0, help="Of random inputs. Default: 0."
)


def most_option(what: str) -> Option:
    """How many rows a text has; what is asked for as JSON has them all."""
    return click.option(
        "--most",
        type=WholeNumber(min=1),
        default=20,
        metavar="N",
        help=f"{what}. Default: 20.",
    )


form_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
include_root_option = click.option(
    "--include-root",
    "include_roots",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further folder that includes may lead to.",
)
max_instances_option = click.option(
    "--max-instances",
    type=WholeNumber(min=1),
    default=MAX_TASK_INSTANCES,
    show_default=True,
    help="The most task instances that loops may expand to.",
)
ddr_size_option = click.option(
    "--ddr-size",
    type=option_value(parse_size),
    default=DEFAULT_DDR_BYTES,
    metavar="BYTES",
    help="How large DDR is: 4096, 512M, 1G. Default: 256M.",
)
