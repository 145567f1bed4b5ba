"""`--calibrate FILE.npz`: arrays by name, from a file that a stranger may have made."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote, safe
from nacre.base.source import read_stream, whole_file
from nacre.cli.arrays import WrongUsage, unreadable_reason

if TYPE_CHECKING:
    import numpy as np

_MOST_BYTES = 4 << 30  # of all arrays together; a few hundred inputs are enough to calibrate with
_SUFFIX = ".npy"
_HELP = "write it with `numpy.savez(FILE, NAME=array)`, an array for each input of the model"


def calibration_for(
    path: Path | None, precision: str, *, is_used: bool
) -> dict[str, np.ndarray[Any, Any]] | None:
    """The arrays to quantise with, where some are given; only integers and clusters take any."""
    if path is None:
        return None
    if not is_used:
        raise click.UsageError(f"--calibrate is for integers, and --precision is {precision}")
    return read_calibration(path)


@contextmanager
def place_in_file(path: Path | None) -> Iterator[None]:
    """What is wrong with samples is in their file, which only the command line knows by name."""
    try:
        yield
    except InputError as error:
        from nacre.compile.quantise.calibration import CALIBRATION, LABELLED

        if path is None:
            raise
        of_samples = (CALIBRATION.place.source, LABELLED.place.source)
        raise InputError([
            replace(d, span=whole_file(str(path))) if d.span.source in of_samples else d
            for d in error.diagnostics
        ]) from None  # fmt: skip


def read_calibration(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file by name; WrongUsage without a file, InputError where it is no such."""
    reason = unreadable_reason(path)
    if reason is not None:
        raise WrongUsage(reason)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _require_possible_entries(entries, path)
            arrays = {
                e.filename.removesuffix(_SUFFIX): _read_entry(archive, e, path) for e in entries
            }
    except InputError:
        raise
    except MemoryError:
        raise _invalid_file(path, "the arrays take more than memory has") from None
    except Exception as error:  # damaged, encrypted, packed oddly: zipfile has many kinds of error
        if isinstance(error, OSError) and error.strerror is not None:  # of the machine
            raise WrongUsage(f"cannot read {safe(str(path))}: {error.strerror}") from None
        raise _invalid_file(path, "this is no .npz file that can be read") from None
    if not arrays:
        raise _invalid_file(path, "the file holds no array")
    return arrays


def _invalid_file(path: Path, message: str) -> InputError:
    """What is wrong with a file that is there, with a code as for what is in it."""
    from nacre.compile.rules import CMP09

    return InputError([CMP09.at(whole_file(str(path)), message, help=_HELP)])


def _require_possible_entries(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """What the directory of an archive says must be possible."""
    total = sum(entry.file_size for entry in entries)
    if total > _MOST_BYTES:
        raise _invalid_file(
            path, f"the arrays take {total:,} bytes, at most {_MOST_BYTES:,} will do"
        )
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise _invalid_file(path, "this is no .npz file that can be read: it is cut short")
    if len({entry.filename for entry in entries}) < len(entries):
        raise _invalid_file(path, "the file holds two arrays of one name")


def _read_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path
) -> np.ndarray[Any, Any]:  # fmt: skip
    wrong = _invalid_file(path, f"{backquote(entry.filename)} is no array of plain numbers")
    if not entry.filename.endswith(_SUFFIX):
        raise wrong
    with archive.open(entry) as stream:
        raw = read_stream(cast("BinaryIO", stream), entry.file_size)
    try:
        array = _parse_entry(raw)
    except Exception:  # a stranger's file can be wrong in any way
        raise wrong from None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _parse_entry(raw: bytes) -> np.ndarray[Any, Any]:
    """The array of an entry, which has as many elements as there are bytes for."""
    import numpy as np

    data = io.BytesIO(raw)
    readers = {(1, 0): np.lib.format.read_array_header_1_0,
               (2, 0): np.lib.format.read_array_header_2_0}  # fmt: skip
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        shape, is_fortran, dtype = readers[np.lib.format.read_magic(data)](data)
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError("no plain numbers")
    if math.prod(shape) * dtype.itemsize != len(raw) - data.tell():
        raise ValueError("another number of elements")
    flat = np.frombuffer(raw, dtype, offset=data.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C")
