"""Softmax and normalisation along one axis, in f32, rounded once to the output type.

Nothing is special about NaN and infinities: IEEE arithmetic decides. A softmax over values that
hold NaN or plus infinity, or nothing but minus infinity, is NaN throughout; a single minus
infinity gives 0 (in `log_softmax` minus infinity). A normalised axis with any of them is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from nacre.kernels.call import Array, Attributes, Call, Primitive, Run, Work
from nacre.kernels.numbers import Float32, widened
from nacre.kernels.real_functions import real_function
from nacre.kernels.runs import storing
from nacre.kernels.shapes import Dims, axis_of

# The greatest error against f64 for up to 4096 elements along the axis, in ulps that the greatest
# magnitude along the axis has in f32 (of `layernorm` the magnitude before the mean is subtracted,
# for that is where digits cancel), measured and rounded up. Ordered sums go one by one, and their
# error grows with the number of elements.
ULPS: Mapping[str, float] = MappingProxyType(
    {"softmax": 6.0, "log_softmax": 3.0, "layernorm": 5.0, "rmsnorm": 4.0}
)

Sum = Callable[[Array], Array]


def _bind_softmax(call: Call) -> Run:
    axis, total = _axis(call), _sum(call)
    exp = real_function("exp", {}, call.ordered)

    def compute(x: Array) -> Float32:
        values = _lowered(x, axis)
        exp(values, out=values)
        return np.divide(values, total(values), out=values)

    return storing(compute)


def _bind_log_softmax(call: Call) -> Run:
    axis, total = _axis(call), _sum(call)
    exp, log = (real_function(name, {}, call.ordered) for name in ("exp", "log"))

    def compute(x: Array) -> Float32:
        values = _lowered(x, axis)
        return np.subtract(values, log(total(exp(values))), out=values)

    return storing(compute)


def _lowered(x: Array, axis: int) -> Float32:
    """Values less the greatest along the axis, in a new array."""
    values = widened(x)
    return np.subtract(values, np.maximum.reduce(values, axis=axis, keepdims=True))


def _bind_layernorm(call: Call) -> Run:
    mean, epsilon, spread = _mean(call), _epsilon(call), _spread(call)

    def compute(x: Array, scale: Array | None = None, bias: Array | None = None) -> Float32:
        values = widened(x)
        values = values - mean(values)
        variance = mean(np.square(values))
        # Two roundings, a root and a reciprocal, on the short side instead of a long division.
        np.multiply(values, _reciprocal_root(variance, epsilon), out=values)
        return _moved(values, spread(scale), spread(bias))

    return storing(compute)


def _bind_rmsnorm(call: Call) -> Run:
    mean, epsilon, spread = _mean(call), _epsilon(call), _spread(call)

    def compute(x: Array, scale: Array | None = None) -> Float32:
        values = widened(x)
        values = np.multiply(values, _reciprocal_root(mean(np.square(values)), epsilon))
        return _moved(values, spread(scale), None)

    return storing(compute)


def _reciprocal_root(squares: Array, epsilon: np.float32) -> Array:
    root = np.sqrt(squares + epsilon)
    return np.divide(np.float32(1), root, out=root)


def _moved(values: Float32, scale: Array | None, bias: Array | None) -> Float32:
    if scale is not None:
        np.multiply(values, scale, out=values)
    if bias is not None:
        np.add(values, bias, out=values)
    return values


def _axis(call: Call) -> int:
    axis = axis_of(int(call.attributes["axis"]), len(call.input(0).shape))
    if axis is None:
        raise ValueError("the axis is out of range")
    return axis


def _epsilon(call: Call) -> np.float32:
    return np.float32(call.attributes["epsilon"])


def _sum(call: Call) -> Sum:
    """The sum along the axis; ordered, one by one from the front."""
    axis = _axis(call)
    if not call.ordered:
        return partial(np.add.reduce, axis=axis, keepdims=True)
    last = (slice(None),) * axis + (slice(-1, None),)
    return lambda values: np.add.accumulate(values, axis=axis)[last]


def _mean(call: Call) -> Sum:
    total, count = _sum(call), np.float32(call.input(0).shape[_axis(call)])

    def mean(values: Array) -> Array:
        found = total(values)
        return np.divide(found, count, out=found)

    return mean


def _spread(call: Call) -> Callable[[Array | None], Array | None]:
    """From one value per place along the axis to an array that broadcasts against the input."""
    rank, axis = len(call.input(0).shape), _axis(call)
    target = tuple(-1 if place == axis else 1 for place in range(rank))
    return lambda values: None if values is None else widened(values).reshape(target)


def _softmax_shape(shapes: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x = shapes[0] if len(shapes) == 1 else None
    return None if x is None or _size(x, attributes) is None else [x]


def _norm_shape(shapes: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    x = shapes[0] if shapes else None
    size = None if x is None else _size(x, attributes)
    if x is None or size is None:
        return None
    fits = all(parameter in (None, (size,)) for parameter in shapes[1:])
    return [x] if fits else None


def _size(x: Dims, attributes: Attributes) -> int | None:
    axis = axis_of(attributes["axis"], len(x))
    return None if axis is None else x[axis]


def _softmax_work(call: Call) -> Work:
    return Work(elements=3 * call.output.count)


def _norm_work(call: Call) -> Work:
    return Work(elements=2 * call.output.count)


NORMALIZATION: tuple[Primitive, ...] = (
    Primitive("softmax", _bind_softmax, _softmax_shape, _softmax_work),
    Primitive("log_softmax", _bind_log_softmax, _softmax_shape, _softmax_work),
    Primitive("layernorm", _bind_layernorm, _norm_shape, _norm_work),
    Primitive("rmsnorm", _bind_rmsnorm, _norm_shape, _norm_work),
)
