"""The benchmark that holds the timing model to real chips: its statistics and its adapter."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.silicon.fits import (
    Rows,
    cross_validate,
    errors_of,
    fit_call_cost,
    fit_scale,
)
from benchmarks.silicon.networks import build
from benchmarks.silicon.tasks import Row, cycles_of, macs_of, workload_of

VALUES = np.linspace(10.0, 500.0, 40)
GROUPS = tuple(str(place // 4) for place in range(40))


def test_a_factor_is_found_on_rows_that_were_left_out() -> None:
    found = cross_validate(Rows(VALUES, 3.7 * VALUES, GROUPS), fit_scale)
    assert (found.count, found.is_fitted) == (40, False)
    assert found.median < 1e-9
    assert found.rank == pytest.approx(1)


def test_a_cost_of_every_call_is_found() -> None:
    pytest.importorskip("scipy")
    rows = Rows(VALUES, 3.7 * VALUES + 900, GROUPS)
    assert cross_validate(rows, fit_call_cost).most < 1e-3
    assert cross_validate(rows, fit_scale).most > 0.3


def test_what_is_left_out_is_not_seen() -> None:
    """A group that obeys another law is not explained by itself."""
    measured = np.where(np.array(GROUPS) == "9", 50 * VALUES, 2 * VALUES)
    found = cross_validate(Rows(VALUES, measured, GROUPS), fit_scale)
    off = np.abs(2 / 50 - 1)
    assert found.median < 1e-9
    assert errors_of(2 * VALUES, measured).most == pytest.approx(found.most)
    assert float(np.max(np.abs(2 * VALUES / measured - 1))) == pytest.approx(off)


def test_one_group_alone_is_marked() -> None:
    found = cross_validate(Rows(VALUES, 2 * VALUES, ("one",) * 40), fit_scale)
    assert found.is_fitted
    assert str(found).endswith("*")


def test_equal_values_share_a_rank() -> None:
    assert errors_of(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])).rank == pytest.approx(
        np.corrcoef([1.5, 1.5, 3], [1, 2, 3])[0, 1]
    )


def task(operation: str, **given: object) -> Row:
    sizes = {
        "operation": operation, "in_dtype": "uint8", "in_c": 32, "out_w": 5, "out_h": 4,
        "out_c": 32, "kernel_w": 3, "kernel_h": 2, "stride_w": 2, "stride_h": 1,
    }  # fmt: skip
    return {name: str(value) for name, value in {**sizes, **given}.items()}


@pytest.mark.parametrize(
    ("row", "macs", "rate"),
    [
        (task("conv"), 5 * 4 * 32 * 6 * 32, 2048),
        (task("dw"), 5 * 4 * 32 * 6, 2048),
        (task("conv", in_dtype="float16"), 5 * 4 * 32 * 6 * 32, 1024),
    ],
)
def test_a_row_becomes_a_task_of_as_many_macs(row: Row, macs: int, rate: int) -> None:
    assert macs_of(row) == macs
    assert cycles_of(workload_of(row)) == 2 + -(-macs // rate)


@pytest.mark.parametrize(
    "constructor", ["os.system('true')", "__import__('os')", "torchvision + 1", "print(1)"]
)
def test_only_networks_of_known_libraries_are_built(constructor: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        build(constructor)
