"""What tells arrays apart by their elements."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from nacre.core.values import Array

ArrayKey = tuple[str, tuple[int, ...], bytes]


def array_key(array: Array) -> ArrayKey:
    """What tells an array from others: arrays with the same one have the same elements."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return str(array.dtype), array.shape, blake2b(raw.data, digest_size=20).digest()
