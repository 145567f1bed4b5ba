"""`Pad` as graphs have it: pads below 0 take elements away, and the rest is what is surrounded.

In mode `constant` the value of an integer tensor must be an integer of its type; a float is rounded
to the type. `wrap` goes around as often as it takes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_length
from nacre.kernels.interface.graph_runs import bind_at_first_run
from nacre.kernels.interface.runs import fill_run, quietly
from nacre.kernels.interface.shapes import Dims, pad
from nacre.kernels.movement.padding import bind_pad
from nacre.kernels.movement.views import moves_outputs

_MODES = ("constant", "reflect", "edge", "wrap")


def _crop(x: Dims, pads: Sequence[int]) -> tuple[tuple[slice, ...], Dims]:
    """What is left of a tensor where pads are below 0, and the pads that surround it."""
    half = len(x)
    left = tuple(
        slice(max(0, -begin), size - max(0, -end))
        for size, begin, end in zip(x, pads[:half], pads[half:], strict=True)
    )
    return left, tuple(max(0, width) for width in pads)


def _bind(call: Call) -> Run:
    mode = call.attributes["mode"]
    left, pads = _crop(call.input(0).shape, call.attributes["pads"])
    if mode == "constant":
        return _bind_constant(call, left, pads)
    shape = tuple(part.stop - part.start for part in left)
    if mode == "wrap":
        return _bind_wrap(left, shape, pads)
    around = bind_pad(
        replace(
            call,
            inputs=(replace(call.input(0), shape=shape),),
            attributes={"mode": mode, "pads": pads},
        )
    )
    return lambda inputs, outputs: around([x[left] for x in inputs if x is not None], outputs)


def _bind_constant(call: Call, left: tuple[slice, ...], pads: Dims) -> Run:
    problem = value_problem(call.input(0).elem, call.attributes["value"])
    if problem is not None:
        raise ValueError(problem)
    value = quietly(_element, call)
    shape = call.output.shape
    inner = tuple(
        slice(begin, begin + part.stop - part.start)
        for begin, part in zip(pads[: len(left)], left, strict=True)
    )
    # Around the inside, axis by axis: each place once.
    border = [
        (*inner[:axis], outside)
        for axis, size in enumerate(shape)
        for outside in (slice(0, inner[axis].start), slice(inner[axis].stop, size))
        if outside.start < outside.stop
    ]

    def fill(x: Array, y: Array) -> None:
        y[inner] = x[left]
        for place in border:
            y[place] = value

    return fill_run(fill)


def _element(call: Call) -> Array:
    value, elem = call.attributes["value"], call.output.elem
    if not elem.is_integer and isinstance(value, int) and abs(value) > sys.float_info.max:
        value = inf if value > 0 else -inf
    return np.array(value).astype(call.output.dtype)


def _bind_wrap(left: tuple[slice, ...], shape: Dims, pads: Dims) -> Run:
    widths = list(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
    sources = [
        (axis, np.arange(-begin, size + end) % size)
        for axis, (size, (begin, end)) in enumerate(zip(shape, widths, strict=True))
        if begin or end
    ]

    def fill(x: Array, y: Array) -> None:
        values = x[left]
        for axis, source in reversed(sources):  # whole rows are copied last
            values = values.take(source, axis=axis)
        y[...] = values

    return fill_run(fill)


def value_problem(elem: ElementType, value: float) -> str | None:
    """Why an element type has no such value; None where it has. A float type rounds any value."""
    if not elem.is_integer:
        return None
    # Comparisons say no to NaN, and never turn a large integer into a float.
    if elem.lowest <= value <= elem.highest and value == int(value):
        return None
    return f"`value` is {value}, expected an integer of `{elem.name}`"


def pad_problem(names: Sequence[str], attributes: Attributes) -> str | None:
    """The same by the names of the operands' element types, for attributes with defaults."""
    elem = GRAPH_TYPES.get(names[0])
    if elem is None or attributes["mode"] != "constant":
        return None
    return value_problem(elem, attributes["value"])


def _fit(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    pads, mode = tuple(attributes["pads"]), attributes["mode"]
    if mode not in _MODES:
        raise Misfit(f"`mode` is `{mode}`, expected one of `{'`, `'.join(_MODES)}`")
    expect_length(pads, 2 * len(x), "pads")
    left, around = _crop(x, pads)
    for axis, part in enumerate(left):
        size = part.stop - part.start
        if size < 1:
            raise Misfit(f"`pads` leave nothing of axis {axis}, which has the size {x[axis]}")
        widest = max(around[axis], around[axis + len(x)])
        if mode == "reflect" and widest >= size:
            told = f"`pads` has {widest} for axis {axis}"
            raise Misfit(f"{told}, expected at most {size - 1}: reflection leaves the edge out")
    return pad(x, pads)


GRAPH_PAD = (Primitive("core.Pad", bind_at_first_run(_bind), Fitting(_fit), moves_outputs),)
