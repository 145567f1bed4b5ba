"""The arrays that `nacre core eval` reads and writes."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import quoted, safe
from nacre.base.files import write_whole
from nacre.cli.arrays import WrongUsage, file_bytes, unreadable

if TYPE_CHECKING:
    import numpy as np

    from nacre.core.module import Module

_SHOWN_ELEMENTS = 64  # a longer array is shown by its ends
_JSON_ELEMENTS = 1024  # of a longer array JSON has a summary

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


def read_array(name: str, path: str, module: Module) -> np.ndarray[Any, Any]:
    """The array of a file, in the machine's byte order."""
    from nacre.nem.api.ddr import load_npy

    reason = unreadable(Path(path))
    if reason is not None:
        raise WrongUsage(reason)
    array = load_npy(path)
    type_ = module.input_types.get(name)
    if type_ is not None and _is_untyped(array.dtype, type_.element.dtype):
        return array.view(type_.element.dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _is_untyped(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """NumPy's files do not know bf16 and its like, and keep nothing but their size."""
    is_numpys_own = wanted.isbuiltin == 1
    is_plain = found.kind == "V" and found.names is None and found.subdtype is None
    return is_plain and not is_numpys_own and found.itemsize == wanted.itemsize


def print_outputs(module: Module, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Print type and values of every output."""
    import numpy as np

    for index, (value, array) in enumerate(zip(module.outputs, arrays, strict=True)):
        click.echo(f"output {index}: %{value} {module.by_id[value].type}")
        click.echo(np.array2string(array, threshold=_SHOWN_ELEMENTS))


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
            **_numbers(array),
        }
        for name, value, array in zip(module.output_names, module.outputs, arrays, strict=True)
    ]
    return json.dumps(
        {"outputs": shown, "peak_bytes": peak_bytes, "written": list(files)}, indent=2
    )


def _numbers(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    import numpy as np

    is_float = array.dtype.kind not in "iub" and array.dtype.name not in ("int4", "uint4")
    wide = array.astype(np.float64 if is_float else np.int64)
    if array.size <= _JSON_ELEMENTS:
        own = array if array.dtype.kind == "b" else wide
        return {"values": _json_values(own.tolist())}
    known = wide[~np.isnan(wide)] if is_float else wide
    nans = array.size - known.size
    if not known.size:
        return {"summary": {"min": None, "max": None, "mean": None, "nan": nans}}
    with np.errstate(all="ignore"):  # the mean of both infinities
        found = {"min": known.min(), "max": known.max(), "mean": known.mean()}
    return {"summary": {**{k: _json_values(v.item()) for k, v in found.items()}, "nan": nans}}


def _json_values(value: Any) -> Any:  # noqa: ANN401 - nested lists of numbers
    """JSON has no words for what is not finite: they are strings, spelled as in text."""
    if isinstance(value, list):
        return [_json_values(item) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else f"{value:g}"


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
    try:
        write_whole(path, [data])
    except OSError as error:
        raise WrongUsage(f"cannot write {safe(str(path))}: {error.strerror}") from None
