"""Linear, Einsum and Attention of graphs against sums term by term, numpy, torch, onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.products import attention as graph_attention
from tests.kernels.oracle_graph_layers import (
    FLOATS,
    INTEGERS,
    assert_in_core,
    assert_near,
    assert_refused,
    compute,
    reason,
    tensor,
    values,
    work,
)
from tests.kernels.oracle_views import LAYOUTS, Array, Dims, assert_same, onnx_result, seeds

pytestmark = pytest.mark.sampled(2)  # together they take long

layouts = st.sampled_from(LAYOUTS)
floats, integers = st.sampled_from(FLOATS), st.sampled_from(INTEGERS)
sizes = st.integers(1, 4)
heats = st.sampled_from([None, False, True])


def wrapped(sums: Array, elem: str) -> Array:
    type_ = tensor(elem, ()).elem
    low, span = int(type_.lowest), 1 << type_.bits
    return np.asarray((np.asarray(sums, object) - low) % span + low).astype(tensor(elem, ()).dtype)


@st.composite
def linears(draw: st.DrawFn) -> list[Dims]:
    depth, width = draw(st.integers(1, 40)), draw(sizes)
    rows = tuple(draw(st.lists(sizes, max_size=3)))
    return [(*rows, depth), (width, depth), *[(width,)] * draw(st.integers(0, 1))]


def linear_sums(arrays: Sequence[Array]) -> Array:
    x, w, *bias = arrays
    y = np.zeros((*x.shape[:-1], w.shape[0]), object)
    for row, column, k in product(np.ndindex(*x.shape[:-1]), range(w.shape[0]), range(w.shape[1])):
        y[(*row, column)] += x[(*row, k)] * w[column, k]
    return y + bias[0] if bias else y


@given(linears(), integers, layouts, seeds, heats)
def test_linear_integers_are_exact_and_wrap(
    dims: list[Dims], elem: str, layout: str, seed: int, heat: bool | None
) -> None:
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wanted = wrapped(linear_sums([a.astype(object) for a in arrays]), elem)
    assert_same(compute("Linear", elem, arrays, {}, layout=layout, heat=heat), wanted)


@given(st.integers(1, 3000), st.integers(1, 6), st.integers(-140, 10), seeds, heats)
def test_linear_of_small_integers_in_blocks_of_bytes(
    depth: int, rows: int, least: int, seed: int, heat: bool | None
) -> None:
    """Weights of a byte in 32 bits, around any middle: as dynamic quantisation has them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-255, 256, (rows, depth)).astype(np.int32)
    w = rng.integers(least, least + 256, (300, depth)).astype(np.int32)
    bias = rng.integers(-(1 << 20), 1 << 20, 300).astype(np.int32)
    wanted = x.astype(np.int64) @ w.T.astype(np.int64)
    assert_same(compute("Linear", "i32", [x, w], {}, heat=heat), wanted.astype(np.int32))
    found = compute("Linear", "i32", [x, w, bias], {}, heat=heat)
    assert_same(found, (wanted + bias).astype(np.int32))


@given(linears(), floats, layouts, seeds, st.booleans())
def test_linear_floats_are_rounded_once(
    dims: list[Dims], elem: str, layout: str, seed: int, ordered: bool
) -> None:
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wide = [a.astype(np.float64).astype(object) for a in arrays]
    bound = linear_sums([abs(a) for a in wide]).astype(np.float64)
    found = compute("Linear", elem, arrays, {}, layout=layout, ordered=ordered, heat=False)
    wanted = linear_sums(wide).astype(np.float64)
    assert_near(found, wanted, elem, ulps=8.0, magnitude=bound)


@given(linears(), seeds, st.booleans())
def test_linear_of_nan_and_infinities(dims: list[Dims], seed: int, ordered: bool) -> None:
    arrays = [values("f32", shape, seed + i, odd=True) for i, shape in enumerate(dims)]
    with np.errstate(all="ignore"):
        wanted = linear_sums([a.astype(object) for a in arrays]).astype(np.float64)
        found = compute("Linear", "f32", arrays, {}, ordered=ordered)
    is_finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), is_finite)
    np.testing.assert_array_equal(found[~is_finite], wanted[~is_finite].astype(np.float32))


