"""`nacre nac run`: a file is run, or the plan that it carries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.base.stages import stage
from nacre.base.suggest import did_you_mean
from nacre.cli.array_values import read_array, values_json, values_text
from nacre.cli.arrays import (
    WrongUsage,
    file_bytes,
    report_write_errors,
    require_writable,
    write_all_or_none,
)
from nacre.cli.core.files import format_option, report_findings
from nacre.cli.nac.files import (
    Pairs,
    limit_options,
    load_model,
    memory_limit_option,
    nac,
    table,
)
from nacre.cli.nac.plan import PlanOptions, plan_options, run_plan
from nacre.cli.options import bytes_option, pair_parser, repeated_option, unique_by_name
from nacre.cli.outputs import require_distinct_files

if TYPE_CHECKING:
    import numpy as np

    from nacre.nac.run.interpreter import Timing
    from nacre.nac.run.model import NacModel
    from nacre.nac.run.session import NacSession


@nac.command()
@click.argument("file")
@repeated_option(
    "--input",
    "inputs",
    pair_parser("NAME=FILE.npy"),
    "NAME=FILE.npy",
    "The array of an input, or of what the plan asks for.",
)
@repeated_option(
    "--output",
    "outputs",
    pair_parser("NAME=FILE.npy or N=FILE.npy"),
    "NAME|N=FILE.npy",
    "Where to write an output, by its name or its number.",
)
@click.option("--times", is_flag=True, help="Say how long every operation took.")
@click.option(
    "--as-written",
    is_flag=True,
    help="Run instruction by instruction. Without it the program is rewritten for inference, "
    "which is faster, and changes the last bits of floats.",
)
@bytes_option(
    "--keep-bytes",
    "Memory that weights may take between runs which do not lie in the file as they are used. "
    "Default: 128M and the size of the weights.",
    least=0,
)
@memory_limit_option
@limit_options
@plan_options
@format_option
def run(
    file: str,
    inputs: Pairs,
    outputs: Pairs,
    times: bool,
    as_written: bool,
    keep_bytes: int | None,
    memory_limit: int | None,
    max_bytes: int | None,
    max_work: int | None,
    plan: PlanOptions,
    output: str,
) -> int:
    """Run FILE once, and print its outputs and the memory that it took.

    A file that carries a plan runs this: it asks for answers, may run the program many times, and
    has no files but those of --root.
    """
    paths = unique_by_name(inputs, "input")
    written = {name: Path(path) for name, path in unique_by_name(outputs, "output").items()}
    if plan.is_asked_for and plan.is_wanted is False:
        raise click.UsageError("--answer, --steps, --root and --write are for a plan")
    if times and (plan.is_asked_for or plan.is_wanted):
        raise click.UsageError("--times is for the program of a file, not for its plan")
    for path in written.values():
        require_writable(path)
    require_distinct_files(written.values(), (file, *paths.values()))

    def work() -> None:
        model = load_model(file, max_bytes, max_work, keep_bytes, memory_limit)
        has_plan = bool(model.file.plan.bytecode)
        is_plan = plan.is_wanted
        if is_plan is None:
            is_plan = plan.is_asked_for or (has_plan and not paths and not times)
        if is_plan and not has_plan:
            raise WrongUsage(f"{safe(file)} has no plan; `--input NAME=FILE.npy` runs its program")
        if is_plan:
            run_plan(model, plan, paths, written, output)
        else:
            session = model.session(timed=times, optimise=not as_written, seed=plan.seed or 0)
            _run_program(model, session, paths, written, output)

    return report_findings(work, output)


def _run_program(
    model: NacModel,
    session: NacSession,
    paths: Mapping[str, str],
    written: Mapping[str, Path],
    output: str,
) -> None:
    count = model.file.header.outputs
    files = {_output_index(model, name, count): path for name, path in written.items()}
    inputs = {name: _array(model, name, path) for name, path in paths.items()}
    with stage("running"):
        arrays = session.run(inputs)
    with write_all_or_none():
        for index, path in files.items():
            _write(arrays, index, path)
    if output == "json":
        click.echo(_as_json(model, arrays, session))
    else:
        click.echo(_as_text(model, arrays, session))
        for path in files.values():
            click.echo(f"wrote {safe(str(path))}")


def _array(model: NacModel, name: str, path: str) -> np.ndarray[Any, Any]:
    from nacre.base.elements import GRAPH_TYPES

    dtype = next((i.dtype for i in model.all_inputs if i.name == name), None)
    return read_array(path, None if dtype is None else GRAPH_TYPES[dtype].dtype, f"--input {name}")


def _names(model: NacModel, count: int) -> list[str]:
    """The names of outputs; one that the file does not name has its number."""
    named = model.surroundings.output_names
    return [named[i] if i < len(named) else str(i) for i in range(count)]


def _output_index(model: NacModel, name: str, count: int) -> int:
    returned = count - sum(not r.returned for r in model.surroundings.states.values())
    names = _names(model, returned)
    if name in names:
        return names.index(name)
    if is_digits(name) and len(name) < 10 and int(name) < returned:
        return int(name)
    hint = did_you_mean(name, names)
    problem = f"there is no output {backquote(name)}: the program returns {returned}"
    raise click.UsageError(f"{problem}{'; ' + hint if hint else ''}")


def _write(arrays: Sequence[np.ndarray[Any, Any]], index: int, path: Path) -> None:
    with report_write_errors(path):
        write_whole(path, [file_bytes(arrays[index], path)])


def _type(array: np.ndarray[Any, Any]) -> str:
    from nacre.core.builder import dtype_name
    from nacre.nac.tools.opening import type_text

    return type_text(dtype_name(array.dtype), array.shape)


def _as_text(
    model: NacModel,
    arrays: Sequence[np.ndarray[Any, Any]],
    session: NacSession,
) -> str:
    lines = []
    for name, array in zip(_names(model, len(arrays)), arrays, strict=True):
        lines += [f"output {safe(name)}: {_type(array)}", values_text(array)]
    kept_text = f", {session.kept_bytes:,} of them kept" if session.kept_bytes else ""
    lines.append(f"peak: {session.peak_bytes:,} bytes{kept_text}")
    if session.timings:
        lines.append(_times_table(session.timings))
    return "\n".join(lines)


def _times_table(timings: Sequence[Timing]) -> str:
    """Operations by the time that they took together, the longest first."""
    total = sum(t.seconds for t in timings)
    seconds: dict[str, float] = {}
    calls: dict[str, int] = {}
    for timing in timings:
        seconds[timing.name] = seconds.get(timing.name, 0.0) + timing.seconds
        calls[timing.name] = calls.get(timing.name, 0) + 1
    rows = [("operation", "calls", "ms", "share")]
    for name in sorted(seconds, key=lambda n: (-seconds[n], n)):
        share = seconds[name] / total if total else 0.0
        rows.append((name, f"{calls[name]:,}", f"{seconds[name] * 1e3:.3f}", f"{share:.1%}"))
    rows.append(("all", f"{len(timings):,}", f"{total * 1e3:.3f}", ""))
    return table(rows, frozenset({1, 2, 3}))


def _as_json(
    model: NacModel,
    arrays: Sequence[np.ndarray[Any, Any]],
    session: NacSession,
) -> str:
    from nacre.core.builder import dtype_name

    outputs = [
        {
            "name": name,
            "dtype": dtype_name(array.dtype),
            "shape": list(array.shape),
            **values_json(array),
        }
        for name, array in zip(_names(model, len(arrays)), arrays, strict=True)
    ]
    entries: dict[str, Any] = {
        "outputs": outputs,
        "peak_bytes": session.peak_bytes,
        "kept_bytes": session.kept_bytes,
    }
    if session.timings:
        entries["times"] = [
            {"instruction": t.instruction, "name": t.name, "seconds": t.seconds, "bytes": t.bytes}
            for t in session.timings
        ]
    return json.dumps(entries, indent=2)
