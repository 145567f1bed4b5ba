"""`nacre nac convert`: files in other forms, and others as files.

The suffixes say which way: a `.nac` is lifted to Core IR and written in one of its forms; anything
else is built; from `.nac` to `.nac` weights move in or out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.cli.arrays import report_write_errors, require_writable
from nacre.cli.core.convert import TARGETS
from nacre.cli.core.files import (
    Shapes,
    format_option,
    module_json,
    print_text,
    print_warnings,
    report_findings,
    shape_option,
)
from nacre.cli.nac.build import quant_choice, require_file, save_model, summary, summary_json
from nacre.cli.nac.files import (
    SUFFIX,
    Pairs,
    load_model,
    nac,
    require_readable,
    types_of,
    weights_option,
)
from nacre.cli.options import pair_parser, repeated_option
from nacre.cli.outputs import STDOUT, echo_written, require_distinct_files

if TYPE_CHECKING:
    from nacre.cli.core.convert import Target
    from nacre.core.module import Module, TensorType
    from nacre.nac.quantise.report import QuantisationReport
    from nacre.nac.run.model import NacModel
    from nacre.nac.save import Storage

_MOST_NAMED = 8  # of inputs that are there


@nac.command()
@click.argument("file")
@click.option("-o", "out", metavar="FILE", help="Write here; the suffix says what. `-`: print.")
@click.option("--to", type=click.Choice(list(TARGETS)), help="What to convert to.")
@repeated_option(
    "--type",
    "types",
    pair_parser("NAME=TYPE, such as x=f32[1,3]"),
    "NAME=f32[1,3]",
    "The type of an input that a `.nac` does not say; may be repeated.",
)
@shape_option
@click.option(
    "--quant",
    type=quant_choice,
    help="How weights are stored. Default: as they are; none for what is no `.nac`.",
)
@weights_option
@format_option
def convert(
    file: str,
    out: str | None,
    to: str | None,
    types: Pairs,
    shapes: Shapes,
    quant: str | None,
    weights: Storage | None,
    output: str,
) -> int:
    """Convert a `.nac` to `.core`, `.mlir` or `.onnx`, or a model to a `.nac`.

    From `.nac` to `.nac`, --weights and --quant change how weights are stored; `--quant none`
    stores those that are quantised as the program computes with them.
    """
    require_readable(file)
    is_ours = Path(file).suffix.lower() == SUFFIX
    makes_ours = out is not None and Path(out).suffix.lower() == SUFFIX and to is None
    if not is_ours and not makes_ours:
        raise click.UsageError("neither of the files is a `.nac`; see `nacre core convert`")
    if makes_ours:
        assert out is not None
        if types:
            raise click.UsageError("--type is for what is made of a `.nac`")
        return _to_nac(file, Path(out), is_ours, shapes, quant, weights, output)
    if shapes or weights or quant is not None:
        problem = "--shape, --quant and --weights are for what becomes a `.nac`"
        raise click.UsageError(f"{problem}; see --type for types of inputs")
    target = _target(out, to)
    if out is not None and out != STDOUT:
        require_distinct_files([Path(out)], [file])
    return report_findings(lambda: _lift(file, out, target, types, output), output)


def _to_nac(
    file: str,
    out: Path,
    is_ours: bool,
    shapes: Shapes,
    quant: str | None,
    weights: Storage | None,
    output: str,
) -> int:
    require_file(out)
    require_distinct_files([out], [file])
    if is_ours and shapes:
        raise click.UsageError("--shape is for models that leave shapes open; a `.nac` does not")

    def work() -> None:
        reports: list[QuantisationReport] = []
        storage: Storage = "internal"
        if is_ours:
            original = load_model(file)
            storage = "internal" if original.file.header.is_internal else "external"
            model = _store_weights(original, quant, reports)
        else:
            from nacre.nac.build import build

            warnings: list[Diagnostic] = []
            model = build(
                file,
                quant or "none",
                shapes=dict(shapes),
                on_report=reports.append,
                warn=warnings.append,
            )
            print_warnings(warnings)
        written = save_model(model, out, weights or storage)
        is_json = output == "json"
        click.echo(summary_json(model, written, reports) if is_json else summary(model, written))

    return report_findings(work, output)


def _store_weights(
    model: NacModel, quant: str | None, reports: list[QuantisationReport]
) -> NacModel:
    """A model whose weights are stored so; None leaves them as they are."""
    if quant is None or (quant == "none" and not model.file.header.quant):
        return model
    if quant == "none":
        from nacre.nac.tools.dequantised import dequantise_model

        return dequantise_model(model)
    from nacre.nac.quantise.apply import quantise

    stored, report = quantise(model, quant)
    reports.append(report)
    return stored


def _lift(file: str, out: str | None, target: Target, types: Pairs, output: str) -> None:
    from nacre.nac import lift

    input_types = types_of(types)
    model = load_model(file)
    _require_open_types(model, input_types)
    try:
        module = lift(model, input_types)
    except InputError as error:
        raise InputError([_with_option_help(finding) for finding in error.diagnostics]) from None
    if out is None or out == STDOUT:
        print_text(module, target.text(module), output)
        return
    _write(module, Path(out), target, output)


def _require_open_types(model: NacModel, input_types: Mapping[str, TensorType]) -> None:
    """UsageError for the type of an input that is not there, or has another."""
    from nacre.core.module import TensorType

    known = {one.name: one for one in model.all_inputs}
    for name, type_ in input_types.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"expected {_names_text(list(known))}"
            raise click.UsageError(f"--type: there is no input {backquote(name)}; {hint}")
        dtype, shape = known[name].dtype, known[name].shape
        if dtype is not None and shape is not None and TensorType(dtype, shape) != type_:
            problem = f"the file says {TensorType(dtype, shape)}, found {type_}"
            raise click.UsageError(f"--type: of input {backquote(name)} {problem}")


def _names_text(names: Sequence[str]) -> str:
    first = ", ".join(backquote(name) for name in names[:_MOST_NAMED])
    return first + (f" or one of {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED))


def _with_option_help(finding: Diagnostic) -> Diagnostic:
    """What helps on the command line where a type is missing."""
    if finding.code != "NAC46" or finding.help is None:
        return finding
    return replace(finding, help="give it: `--type NAME=f32[1,3]`")


def _write(module: Module, path: Path, target: Target, output: str) -> None:
    with report_write_errors(path):
        target.write(module, path)
    if output == "json":
        click.echo(module_json(module, path=str(path)))
    else:
        echo_written(path, f": {len(module):,} operations")


def _target(out: str | None, to: str | None) -> Target:
    """What the option says, else the suffix; UsageError where they say nothing or disagree."""
    named = None
    if out is not None and out != STDOUT:
        suffix = Path(out).suffix.lower()
        named = next((name for name, target in TARGETS.items() if target.suffix == suffix), None)
        require_writable(Path(out))
    chosen = to or named
    if chosen is None:
        known = " or ".join(f"`{target.suffix}`" for target in TARGETS.values())
        raise click.UsageError(
            f"nothing says what to convert to, expected --to or a name in {known}"
        )
    if named not in (None, chosen):
        raise click.UsageError(f"--to says {chosen}, the name {backquote(out or '')} says {named}")
    return TARGETS[chosen]