# Explicit and implicit outputs, ellipses, diagonals, sums, outer products, several operands.
EQUATIONS: list[tuple[str, list[Dims]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    (" bij , bjk -> bik ", [(2, 3, 4), (2, 4, 5)]),
    ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("bhij,bhjd->bihd", [(2, 2, 3, 5), (2, 2, 5, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("...ij,...jk", [(3, 4), (5, 4, 2)]),
    ("i...,i->...", [(3, 2, 2), (3,)]),
    ("...->", [(2, 3)]),
    ("...i->i", [(2, 4, 3)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("iji->j", [(3, 2, 3)]),
    ("iij,jk->ik", [(3, 3, 2), (2, 4)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ba", [(3, 4)]),
    ("bA", [(3, 4)]),
    ("->", [()]),
    (",->", [(), ()]),
    (",i->i", [(), (3,)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,i", [(3,), (1,)]),
    ("i,i->", [(1,), (4,)]),
    ("ij,ij->ij", [(3, 1), (1, 4)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]),
    ("a,b,c,d->dcba", [(2,), (3,), (2,), (2,)]),
    ("ab,ac,ad->bcd", [(3, 2), (3, 2), (3, 4)]),
    ("ab,ab,ab->a", [(2, 3), (2, 3), (2, 3)]),
    ("ijk,k->ij", [(2, 3, 4), (4,)]),
    ("...a,...b->...ab", [(2, 3), (2, 4)]),
    ("a...b->b...a", [(2, 3, 3, 4)]),
    ("a,a,a,a,a,a,a,a,a,a->", [(2,)] * 10),
]


def einsum_sums(text: str, arrays: Sequence[Array]) -> Array:
    """NumPy's einsum of Python numbers, which adds one by one; torch's reading of lost `...`."""
    equation = text.replace(" ", "")
    if equation == "...i->i":
        equation = "abi->i"
    if equation == "...->":
        equation = "ab->"
    operands = [a.astype(object) for a in arrays]
    return np.asarray(np.einsum(equation, *operands, optimize=False), object)


@pytest.mark.parametrize(("equation", "dims"), EQUATIONS)
@given(integers, layouts, seeds)
def test_einsum_of_integers(
    equation: str, dims: list[Dims], elem: str, layout: str, seed: int
) -> None:
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wanted = wrapped(einsum_sums(equation, arrays), elem)
    found = compute("Einsum", elem, arrays, {"equation": equation}, layout=layout)
    assert_same(found, wanted)


@pytest.mark.parametrize(("equation", "dims"), EQUATIONS)
@given(floats, layouts, seeds, st.booleans())
def test_einsum_of_floats(
    equation: str, dims: list[Dims], elem: str, layout: str, seed: int, ordered: bool
) -> None:
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    wide = [a.astype(np.float64) for a in arrays]
    bound = einsum_sums(equation, [np.abs(a) for a in wide]).astype(np.float64)
    found = compute("Einsum", elem, arrays, {"equation": equation}, layout=layout, ordered=ordered)
    wanted = einsum_sums(equation, wide).astype(np.float64)
    assert_near(found, wanted, elem, ulps=16.0, magnitude=bound)


@pytest.mark.parametrize(("equation", "dims"), EQUATIONS)
def test_einsum_as_torch(equation: str, dims: list[Dims]) -> None:
    torch = pytest.importorskip("torch")
    arrays = [values("f64", shape, 7 + i) for i, shape in enumerate(dims)]
    wanted = torch.einsum(equation, *(torch.from_numpy(a) for a in arrays)).numpy()
    found = compute("Einsum", "f64", arrays, {"equation": equation})
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_einsum_of_large_operands_as_onnxruntime() -> None:
    arrays = [values("f32", (4, 30, 40), 1), values("f32", (4, 50, 40), 2)]
    (wanted,) = onnx_result("Einsum", arrays, {"equation": "bik,bjk->bji"})
    found = compute("Einsum", "f32", arrays, {"equation": "bik,bjk->bji"})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@st.composite
def attentions(draw: st.DrawFn) -> tuple[list[Dims], dict[str, Any]]:
    queries, keys, depth, width = (draw(st.integers(1, 5)) for _ in range(4))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))

    def part() -> Dims:
        own = tuple(draw(st.sampled_from((1, n))) for n in batch)
        return own[draw(st.integers(0, len(own))) :]

    dims = [
        (*batch, queries, depth), (*part(), keys, depth), (*part(), keys, width),
    ]  # fmt: skip
    if draw(st.booleans()):
        tail = tuple(draw(st.sampled_from((1, n))) for n in (queries, keys))
        dims.append((*part(), *tail))
    scale = draw(st.sampled_from([0.0, 0.25, -1.5]))
    return dims, {"causal": draw(st.booleans()), "scale": scale}


def attention_terms(arrays: Sequence[Array], causal: bool, scale: float) -> Array:
    """One query and one key at a time, in f64."""
    q, k, v, *mask = arrays
    batch = q.shape[:-2]
    k, v = (np.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (k, v))
    masks = [np.broadcast_to(m, (*batch, q.shape[-2], k.shape[-2])) for m in mask]
    factor = scale or 1 / sqrt(q.shape[-1])
    y = np.zeros((*batch, q.shape[-2], v.shape[-1]))
    for place in np.ndindex(*y.shape[:-1]):
        *b, i = place
        scores = {}
        for j in range(k.shape[-2]):
            score = float(q[place].astype(np.float64) @ k[(*b, j)].astype(np.float64)) * factor
            for m in masks:
                here = m[(*place, j)]
                score = (score if here else -np.inf) if m.dtype == np.bool_ else score + float(here)
            scores[j] = -np.inf if causal and j > i else score
        top = max(scores.values())
        if top == -np.inf:
            continue  # nothing to look at
        powers = {j: exp(score - top) for j, score in scores.items()}
        for j, power in powers.items():
            y[place] += power / sum(powers.values()) * v[(*b, j)].astype(np.float64)
    return y


@given(attentions(), floats, st.sampled_from(["bool", "float"]), layouts, seeds, st.booleans())
def test_attention_query_by_query(
    case: tuple[list[Dims], dict[str, Any]], elem: str, kind: str, layout: str, seed: int,
    ordered: bool,
) -> None:  # fmt: skip
    dims, attributes = case
    arrays = [values(elem, shape, seed + i) for i, shape in enumerate(dims)]
    elems = [elem] * len(arrays)
    if len(arrays) > 3:
        rng = np.random.default_rng(seed)
        allowed = rng.random(dims[3]) < 0.7
        if kind == "bool":
            elems[3], arrays[3] = "bool", allowed
        else:
            elems[3] = "f32"
            arrays[3] = np.where(allowed, rng.standard_normal(dims[3]), -np.inf).astype(np.float32)
    found = compute("Attention", elems, arrays, attributes, layout=layout, ordered=ordered)
    wanted = attention_terms(arrays, **attributes)
    assert_near(found, wanted, elem, ulps=64.0, magnitude=4.0)


@pytest.mark.parametrize("limit", [1 << 20, 1 << 10])
@pytest.mark.parametrize(("causal", "has_mask"), [(False, False), (True, False), (False, True)])
def test_attention_as_torch(
    limit: int, causal: bool, has_mask: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(graph_attention, "_SCORE_BYTES", limit)
    q, k, v = (values("f32", (2, 3, n, 16), n) for n in (33, 41, 41))
    mask = np.random.default_rng(1).random((2, 1, 33, 41)) < 0.5
    mask[0, 0, 5] = False  # a row that may look at nothing
    operands = [q, k, v, mask] if has_mask else [q, k, v]
    elems = ["f32", "f32", "f32", "bool"][: len(operands)]
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a) for a in operands), is_causal=causal
    ).numpy()
    for ordered in (False, True):
        found = compute("Attention", elems, operands, {"causal": causal}, ordered=ordered)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    if has_mask:
        assert (found[0, :, 5] == 0).all()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("offset", [200.0, -200.0])
def test_attention_of_scores_whose_powers_no_float_holds(offset: float, ordered: bool) -> None:
    q, k, v = (values("f32", (4, 2), n) for n in (1, 2, 3))
    mask = np.full((4, 4), offset, np.float32)
    found = compute("Attention", ["f32"] * 4, [q, k, v, mask], {}, ordered=ordered)
    wanted = attention_terms([q, k, v], causal=False, scale=0.0)  # what all scores share is nothing
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_attention_keeps_nan_of_what_is_seen_and_of_values() -> None:
    q, k, v = (values("f32", (4, 2), n) for n in (1, 2, 3))
    v[3, 0] = np.nan
    found = compute("Attention", "f32", [q, k, v], {"causal": True})
    assert np.isnan(found[:, 0]).all()  # 0 times NaN is NaN, also where a row does not look
    assert np.isfinite(found[:, 1]).all()
    v[3, 0], k[3] = 0.0, np.nan
    found = compute("Attention", "f32", [q, k, v], {"causal": True})
    assert np.isfinite(found[:3]).all()
    assert np.isnan(found[3]).all()


HUGE = 10**399
MISFITS: list[tuple[str, list[Dims], dict[str, Any], str]] = [
    ("Linear", [(), (2, 3)], {}, "the input has the shape [], expected at least 1 axes"),
    ("Linear", [(4, 3), (2, 3, 1)], {}, "`weight` has the shape [2, 3, 1], expected 2 axes"),
    ("Linear", [(4, 3), (3, 2)], {}, "expected the same last dimension"),
    ("Linear", [(4, 3), (2, 3), (3,)], {}, "`bias` has the shape [3], expected [2]"),
    ("Einsum", [(2,)], {"equation": "i$->i"}, "expected letters, and `...` at most once"),
    ("Einsum", [(2,)], {"equation": "i....->i"}, "`...` at most once"),
    ("Einsum", [(2,)], {"equation": "...i...->i"}, "`...` at most once"),
    ("Einsum", [(2,)], {"equation": "i->i->i"}, "expected letters"),
    ("Einsum", [(2,)], {"equation": "i,j"}, "`equation` has 2 terms, expected 1"),
    ("Einsum", [(2,)], {"equation": ""}, "expected 0 axes for the term"),
    ("Einsum", [(2, 3)], {"equation": "i->i"}, "expected 1 axes for the term"),
    ("Einsum", [(2,)], {"equation": "ij...->i"}, "expected 2 axes for the term"),
    ("Einsum", [(2, 3)], {"equation": "ii->i"}, "axis `i` is 2 and 3 in one operand"),
    ("Einsum", [(1, 3)], {"equation": "ii->i"}, "axis `i` is 1 and 3 in one operand"),
    ("Einsum", [(2,), (3,)], {"equation": "i,i"}, "axis `i` is 2 and 3, expected one size"),
    ("Einsum", [(2, 4), (3, 4)], {"equation": "...,..."}, "axis 2 from the end of `...`"),
    ("Einsum", [(2,)], {"equation": "i->k"}, "`k` in the output, expected a letter of an operand"),
    ("Einsum", [(2,)], {"equation": "i->ii"}, "`i` twice in the output, expected it once"),
    ("Attention", [(3,), (2, 3), (2, 3)], {}, "`q` has the shape [3], expected at least 2 axes"),
    ("Attention", [(4, 3), (2, 2), (2, 3)], {}, "expected the same last axis"),
    ("Attention", [(4, 3), (2, 3), (1, 3)], {}, "expected as many keys"),
    ("Attention", [(2, 4, 3), (3, 2, 3), (2, 3)], {}, "expected some that broadcast"),
    ("Attention", [(2, 4, 3), (2, 3), (3, 2, 3)], {}, "the batches [2], [] and [3]"),
    ("Attention", [(4, 3), (2, 3), (2, 3), (3, 2)], {}, "one that broadcasts to [4, 2]"),
    ("Attention", [(4, 3), (2, 3), (2, 3), (2, 4, 2)], {}, "one that broadcasts to [4, 2]"),
    ("Attention", [(4, 3), (2, 3), (2, 3)], {"scale": float("inf")}, "`scale` is inf"),
    ("Attention", [(4, 3), (2, 3), (2, 3)], {"scale": HUGE}, "expected a finite number"),
]


@pytest.mark.parametrize(("op", "dims", "attributes", "told"), MISFITS)
def test_what_does_not_fit_is_said(
    op: str, dims: list[Dims], attributes: dict[str, Any], told: str
) -> None:
    found = reason(op, dims, attributes)
    assert found is not None
    assert told in found
    assert told in assert_refused(op, [("f32", shape) for shape in dims], attributes, "NCR02")


FITTING: list[tuple[str, list[Dims], dict[str, Any]]] = [
    ("Linear", [(4, 3), (2, 3), (2,)], {}),
    ("Einsum", [(4, 3), (3, 2)], {"equation": "ij,jk->ik"}),
    ("Attention", [(2, 4, 3), (2, 5, 3), (5, 6)], {"causal": True, "scale": 0.5}),
]


@pytest.mark.parametrize(("op", "dims", "attributes"), FITTING)
def test_the_verifier_knows_the_op(op: str, dims: list[Dims], attributes: dict[str, Any]) -> None:
    assert_in_core(op, [("bf16", shape) for shape in dims], attributes)
    assert_refused(op, [("bool", shape) for shape in dims], attributes, "NCR01")
    assert_refused(op, [("f32", dims[0]), *(("f64", d) for d in dims[1:])], attributes, "NCR01")


def test_masks_are_floats_or_truth_values() -> None:
    dims: list[Dims] = [(4, 3), (5, 3), (5, 6)]
    types = [("f16", shape) for shape in dims]
    for elem in ("bool", "f16", "f32"):
        assert_in_core("Attention", [*types, (elem, (4, 5))], {})
    assert_refused("Attention", [*types, ("i8", (4, 5))], {}, "NCR01")


def test_work_is_what_is_multiplied() -> None:
    assert work("Linear", "f32", [(4, 3), (2, 3)], {}).macs == 24
    assert work("Einsum", "f32", [(4, 3), (3, 2)], {"equation": "ij,jk->ik"}).macs == 24
    assert work("Einsum", "f32", [(4, 3)], {"equation": "ij->ji"}).elements == 12
    attention = work("Attention", "f32", [(4, 3), (5, 3), (5, 6)], {})
    assert (attention.macs, attention.elements, attention.each) == (20 * (3 + 6), 20, 8)
