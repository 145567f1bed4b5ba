"""Arrays as commands read and print them: from `.npy` files, as text, as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base.excerpt import backquote, safe
from nacre.base.source import whole_file
from nacre.cli.arrays import WrongUsage, unreadable_reason

if TYPE_CHECKING:
    import numpy as np

_SHOWN_ELEMENTS = 64  # a longer array is shown by its ends
_JSON_ELEMENTS = 1024  # of a longer array JSON has a summary


def read_array(
    path: str, dtype: np.dtype[Any] | None = None, option: str | None = None
) -> np.ndarray[Any, Any]:
    """The array of a file in the machine's byte order; WrongUsage where there is no file.

    NumPy's files do not know bf16 and its like, and keep nothing but their size: such elements are
    of the type that is wanted. The option is what the file was given for, such as `--input x`.
    """
    from nacre.base.packing import restore_type
    from nacre.nem.api.ddr import load_npy
    from nacre.nem.run.memory.host import host_error

    reason = unreadable_reason(Path(path))
    if reason is not None:
        raise WrongUsage(reason)
    array = load_npy(path, None if option is None else backquote(option))
    try:
        array = array if dtype is None else restore_type(array, dtype)
    except ValueError as error:
        asked = None if option is None else f"it was given for {backquote(option)}"
        message = f"`{safe(path)}` does not fit: {error}"
        raise host_error(message, asked, whole_file(path)) from None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def values_text(array: np.ndarray[Any, Any]) -> str:
    """The elements of an array for people."""
    import numpy as np

    return np.array2string(array, threshold=_SHOWN_ELEMENTS)


def values_json(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The elements of an array for programs, or a summary of them where there are many."""
    import numpy as np

    is_float = array.dtype.kind not in "iub" and array.dtype.name not in ("int4", "uint4")
    wide = array.astype(np.float64 if is_float else np.int64)
    if array.size <= _JSON_ELEMENTS:
        values = array if array.dtype.kind == "b" else wide
        return {"values": finite_json(values.tolist())}
    known = wide[~np.isnan(wide)] if is_float else wide
    nans = array.size - known.size
    if not known.size:
        return {"summary": {"min": None, "max": None, "mean": None, "nan": nans}}
    with np.errstate(all="ignore"):  # the mean of both infinities
        figures = {"min": known.min(), "max": known.max(), "mean": known.mean()}
    return {"summary": {**{k: finite_json(v.item()) for k, v in figures.items()}, "nan": nans}}


def finite_json(value: Any) -> Any:  # noqa: ANN401 - nested lists of numbers
    """JSON has no words for what is not finite: they are strings, spelled as in text."""
    if isinstance(value, list):
        return [finite_json(item) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else f"{value:g}"
