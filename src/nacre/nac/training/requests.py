"""What a step of training is asked for, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, nextafter
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.module import Module, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, array_or_none
from nacre.nac.training.losses import LOSSES
from nacre.nac.training.optimisers import OPTIMISERS, SGD, Adam, AdamW, Optimiser

_SHARE = (0.0, 1.0)
# What a setting of an optimiser lies between, both included; above 1 - eps a mean never moves.
_SETTINGS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "momentum": (0.0, inf),
        "dampening": _SHARE,
        "weight_decay": (0.0, inf),
        "betas": (0.0, nextafter(1.0, 0.0)),
        "eps": (0.0, inf),
    }
)


def rate_of(given: object) -> np.float32:
    """How far a step goes; Unsupported for what is no number of 32 bits, or below 0."""
    if not _is_number(given):
        raise Unsupported(f"the rate is a {type(given).__name__}, expected a number")
    with np.errstate(over="ignore"):
        rate = np.float32(_float(given))
    if not np.isfinite(rate):
        raise Unsupported(f"the rate is {given}, expected a finite number of 32 bits")
    if rate < 0:
        raise Unsupported(f"the rate is {given}, expected 0 or more: a step goes down the gradient")
    return rate


def require_loss(given: object) -> None:
    """Unsupported for a loss that there is not."""
    if not isinstance(given, str) or given not in LOSSES:
        raise Unsupported(f"there is no loss {backquote(str(given), 40)}, only {', '.join(LOSSES)}")


def smoothing_of(given: object, loss: str) -> float:
    """How much of a label all classes share; Unsupported for no share, or of another loss."""
    if not _is_number(given) or not 0 <= given <= 1:
        shown = given if _is_number(given) else f"a {type(given).__name__}"
        raise Unsupported(f"`label_smoothing` is {shown}, expected a number from 0 to 1")
    if given and not LOSSES[loss].smooths:
        takers = ", ".join(name for name, one in LOSSES.items() if one.smooths)
        raise Unsupported(f"{loss} has no labels to smooth, only {takers}")
    return float(given)


def optimiser_of(given: object) -> Optimiser:
    """An optimiser, by its name with its usual settings; Unsupported where there is none."""
    if isinstance(given, str) and given in OPTIMISERS:
        return OPTIMISERS[given]()
    if not isinstance(given, SGD | Adam | AdamW):
        shown = backquote(given, 40) if isinstance(given, str) else f"in a {type(given).__name__}"
        help_ = "or a value with settings, such as `nac.AdamW(weight_decay=0.1)`"
        raise Unsupported(f"there is no optimiser {shown}, only {', '.join(OPTIMISERS)}", help_)
    for name, (least, most) in _SETTINGS.items():
        found = getattr(given, name, ())
        values = found if isinstance(found, tuple) else (found,)
        for value in values:
            if not _is_number(value) or not isfinite(_float(value)) or not least <= value <= most:
                wanted = f"from {least:g} on" if most == inf else f"between {least:g} and 1"
                raise Unsupported(f"`{name}` is {found!r}, expected numbers {wanted}")
        if name == "betas" and values and len(values) != 2:
            raise Unsupported(f"`betas` is {found!r}, expected two numbers")
    if isinstance(given, SGD) and given.nesterov and (not given.momentum or given.dampening):
        raise Unsupported("`nesterov` needs a momentum, and no dampening")
    return given


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real | np.floating) and not isinstance(value, bool)


def _float(number: float) -> float:
    """A number as a float; a whole one or a fraction may be larger than any."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


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
            wanted = LOSSES[loss]
            remedy = f"convert them if they mean that: `target.astype(np.{wanted.dtype})`"
            raise Unsupported(f"target {place} has booleans, expected {wanted.targets}", remedy)
        output = module.by_id[module.outputs[place]] if place < len(module.outputs) else None
        fitted = array if output is None else _fit(array, output.type, loss, place)
        if 0 in fitted.shape:
            raise Unsupported(f"target {place} has no elements")
        targets.append(fitted)
    return targets


def _fit(array: Array, output: TensorType, loss: str, place: int) -> Array:
    """A target in the type that the loss of an output takes."""
    if loss != "cross_entropy":
        if array.dtype.kind != "f" or output.element.kind != "float":
            return array  # which the loss refuses
        return _fit_floats(array, output, loss, place)
    if array.dtype.kind not in "iu" or not array.size or array.shape != output.shape[:-1]:
        return array  # which the loss refuses
    least, most = int(array.min()), int(array.max())
    if least < 0 or most >= output.shape[-1]:
        wrong = least if least < 0 else most
        raise Unsupported(f"target {place} has class {wrong}, expected 0 to {output.shape[-1] - 1}")
    return array.astype(np.int64)


def _fit_floats(array: Array, output: TensorType, loss: str, place: int) -> Array:
    """Floats in the type of an output; one that is not finite would spoil every weight."""
    with np.errstate(over="ignore"):
        fitted = array.astype(output.element.dtype)
    is_right = np.isfinite(fitted)
    wanted = "finite numbers"
    if loss == "bce_with_logits":
        is_right, wanted = (fitted >= 0) & (fitted <= 1), LOSSES[loss].targets
    if not is_right.all():
        wrong = array[~is_right].flat[0]
        raise Unsupported(f"target {place} has {wrong:g}, expected {wanted}")
    return fitted


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


def require_finite(gradients: Mapping[str, Array]) -> None:
    """Unsupported where a step would make weights NaN or infinite."""
    wrong = [name for name, gradient in gradients.items() if not np.isfinite(gradient).all()]
    if wrong:
        more = f" and {len(wrong) - 1} more are" if len(wrong) > 1 else " is"
        message = f"the gradient of {backquote(wrong[0])}{more} NaN or infinite: no weight changed"
        hint = "look for NaN and infinite values in inputs and weights, or take a smaller rate"
        raise Unsupported(message, hint)


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
