"""Losses: what training makes smaller, as operations behind the outputs of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from nacre.core.builder import Builder
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported

Loss = Callable[[Builder, int, int], int]  # of an output and its target, one number


def cross_entropy(made: Builder, output: int, target: int) -> int:
    """The mean of what the right classes lack: scores [.., classes] and classes by number [..]."""
    scores, classes = made.type_of(output), made.type_of(target)
    if not scores.shape or classes.shape != scores.shape[:-1] or not classes.element.is_integer:
        expected = TensorType("i64", scores.shape[:-1]) if scores.shape else "scores"
        reason = f"the target of {scores} is {classes}, expected {expected}"
        raise Unsupported(reason, _transpose_help(scores.shape, classes.shape))
    axis = len(scores.shape) - 1
    logarithms = made.add("LogSoftmax", output, axis=axis)
    places = made.add("ExpandDims", target, axes=(axis,))
    right = made.add("GatherElements", logarithms, places, axis=axis)
    return made.add("Neg", _mean(made, right))


def _transpose_help(scores: Sequence[int], classes: Sequence[int]) -> str | None:
    """What to do where classes lie on axis 1, as PyTorch has them; None where they do not."""
    rank = len(scores)
    if rank < 3 or tuple(classes) != (scores[0], *scores[2:]):
        return None
    order = ", ".join(map(str, (0, *range(2, rank), 1)))
    problem = "classes are the last axis of scores, and these seem to have them on axis 1"
    return f"{problem}: build the model with `scores.permute({order})` as its output"


def mean_squared_error(made: Builder, output: int, target: int) -> int:
    """The mean of the squares of differences."""
    types = made.type_of(output), made.type_of(target)
    if types[0] != types[1]:
        raise Unsupported(f"the target of {types[0]} is {types[1]}, expected the same type")
    difference = made.add("BinOp", output, target, op="Sub")
    return _mean(made, made.add("BinOp", difference, difference, op="Mul"))


def _mean(made: Builder, value: int) -> int:
    rank = len(made.type_of(value).shape)
    return made.add("Mean", value, axes=tuple(range(rank)), keepdims=False) if rank else value


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {"cross_entropy": cross_entropy, "mse": mean_squared_error}
)
