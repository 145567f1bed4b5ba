"""`--calibrate FILE.npz`: arrays by name, from a file that a stranger may have made."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import quoted, safe
from nacre.cli.arrays import WrongUsage, unreadable

if TYPE_CHECKING:
    import numpy as np

_MOST_BYTES = 4 << 30  # of all arrays together; a few hundred inputs are enough to calibrate with
_SUFFIX = ".npy"


def calibration_for(path: Path | None, precision: str) -> dict[str, np.ndarray[Any, Any]] | None:
    """The arrays to quantise with, where some are given; only integers take any."""
    if path is None:
        return None
    if precision != "i8":
        raise click.UsageError(f"--calibrate is for integers, and --precision is {precision}")
    return read_calibration(path)


def read_calibration(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file by name; WrongUsage where it holds anything else."""
    reason = unreadable(path)
    if reason is not None:
        raise WrongUsage(reason)
    name = safe(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > _MOST_BYTES:
                raise WrongUsage(
                    f"{name} unpacks to {total:,} bytes, at most {_MOST_BYTES:,} will do"
                )
            found = {e.filename.removesuffix(_SUFFIX): _array(archive, e, name) for e in entries}
    except OSError as error:
        raise WrongUsage(f"cannot read {name}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):  # encrypted, or packed oddly
        raise WrongUsage(f"{name} is no .npz file that can be read") from None
    if not found:
        raise WrongUsage(f"{name} holds no array")
    return found


def _array(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str
) -> np.ndarray[Any, Any]:  # fmt: skip
    import numpy as np

    wrong = WrongUsage(f"{quoted(entry.filename)} of {name} is no array of plain numbers")
    if not entry.filename.endswith(_SUFFIX):
        raise wrong
    with archive.open(entry) as stream:
        data = io.BytesIO(stream.read(entry.file_size))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            array = np.lib.format.read_array(data, allow_pickle=False)
    except Exception:  # a stranger's file can be wrong in any way
        raise wrong from None
    return array.astype(array.dtype.newbyteorder("="), copy=False)
