"""What the verbs of `nacre core` share: modules from files and to files, and how mistakes show."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.rendering import render_by_cause, render_json
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable, unreadable_reason
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.inputs import STDIN, read_argument
from nacre.cli.options import out_option, repeated_option
from nacre.cli.outputs import STDOUT, echo_written, require_distinct_files
from nacre.cli.terminal.progress import show_stages, watch_progress
from nacre.cli.terminal.streams import echo_document

if TYPE_CHECKING:
    from nacre.core.module import Module


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME=1x3x224x224`, or with commas; an empty shape is a scalar's."""
    name, sign, dims = text.rpartition("=")
    parts = dims.split("," if "," in dims else "x") if dims else []
    if not sign or not name or not all(is_digits(part) and len(part) < 19 for part in parts):
        raise ValueError(f"{backquote(text)} is no shape such as NAME=1x3x224x224")
    return name, tuple(int(part) for part in parts)


Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # as the option gives them
shape_option = repeated_option(
    "--shape",
    "shapes",
    _shape,
    "NAME=1x3x224x224",
    "The shape of an input that the model leaves open; may be repeated.",
)


def _constant(text: str) -> tuple[str, str]:
    """`NAME=FILE.npy` or `NAME=NUMBER`."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not (value.endswith(".npy") or _number(value) is not None):
        raise ValueError(f"{backquote(text)} is neither NAME=FILE.npy nor NAME=NUMBER")
    return name, value


def _number(text: str) -> bool | int | float | None:
    """A number as a user writes it; None where it is none."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text) if len(text) <= _LONGEST_NUMBER and "_" not in text else None
        except ValueError:
            continue
    return None


_WORDS = {"true": True, "false": False}
_LONGEST_NUMBER = 40
Constants = tuple[tuple[str, str], ...]  # as the option gives them
constant_option = repeated_option(
    "--constant",
    "constants",
    _constant,
    "NAME=FILE.npy|NUMBER",
    "Bind an input of an ONNX model to a value for good; may be repeated.",
)


def constant_values(constants: Constants) -> dict[str, Any]:
    """The values that inputs are bound to; WrongUsage where a file cannot be read."""
    from nacre.nem.api.ddr import load_npy

    values: dict[str, Any] = {}
    for name, value in constants:
        number = _number(value)
        if number is None:
            reason = unreadable_reason(Path(value))
            if reason is not None:
                raise WrongUsage(reason)
            values[name] = load_npy(value, backquote(f"--constant {name}"))
        else:
            values[name] = number
    return values


encodings_option = click.option(
    "--encodings",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="AIMET's encodings of a float ONNX model (0.6.1, 1.0.0): its tensors are stored so.",
)


def read_module(
    name: str, shapes: Shapes = (), constants: Constants = (), encodings: Path | None = None
) -> Module:
    """A model from a file; WrongUsage where there is none, InputError where it is wrong.

    A file whose suffix says nothing is text of Core IR.
    """
    if constants or encodings is not None or Path(name).suffix.lower() == ".onnx":
        return _onnx_module(name, shapes, constants, encodings)
    from nacre.core.models import READ_ELSEWHERE
    from nacre.core.rules.storage import STO01
    from nacre.core.storage import load, load_source
    from nacre.nac.models import READERS, read_model

    if name != STDIN:
        reason = unreadable_reason(Path(name))
        if reason is not None:
            raise WrongUsage(reason)
        if Path(name).suffix.lower() in {*READERS, *READ_ELSEWHERE}:
            with watch_progress("importing", "nodes") as progress:
                return read_model(name, dict(shapes), progress)
        return load(name)
    source = read_argument(name)
    if isinstance(source, str):
        raise WrongUsage(source)
    if isinstance(source, Diagnostic):  # under the code that a file would have
        raise InputError([STO01.at(source.span, source.message)])
    return load_source(source, None)


def _onnx_module(name: str, shapes: Shapes, constants: Constants, encodings: Path | None) -> Module:
    """An ONNX model, inputs bound to values; what is odd about it goes to standard error."""
    from nacre.core.onnx.importer import from_onnx

    if Path(name).suffix.lower() != ".onnx":
        option = "--constant" if constants else "--encodings"
        raise click.UsageError(f"{option} is for ONNX models")
    for path in (Path(name), *([] if encodings is None else [encodings])):
        reason = unreadable_reason(path)
        if reason is not None:
            raise WrongUsage(reason)
    values = constant_values(constants)
    warnings: list[Diagnostic] = []
    with watch_progress("importing", "nodes") as progress:
        module = from_onnx(
            name, dict(shapes), constants=values, progress=progress, warn=warnings.append,
            encodings=encodings,
        )  # fmt: skip
    print_warnings(warnings)
    return module


def print_warnings(findings: Sequence[Diagnostic]) -> None:
    """What is odd about a model goes to standard error."""
    if findings:
        click.echo(render_by_cause(findings), err=True)


module_out_option = out_option("FILE", "Write the module here; `-`: print it.", prints=True)
format_option = click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the result is printed, and what is wrong with the input.",
)


def report_findings(work: Callable[[], None], output: str = "text") -> int:
    """Do the work; what is wrong with the input goes to standard error, as the result would not.

    As JSON it takes the place of the result: there is one document in any case.
    """
    try:
        with show_stages():
            work()
    except InputError as error:
        if output == "json":
            click.echo(render_json(error.diagnostics))
        else:
            click.echo(render_by_cause(error.diagnostics), err=True)
        return ERRORS_FOUND
    return OK


def module_json(module: Module, /, **more: object) -> str:
    """What is said of a module as JSON, and more about it."""
    about = {
        "operations": len(module),
        "inputs": {name: str(type_) for name, type_ in module.input_types.items()},
        "outputs": [str(type_) for type_ in module.output_types],
    }
    return json.dumps({**more, **about}, indent=2)


def print_text(module: Module, text: str, output: str = "text") -> None:
    """Print a module as a text of some language, or that text within JSON."""
    if output == "json":
        click.echo(module_json(module, module=text))
    else:
        echo_document(text)


def require_target(out: Path | None, read: Sequence[str] = ()) -> None:
    """Whatever would keep a module from being written is better known before the work."""
    if out is not None and str(out) != STDOUT:
        require_writable(out)
        require_distinct_files([out], read)


def print_or_save(module: Module, out: Path | None, output: str = "text") -> None:
    """Print a module, or save it."""
    if out is None or str(out) == STDOUT:
        print_text(module, str(module), output)
        return
    from nacre.core.storage import save

    with report_write_errors(out):
        save(module, out)
    if output == "json":
        click.echo(module_json(module, path=str(out)))
    else:
        echo_written(out, f": {len(module):,} operations")
