"""`nacre core`: modules of Core IR verified, rewritten, evaluated, made and measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.excerpt import backquote, safe
from nacre.cli.arrays import require_writable, split_name, write_all_or_none
from nacre.cli.core.arrays import (
    OutputFile,
    input_array,
    output_targets,
    outputs_json,
    parse_output,
    print_outputs,
    write_output,
)
from nacre.cli.core.convert import convert
from nacre.cli.core.files import (
    Constants,
    Shapes,
    constant_option,
    format_option,
    module_out_option,
    print_or_save,
    read_module,
    report_findings,
    require_target,
    shape_option,
)
from nacre.cli.core.grad import grad
from nacre.cli.options import repeated_option, unique_by_name
from nacre.cli.outputs import require_distinct_files
from nacre.cli.terminal.progress import watch_progress
from nacre.cli.verifying import verify_files

if TYPE_CHECKING:
    from nacre.core.module import Module
    from nacre.core.ops import Profile
    from nacre.core.passes.runner import Pass


@click.group()
def core() -> None:
    """Work with modules of Core IR, the graph IR.

    FILE is a model by its suffix (.core, .onnx, .pt2, .nac), or `-` for a module's text on standard
    input.

    Exit status: 0 no errors, 1 errors in the module or its inputs, 2 wrong usage.
    """


# Verify


@core.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--profile",
    type=click.Choice(["core-v1", "nacre-1"]),
    default="core-v1",
    show_default=True,
    help="Which operations and element types there are.",
)
@shape_option
@format_option
def verify(files: tuple[str, ...], profile: Profile, shapes: Shapes, output: str) -> int:
    """Find every mistake in modules."""
    from nacre.core.verify import verify as verified

    def findings(name: str) -> list[Diagnostic]:
        return verified(read_module(name, shapes), profile)

    return verify_files(files, findings, "module", output)


# Canonical form


def _list_passes(ctx: click.Context, option: click.Parameter, is_given: bool) -> None:
    if not is_given:
        return
    from nacre.core.passes.runner import pipeline_text

    click.echo(pipeline_text(), nl=False)
    ctx.exit()


@core.command()
@click.argument("file")
@module_out_option
@click.option("--until", metavar="PASS", help="Stop after this pass.")
@click.option(
    "--print-after",
    multiple=True,
    metavar="PASS",
    help="Print the module after this pass on standard error.",
)
@click.option(
    "--list-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_passes,
    help="List the passes in their order, and do nothing else.",
)
@shape_option
@format_option
def canon(
    file: str,
    out: Path | None,
    until: str | None,
    print_after: tuple[str, ...],
    shapes: Shapes,
    output: str,
) -> int:
    """Bring a module into canonical form."""
    from nacre.core.canonical import canonicalise
    from nacre.core.passes.runner import PIPELINE, passes_until
    from nacre.core.text.printer import print_module

    for name in (until, *print_after):
        try:
            passes_until(PIPELINE, name)
        except ValueError as error:
            raise click.UsageError(safe(str(error))) from None

    def show_pass(one: Pass, module: Module) -> None:
        if one.name in print_after:
            click.echo(f"# after {one.name}\n{print_module(module)}", err=True)

    require_target(out, [file])

    def work() -> None:
        module = read_module(file, shapes)
        print_or_save(canonicalise(module, until=until, on_pass=show_pass), out, output)

    return report_findings(work, output)


# Lowering


def _named_value(form: str) -> Callable[[str], tuple[str, str]]:
    """A reader of values with a name before them."""

    def parse(text: str) -> tuple[str, str]:
        name, value = split_name(text)
        if not (name and value) or "\0" in value:
            raise ValueError(f"{backquote(text)} does not have the form {form}")
        return name, value

    return parse


@core.command()
@click.argument("expression", metavar="EXPR")
@repeated_option(
    "--input",
    "inputs",
    _named_value("NAME=TYPE, such as x=f32[2,3]"),
    "NAME=TYPE",
    "A name in the expression and its type, such as x=f32[2,3].",
)
@module_out_option
@format_option
def lower(
    expression: str, inputs: tuple[tuple[str, str], ...], out: Path | None, output: str
) -> int:
    """Make a module of an expression, such as "relu(x @ w + b)"."""
    from nacre.core.expressions import lower as lowered

    types = unique_by_name(inputs, "input")
    require_target(out)
    return report_findings(lambda: print_or_save(lowered(expression, types), out, output), output)


# Evaluation


@core.command("eval")
@click.argument("file")
@repeated_option(
    "--input", "inputs", _named_value("NAME=FILE.npy"), "NAME=FILE.npy", "The array of an input."
)
@repeated_option(
    "--output",
    "outputs",
    parse_output,
    "FILE.npz|NAME|N=FILE.npy",
    "Where to write all outputs by name, or one of them by its name or its number.",
)
@shape_option
@constant_option
@click.option("--ordered", is_flag=True, help="Sum floats one by one, the same on every platform.")
@click.option("--peak", is_flag=True, help="Say how many bytes the values took at one time.")
@format_option
def evaluate(
    file: str,
    inputs: tuple[tuple[str, str], ...],
    outputs: tuple[OutputFile, ...],
    shapes: Shapes,
    constants: Constants,
    ordered: bool,
    peak: bool,
    output: str,
) -> int:
    """Evaluate a module, and print its outputs."""
    paths = unique_by_name(inputs, "input")
    for _, path in outputs:
        require_writable(path)
    require_distinct_files((path for _, path in outputs), (file, *paths.values()))

    def work() -> None:
        from nacre.core.evaluation.evaluate import CoreSession

        module = read_module(file, shapes, constants)
        targets = output_targets(outputs, module)
        session = CoreSession(module, ordered=ordered)
        arrays_by_name = {name: input_array(name, path, module) for name, path in paths.items()}
        with watch_progress("evaluating", "operations") as progress:
            arrays = session.run(arrays_by_name, progress=progress)
        if output == "json":
            with write_all_or_none():
                for one in targets:
                    write_output(one, module.output_names, arrays)
            files = [str(path) for _, path in outputs]
            click.echo(outputs_json(module, arrays, session.peak_bytes, files))
            return
        print_outputs(module, arrays)
        if peak:
            click.echo(f"peak: {session.peak_bytes:,} bytes")
        with write_all_or_none():
            for one in targets:
                write_output(one, module.output_names, arrays)
        for _, path in outputs:
            click.echo(f"wrote {safe(str(path))}")

    return report_findings(work, output)


# Figures


@core.command()
@click.argument("file")
@shape_option
@constant_option
@click.option("--operations", "--layers", "layers", is_flag=True,
              help="A row for every operation that multiplies.")  # fmt: skip
@format_option
def stats(file: str, shapes: Shapes, constants: Constants, layers: bool, output: str) -> int:
    """Count operations, parameters, multiplications and the memory of activations."""

    def work() -> None:
        from nacre.cli.core.stats import stats_of
        from nacre.core.verify import verify as verified

        module = read_module(file, shapes, constants)
        findings = verified(module, "nacre-1")
        if has_errors(findings):
            raise InputError(findings)
        figures = stats_of(module)
        click.echo(
            json.dumps(figures.as_json(), indent=2)
            if output == "json"
            else figures.as_text(with_layers=layers)
        )

    return report_findings(work, output)


core.add_command(grad)
core.add_command(convert)
