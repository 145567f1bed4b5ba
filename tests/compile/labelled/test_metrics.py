"""Metrics against scikit-learn, and against loops that share no code with them."""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.cli.accuracy.evaluate import evaluate
from nacre.compile.labelled.metrics import BUILT_IN, edit_distance, metric_from, metric_of
from tests.compile.models import Array

seeds = st.integers(0, 2**32 - 1)


def scores_and_classes(seed: int, ties: bool = False) -> tuple[list[Array], list[Array]]:
    random = np.random.default_rng(seed)
    count, classes = int(random.integers(2, 40)), int(random.integers(3, 9))
    scores = random.standard_normal((count, classes)).astype(np.float32)
    if ties:
        scores = np.round(scores)
    labels = random.integers(0, classes, count)
    labels[:classes] = np.arange(classes)[:count]
    return list(scores), list(labels)


@given(seeds, st.integers(1, 4))
def test_the_best_k(seed: int, k: int) -> None:
    outputs, labels = scores_and_classes(seed, ties=bool(seed % 2))
    right = 0
    for row, label in zip(outputs, labels, strict=True):
        # Of equal scores the first counts as higher.
        higher = sum(
            1 for c, s in enumerate(row) if s > row[label] or (s == row[label] and c < label)
        )
        right += higher < k
    assert metric_of(f"top{k}").measure(outputs, labels) == right / len(labels)


@given(seeds)
def test_f1_and_average_precision_are_scikit_learns(seed: int) -> None:
    sklearn: Any = pytest.importorskip("sklearn.metrics")
    outputs, labels = scores_and_classes(seed, ties=bool(seed % 3 == 0))
    best = [int(row.argmax()) for row in outputs]
    expected = sklearn.f1_score(labels, best, average="macro")
    assert metric_of("f1").measure(outputs, labels) == pytest.approx(expected, abs=1e-12)
    truth = np.eye(outputs[0].size, dtype=int)[np.array(labels)]
    there = truth.any(axis=0)
    expected = sklearn.average_precision_score(truth[:, there], np.stack(outputs)[:, there])
    assert metric_of("map").measure(outputs, labels) == pytest.approx(expected, abs=1e-9)
    assert metric_of("map").measure(outputs, list(truth)) == pytest.approx(expected, abs=1e-9)


def plain_distance(found: list[int], wanted: list[int]) -> int:
    """As it is defined, by recursion."""
    if not found or not wanted:
        return len(found) + len(wanted)
    if found[-1] == wanted[-1]:
        return plain_distance(found[:-1], wanted[:-1])
    ways = ((found[:-1], wanted), (found, wanted[:-1]), (found[:-1], wanted[:-1]))
    return 1 + min(plain_distance(*way) for way in ways)


words = st.lists(st.integers(0, 3), max_size=6)


@given(words, words)
def test_the_distance_of_sequences(found: list[int], wanted: list[int]) -> None:
    assert edit_distance(found, wanted) == plain_distance(found, wanted)


def test_words_from_integers_and_from_scores() -> None:
    labels = [np.array([1, 2, 2, 3]), np.array([2, -1, -1, -1])]
    plain = [np.array([1, 2, 3, -1]), np.array([2, 2, -1, -1])]
    assert metric_of("wer").measure(plain, labels) == 2 / 5
    # 1 1 0 2 0 2 3 and 0 2 2 0 0 0 0 as CTC has them are 1 2 2 3 and 2.
    steps = np.array([[1, 1, 0, 2, 0, 2, 3], [0, 2, 2, 0, 0, 0, 0]])
    scores = list(np.eye(4, dtype=np.float32)[steps])
    assert metric_of("wer").measure(scores, labels) == 0
    assert metric_of("wer", blank=3).measure(scores, labels) > 0


@given(seeds)
def test_perplexity(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [(random.standard_normal((5, 7)) * 4).astype(np.float32) for _ in range(3)]
    labels = [random.integers(-1, 7, 5) for _ in range(3)]
    labels[0][0] = 2
    total, count = 0.0, 0
    for scores, label in zip(rows, labels, strict=True):
        for row, word in zip(scores.tolist(), label.tolist(), strict=True):
            if word >= 0:
                total += log(sum(exp(x - row[word]) for x in row))
                count += 1
    found = metric_of("perplexity").measure(rows, labels)
    assert found == pytest.approx(exp(total / count), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "output", "label", "told"),
    [
        ("top1", np.zeros(4), np.array(4), "classes 0 to 3"),
        ("top1", np.zeros(4), np.array(-1), "classes 0 to 3"),
        ("top1", np.zeros(1), np.array(0), "a score for each class"),
        ("top1", np.zeros(4), np.array(0.5), "expected integers"),
        ("f1", np.zeros(4), np.array([1, 2]), "expected one class"),
        ("map", np.zeros(4), np.array([1, 2, 0, 0]), "memberships"),
        ("wer", np.array([1]), np.array([-1]), "no label has a word"),
        ("perplexity", np.zeros((3, 4)), np.array([1, 2]), "2 labels for 3 steps"),
        ("perplexity", np.zeros((2, 4)), np.array([1, 9]), "classes 0 to 3"),
        ("top0", np.zeros(4), np.array(0), "no metric"),
        ("topp1", np.zeros(4), np.array(0), "no metric"),
    ],
)
def test_labels_that_do_not_fit(name: str, output: Array, label: Array, told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        metric_of(name).measure([output], [label])
    assert [d.code for d in refused.value.diagnostics] == ["CMP15"]


def test_a_metric_of_ones_own() -> None:
    def metric(outputs: list[Array], labels: list[Array]) -> float:
        return float(np.mean([output.sum() for output in outputs])) + len(labels)

    assert metric_from({"metric": metric}, "own.py").measure([np.ones(3)], [np.array(0)]) == 4
    with pytest.raises(InputError, match="no function"):
        metric_from({}, "own.py")
    with pytest.raises(InputError, match="ZeroDivisionError"):
        metric_from({"metric": lambda *_: 1 / 0}, "own.py").measure([], [])


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_help_and_the_documentation_name_every_metric(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row for row in rows)
    assert name in CliRunner().invoke(evaluate, ["--help"]).output


def test_a_metric_that_ends_the_process_fails() -> None:
    def metric(outputs: list[Array], labels: list[Array]) -> float:
        raise SystemExit(0)

    with pytest.raises(InputError, match="SystemExit"):
        metric_from({"metric": metric}, "own.py").measure([], [])
