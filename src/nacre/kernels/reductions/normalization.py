"""Softmax and normalisation along one axis, in f32, rounded once to the output type.

IEEE arithmetic decides about NaN and infinities, but for one case: a softmax over nothing but minus
infinity, a row that is masked whole, is 0. Over values that hold NaN or plus infinity it is NaN
throughout; a single minus infinity gives 0 (in `log_softmax` minus infinity, which of nothing else
is NaN). A normalised axis with any of them is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nacre.kernels.interface.call import Attributes, Call, Example, Primitive, Run, Work
from nacre.kernels.interface.shapes import Dims, axis_of
from nacre.kernels.reductions.normalization_rows import (
    Parameters,
    along_axis,
    centre_rows,
    log_softmax_rows,
    normalise_mean_square,
    softmax_along,
    softmax_rows,
)

# The greatest error against f64 for up to 4096 elements along the axis, in ulps that the greatest
# magnitude along the axis has in f32 (of `layernorm` the magnitude before the mean is subtracted,
# for that is where digits cancel), measured and rounded up. Ordered sums go one by one, and their
# error grows with the number of elements.
ULPS: Mapping[str, float] = MappingProxyType(
    {"softmax": 6.0, "log_softmax": 3.0, "layernorm": 5.0, "rmsnorm": 4.0}
)


def _bind_softmax(call: Call) -> Run:
    return softmax_along(call, _axis(call), softmax_rows)


def _bind_log_softmax(call: Call) -> Run:
    return softmax_along(call, _axis(call), log_softmax_rows)


def _bind_layernorm(call: Call) -> Run:
    axis = _axis(call)
    size = call.input(0).shape[axis]
    return along_axis(call, axis, centre_rows(call, size), Parameters(parts=size))


def _bind_rmsnorm(call: Call) -> Run:
    axis = _axis(call)
    size = call.input(0).shape[axis]
    return along_axis(call, axis, normalise_mean_square(call, size), Parameters(parts=size))


def _axis(call: Call) -> int:
    axis = axis_of(int(call.attributes["axis"]), len(call.input(0).shape))
    if axis is None:
        raise ValueError("the axis is out of range")
    return axis


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
    return Work(elements=3 * call.output.count, functions=call.output.count)


def _norm_work(call: Call) -> Work:
    return Work(elements=2 * call.output.count)


_SOFTMAX = (
    Example(((5, 5),), {"axis": 1}),
    Example(((2, 17, 3),), {"axis": 1}),
    Example(((1,),), {"axis": 0}),
)
_NORMS = (
    Example(((5, 8), (8,), (8,)), {"axis": 1, "epsilon": 1e-5}),
    Example(((2, 5, 3), (5,)), {"axis": -2, "epsilon": 1e-3}),
    Example(((4, 17),), {"axis": -1, "epsilon": 1e-5}),
    Example(((1, 1),), {"axis": 0, "epsilon": 1e-5}),
)
NORMALIZATION: tuple[Primitive, ...] = (
    *(
        Primitive(name, bind, _softmax_shape, _softmax_work, examples=_SOFTMAX)
        for name, bind in (("softmax", _bind_softmax), ("log_softmax", _bind_log_softmax))
    ),
    *(
        Primitive(name, bind, _norm_shape, _norm_work, examples=_NORMS)
        for name, bind in (("layernorm", _bind_layernorm), ("rmsnorm", _bind_rmsnorm))
    ),
)
