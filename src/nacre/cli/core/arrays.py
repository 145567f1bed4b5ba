"""The arrays that `nacre core eval` reads and writes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import quoted
from nacre.base.files import write_whole
from nacre.cli.array_values import read_array, values_json, values_text
from nacre.cli.arrays import file_bytes, writing

if TYPE_CHECKING:
    import numpy as np

    from nacre.core.module import Module

OutputFile = tuple[int | None, Path]  # which output, None for all of them; where to


def parse_output(text: str) -> OutputFile:
    """`FILE.npz` for all outputs, `INDEX=FILE.npy` for one."""
    index, equals, path = text.partition("=")
    if equals and index.isascii() and index.isdigit() and len(index) < 10 and path.endswith(".npy"):
        return int(index), Path(path)
    if text.endswith(".npz") and "\0" not in text:
        return None, Path(text)
    raise ValueError(f"{quoted(text)} is neither FILE.npz nor INDEX=FILE.npy")


def require_indices(outputs: Sequence[OutputFile], count: int) -> None:
    """UsageError for an output that the module does not have."""
    for index, _ in outputs:
        if index is not None and index >= count:
            raise click.UsageError(f"there is no output {index}: the module has {count}")


def input_array(name: str, path: str, module: Module) -> np.ndarray[Any, Any]:
    """The array of a file for an input of a module."""
    type_ = module.input_types.get(name)
    return read_array(path, None if type_ is None else type_.element.dtype)


def print_outputs(module: Module, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Print type and values of every output."""
    for index, (value, array) in enumerate(zip(module.outputs, arrays, strict=True)):
        click.echo(f"output {index}: %{value} {module.by_id[value].type}")
        click.echo(values_text(array))


def outputs_json(
    module: Module, arrays: Sequence[np.ndarray[Any, Any]], peak_bytes: int, files: Sequence[str]
) -> str:
    """Every output with its type and its values, or a summary of them where there are many."""
    shown = [
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
        {"outputs": shown, "peak_bytes": peak_bytes, "written": list(files)}, indent=2
    )


def _npz(arrays: Sequence[np.ndarray[Any, Any]]) -> bytes:
    """All arrays by their number. Without the time of day: the same arrays are the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for index, array in enumerate(arrays):
            entry = f"{index}.npy"
            archive.writestr(zipfile.ZipInfo(entry), file_bytes(array, Path(entry)))
    return stream.getvalue()


def write_output(file: OutputFile, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write one output or all of them, whole or not at all."""
    index, path = file
    data = _npz(arrays) if index is None else file_bytes(arrays[index], path)
    with writing(path):
        write_whole(path, [data])
