"""Where a plan differs from its module: by more than last bits, of an element or the largest."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.bundle.differences import _position

ULP = np.float32(2.0**-23)
LARGE = np.float32(4096)


@pytest.mark.parametrize(
    ("element", "off", "at"),
    [
        (1.0, 2 * ULP, None),  # of its own last place
        (1.0, LARGE / 16 * ULP, None),  # or of the largest element's, less four bits
        (1.0, LARGE / 4 * ULP, (1,)),
        (0.0, LARGE / 16 * ULP, None),
        (0.0, LARGE / 4 * ULP, (1,)),
        (LARGE, 2 * LARGE * ULP, None),
        (LARGE, 8 * LARGE * ULP, (1,)),
        (np.nan, 0.0, None),
        (np.inf, 0.0, None),
    ],
)
def test_how_far_an_element_may_be_off(
    element: float, off: float, at: tuple[int, ...] | None
) -> None:
    expected = np.array([LARGE, element, 3], np.float32)
    found = expected + np.array([0, off, 0], np.float32)
    assert _position(found, expected, 2) == at


def test_without_leave_every_bit_counts() -> None:
    expected = np.array([[1, 2], [3, 4]], np.float32)
    found = expected.copy()
    assert _position(found, expected, 0) is None
    found[1, 0] = np.nextafter(np.float32(3), np.float32(4))
    assert _position(found, expected, 0) == (1, 0)


def test_truths_are_compared_as_such() -> None:
    assert _position(np.array([2, 0], np.uint8), np.array([True, False]), 0) is None
    assert _position(np.array([0, 0], np.uint8), np.array([True, False]), 0) == (0,)
