"""How far a program that is rewritten for inference may be from the program as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = 1e-4  # of the largest magnitude, as docs/numerics.md promises for f32


def assert_close(found: Any, written: Any) -> None:  # noqa: ANN401 - arrays
    """Floats within the tolerance, all else equal."""
    assert (found.dtype, found.shape) == (written.dtype, written.shape)
    if written.dtype.kind != "f":
        np.testing.assert_array_equal(found, written)
    else:
        largest = np.abs(written[np.isfinite(written)]).max(initial=0.0)
        np.testing.assert_allclose(found, written, rtol=0, atol=TOLERANCE * largest)
