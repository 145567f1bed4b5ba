"""Masks of a graph read back: which tokens see which, where that is the same at every place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_HIDDEN = -1e4  # scores that are lower by so much have no weight left


@dataclass(frozen=True)
class Visibility:
    """What a graph's masks let tokens see of the rows before them and of each other."""

    is_causal: bool = False
    window: int | None = None  # tokens, their own counted

    def join(self, other: Visibility) -> Visibility:
        """What both let them see."""
        windows = [w for w in (self.window, other.window) if w is not None]
        return Visibility(self.is_causal or other.is_causal, min(windows, default=None))


def read_mask(mask: npt.NDArray[Any], context: int, tokens: int) -> Visibility | None:
    """What a mask means for so many tokens after a context that is full; None where it is another.

    A mask says what takes part, or is added to scores.
    """
    width = context + tokens
    if mask.ndim < 1 or mask.shape[-1] != width:
        return None
    rows = mask.shape[-2] if mask.ndim > 1 else 1
    flat = mask.reshape(-1, rows, width)
    if rows not in (1, tokens) or (flat != flat[:1]).any():
        return None
    allowed = _visible_keys(flat[0])
    if allowed is None:
        return None
    if allowed.all():
        return Visibility()
    behind = np.add.outer(context + np.arange(rows), -np.arange(width))
    count = int(allowed[0].sum())
    window = count if count < context + 1 else None
    expected = (behind >= 0) & (behind < (window or width))
    if (rows == 1 and tokens > 1) or (allowed != expected).any():
        return None
    return Visibility(True, window)


def _visible_keys(mask: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Whether keys take part; None where a mask weighs them."""
    if mask.dtype == np.bool_:
        return mask
    hidden, plain = mask <= _HIDDEN, mask == 0
    return plain if bool((hidden | plain).all()) else None
