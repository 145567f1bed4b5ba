"""Columns of integers as short text: differences, zigzag, seven bits a byte, base64.

Times in loops rise in steady steps, so their first or second differences are mostly zero; a zero
stands for a whole run of zeros. The first byte says how many differences were taken. The page's
`unpack` in `assets/data.js` is the inverse.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Column

_MOST_DIFFERENCES = 2
_BITS = 7
_MOST_BYTES = 10  # of an integer of 64 bits


def pack_column(column: Column) -> str:
    """The shortest of the column itself, its differences and their differences."""
    encodings = []
    values = np.asarray(column, np.int64)
    for order in range(_MOST_DIFFERENCES + 1):
        encodings.append(bytes([order]) + _encode_varints(_encode_zero_runs(_zigzag(values))))
        values = np.diff(values, prepend=np.int64(0))
    return base64.b64encode(min(encodings, key=len)).decode("ascii")


def pack_list(values: Iterable[int]) -> str:
    """The same for values that are no column yet."""
    return pack_column(np.fromiter(values, np.int64))


def _zigzag(values: Column) -> npt.NDArray[np.uint64]:
    """Small numbers of either sign become small numbers without sign."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _encode_zero_runs(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each run of zeros becomes a zero and its length."""
    is_zero = values == 0
    before = np.concatenate([[False], is_zero[:-1]])
    starts = np.flatnonzero(is_zero & ~before)
    after = np.concatenate([is_zero[1:], [False]])
    lengths = np.flatnonzero(is_zero & ~after) - starts + 1
    # What stays keeps its place in order: a run's length stands behind the run's first zero.
    nonzero = np.flatnonzero(~is_zero)
    positions = np.concatenate([2 * nonzero, 2 * starts, 2 * starts + 1])
    entries = np.concatenate([values[nonzero], values[starts], lengths.astype(np.uint64)])
    result: npt.NDArray[np.uint64] = entries[np.argsort(positions, kind="stable")]
    return result


def _encode_varints(values: npt.NDArray[np.uint64]) -> bytes:
    """Seven bits a byte, lowest first; the high bit says that more follow."""
    shifts = np.arange(_MOST_BYTES, dtype=np.uint64) * np.uint64(_BITS)
    groups = (values[:, None] >> shifts).astype(np.uint8) & np.uint8(0x7F)
    is_needed = (values[:, None] >> shifts) > 0
    is_needed[:, 0] = True
    has_more = np.concatenate([is_needed[:, 1:], np.zeros((values.size, 1), bool)], axis=1)
    return bytes((groups | (has_more.astype(np.uint8) << 7))[is_needed])


def pack_words(values: Iterable[str]) -> dict[str, Any]:
    """Texts of which many are the same: each once, and which of them stands where."""
    listed = list(values)
    words = list(dict.fromkeys(listed))
    number = {word: index for index, word in enumerate(words)}
    return {"words": words, "at": pack_list(number[word] for word in listed)}
