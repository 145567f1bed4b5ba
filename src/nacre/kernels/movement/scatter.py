"""Elements put into a copy of a tensor by index.

Where several updates meet one element, they come in row-major order: without a reduction the last
one stays, with one they are combined one after the other (floats up to 32 bits in f32, rounded
once), the same on every platform. A NaN stays whatever it is combined with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, dims_text, expect_rank, expect_shape
from nacre.kernels.interface.graph_runs import bind_at_first_run, with_dense_output
from nacre.kernels.interface.runs import present, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.gather import (
    FlatIndices,
    Indices,
    TupleIndices,
    clamped_box,
    fit_element_indices,
    fit_part,
    fit_tuples,
    last_starts,
    settle_indices,
)
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.reductions.reductions import widening

_REDUCTIONS: Mapping[str, np.ufunc] = MappingProxyType(
    {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
)

# The tensor, the numbers of its rows or elements, what comes there, the dense output.
Put = Callable[[Array, Indices, Array, Array], None]


def _updater(call: Call) -> Put:
    """How updates get into a copy of the tensor."""
    word = call.attributes.get("reduction", "none")
    return _replace_rows if word == "none" else _combiner(call, _REDUCTIONS[word])


def _replace_rows(x: Array, rows: Indices, updates: Array, y: Array) -> None:
    y[...] = x
    whole = np.dtype((np.void, updates.nbytes // rows.size))
    # `put` copies one after the other, each as a whole.
    target = y.reshape(-1).view(whole)
    target.put(rows, np.ascontiguousarray(updates).reshape(-1).view(whole), mode="clip")


def _combiner(call: Call, combine: np.ufunc) -> Put:
    wide, elem = widening(call.output), call.output.elem

    def put(x: Array, rows: Indices, updates: Array, y: Array) -> None:
        total = np.array(wide(x), order="C").reshape(-1)
        each = updates.size // rows.size
        places = rows.reshape(-1, 1) * each + np.arange(each)
        combine.at(total, places.reshape(-1), wide(updates).reshape(-1))
        found = low_bits(total, elem) if elem.bits < 8 else total
        y[...] = found.reshape(y.shape)

    return put


def _scatter_elements(call: Call) -> Run:
    x_shape = call.input(0).shape
    places = FlatIndices(x_shape, call.input(1).shape, call.attributes["axis"] % len(x_shape))
    return _scatter_run(places.of, _updater(call))


def _scatter_nd(call: Call) -> Run:
    tuples = TupleIndices(call.input(0).shape, call.input(1).shape, 0)
    return _scatter_run(tuples.of, _updater(call))


def _scatter_rows(call: Call) -> Run:
    size = call.input(0).shape[0]
    return _scatter_run(lambda indices: settle_indices(indices, size, 0), _replace_rows)


def _scatter_run(places: Callable[[Array], Indices | Fault], put: Put) -> Run:
    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        found = places(present(inputs[1]))
        if isinstance(found, Fault):
            return found
        put(present(inputs[0]), found, present(inputs[2]), outputs[0])
        return None

    return quiet(with_dense_output(run))


def _fit_reduction(attributes: Attributes) -> None:
    word = attributes["reduction"]
    if word != "none" and word not in _REDUCTIONS:
        raise Misfit(f"`reduction` is `{word}`, expected one of `none`, `add`, `mul`, `min`, `max`")


def _fit_scatter_elements(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices, updates = inputs
    _fit_reduction(attributes)
    fit_element_indices(x, indices, attributes)
    expect_shape(updates, indices, "`updates`")
    return x


def _fit_scatter_nd(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices, updates = inputs
    _fit_reduction(attributes)
    expect_shape(updates, fit_tuples(x, indices, 0), "`updates`")
    return x


def _fit_scatter_rows(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices, rows = inputs
    expect_rank(x, 1, name="`input`")
    expect_rank(indices, 0, 1, "`indices`")
    wanted = indices + x[1:]
    if rows != wanted and (indices or rows != (1, *wanted)):
        raise Misfit(f"`rows` has the shape {dims_text(rows)}, expected {dims_text(wanted)}")
    return x


def _dynamic_update(call: Call) -> Run:
    sizes = call.input(1).shape
    last = last_starts(call.input(0).shape, sizes)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        outputs[0][...] = present(inputs[0])
        outputs[0][clamped_box(present(inputs[2]), last, sizes)] = present(inputs[1])
        return None

    return run


def _fit_dynamic_update(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, update, starts = inputs
    expect_rank(update, len(x), len(x), "`update`")
    fit_part(x, update, starts, "`update`")
    return x


def _writes_updates(call: Call) -> Work:
    """What is written beside the copy, and the copy."""
    return Work(elements=call.output.count + prod(call.input(2).shape))


def _writes_rows(call: Call) -> Work:
    """Only rows: a cache that is kept in place needs no copy."""
    return Work(elements=prod(call.input(2).shape))


def _writes_part(call: Call) -> Work:
    return Work(elements=call.output.count + prod(call.input(1).shape))


GRAPH_SCATTER: tuple[Primitive, ...] = (
    Primitive(
        "core.ScatterElements",
        bind_at_first_run(_scatter_elements),
        Fitting(_fit_scatter_elements),
        _writes_updates,
    ),
    Primitive(
        "core.ScatterNd", bind_at_first_run(_scatter_nd), Fitting(_fit_scatter_nd), _writes_updates
    ),
    Primitive("core.ScatterRows", _scatter_rows, Fitting(_fit_scatter_rows), _writes_rows),
    Primitive("core.DynamicUpdate", _dynamic_update, Fitting(_fit_dynamic_update), _writes_part),
)
