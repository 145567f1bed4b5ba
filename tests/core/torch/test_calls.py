"""Every handler against PyTorch itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nacre.core.aten.catalogue import handlers
from nacre.core.aten.refusals import REFUSED
from nacre.core.ops import OPS
from nacre.core.torch.decompositions.catalogue import decompositions
from nacre.core.torch.decompositions.table import PYTORCHS
from tests.core.aten.cases import CASES, EXPORTED, KEYWORD_CASES
from tests.core.torch.calls import check
from tests.core.torch.decomposed import ELEMENTS, GRIDS, ORDERS, PARTS
from tests.core.torch.groups import AXES, ONE, PLACES, SHAPES, TWO
from tests.core.torch.layers import ATTENTION, NORMS, PRODUCTS, SIZES, WINDOWS

pytestmark = pytest.mark.full  # with packages that CI does without


torch = pytest.importorskip("torch")

Tensor = Any
SEEDS = st.integers(0, 1 << 30)
# An export of a whole group takes seconds, and shrinking one minutes.
few = settings(max_examples=2, phases=[Phase.explicit, Phase.generate])


def numbers(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def integers(seed: int, *shape: int) -> Tensor:
    return torch.randint(-9, 10, shape, generator=torch.Generator().manual_seed(seed))


@few
@given(SEEDS, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_functions_of_one_element(seed: int, shape: list[int]) -> None:
    x = numbers(seed, *shape) * 2
    odd = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 0.5, -1.5, 2.5])
    x = torch.cat([x, odd[: x.shape[0]].reshape(-1, *[1] * (x.dim() - 1)).expand_as(x)])
    i = integers(seed, *x.shape)
    check(ONE, [x, i, i > 0])


@few
@given(SEEDS, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 7))
def test_functions_of_two_elements(seed: int, shape: list[int], ones: int) -> None:
    other = [1 if ones >> axis & 1 else dim for axis, dim in enumerate(shape)]
    x, y = numbers(seed, *shape), numbers(seed + 1, *other[ones % 2 :])
    check(TWO, [x, y, integers(seed, *shape), integers(seed + 1, *other[ones % 2 :])])


@few
@given(SEEDS, st.integers(1, 3), st.integers(2, 4), st.integers(2, 5))
def test_reductions_and_orders(seed: int, a: int, b: int, c: int) -> None:
    check(AXES, [numbers(seed, a, b, c), integers(seed, a, b, c)])


@few
@given(SEEDS, st.integers(1, 3), st.sampled_from([2, 4]), st.sampled_from([2, 4, 6]))
def test_shapes(seed: int, a: int, b: int, c: int) -> None:
    check(SHAPES, [numbers(seed, a, b, c)])


@few
@given(SEEDS)
def test_places(seed: int) -> None:
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))[:2]
    check(PLACES, [numbers(seed, 3, 4, 5), integers(seed, 2, 3) % 4, order])


@few
@given(SEEDS, st.integers(1, 4), st.integers(1, 5), st.integers(2, 5))
def test_products(seed: int, m: int, k: int, n: int) -> None:
    check(PRODUCTS, [numbers(seed, m, k), numbers(seed + 1, k, n)])


@few
@given(SEEDS, st.integers(1, 5), st.integers(1, 5), st.integers(1, 8))
def test_attention(seed: int, queries: int, keys: int, width: int) -> None:
    q = numbers(seed, 2, 4, queries, width)
    check(ATTENTION, [q, *(numbers(seed + n, 2, 4, keys, width) for n in (1, 2))])


@few
@given(SEEDS, st.integers(1, 2), st.integers(6, 9), st.integers(6, 9))
def test_windows(seed: int, n: int, h: int, w: int) -> None:
    check(WINDOWS, [numbers(seed, n, 4, h, w), numbers(seed + 1, 6, 2, 3, 3), numbers(seed + 2, 6)])


@few
@given(SEEDS, st.integers(1, 2), st.integers(2, 4), st.integers(2, 4))
def test_normalisation(seed: int, n: int, h: int, w: int) -> None:
    x, s, t = numbers(seed, n, 4, h, w), numbers(seed + 1, 4), numbers(seed + 2, 4)
    check(NORMS, [x, s, t], rtol=1e-4)


@few
@given(SEEDS, st.integers(2, 6))
def test_other_sizes(seed: int, side: int) -> None:
    check(SIZES, [numbers(seed, 2, 3, *[side] * n) for n in (1, 2, 3)], rtol=1e-4)


@few
@given(SEEDS, st.integers(1, 3), st.integers(2, 4), st.integers(2, 4))
def test_functions_that_we_write_by_others(seed: int, a: int, b: int, c: int) -> None:
    x, y = numbers(seed, a, b, c), numbers(seed + 1, a, b, c)
    u = torch.rand(a, b, c, generator=torch.Generator().manual_seed(seed))
    check(ELEMENTS, [x, y, u, integers(seed, a, b, c)])


@settings(few, max_examples=1)
@given(SEEDS)
def test_parts_that_we_write_by_others(seed: int) -> None:
    x = numbers(seed, 3, 4, 6)
    check(PARTS, [x, integers(seed, 3, 4, 6) % 3, x > 0.3], rtol=1e-4)


@pytest.mark.full
def test_every_way_to_sample_a_grid() -> None:
    check(GRIDS, [numbers(1, 1, 1, 3, 4, 6), numbers(2, 1, 2, 2, 2, 3) * 2], rtol=1e-4)


@few
@given(SEEDS, st.integers(2, 4), st.integers(2, 5), st.integers(2, 5))
def test_orders_that_we_write_by_others(seed: int, a: int, b: int, c: int) -> None:
    x = numbers(seed, a, b, c)
    check(ORDERS, [x, integers(seed, a, b, c), torch.where(x > 0.5, float("nan"), x)])


def test_calls_of_the_table_are_taken() -> None:
    named = {call for spec in OPS.values() for calls in spec.aten.values() for call in calls}
    quantised = {call for call in named if "quantize" in call}
    # Made at import, or taken apart by PyTorch.
    assert named - set(handlers()) - quantised <= {"arange.start_step", "gt.Scalar"}


def test_every_handler_is_called() -> None:
    groups = [ONE, TWO, AXES, SHAPES, PLACES, PRODUCTS, ATTENTION, WINDOWS, NORMS, SIZES, ELEMENTS]
    called = {case.key for group in [*groups, PARTS, ORDERS] for case in group}
    # What PyTorch takes apart before.
    called |= {case[0] for case in CASES} | {case[0] for case in KEYWORD_CASES}
    left = {*handlers(), *decompositions(), *PYTORCHS} - called - EXPORTED - set(REFUSED)
    # For other devices; nothing that could be compared.
    assert left == {
        "_scaled_dot_product_efficient_attention.default",
        "_assert_tensor_metadata.default",
        "bucketize.Scalar",
        "empty.memory_format",
    }
