"""The arrays that `nacre core eval` reads and writes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.base.suggest import did_you_mean
from nacre.cli.array_values import read_array, values_json, values_text
from nacre.cli.arrays import file_bytes, report_write_errors

if TYPE_CHECKING:
    import numpy as np

    from nacre.core.module import Module

OutputFile = tuple[str | None, Path]  # which output, None for all of them; where to
Target = tuple[int | None, Path]  # the same, with the number of the output


def parse_output(text: str) -> OutputFile:
    """`FILE.npz` for all outputs, `NAME=FILE.npy` or `INDEX=FILE.npy` for one."""
    name, equals, path = text.partition("=")
    if name and equals and path.endswith(".npy") and "\0" not in text:
        return name, Path(path)
    if text.endswith(".npz") and "\0" not in text:
        return None, Path(text)
    raise ValueError(f"{backquote(text)} is neither FILE.npz nor NAME=FILE.npy")


def output_targets(outputs: Sequence[OutputFile], module: Module) -> list[Target]:
    """Outputs by their number; UsageError for one that the module does not have."""
    names = module.output_names
    return [(None if name is None else _output_index(name, names), path) for name, path in outputs]


def _output_index(name: str, names: Sequence[str]) -> int:
    if name in names:
        return names.index(name)
    if is_digits(name) and len(name) < 10 and int(name) < len(names):
        return int(name)
    problem = f"there is no output {backquote(name)}: the module has {len(names)}"
    hint = did_you_mean(name, names) or f"they are {safe(', '.join(names[:8]))}"
    raise click.UsageError(f"{problem}; {hint}")


def input_array(name: str, path: str, module: Module) -> np.ndarray[Any, Any]:
    """The array of a file for an input of a module."""
    type_ = module.input_types.get(name)
    return read_array(path, None if type_ is None else type_.element.dtype, f"--input {name}")


def print_outputs(module: Module, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Print type and values of every output."""
    values = zip(module.output_names, module.outputs, arrays, strict=True)
    for name, value, array in values:
        click.echo(f"output {safe(name)}: %{value} {module.by_id[value].type}")
        click.echo(values_text(array))


def outputs_json(
    module: Module, arrays: Sequence[np.ndarray[Any, Any]], peak_bytes: int, files: Sequence[str]
) -> str:
    """Every output with its type and its values, or a summary of them where there are many."""
    outputs = [
        {
            "name": name,
            "id": value,
            "dtype": module.by_id[value].type.dtype,
            "shape": list(array.shape),
            **values_json(array),
        }
        for name, value, array in zip(module.output_names, module.outputs, arrays, strict=True)
    ]
    return json.dumps(
        {"outputs": outputs, "peak_bytes": peak_bytes, "written": list(files)}, indent=2
    )


def _npz(names: Sequence[str], arrays: Sequence[np.ndarray[Any, Any]]) -> bytes:
    """All arrays by their name. Without the time of day: the same arrays are the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in zip(names, arrays, strict=True):
            entry = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(entry, file_bytes(array, Path("array.npy")))
    return stream.getvalue()


def write_output(
    target: Target, names: Sequence[str], arrays: Sequence[np.ndarray[Any, Any]]
) -> None:
    """Write one output or all of them, whole or not at all."""
    index, path = target
    data = _npz(names, arrays) if index is None else file_bytes(arrays[index], path)
    with report_write_errors(path):
        write_whole(path, [data])
