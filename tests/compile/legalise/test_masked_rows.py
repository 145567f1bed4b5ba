"""Rows of attention that are masked whole: what Core IR makes of them, plans make of them too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.passes.inference import optimise
from nacre.core.values import Array

pytestmark = pytest.mark.sampled(2)  # together they take long

LEAST = float(np.finfo(np.float32).min)
HIDING = [-np.inf, LEAST, -1e9, -65504.0, -1e4]
Q, K = (1, 2, 5, 8), (1, 2, 5, 8)
GIVEN = ("constant", "input", "computed", "bool")
Case = tuple[Module, dict[str, Array]]


def arrays_of(seed: int, size: float = 3.0) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    shapes = {"q": Q, "k": K, "v": K}
    found = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    return {**found, "q": found["q"] * np.float32(size)}


def attention(
    seen: Array, hidden: float, given: str, *, is_spelt: bool = False, causal: bool = False
) -> Case:
    """A module, and the inputs that say what is hidden."""
    b, mask = Builder(), np.where(seen, np.float32(0), np.float32(hidden))
    q, k, v = (b.input(name, "f32", shape) for name, shape in (("q", Q), ("k", K), ("v", K)))
    more: dict[str, Array] = {}
    if given == "constant":
        added = b.constant(mask)
    elif given == "input":
        added, more = b.input("m", "f32", mask.shape), {"m": mask}
    elif given == "bool":
        added, more = b.input("m", "bool", mask.shape), {"m": seen}
    else:
        kept, more = b.input("m", "f32", mask.shape), {"m": seen.astype(np.float32)}
        less = b.add("BinOp", b.constant(np.float32(1)), kept, op="Sub")
        added = b.add("BinOp", less, b.constant(np.float32(hidden)), op="Mul")
    if not is_spelt:
        return b.module(b.add("Attention", q, k, v, added, causal=causal)), more
    scores = b.add("MatMul", q, b.add("Transpose", k, permutation=(0, 1, 3, 2)))
    scores = b.add("BinOp", scores, b.constant(np.float32(8**-0.5)), op="Mul")
    weights = b.add("Softmax", b.add("BinOp", scores, added, op="Add"), axis=3)
    return b.module(b.add("MatMul", weights, v), weights), more


def expected(arrays: dict[str, Array], seen: Array, hidden: float, causal: bool = False) -> Array:
    """By hand: the sum of scores and mask in f32, zeros where all of it is minus infinity."""
    scores = (arrays["q"] @ arrays["k"].swapaxes(-1, -2)) * np.float32(8**-0.5)
    with np.errstate(over="ignore"):
        scores = scores + np.where(seen, np.float32(0), np.float32(hidden))
    if causal:
        scores = np.where(np.tri(5, dtype=bool), scores, np.float32(-np.inf))
    top = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = powers.sum(axis=-1, keepdims=True)
    found: Array = (powers / np.where(total == 0, 1, total)) @ arrays["v"]
    return found


def rows_hidden() -> Array:
    """One row that sees nothing, one that sees some, padding on the left for the others."""
    seen = np.ones((1, 1, 5, 5), bool)
    seen[..., 1, :] = False
    seen[..., 2, 3:] = False
    seen[..., 0] = False
    return seen


def require_same(
    case: Case, seen: Array, hidden: float, device: str, causal: bool = False, **options: object
) -> None:
    module, more = case
    arrays = {**arrays_of(1), **more}
    wanted = evaluate(module, arrays)
    np.testing.assert_allclose(wanted[0], expected(arrays, seen, hidden, causal), atol=1e-5)
    np.testing.assert_allclose(evaluate(optimise(module), arrays)[0], wanted[0], atol=1e-5)
    found = nacre.compile(module, device, **options).run(arrays)  # type: ignore[arg-type]
    atol = 8e-2 if options.get("precision") == "i8" else 1e-2
    for one, other in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("hidden", HIDING)
@pytest.mark.parametrize("given_", GIVEN[:3])
def test_masks_that_are_added_mean_the_same_in_f16(given_: str, hidden: float) -> None:
    if given_ == "computed" and hidden == -np.inf:
        return  # 0 times infinity
    seen = rows_hidden()
    for spelt in (False, True):
        case = attention(seen, hidden, given_, is_spelt=spelt)
        require_same(case, seen, hidden, "npm4k")


@pytest.mark.parametrize("given_", GIVEN)
def test_what_a_causal_row_and_padding_hide_together_is_masked_whole(given_: str) -> None:
    seen = rows_hidden()
    hidden = -np.inf if given_ == "bool" else -1e9
    case = attention(seen, hidden, given_, causal=True)
    require_same(case, seen, hidden, "npm4k", causal=True)


@pytest.mark.parametrize(("given_", "hidden"), [("input", -1e9), ("bool", -np.inf)])
def test_f32_plans_mean_the_same(given_: str, hidden: float) -> None:
    seen = rows_hidden()
    case = attention(seen, hidden, given_, causal=True)
    require_same(case, seen, hidden, "nem_reference", causal=True, precision="f32")


@pytest.mark.parametrize(
    ("given_", "hidden"),
    [("constant", -1e4), ("input", LEAST), ("input", -1e4), ("computed", -1e9), ("bool", -np.inf)],
)
def test_i8_plans_mean_the_same(given_: str, hidden: float) -> None:
    seen = rows_hidden()
    case = attention(seen, hidden, given_)
    data = [{**arrays_of(seed), **case[1]} for seed in range(1, 6)]
    require_same(case, seen, hidden, "npm4k", precision="i8", calibration=data)


@pytest.mark.heavy("compiles a network for every example")
@pytest.mark.fuzz
@given(
    st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=5, max_size=5),
    st.sampled_from(HIDING), st.sampled_from(GIVEN[:2]), st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=8, deadline=None)
def test_any_mask_means_the_same(
    rows: list[list[bool]], hidden: float, given_: str, is_spelt: bool, causal: bool
) -> None:
    seen = np.array(rows)[None, None]
    causal = causal and not is_spelt
    case = attention(seen, hidden, given_, is_spelt=is_spelt, causal=causal)
    require_same(case, seen, hidden, "npm4k", causal=causal)


def test_a_mask_is_f32_until_its_rows_are_levelled() -> None:
    module, _ = attention(rows_hidden(), -1e9, "input")
    bundle = nacre.compile(module, "npm4k")
    assert {p.name: p.elem for p in bundle.manifest.inputs} == {
        "q": "f16", "k": "f16", "v": "f16", "m": "f32"
    }  # fmt: skip


def test_what_is_finite_stays_finite_at_the_host_border() -> None:
    b = Builder()
    bundle = nacre.compile(b.module(b.add("Unary", b.input("x", "f32", (4,)), op="Abs")), "npm4k")
    x = np.array([-1e9, 7e4, -np.inf, LEAST], np.float32)
    assert bundle.run({"x": x})["output0"].tolist() == [65504.0, 65504.0, np.inf, 65504.0]


# Masks none of whose rows is hidden whole are added as they are.

ROWS, WIDTH = 3, 6


def masked(hidden: float, own: float) -> Module:
    """Scores of what stands before a position, and of a column that `own` is added to."""
    b = Builder()
    scores, position = b.input("scores", "f32", (2, ROWS, WIDTH + 1)), b.input("at", "i32", (1, 1))
    places = b.constant(np.arange(WIDTH, dtype=np.int32).reshape(1, -1))
    seen = b.add("Compare", places, position, op="Lt")
    zero, less = (b.constant(np.full((1, 1), x, np.float32)) for x in (0.0, hidden))
    old = b.add("Broadcast", b.add("Where", seen, zero, less), shape=(ROWS, WIDTH))
    new = b.constant(np.full((ROWS, 1), own, np.float32))
    mask = b.add("Reshape", b.add("Concat", old, new, axis=-1), new_shape=(1, ROWS, WIDTH + 1))
    return b.module(b.add("Softmax", b.add("BinOp", scores, mask, op="Add"), axis=-1))


@pytest.mark.parametrize(
    ("hidden", "own", "is_level"),
    [
        (-30_000.0, 0.0, True),
        (-30_000.0, 15.0, True),
        (-30_000.0, -30_000.0, False),  # a row may be hidden whole
        (-30_000.0, 20.0, False),  # beside which f16 keeps less of scores
        (-1e9, 0.0, False),  # which f16 does not have
    ],
)
@pytest.mark.parametrize("position", [0, 2, WIDTH])
def test_rows_are_levelled_where_they_may_have_to_be(
    hidden: float, own: float, is_level: bool, position: int
) -> None:
    module = masked(hidden, own)
    scores = np.random.default_rng(3).standard_normal((2, ROWS, WIDTH + 1)).astype(np.float32)
    given = {"scores": scores, "at": np.array([[position]], np.int32)}
    bundle = nacre.compile(module, "npm4k")
    assert ("Clip" not in {op.opcode for op in bundle.legal}) == is_level
    (wanted,) = evaluate(module, given)
    np.testing.assert_allclose(bundle.run(given)["output0"], wanted, atol=2e-3)
