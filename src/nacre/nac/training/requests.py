"""What a step of training is asked for, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.module import Module, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, array_or_none
from nacre.nac.training.losses import LOSSES

# What a target of a loss has, and the NumPy type of it.
_TARGETS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"cross_entropy": ("numbers of classes", "int64"), "mse": ("floats", "float32")}
)


def rate_of(given: object) -> np.float32:
    """How far a step goes; Unsupported for what is no number of 32 bits, or below 0."""
    if not isinstance(given, Real | np.floating) or isinstance(given, bool):
        raise Unsupported(f"the rate is a {type(given).__name__}, expected a number")
    with np.errstate(over="ignore"):
        rate = np.float32(float(given))
    if not np.isfinite(rate):
        raise Unsupported(f"the rate is {given}, expected a finite number of 32 bits")
    if rate < 0:
        raise Unsupported(f"the rate is {given}, expected 0 or more: a step goes down the gradient")
    return rate


def require_loss(given: object) -> None:
    """Unsupported for a loss that there is not."""
    if not isinstance(given, str) or given not in LOSSES:
        raise Unsupported(f"there is no loss {backquote(str(given), 40)}, only {', '.join(LOSSES)}")


def targets_of(module: Module, given: Sequence[Any], loss: str) -> list[Array]:
    """Targets as arrays of the types that losses take; Unsupported where one cannot be."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise Unsupported(f"targets are a {type(given).__name__}, expected a list of arrays")
    targets = []
    for place, target in enumerate(given):
        array = array_or_none(target)
        if array is None or array.dtype.kind not in "biuf":
            kind = type(target).__name__ if array is None else array.dtype.name
            raise Unsupported(f"target {place} is no array of numbers but of {kind}")
        if array.dtype.kind == "b":
            kind, type_ = _TARGETS[loss]
            remedy = f"convert them if they mean that: `target.astype(np.{type_})`"
            raise Unsupported(f"target {place} has booleans, expected {kind}", remedy)
        output = module.by_id[module.outputs[place]] if place < len(module.outputs) else None
        fitted = array if output is None else _fit(array, output.type, loss, place)
        if 0 in fitted.shape:
            raise Unsupported(f"target {place} has no elements")
        targets.append(fitted)
    return targets


def _fit(array: Array, output: TensorType, loss: str, place: int) -> Array:
    """A target in the type that the loss of an output takes."""
    if loss != "cross_entropy":
        is_float = array.dtype.kind == "f" and output.element.kind == "float"
        return array.astype(output.element.dtype) if is_float else array
    if array.dtype.kind not in "iu" or not array.size or array.shape != output.shape[:-1]:
        return array  # which the loss refuses
    least, most = int(array.min()), int(array.max())
    if least < 0 or most >= output.shape[-1]:
        wrong = least if least < 0 else most
        raise Unsupported(f"target {place} has class {wrong}, expected 0 to {output.shape[-1] - 1}")
    return array.astype(np.int64)


def names_of(given: Sequence[str], weights: Mapping[str, Array]) -> tuple[str, ...]:
    """Names of parameters, each once; Unsupported where one is asked for that is not there."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Unsupported(f"parameters are a {type(given).__name__}, expected a list of names")
    names = tuple(dict.fromkeys(map(str, given)))
    for name in names:
        if name not in weights:
            hint = did_you_mean(name, weights)
            raise Unsupported(f"there is no parameter {backquote(name)} of floats", hint)
    return names


def require_weights(weights: Mapping[str, Any], stored: Mapping[str, Array]) -> None:
    """Unsupported where somebody has put in weights that the model cannot have."""
    for name in weights.keys() | stored.keys():
        if name not in stored:
            raise Unsupported(f"there is no parameter {backquote(name)} of floats")
        found, was = weights.get(name), stored[name]
        if found is was:
            continue
        if _describe(found) != _describe(was):
            message = f"the weight {backquote(name)} is {_describe(found)}"
            raise Unsupported(f"{message}, expected {_describe(was)}")


def _describe(weight: object) -> str:
    if isinstance(weight, np.ndarray):
        return f"{weight.dtype}{list(weight.shape)}"
    return f"a {type(weight).__name__}"
