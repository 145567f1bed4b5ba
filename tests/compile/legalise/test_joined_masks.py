"""Masks of parts that stand side by side before a softmax: caches, sinks, what is padded."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import nacre
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.values import Array

pytestmark = pytest.mark.sampled(2)  # together they take long

LEAST = float(np.finfo(np.float32).min)
NEW, OLD, HEADS = 5, 3, 2


def rows_hidden(keys: int) -> Array:
    """A row that sees nothing, one that sees all, others that see some."""
    seen = np.ones((1, 1, NEW, keys), bool)
    seen[..., 1, :] = seen[..., 2, keys // 2 :] = seen[..., 3, 0] = False
    return seen


class Parts:
    """Scores of what is new and of a cache, and what hides them."""

    def __init__(self, given: str, hidden: float) -> None:
        self.b, self.given, self.hidden = Builder(), given, hidden
        q, new, old = (
            self.b.input(name, "f32", (1, HEADS, size, 8))
            for name, size in (("q", NEW), ("new", NEW), ("old", OLD))
        )
        dtype = "bool" if given == "chosen" else "f32"
        self.masks = {
            size: self.b.input(name, dtype, (1, 1, NEW, size))
            for name, size in (("mask_new", NEW), ("mask_old", OLD))
        }
        self.new, self.old = (self.scores(q, keys) for keys in (new, old))
        self.sink = self.b.constant(np.full((1, HEADS, NEW, 1), 0.7, np.float32))

    def scores(self, q: int, keys: int) -> int:
        made = self.b.add("MatMul", q, self.b.add("Transpose", keys, permutation=(0, 1, 3, 2)))
        return self.b.add("BinOp", made, self.b.constant(np.float32(8**-0.5)), op="Mul")

    def masked(self, scores: int, hidden: float | None = None) -> int:
        keys = self.b.type_of(scores).shape[-1]
        number = self.hidden if hidden is None else hidden
        if self.given == "chosen":
            fill = self.b.constant(np.float32(number))
            return self.b.add("Where", self.masks[keys], scores, fill)
        if self.given == "known":
            mask = np.where(rows_hidden(keys), np.float32(0), np.float32(number))
            return self.b.add("BinOp", scores, self.b.constant(mask), op="Add")
        return self.b.add("BinOp", self.masks[keys], scores, op="Add")

    def joined(self, *parts: int) -> int:
        return self.b.add("Concat", *parts, axis=3)


def cache(p: Parts) -> int:
    return p.joined(p.masked(p.old), p.masked(p.new))


def cache_hidden_otherwise(p: Parts) -> int:
    return p.joined(p.masked(p.old, -1e4), p.masked(p.new))


def sink_behind(p: Parts) -> int:
    return p.joined(p.masked(p.new), p.sink)


def sink_before_both(p: Parts) -> int:
    return p.joined(p.sink, p.joined(p.masked(p.old), p.masked(p.new)))


def sink_beside_rows(p: Parts) -> int:
    rows = p.b.add("Reshape", p.masked(p.new), new_shape=(HEADS * NEW, NEW))
    return p.b.add("Concat", rows, p.b.constant(np.zeros((HEADS * NEW, 1), np.float32)), axis=1)


def padded(p: Parts) -> int:
    return p.b.add("Pad", p.masked(p.new), pads=(0,) * 7 + (1,), mode="constant", value=-1e9)


def less_its_largest(p: Parts) -> int:
    made = cache_hidden_otherwise(p)
    top = p.b.add("Reduce", made, op="Max", axes=(3,), keepdims=True)
    return p.b.add("BinOp", made, top, op="Sub")


WAYS: tuple[Callable[[Parts], int], ...] = (
    cache, cache_hidden_otherwise, sink_behind, sink_before_both, sink_beside_rows, padded,
    less_its_largest,
)  # fmt: skip


def case(way: Callable[[Parts], int], given: str, hidden: float) -> tuple[Module, dict[str, Array]]:
    parts = Parts(given, hidden)
    scores = way(parts)
    module = parts.b.module(parts.b.add("Softmax", scores, axis=parts.b.type_of(scores).rank - 1))
    random, arrays = np.random.default_rng(1), dict[str, Array]()
    for name, type_ in module.input_types.items():
        arrays[name] = 2 * random.standard_normal(type_.shape).astype(np.float32)
        if name.startswith("mask"):
            seen = rows_hidden(type_.shape[-1])
            added = np.where(seen, np.float32(0), np.float32(hidden))
            arrays[name] = seen if given == "chosen" else added
    return module, arrays


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("given", ["known", "input", "chosen"])
@pytest.mark.parametrize("hidden", [-1e4, -1e9, LEAST, -np.inf])
@pytest.mark.sampled(6)
def test_parts_with_masks(way: Callable[[Parts], int], given: str, hidden: float) -> None:
    module, arrays = case(way, given, hidden)
    (wanted,) = evaluate(module, arrays)
    (found,) = nacre.compile(module, "npm4k").run(arrays).values()
    # Minus infinity less itself is NaN in a graph; a softmax of nothing else is 0.
    np.testing.assert_allclose(found, np.nan_to_num(wanted), atol=1e-2)


@pytest.mark.parametrize("hidden", [-1e4, -1e9, -np.inf])
def test_what_a_choice_hides_may_be_no_number(hidden: float) -> None:
    """A cache that is not full has whatever lies there."""
    b = Builder()
    scores, seen = b.input("scores", "f32", (4, 6)), b.input("seen", "bool", (4, 6))
    mask = b.input("mask", "f32", (1, 6))
    chosen = b.add("Where", seen, scores, b.constant(np.float32(hidden)))
    module = b.module(b.add("Softmax", b.add("BinOp", chosen, mask, op="Add"), axis=1))
    numbers = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)
    kept = np.ones((4, 6), bool)
    kept[:, 4:] = kept[2, :3] = False
    added = np.array([[0, -1e9, 0, 0, 0, -1e9]], np.float32)
    given = {"scores": np.where(kept, numbers, np.nan), "seen": kept, "mask": added}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an input that is no number
        (found,) = nacre.compile(module, "npm4k").run(given).values()
    (wanted,) = evaluate(module, given)
    np.testing.assert_allclose(found, wanted, atol=1e-2)


def test_a_masked_sum_that_others_use_is_levelled_too() -> None:
    b = Builder()
    scores, mask = b.input("scores", "f32", (3, 5)), b.input("mask", "f32", (3, 1))
    total = b.add("BinOp", b.add("Unary", scores, op="Tanh"), mask, op="Add")
    module = b.module(b.add("Softmax", total, axis=1), b.add("Unary", total, op="Tanh"))
    numbers = np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32)
    given = {"scores": numbers, "mask": np.array([[0], [-1e4], [-1e9]], np.float32)}
    wanted, _ = evaluate(module, given)
    found, _ = nacre.compile(module, "npm4k").run(given).values()
    np.testing.assert_allclose(found, wanted, atol=1e-2)
