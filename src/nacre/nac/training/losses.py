"""Losses: what training makes smaller, as operations behind the outputs of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from nacre.core.builder import Builder
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported

Write = Callable[[Builder, int, int, float], int]  # of an output, its target and a smoothing


class Loss(Struct, frozen=True):
    """A loss: one number of an output and its target."""

    write: Write
    targets: str  # what they are
    dtype: str  # of NumPy
    formula: str  # the mean of it over all elements is the loss
    smooths: bool = False  # whether it takes a smoothing of labels


def cross_entropy(made: Builder, output: int, target: int, smoothing: float) -> int:
    """The mean of what the right classes lack: scores [.., classes] and classes by number [..].

    A smoothing takes that share from the right class and gives all classes the same of it.
    """
    scores, classes = made.type_of(output), made.type_of(target)
    if not scores.shape or classes.shape != scores.shape[:-1] or not classes.element.is_integer:
        expected = TensorType("i64", scores.shape[:-1]) if scores.shape else "scores"
        reason = f"the target of {scores} is {classes}, expected {expected}"
        raise Unsupported(reason, _transpose_help(scores.shape, classes.shape))
    axis = len(scores.shape) - 1
    logarithms = made.add("LogSoftmax", output, axis=axis)
    places = made.add("ExpandDims", target, axes=(axis,))
    right = _mean(made, made.add("GatherElements", logarithms, places, axis=axis))
    if smoothing:
        parts = ((1 - smoothing, right), (smoothing, _mean(made, logarithms)))
        scaled = [_scaled(made, value, factor) for factor, value in parts]
        right = made.add("BinOp", *scaled, op="Add")
    return made.add("Neg", right)


def _scaled(made: Builder, value: int, factor: float) -> int:
    dtype = made.type_of(value).element.dtype
    return made.add("BinOp", value, made.constant(np.asarray(factor, dtype)), op="Mul")


def _transpose_help(scores: Sequence[int], classes: Sequence[int]) -> str | None:
    """What to do where classes lie on axis 1, as PyTorch has them; None where they do not."""
    rank = len(scores)
    if rank < 3 or tuple(classes) != (scores[0], *scores[2:]):
        return None
    order = ", ".join(map(str, (0, *range(2, rank), 1)))
    problem = "classes are the last axis of scores, and these seem to have them on axis 1"
    return f"{problem}: build the model with `scores.permute({order})` as its output"


def mean_squared_error(made: Builder, output: int, target: int, smoothing: float) -> int:
    """The mean of the squares of differences."""
    difference = _difference(made, output, target)
    return _mean(made, made.add("BinOp", difference, difference, op="Mul"))


def mean_absolute_error(made: Builder, output: int, target: int, smoothing: float) -> int:
    """The mean of the sizes of differences; where there is none, the gradient is 0."""
    return _mean(made, made.add("Unary", _difference(made, output, target), op="Abs"))


def binary_cross_entropy(made: Builder, output: int, target: int, smoothing: float) -> int:
    """The mean of log(1 + e^x) - t x, which is finite for all scores x and shares t of truth."""
    _require_same_type(made, output, target)
    softplus = made.add("Unary", output, op="Softplus")
    right = made.add("BinOp", output, target, op="Mul")
    return _mean(made, made.add("BinOp", softplus, right, op="Sub"))


def _difference(made: Builder, output: int, target: int) -> int:
    _require_same_type(made, output, target)
    return made.add("BinOp", output, target, op="Sub")


def _require_same_type(made: Builder, output: int, target: int) -> None:
    found, given = made.type_of(output), made.type_of(target)
    if found != given:
        raise Unsupported(f"the target of {found} is {given}, expected the same type")


def _mean(made: Builder, value: int) -> int:
    rank = len(made.type_of(value).shape)
    return made.add("Mean", value, axes=tuple(range(rank)), keepdims=False) if rank else value


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "cross_entropy": Loss(
            cross_entropy, "numbers of classes", "int64",
            "-log softmax(scores)[class]", smooths=True,
        ),
        "mse": Loss(mean_squared_error, "floats", "float32", "(output - target)^2"),
        "l1": Loss(mean_absolute_error, "floats", "float32", "|output - target|"),
        "bce_with_logits": Loss(
            binary_cross_entropy, "floats from 0 to 1", "float32",
            "-t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))",
        ),
    }
)  # fmt: skip
