"""`nacre core convert`: a module in another form.

What can be read and what can be written are two tables; a further form is a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.excerpt import backquote
from nacre.base.files import write_whole
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable, unreadable_reason
from nacre.cli.core.files import (
    Constants,
    Shapes,
    constant_option,
    constant_values,
    format_option,
    module_json,
    print_text,
    read_module,
    report_findings,
    shape_option,
)
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.inputs import STDIN
from nacre.cli.outputs import STDOUT, echo_written, require_distinct_files

if TYPE_CHECKING:
    from nacre.core.importing.coverage import Coverage
    from nacre.core.module import Module


@dataclass(frozen=True, slots=True)
class Target:
    """A form that modules are converted to; both functions raise InputError for a wrong module."""

    suffix: str
    text: Callable[[Module], str]
    write: Callable[[Module, Path], None]


def _verify(module: Module) -> Module:
    from nacre.core.verify import verify

    findings = verify(module, "nacre-1")
    if has_errors(findings):
        raise InputError(findings)
    return module


def _core_text(module: Module) -> str:
    return str(_verify(module))


def _write_core(module: Module, path: Path) -> None:
    from nacre.core.storage import save

    save(_verify(module), path)


def _mlir_text(module: Module) -> str:
    from nacre.core.mlir.export import to_mlir

    return to_mlir(module)


def _write_mlir(module: Module, path: Path) -> None:
    write_whole(path, [_mlir_text(module)])


def _onnx_text(module: Module) -> str:
    raise WrongUsage("an ONNX model is no text, expected -o FILE")


def _write_onnx(module: Module, path: Path) -> None:
    from nacre.core.onnx_export.export import to_onnx

    to_onnx(module, path)


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "core": Target(".core", _core_text, _write_core),
        "mlir": Target(".mlir", _mlir_text, _write_mlir),
        "onnx": Target(".onnx", _onnx_text, _write_onnx),
    }
)


@click.command()
@click.argument("file")
@click.option(
    "-o",
    "out",
    metavar="FILE",
    help="Write here; the suffix says what to convert to. `-`, or nothing beside --to: print.",
)
@click.option("--to", type=click.Choice(list(TARGETS)), help="What to convert to.")
@shape_option
@constant_option
@click.option("--optimise", is_flag=True, help="Rewrite for inference: fewer, larger operations.")
@click.option(
    "--report", is_flag=True, help="Say what of a model can be brought in, and convert nothing."
)
@format_option
def convert(
    file: str,
    out: str | None,
    to: str | None,
    shapes: Shapes,
    constants: Constants,
    optimise: bool,
    report: bool,
    output: str,
) -> int:
    """Convert a model, for example from ONNX, or to MLIR.

    FILE is read by its suffix: `.core`, `.onnx`, `.pt2`, `.nac`, or `-` for text of Core IR on
    standard input. Written are `.core`, with big constants in a file beside it, `.mlir` and
    `.onnx`.
    """
    _require_suffix(file)
    if report:
        if out is not None or to is not None or optimise:
            raise click.UsageError("--report converts nothing: leave -o, --to and --optimise out")
        return _coverage(file, shapes, constants, output)
    target = _target(out, to)

    def reader(name: str) -> Module:
        module = read_module(name, shapes, constants)
        if not optimise:
            return module
        from nacre.core.passes.inference import optimise as optimised

        return optimised(module)

    if out is None or out == STDOUT:
        return report_findings(lambda: _print(reader(file), target, output), output)
    path = Path(out)
    require_writable(path)
    require_distinct_files([path], [file, *(value for _, value in constants)])

    def work() -> None:
        module = reader(file)
        with report_write_errors(path), stage("writing"):
            target.write(module, path)
        if output == "json":
            click.echo(module_json(module, path=str(path)))
        else:
            echo_written(path, f": {len(module):,} operations")

    return report_findings(work, output)


def _print(module: Module, target: Target, output: str) -> None:
    print_text(module, target.text(module), output)


def _require_suffix(name: str) -> None:
    from nacre.nac.models import READERS

    if name != STDIN and Path(name).suffix.lower() not in READERS:
        expected = _suffixes_text(READERS)
        raise click.UsageError(f"cannot tell how to read {backquote(name)}, expected {expected}")


def _onnx_report(path: Path, shapes: Shapes, constants: Constants) -> Coverage:
    from nacre.core.onnx.coverage import coverage

    return coverage(path, dict(shapes), constant_values(constants))


def _torch_report(path: Path, shapes: Shapes, constants: Constants) -> Coverage:
    from nacre.core.torch.coverage import coverage

    if constants:
        raise click.UsageError("--constant is for ONNX models")
    return coverage(path, dict(shapes))


_REPORTS: Mapping[str, Callable[[Path, Shapes, Constants], Coverage]] = MappingProxyType(
    {".onnx": _onnx_report, ".pt2": _torch_report}
)


def _coverage(name: str, shapes: Shapes, constants: Constants, output: str) -> int:
    """The coverage of a model as a table; the status says whether all of it is covered."""
    report = _REPORTS.get(Path(name).suffix.lower())
    if report is None:
        raise click.UsageError(f"--report needs {_suffixes_text(_REPORTS)}")
    reason = unreadable_reason(Path(name))
    if reason is not None:
        raise WrongUsage(reason)
    is_whole = True

    def work() -> None:
        nonlocal is_whole
        coverage = report(Path(name), shapes, constants)
        is_whole = coverage.is_whole
        click.echo(
            json.dumps(asdict(coverage), indent=2) if output == "json" else coverage.as_text()
        )

    status = report_findings(work, output)
    return status or (OK if is_whole else ERRORS_FOUND)


def _target(out: str | None, to: str | None) -> Target:
    """What the option says, else the suffix; UsageError where they disagree or say nothing."""
    if out is None or out == STDOUT:
        if to is None:
            raise click.UsageError("nothing says what to convert to, expected --to or -o FILE")
        return TARGETS[to]
    suffix = Path(out).suffix.lower()
    named = next((name for name, target in TARGETS.items() if target.suffix == suffix), None)
    chosen = to or named
    if chosen is None:
        expected = _suffixes_text(target.suffix for target in TARGETS.values())
        raise click.UsageError(
            f"cannot tell what to write to {backquote(out)}, expected {expected}, or --to"
        )
    if named not in (None, chosen):
        raise click.UsageError(f"--to says {chosen}, the name {backquote(out)} says {named}")
    return TARGETS[chosen]


def _suffixes_text(suffixes: Iterable[str]) -> str:
    return "a name in " + " or ".join(f"`{suffix}`" for suffix in suffixes)
