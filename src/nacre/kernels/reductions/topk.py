"""The k largest or smallest elements along an axis, and where they lie.

Equal elements come in the order of their indices, and -0.0 equals 0.0. NaN counts as the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, fitting_axis
from nacre.kernels.interface.runs import fill_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.reductions.reductions import widening

Find = Callable[[Array], Array]  # values along the last axis, indices of k of them in order


def _index_finder(call: Call) -> Find:
    x, k, is_largest = call.input(0), call.attributes["k"], call.attributes["largest"]
    wide, elem = widening(x), x.elem
    axis = call.attributes["axis"] % len(x.shape)
    count = x.shape[axis]

    def find_narrow(values: Array) -> Array:
        # Rank and index in one number: all differ, so that the first k need no stable sort.
        keys = _ranks(values, elem, is_largest).astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= np.arange(count, dtype=np.uint64)
        if k < count:
            keys = np.partition(keys, k - 1)[..., :k]
        keys.sort()
        return (keys & np.uint64(0xFFFF_FFFF)).astype(np.int64)

    def find_wide(values: Array) -> Array:
        ranks = _ranks(values, elem, is_largest)
        return np.argsort(ranks, axis=-1, kind="stable")[..., :k]

    find = find_narrow if elem.bits <= 32 and count < 1 << 32 else find_wide
    return lambda values: np.moveaxis(find(np.moveaxis(wide(values), axis, -1)), -1, axis)


def _ranks(values: Array, elem: ElementType, is_largest: bool) -> Array:
    """Unsigned integers in the order of the values; backwards where the largest come first."""
    if elem.is_integer:
        unsigned = np.uint64 if elem.bits > 32 else np.uint32
        # Modulo 2 to the width: the lowest value becomes 0.
        ranks = values.astype(unsigned) - np.array(int(elem.lowest), np.int64).astype(unsigned)
    else:
        ranks = _float_ranks(values)
    backwards: Array = np.invert(ranks)
    return backwards if is_largest else ranks


def _float_ranks(values: Array) -> Array:
    """The bits of floats, those below 0 turned around; one zero, and NaN above all."""
    unsigned = np.dtype(f"u{values.itemsize}")
    bits = np.ascontiguousarray(values + values.dtype.type(0)).view(unsigned)
    sign = unsigned.type(1 << (8 * values.itemsize - 1))
    ranks = np.where(bits & sign, ~bits, bits | sign)
    ranks[np.isnan(values)] = np.iinfo(unsigned).max
    return ranks


def _top_values(call: Call) -> Run:
    find, axis = _index_finder(call), call.attributes["axis"] % len(call.input(0).shape)

    def fill(x: Array, y: Array) -> None:
        y[...] = np.take_along_axis(x, find(x), axis)

    return fill_run(fill)


def _top_indices(call: Call) -> Run:
    find = _index_finder(call)

    def fill(x: Array, y: Array) -> None:
        y[...] = find(x)

    return fill_run(fill)


def _fit(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    axis, k = fitting_axis(attributes["axis"], len(x)), attributes["k"]
    if not 1 <= k <= x[axis]:
        raise Misfit(f"`k` is {k}, expected 1 to {x[axis]}")
    return (*x[:axis], k, *x[axis + 1 :])


def _work(call: Call) -> Work:
    """A comparison for each element and each halving of k."""
    return Work(elements=call.input(0).count, each=max(1, call.attributes["k"].bit_length()))


GRAPH_TOPK = (
    Primitive("core.TopKValues", _top_values, Fitting(_fit), _work),
    Primitive("core.TopKIndices", _top_indices, Fitting(_fit), _work),
)
