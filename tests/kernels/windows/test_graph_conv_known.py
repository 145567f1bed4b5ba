"""Convolutions in f32 by weights that are known, in both layouts, against sums one by one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface import scratch
from nacre.kernels.interface.call import Array, Call, Constant, Run, TensorType
from nacre.kernels.interface.fixed import FixableRun, Scratch
from nacre.kernels.interface.runs import bare_run
from nacre.kernels.registry import PRIMITIVES
from nacre.kernels.windows.graph_convolution import bind_arranged, is_arranged

pytestmark = pytest.mark.sampled(2)  # together they take long

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
    # Long rows within windows, one place, none that is padded.
    ((2, 40, 6, 7), (9, 40, 3, 3), (1, 1), (1, 2, 0, 1), (1, 1), 1),
    ((2, 40, 6, 7), (9, 40, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((2, 40, 7, 6), (9, 40, 1, 1), (2, 3), (0, 0, 0, 0), (1, 1), 1),
    ((1, 30, 9, 9), (7, 30, 3, 3), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    ((1, 30, 9, 9), (7, 30, 2, 3), (1, 2), (3, 0, 1, 2), (2, 3), 1),
    ((2, 30, 40), (7, 30, 5), (3,), (2, 2), (2,), 1),
    ((1, 70, 60, 50), (40, 70, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),  # several blocks
    ((3, 300, 50, 20), (30, 300, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    # Single channels: many of them, far apart, none of which some window sees.
    ((1, 300, 9, 9), (300, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 300),
    ((2, 6, 13, 11), (6, 1, 5, 5), (2, 2), (2, 1, 2, 3), (1, 1), 6),
    ((1, 6, 13, 17), (12, 1, 3, 4), (1, 3), (0, 2, 1, 0), (2, 2), 6),
    ((1, 5, 9), (5, 1, 4), (2,), (1, 2), (1,), 5),
    ((1, 64, 90, 60), (64, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 64),  # several blocks
    ((2, 4, 6, 6), (4, 1, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 4),
    ((1, 2, 3, 4), (3, 2, 1, 1), (9, 9), (5, 5, 5, 5), (1, 1), 1),  # hardly an element is seen
    # Strides beyond the width: every third element from the second on is none at all.
    ((5, 2, 1, 2), (6, 1, 1, 2), (3, 3), (0, 1, 0, 0), (1, 1), 2),
)
LAYOUTS = ("NCHW", "NHWC")


def _call(case: int, layout: str, values: Sequence[Array], ordered: bool = False) -> Call:
    _, _, strides, pads, dilations, groups = CASES[case]
    attributes = {"layout": layout, "strides": strides, "pads": pads, "dilations": dilations,
                  "groups": groups}  # fmt: skip
    shapes = [array.shape for array in values]
    f32 = GRAPH_TYPES["f32"]
    types = tuple(TensorType(f32, shape) for shape in shapes)
    found = PRIMITIVES["core.Conv"].shape(shapes, attributes)
    assert found is not None
    known = {} if ordered else {at: Constant(values[at]) for at in range(1, len(values))}
    return Call(types, (TensorType(f32, found[0]),), attributes, ordered, known)


def _values(case: int, layout: str, bias: bool = True) -> list[Array]:
    random = np.random.default_rng(case)
    x, w, *_ = CASES[case]
    made = [random.standard_normal(s).astype(np.float32) for s in (x, w, (w[0],))]
    if layout == "NHWC":
        made[0] = np.ascontiguousarray(np.moveaxis(made[0], 1, -1))
        made[1] = np.ascontiguousarray(np.moveaxis(made[1], (1, 0), (-2, -1)))
    return made[: 3 if bias else 2]


def _result(run: Run, call: Call, inputs: Sequence[Array]) -> Array:
    y = np.full(call.output.shape, np.nan, np.float32)
    assert run(inputs, [y]) is None
    return y


def _computed(case: int, layout: str, inputs: Sequence[Array], ordered: bool = False) -> Array:
    """The result with channels first."""
    call = _call(case, layout, inputs, ordered)
    found = _result(PRIMITIVES["core.Conv"].bind(call), call, inputs)
    return found if layout == "NCHW" else np.moveaxis(found, -1, 1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_sums_are_those_of_the_ordered_kernel(case: int, layout: str, bias: bool) -> None:
    inputs = _values(case, layout, bias)
    wanted = _computed(case, layout, inputs, ordered=True)
    found = _computed(case, layout, inputs)
    # Both are within K + 1 ulps of the sum of magnitudes.
    most = _computed(case, layout, [np.abs(array) for array in inputs], ordered=True)
    ulps = 2 * (np.prod(CASES[case][1][1:]) + 1)
    assert (np.abs(found - wanted) <= ulps * np.spacing(most)).all()


@pytest.mark.parametrize("case", range(len(CASES)))
def test_both_layouts_have_the_same_bits(case: int) -> None:
    first, last = (_computed(case, layout, _values(case, layout)) for layout in LAYOUTS)
    np.testing.assert_array_equal(first, last)


def _scratch(kept: dict[str, Array]) -> Scratch:
    def room(use: str, shape: Dims, dtype: np.dtype[np.generic]) -> Array:
        size = int(np.prod(shape)) * dtype.itemsize
        if use not in kept or kept[use].nbytes < size:
            kept[use] = np.full(size, 0xFF, np.uint8)  # NaN, should anybody read it first
        return np.ndarray(shape, dtype, kept[use])

    return room


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_calls_on_fixed_arrays_can_be_repeated(case: int, layout: str) -> None:
    inputs = _values(case, layout)
    call = _call(case, layout, inputs)
    if not is_arranged(call):
        return
    run = PRIMITIVES["core.Conv"].bind(call)
    wanted = _result(run, call, inputs)
    fixable = bare_run(run)
    assert isinstance(fixable, FixableRun)
    x, y, kept = inputs[0].copy(), np.empty(call.output.shape, np.float32), dict[str, Array]()
    calls = list(fixable.fix([x, *inputs[1:]], [y], _scratch(kept)))
    for values in (inputs[0], 2 * inputs[0], inputs[0]):
        np.copyto(x, values)
        for memory in kept.values():  # whatever others leave there
            memory.fill(0xFF)
        for one in calls:
            one()
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_bias_that_is_not_known_is_read_in_every_run(case: int, layout: str) -> None:
    inputs = _values(case, layout)
    call = _call(case, layout, inputs)
    if not is_arranged(call):
        return
    known = {1: call.known[1]}
    open_ = Call(call.inputs, call.outputs, call.attributes, known=known)
    bias, y = np.zeros_like(inputs[2]), np.empty(call.output.shape, np.float32)
    fixable = bare_run(PRIMITIVES["core.Conv"].bind(open_))
    assert isinstance(fixable, FixableRun)
    calls = list(fixable.fix([*inputs[:2], bias], [y], _scratch({})))
    np.copyto(bias, inputs[2])
    for one in calls:
        one()
    np.testing.assert_array_equal(y, _result(PRIMITIVES["core.Conv"].bind(call), call, inputs))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_is_done_to_each_element_is_done_once(case: int, layout: str) -> None:
    inputs = _values(case, layout)
    call = _call(case, layout, inputs)
    if not is_arranged(call):
        return

    def halve_up(values: Sequence[Array | None], results: Sequence[Array]) -> None:
        assert values[0] is not None
        np.add(np.multiply(values[0], 0.5, out=results[0]), 1, out=results[0])

    found = _result(bind_arranged(call, halve_up), call, inputs)
    plain = _result(PRIMITIVES["core.Conv"].bind(call), call, inputs)
    np.testing.assert_array_equal(found, plain * np.float32(0.5) + np.float32(1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("where", ["x", "w"])
def test_what_is_not_finite_stays_within_its_windows(case: int, layout: str, where: str) -> None:
    inputs = _values(case, layout)
    flat = inputs["xw".index(where)].reshape(-1)
    flat[0], flat[-1] = np.inf, np.nan
    found, wanted = (_computed(case, layout, inputs, ordered) for ordered in (False, True))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", [1, 2, 6, 15])
def test_arrays_need_not_be_dense(case: int, layout: str) -> None:
    inputs = _values(case, layout)
    call = _call(case, layout, inputs)
    run = PRIMITIVES["core.Conv"].bind(call)
    wanted = _result(run, call, inputs)
    wide = np.zeros((*inputs[0].shape[:-1], 2 * inputs[0].shape[-1]), np.float32)
    wide[..., ::2] = inputs[0]
    room = np.full((*call.output.shape[:-1], 2 * call.output.shape[-1]), np.nan, np.float32)
    assert run([wide[..., ::2], *inputs[1:]], [room[..., ::2]]) is None
    np.testing.assert_array_equal(room[..., ::2], wanted)
    assert np.isnan(room[..., 1::2]).all()


@pytest.mark.parametrize("case", [1, 6, 15, 26])
def test_runs_share_no_memory_with_others(case: int) -> None:
    inputs = _values(case, "NCHW")
    call = _call(case, "NCHW", inputs)
    run = PRIMITIVES["core.Conv"].bind(call)
    wanted = _result(run, call, inputs)
    for use in ("padded", "columns", "sums"):
        scratch.scratch(use, (1 << 19,), np.dtype(np.float32)).fill(np.nan)
    np.testing.assert_array_equal(_result(run, call, inputs), wanted)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: _result(run, call, inputs), range(8)))
    for found in made:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("x", "w", "pads", "strides", "groups", "is_taken"),
    [
        ((1, 8, 6, 6), (8, 1, 3, 3), (1, 1, 1, 1), (1, 1), 8, True),
        ((1, 8, 6, 6), (8, 8, 3, 3), (1, 1, 1, 1), (1, 1), 1, True),
        ((1, 8, 6, 6), (8, 4, 3, 3), (1, 1, 1, 1), (1, 1), 2, True),
        ((1, 8, 6, 6), (8, 4, 4, 4), (1, 1, 1, 1), (4, 4), 2, False),  # each place its own part
        ((1, 8, 6, 6), (8, 8, 1, 1), (9000, 0, 9000, 0), (9000, 1), 1, False),  # mostly padding
    ],
)
def test_few_are_computed_by_layout(
    x: Dims, w: Dims, pads: Dims, strides: Dims, groups: int, is_taken: bool
) -> None:
    attributes = {"layout": "NCHW", "strides": strides, "pads": pads, "dilations": (),
                  "groups": groups}  # fmt: skip
    f32 = GRAPH_TYPES["f32"]
    found = PRIMITIVES["core.Conv"].shape([x, w], attributes)
    assert found is not None
    types = (TensorType(f32, x), TensorType(f32, w))
    known = {1: Constant(np.ones(w, np.float32))}
    assert (
        is_arranged(Call(types, (TensorType(f32, found[0]),), attributes, known=known)) == is_taken
    )
