"""What the verbs of `nacre core` share: modules from files and to files, and how mistakes show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import quoted, safe
from nacre.base.rendering import render_text
from nacre.cli.arrays import WrongUsage, option_value, require_writable, unreadable
from nacre.cli.inputs import STDIN, read_argument
from nacre.cli.main import ERRORS_FOUND, OK
from nacre.cli.progress import watched

if TYPE_CHECKING:
    from nacre.core.module import Module


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME=1x3x224x224`; an empty shape is a scalar's."""
    name, sign, dims = text.rpartition("=")
    parts = dims.split("x") if dims else []
    if not sign or not name or not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise ValueError(f"{quoted(text)} is no shape such as NAME=1x3x224x224")
    return name, tuple(int(part) for part in parts)


Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # as the option gives them
shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=option_value(_shape),
    metavar="NAME=1x3x224x224",
    help="The shape of an input that the model leaves open; may be repeated.",
)


def read_module(name: str, shapes: Shapes = ()) -> Module:
    """A model from a file; WrongUsage where there is none, InputError where it is wrong.

    A file whose suffix says nothing is text of Core IR.
    """
    from nacre.core.models import READERS, read_model
    from nacre.core.storage import load
    from nacre.core.text.reader import parse_source

    if name != STDIN:
        reason = unreadable(Path(name))
        if reason is not None:
            raise WrongUsage(reason)
        if Path(name).suffix.lower() in READERS:
            with watched("nodes") as progress:
                return read_model(name, dict(shapes), progress)
        return load(name)
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return parse_source(source)


def reported(work: Callable[[], None]) -> int:
    """Do the work; what is wrong with the input goes to standard error, as the result would not."""
    try:
        work()
    except InputError as error:
        click.echo(render_text(error.diagnostics), err=True)
        return ERRORS_FOUND
    return OK


def give_module(module: Module, out: Path | None) -> None:
    """Print a module, or save it."""
    if out is None:
        click.echo(str(module), nl=False)
        return
    from nacre.core.storage import save

    require_writable(out)
    try:
        save(module, out)
    except OSError as error:
        raise WrongUsage(f"cannot write {safe(str(out))}: {error.strerror}") from None
    click.echo(f"wrote {safe(str(out))}: {len(module):,} operations")
