"""`nacre nac info`, `verify`, `dis`, `diff` and `compare`: files looked at and compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import backquote, safe
from nacre.cli.array_values import finite_json
from nacre.cli.arrays import option_value
from nacre.cli.core.arrays import input_array
from nacre.cli.core.files import Shapes, format_option, read_module, report_findings, shape_option
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.nac.files import (
    Pairs,
    limit_options,
    load_model,
    memory_limit_option,
    nac,
    open_file,
    plural,
    require_readable,
    table,
)
from nacre.cli.options import pair_parser, parse_real, repeated_option, seed_option, unique_by_name
from nacre.cli.verifying import verify_files

if TYPE_CHECKING:
    from nacre.base.diagnostics import Diagnostic
    from nacre.core.module import Module
    from nacre.core.values import Array
    from nacre.nac.genome.matching import Occurrence
    from nacre.nac.run.model import NacModel
    from nacre.nac.tools.comparison import OutputComparison
    from nacre.nac.tools.difference import Difference
    from nacre.nac.tools.overview import Overview

_NUMBERS = frozenset({1, 2, 3})
_OPEN = frozenset({"NAC46", "ONX02", "TCH02"})  # a model does not say the sizes of an input


@nac.command()
@click.argument("file")
@format_option
def info(file: str, output: str) -> int:
    """Say what FILE holds: sections, inputs, operations, weights, resources."""

    def work() -> None:
        from nacre.nac.tools.overview import overview

        contents = overview(open_file(file))
        click.echo(
            json.dumps(asdict(contents), indent=2) if output == "json" else _info_text(contents)
        )

    return report_findings(work, output)


def _info_text(contents: Overview) -> str:
    names = "".join(f" {safe(name)}" for name in contents.output_names)
    head = [
        f"{safe(contents.name)}: NAC v{contents.version}, {contents.bytes:,} bytes",
        f"{plural(contents.instructions, 'instruction')}, "
        f"{plural(contents.declared_inputs, 'input')}, "
        f"{plural(contents.declared_outputs, 'output')}{':' + names if names else ''}"
        + (f", d_model {contents.d_model}" if contents.d_model else ""),
        f"weights: {contents.weights}, {plural(len(contents.parameters), 'tensor')}, "
        f"{contents.weight_bytes:,} bytes, quantisation {contents.quant}",
    ]
    if contents.commands:
        counts = ", ".join(f"{count:,} {name}" for name, count in contents.commands.items())
        head.append(f"memory schedule: {counts}")
    sections = [("section", "offset", "bytes", "records", "what")]
    sections += [
        (s.tag, f"{s.offset:,}", f"{s.bytes:,}", f"{s.records:,}", s.title)
        for s in contents.sections
    ]
    parts = ["\n".join(head), table(sections, _NUMBERS)]
    if contents.inputs:
        parts.append(table([("input", "type"), *((i.name, _type(i)) for i in contents.inputs)]))
    if contents.operations:
        parts.append(_operations(contents))
    if contents.parameters:
        parts.append(_parameters(contents))
    if contents.prompts:
        rows = [(p.text, p.type) for p in contents.prompts]
        parts.append(table([("prompt of the plan", "type"), *rows]))
    if contents.resources:
        rows = [
            ("resource", "bytes"),
            *((n, f"{size:,}") for n, size in contents.resources.items()),
        ]
        parts.append(table(rows, frozenset({1})))
    return "\n\n".join(parts)


def _type(row: object) -> str:
    from nacre.nac.tools.opening import type_text
    from nacre.nac.tools.overview import Input

    assert isinstance(row, Input)
    if row.dtype is None or row.shape is None:
        return "the file does not say"
    return type_text(row.dtype, row.shape) + (", may be left out" if row.is_optional else "")


def _operations(contents: Overview) -> str:
    """Calls by operation; what has no kernel is marked, in a file that has such."""
    rows = [("operation", "calls"), *((n, f"{c:,}") for n, c in contents.operations.items())]
    if not contents.unknown:
        return table(rows, frozenset({1}))
    marks = ["kernel", *("none" if n in contents.unknown else "" for n in contents.operations)]
    return table([(*row, mark) for row, mark in zip(rows, marks, strict=True)], frozenset({1}))


def _parameters(contents: Overview) -> str:
    rows = [("id", "parameter", "shape", "stored as", "quantisation", "bytes", "training")]
    for p in contents.parameters:
        shape = "?" if p.shape is None else str(list(p.shape))
        stored = p.stored or "?", p.quant or "?", f"{p.bytes:,}"
        rows.append((str(p.id), p.name, shape, *stored, p.training or ""))
    return table(rows, frozenset({0, 5}))


@nac.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@limit_options
@memory_limit_option
@format_option
def verify(
    files: tuple[str, ...],
    max_bytes: int | None,
    max_work: int | None,
    memory_limit: int | None,
    output: str,
) -> int:
    """Find every promise of the format that files break, and what would keep them from running."""
    from nacre.nac import verify as verified

    def verify_file(name: str) -> list[Diagnostic]:
        limits = {"max_bytes": max_bytes, "max_work": max_work, "memory_limit": memory_limit}
        return verified(require_readable(name), **limits)

    return verify_files(files, verify_file, "file", output)


@nac.command()
@click.argument("file")
@click.option("--mmap", "with_schedule", is_flag=True, help="Show what happens to memory, too.")
@format_option
def dis(file: str, with_schedule: bool, output: str) -> int:
    """Print the program of FILE, with the patterns that are known, and the plan that it carries."""

    def work() -> None:
        from nacre.nac.genome.graph import graph_of
        from nacre.nac.genome.matching import recognise
        from nacre.nac.tools.listing import action_name, lines_of, listing, plan_listing

        opened = open_file(file)
        if output == "text":
            click.echo(listing(opened, with_schedule=with_schedule))
            plan = plan_listing(opened)  # one that is wrong is told behind the program
            if plan is not None:
                click.echo(f"\n; plan\n{plan}", nl=False)
            return
        rows = [
            {
                "index": line.index,
                "text": line.text,
                "operation": line.name,
                "arguments": line.arguments,
                "mmap": [[action_name(c.action), c.target] for c in line.commands],
            }
            for line in lines_of(opened)
        ]
        found = [pattern_json(one) for one in recognise(graph_of(opened))]
        plan = plan_listing(opened)
        click.echo(json.dumps({"instructions": rows, "patterns": found, "plan": plan}, indent=2))

    return report_findings(work, output)


def pattern_json(one: Occurrence) -> dict[str, object]:
    """An occurrence of a pattern: its name, where it ends, all of its instructions, its inputs."""
    nodes, taken = sorted(one.nodes), list(one.inputs)
    return {"name": one.pattern, "end": one.root, "instructions": nodes, "inputs": taken}


def _tolerance(text: str) -> float:
    """A distance; ValueError for what is none."""
    try:
        value = parse_real(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise ValueError(f"{backquote(text)} is no number of 0 or more")
    return value


@nac.command()
@click.argument("first")
@click.argument("second")
@click.option(
    "--tolerance",
    type=option_value(_tolerance),
    default="0",
    metavar="X",
    help="Elements of weights that are at most so far apart are equal. Default: 0, where their "
    "bytes count.",
)
@format_option
def diff(first: str, second: str, tolerance: float, output: str) -> int:
    """Say how SECOND differs from FIRST: structure, constants, weights, and what else is in them.

    Exit status: 0 they do not differ, 1 they do.
    """
    is_same = True

    def work() -> None:
        nonlocal is_same
        from nacre.nac.tools.difference import difference

        differences = difference(open_file(first), open_file(second), tolerance=tolerance)
        is_same = differences.is_none
        click.echo(_diff_json(differences) if output == "json" else _diff_text(differences))

    return report_findings(work, output) or (OK if is_same else ERRORS_FOUND)


@nac.command()
@click.argument("file")
@click.argument("model", metavar="MODEL")
@repeated_option(
    "--input",
    "inputs",
    pair_parser("NAME=FILE.npy"),
    "NAME=FILE.npy",
    "The array of an input of MODEL. Default: random numbers for all of them.",
)
@shape_option
@seed_option
@click.option(
    "--tolerance",
    type=option_value(_tolerance),
    metavar="X",
    help="The largest error that is accepted, as a part of an output's largest magnitude. "
    "Default: by how weights are stored.",
)
@format_option
def compare(
    file: str,
    model: str,
    inputs: Pairs,
    shapes: Shapes,
    seed: int,
    tolerance: float | None,
    output: str,
) -> int:
    """Run FILE and MODEL (.core, .onnx, .pt2 or .nac) on the same inputs, and compare outputs.

    Exit status: 0 every output is close enough, 1 one is not, or there is nothing to compare.
    """
    paths = unique_by_name(inputs, "input")
    is_close = True

    def work() -> None:
        nonlocal is_close
        from nacre.nac.tools.comparison import compare as compared

        built = load_model(file)
        module = _reference(built, model, shapes)
        arrays = _inputs(module, paths) if paths else _random(module, seed)
        rows = compared(built, module, arrays, tolerance)
        is_close = all(row.is_close for row in rows)
        how = "the inputs given" if paths else f"random inputs, seed {seed}"
        click.echo(_compare_json(rows) if output == "json" else _compare_text(rows, how))

    return report_findings(work, output) or (OK if is_close else ERRORS_FOUND)


def _reference(built: NacModel, name: str, shapes: Shapes) -> Module:
    """The model; sizes that it leaves open are those of the file."""
    from nacre.base.diagnostics import InputError

    known = tuple((i.name, i.shape) for i in built.inputs if i.shape is not None)
    try:
        return read_module(name, shapes)
    except InputError as error:
        is_open = all(finding.code in _OPEN for finding in error.diagnostics)
        if shapes or not known or not is_open:
            raise
    return read_module(name, known)


def _inputs(module: Module, paths: dict[str, str]) -> dict[str, Array]:
    return {name: input_array(name, path, module) for name, path in paths.items()}


def _random(module: Module, seed: int) -> dict[str, Array]:
    from nacre.compile.sampling.draw import draw_inputs

    states = {state.name for state in module.states}
    arrays = draw_inputs(module, seed)
    return {name: array for name, array in arrays.items() if name not in states}


def _compare_json(rows: Sequence[OutputComparison]) -> str:
    outputs = [
        {**asdict(row), "value": finite_json(row.value), "close": row.is_close,
         "max_difference": finite_json(row.max_difference)}
        for row in rows
    ]  # fmt: skip
    return json.dumps({"close": all(row.is_close for row in rows), "outputs": outputs}, indent=2)


def _compare_text(rows: Sequence[OutputComparison], how: str) -> str:
    lines = [how, *(f"output {safe(row.name)}: {safe(str(row))}" for row in rows)]
    wrong = [safe(row.name) for row in rows if not row.is_close]
    lines.append(f"NOT CLOSE: {', '.join(wrong)}" if wrong else "close")
    return "\n".join(lines)


def _diff_json(difference: Difference) -> str:
    return json.dumps(
        {"same": difference.is_none, "differences": [asdict(r) for r in difference.rows]}, indent=2
    )


def _diff_text(difference: Difference) -> str:
    if difference.is_none:
        return "no difference"
    lines: list[str] = []
    for part in dict.fromkeys(row.part for row in difference.rows):
        rows = [row for row in difference.rows if row.part == part]
        lines += [
            f"{part}: {plural(len(rows), 'difference')}",
            *(f"  {safe(r.text)}" for r in rows),
        ]
    return "\n".join(lines)
