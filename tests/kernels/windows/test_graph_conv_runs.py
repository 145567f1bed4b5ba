"""Convolutions by weights that are known, in runs of whole rows, against sums one by one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface import scratch
from nacre.kernels.interface.call import Array, Call, Known, Run, TensorType
from nacre.kernels.registry import PRIMITIVES
from nacre.kernels.windows.graph_conv_runs import convolve_runs
from nacre.kernels.windows.graph_convolution import geometry

Dims = tuple[int, ...]

# X, weights, strides, pads, dilations, groups
CASES: Sequence[tuple[Dims, Dims, Dims, Dims, Dims, int]] = (
    ((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((2, 3, 7, 9), (4, 3, 3, 2), (2, 3), (1, 0, 2, 1), (1, 2), 1),
    ((2, 6, 5, 5), (4, 3, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((2, 3, 11), (5, 3, 4), (2,), (3, 1), (1,), 1),
    ((1, 2, 4, 5, 3), (3, 2, 2, 3, 1), (1, 2, 1), (1, 0, 0, 0, 1, 0), (1, 1, 1), 1),
    ((2, 5, 8, 8), (5, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5),
    ((2, 5, 7, 9), (10, 1, 3, 5), (2, 1), (1, 2, 1, 2), (2, 1), 5),
    ((1, 4, 12), (4, 1, 3), (1,), (2, 0), (1,), 4),
    ((1, 3, 4, 3, 4), (3, 1, 2, 2, 3), (1, 1, 2), (0, 1, 0, 1, 0, 1), (1, 1, 1), 3),
    # Several blocks: of groups, of rows, of both.
    ((1, 700, 10, 10), (700, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 700),
    ((2, 32, 40, 41), (6, 16, 3, 3), (1, 1), (1, 0, 1, 2), (1, 1), 2),
    ((1, 3, 140, 60), (3, 1, 3, 3), (2, 2), (2, 1, 0, 1), (1, 1), 3),
    ((1, 6, 1, 13), (4, 3, 1, 3), (1, 2), (0, 4, 0, 3), (1, 1), 2),
    ((1, 2, 4, 6), (3, 2, 3, 2), (1, 1), (3, 5, 4, 0), (1, 3), 1),  # windows in nothing but padding
    ((1, 2, 9, 7, 5), (4, 2, 3, 3, 3), (2, 1, 1), (1, 1, 1, 1, 1, 1), (1, 2, 1), 1),
)


def _call(case: int, ordered: bool, weights: Array | None, bias: bool) -> Call:
    x, w, strides, pads, dilations, groups = CASES[case]
    primitive = PRIMITIVES["core.Conv"]
    attributes = {"layout": "NCHW", "strides": strides, "pads": pads, "dilations": dilations,
                  "groups": groups}  # fmt: skip
    shapes = [x, w, (w[0],)][: 3 if bias else 2]
    f32 = GRAPH_TYPES["f32"]
    types = tuple(TensorType(f32, shape) for shape in shapes)
    found = primitive.shape(shapes, attributes)
    assert found is not None
    y = TensorType(f32, found[0])
    known = {} if weights is None else {1: Known(weights)}
    return Call(types, (y,), attributes, ordered, known)


def _values(case: int) -> list[Array]:
    random = np.random.default_rng(case)
    x, w, *_ = CASES[case]
    return [random.standard_normal(s).astype(np.float32) for s in (x, w, (w[0],))]


def _result(run: Run, call: Call, inputs: Sequence[Array]) -> Array:
    y = np.full(call.output.shape, np.nan, np.float32)
    assert run(inputs, [y]) is None
    return y


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_sums_are_those_of_the_ordered_kernel(case: int, bias: bool) -> None:
    inputs = _values(case)[: 3 if bias else 2]
    call, ordered = _call(case, False, inputs[1], bias), _call(case, True, None, bias)
    bind = PRIMITIVES["core.Conv"].bind
    wanted = _result(bind(ordered), ordered, inputs)
    run = bind(call)
    for _ in range(2):  # the second run has the views of the first
        np.testing.assert_allclose(_result(run, call, inputs), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", [0, 5])
def test_what_is_not_finite_stays_within_its_windows(case: int) -> None:
    inputs = _values(case)
    inputs[0][0, 0, 0, 0], inputs[0][0, 0, 7, 7] = np.inf, np.nan
    call, ordered = _call(case, False, inputs[1], True), _call(case, True, None, True)
    bind = PRIMITIVES["core.Conv"].bind
    found = _result(bind(call), call, inputs)
    wanted = _result(bind(ordered), ordered, inputs)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))


@pytest.mark.parametrize("case", [1, 6])
def test_views_follow_memory_that_moves(case: int) -> None:
    inputs = _values(case)
    call = _call(case, False, inputs[1], True)
    run = PRIMITIVES["core.Conv"].bind(call)
    wanted = _result(run, call, inputs)
    for use in ("padded", "columns", "sums"):
        scratch.scratch(use, (1 << 19,), np.dtype(np.float32)).fill(np.nan)
    np.testing.assert_array_equal(_result(run, call, inputs), wanted)
    with ThreadPoolExecutor(2) as pool:  # each thread has views of its own
        made = list(pool.map(lambda _: _result(run, call, inputs), range(8)))
    for found in made:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("x", "w", "strides", "groups", "is_taken"),
    [
        ((1, 8, 56, 56), (8, 1, 3, 3), (2, 2), 8, True),
        ((1, 8, 56, 56), (8, 1, 7, 7), (1, 1), 8, False),  # in bands of rows
        ((1, 3, 56, 56), (8, 3, 4, 4), (4, 4), 1, False),  # each place of a window its own part
        ((1, 16, 16, 16), (8, 16, 3, 3), (1, 1), 1, True),
        ((1, 16, 40, 41), (5, 16, 3, 3), (1, 1), 1, False),  # weights packed for every block
        ((1, 512, 128, 128), (512, 1, 3, 3), (1, 1), 512, False),  # too many blocks to be kept
    ],
)
def test_what_others_are_better_at_is_left_to_them(
    x: Dims, w: Dims, strides: Dims, groups: int, is_taken: bool
) -> None:
    attributes = {"layout": "NCHW", "strides": strides, "pads": (), "dilations": (),
                  "groups": groups}  # fmt: skip
    types = tuple(TensorType(GRAPH_TYPES["f32"], shape) for shape in (x, w))
    use = geometry(Call(types, (types[0],), attributes))
    assert (convolve_runs(use, np.ones(w, np.float32)) is not None) == is_taken
