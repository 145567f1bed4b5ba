"""How much of an axis windows see, against every place of every window."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.estimate.bounds_traffic import ddr_traffic
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module


@dataclass(frozen=True)
class Alone:
    """One operation that runs by itself."""

    operations: tuple[CoreOperation, ...]
    name: str = "alone"


def pooling(size: int, window: int, stride: int, dilation: int, pad: int) -> Module:
    """A pooling down three columns, which are seen in full."""
    builder = Builder()
    x = builder.input("x", "i8", (1, 1, size, 3))
    plan = {"kernel": (window, 1), "strides": (stride, 1), "dilations": (dilation, 1)}
    return builder.module(builder.add("MaxPool", x, pads=(pad, 0, 0, 0), **plan))


def bytes_read(module: Module) -> int:
    """Bytes of the input that cross to the chip."""
    result = module.operations[-1]
    (total,) = ddr_traffic(module, [Alone((result,))])
    return total - result.type.size_bytes


@given(
    size=st.integers(1, 60),
    window=st.integers(1, 12),
    stride=st.integers(1, 12),
    dilation=st.integers(1, 9),
    pad=st.integers(0, 11),
)
def test_bytes_that_windows_see_are_counted_once(
    size: int, window: int, stride: int, dilation: int, pad: int
) -> None:
    count = (size + pad - dilation * (window - 1) - 1) // stride + 1
    if count < 1:
        return
    places = {n * stride + k * dilation - pad for n in range(count) for k in range(window)}
    seen = [place for place in places if 0 <= place < size]
    assert bytes_read(pooling(size, window, stride, dilation, pad)) == 3 * len(seen)


def test_long_windows_over_long_rows_take_no_time() -> None:
    start = process_time()
    assert bytes_read(pooling(3_000_000, 10_007, 3, 97, 0)) > 8_000_000
    assert process_time() - start < 1
