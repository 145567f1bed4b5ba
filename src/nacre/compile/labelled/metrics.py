"""Metrics over labelled samples. Each takes what a model made and the labels, sample by sample.

Values are shares between 0 and 1, but for perplexity; of `wer` and `perplexity` less is better.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.compile.quantise.calibration import LABELLED
from nacre.compile.rules import CMP15
from nacre.core.values import Array

Outputs = Sequence[Array]  # of each sample
Measure = Callable[[Outputs, Outputs], float]
PADDING = -1  # of sequences of labels that are shorter than others
BUILT_IN = ("top1", "topN", "f1", "map", "wer", "perplexity")
_TOP = re.compile(r"top([1-9][0-9]{0,3})")


@dataclass(frozen=True)
class Metric:
    """A measure with its name, and which way is better."""

    name: str
    measure: Measure
    is_share: bool = True  # shown in percent
    is_loss: bool = False  # less is better


def metric_of(name: str, blank: int = 0) -> Metric:
    """A metric by its name; `blank` is the class of CTC that stands for nothing, for `wer`."""
    top = _TOP.fullmatch(name)
    if top is not None:
        return Metric(name, partial(top_k, k=int(top[1])))
    known = {
        "f1": Metric(name, f1),
        "map": Metric(name, mean_average_precision),
        "wer": Metric(name, partial(word_error_rate, blank=blank), is_loss=True),
        "perplexity": Metric(name, perplexity, is_share=False, is_loss=True),
    }
    if name not in known:
        message = f"no metric `{name}`, expected one of {', '.join(BUILT_IN)}, or a file of Python"
        raise data_error(message, did_you_mean(name, BUILT_IN))
    return known[name]


def data_error(message: str, help: str | None = None, file: str | None = None) -> InputError:
    """The exception for labelled data that does not fit."""
    place = LABELLED.place if file is None else whole_file(file)
    return InputError([CMP15.at(place, message, help=help or None)])


# Classes


def top_k(outputs: Outputs, labels: Outputs, k: int) -> float:
    """The share of samples whose class is among the k of the highest score; of equals the first."""
    right = 0
    for index, (scores, label) in enumerate(zip(outputs, labels, strict=True)):
        row, number = _scores(scores, index), _class_of(label, index)
        _require_class(number, row.size, index)
        best = np.argsort(-row, kind="stable")[: min(k, row.size)]
        right += int(number in best)
    return right / len(outputs)


def f1(outputs: Outputs, labels: Outputs) -> float:
    """F1 of each class that is there or was found, and the mean of these: `macro`."""
    found, wanted = [], []
    for index, (scores, label) in enumerate(zip(outputs, labels, strict=True)):
        row, number = _scores(scores, index), _class_of(label, index)
        _require_class(number, row.size, index)
        found.append(int(row.argmax()))
        wanted.append(number)
    right = Counter(a for a, b in zip(found, wanted, strict=True) if a == b)
    guessed, there = Counter(found), Counter(wanted)
    classes = guessed.keys() | there.keys()
    return sum(2 * right[c] / (guessed[c] + there[c]) for c in classes) / len(classes)


def mean_average_precision(outputs: Outputs, labels: Outputs) -> float:
    """The mean over classes of average precision; labels are 0 or 1 for each class, or one class.

    Average precision is the sum of precisions, each by how much recall it adds; equal scores
    count together. Classes that no sample has are left out.
    """
    scores = np.stack([_scores(array, index) for index, array in enumerate(outputs)])
    truth = np.stack(
        [_membership(label, scores.shape[1], index) for index, label in enumerate(labels)]
    )
    found = [
        _average_precision(scores[:, column], truth[:, column])
        for column in range(scores.shape[1])
        if truth[:, column].any()
    ]
    if not found:
        raise data_error("no sample is of any class")
    return float(np.mean(found))


def _average_precision(scores: Array, truth: Array) -> float:
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(truth[order])
    last = np.append(np.diff(scores[order]) != 0, True)  # of those of one score
    precision, recall = (right / np.arange(1, right.size + 1))[last], (right / right[-1])[last]
    return float(np.sum(precision * np.diff(recall, prepend=0.0)))


def _membership(label: Array, classes: int, index: int) -> Array:
    flat = np.asarray(label).reshape(-1)
    if flat.size == classes and classes > 1:
        if not np.isin(flat, (0, 1)).all():
            raise data_error(f"sample {index}: memberships are 0 or 1")
        return flat.astype(bool)
    number = _class_of(label, index)
    _require_class(number, classes, index)
    made: Array = np.arange(classes) == number
    return made


# Sequences


def word_error_rate(outputs: Outputs, labels: Outputs, blank: int) -> float:
    """Words added, left out and replaced, over the words that there are.

    An output of integers is the words; of scores, the best of each step with repetitions joined
    and `blank` left out, as CTC has it.
    """
    errors = words = 0
    for index, (output, label) in enumerate(zip(outputs, labels, strict=True)):
        wanted = [word for word in _whole_numbers(label, index).tolist() if word != PADDING]
        errors += edit_distance(_decode(output, blank), wanted)
        words += len(wanted)
    if not words:
        raise data_error("no label has a word")
    return errors / words


def _decode(output: Array, blank: int) -> list[int]:
    if output.dtype.kind in "iu":
        return [word for word in output.reshape(-1).tolist() if word != PADDING]
    steps = output.reshape(-1, output.shape[-1] if output.ndim else 1).argmax(axis=-1)
    starts = np.append(True, steps[1:] != steps[:-1])
    return [word for word in steps[starts].tolist() if word != blank]


def edit_distance(found: Sequence[int], wanted: Sequence[int]) -> int:
    """The fewest words to add, leave out or replace."""
    wanted_array = np.asarray(wanted)
    steps = np.arange(len(wanted) + 1)
    row = steps.copy()
    for count, word in enumerate(found, start=1):
        replaced = row[:-1] + (wanted_array != word)
        made = np.append(count, np.minimum(replaced, row[1:] + 1))
        # A word that is left out costs one more than the best to its left.
        row = np.minimum.accumulate(made - steps) + steps
    return int(row[-1])


def perplexity(outputs: Outputs, labels: Outputs) -> float:
    """The exponential of the mean surprise, in nats, at the label of each step."""
    total, count = 0.0, 0
    for index, (output, label) in enumerate(zip(outputs, labels, strict=True)):
        classes = output.shape[-1] if output.ndim else 1
        rows = output.reshape(-1, classes).astype(np.float64)
        words = _whole_numbers(label, index)
        if words.size != len(rows):
            message = f"sample {index}: {words.size} labels for {len(rows)} steps of the output"
            raise data_error(message)
        is_there = words != PADDING
        for word in words[is_there].tolist():
            _require_class(word, classes, index)
        rows = rows[is_there] - rows[is_there].max(axis=-1, keepdims=True)
        chosen = rows[np.arange(len(rows)), words[is_there]]
        total += float(np.sum(np.log(np.exp(rows).sum(axis=-1)) - chosen))
        count += len(rows)
    if not count:
        raise data_error("no label is of any step")
    return exp(total / count) if total / count < 700 else inf


# What is checked


def _scores(output: Array, index: int) -> Array:
    row = np.asarray(output, np.float64).reshape(-1)
    if row.size < 2:
        raise data_error(
            f"sample {index}: the output has {row.size} element, expected a score for each class",
            "another output can be named",
        )
    return np.nan_to_num(row, nan=-inf, posinf=inf, neginf=-inf)


def _class_of(label: Array, index: int) -> int:
    numbers = _whole_numbers(label, index)
    if numbers.size != 1:
        message = f"sample {index}: the label has {numbers.size} elements, expected one class"
        raise data_error(message)
    return int(numbers[0])


def _whole_numbers(label: Array, index: int) -> Array:
    array = np.asarray(label).reshape(-1)
    if array.dtype.kind not in "iub":
        raise data_error(f"sample {index}: a label of {array.dtype.name}, expected integers")
    return array.astype(np.int64)


def _require_class(number: int, classes: int, index: int) -> None:
    if not 0 <= number < classes:
        raise data_error(
            f"sample {index}: the label is {number}, and the model has classes 0 to {classes - 1}"
        )


def metric_from(functions: Mapping[str, object], file: str) -> Metric:
    """A metric that a user wrote: `metric(outputs, labels)`, which gives a number."""
    function = functions.get("metric")
    if not callable(function):
        message = "the file has no function `metric(outputs, labels)`"
        raise data_error(message, "outputs and labels are lists of arrays, a sample each", file)

    def measure(outputs: Outputs, labels: Outputs) -> float:
        try:
            return float(function(list(outputs), list(labels)))
        except (Exception, SystemExit) as error:  # whatever a user's own function does
            kind = type(error).__name__
            raise data_error(f"`metric` failed: {kind}: {error}", file=file) from error

    return Metric(file, measure, is_share=False)
