"""Elements by index: gathers, `OneHot`, and parts from starts that are moved inside.

An index below 0 counts from the end. One outside of [-n, n) is a fault, but for `OneHot`, where it
meets no place of the new axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run
from nacre.kernels.interface.fitting import (
    Fitting,
    Misfit,
    dims_text,
    expect_least,
    expect_length,
    expect_rank,
    expect_shape,
    fitting_axis,
)
from nacre.kernels.interface.graph_runs import bind_at_first_run
from nacre.kernels.interface.runs import present
from nacre.kernels.interface.shapes import Dims, gather
from nacre.kernels.movement.views import moves_outputs

Indices = npt.NDArray[np.int64]


def settle_indices(indices: Array, size: int, axis: int) -> Indices | Fault:
    """Indices counted from the front; a fault with the place of the first one outside."""
    wide = indices.astype(np.int64, copy=False)
    # Read as unsigned, what is below -size is huge: one comparison finds both ends.
    if np.max((wide + size).view(np.uint64)) >= 2 * size:
        return _index_fault(wide, size, axis)
    return count_from_front(wide, size)


def count_from_front(wide: Indices, size: int) -> Indices:
    """Indices counted from the front."""
    return np.where(wide < 0, wide + size, wide) if wide.min() < 0 else wide


def _index_fault(wide: Indices, size: int, axis: int) -> Fault:
    bad = (wide < -size) | (wide >= size)
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    found = int(wide[position])
    message = f"index is {found}, expected {-size} to {size - 1} along axis {axis}"
    return Fault("index", message, position)


class FlatIndices:
    """Flat places in a tensor of elements that an index along one axis picks."""

    def __init__(self, x: Dims, indices: Dims, axis: int) -> None:
        steps = [prod(x[at + 1 :]) for at in range(len(x))]
        self._axis, self._size, self._step = axis, x[axis], steps[axis]
        # Where the other axes lead; as large as the indices without the axis.
        base = np.zeros((1,) * len(x), np.int64)
        for at, count in enumerate(indices):
            if at != axis:
                along = np.arange(count, dtype=np.int64) * steps[at]
                base = base + along.reshape([-1 if at == i else 1 for i in range(len(x))])
        self._base = base

    def of(self, indices: Array) -> Indices | Fault:
        """The places of all indices, in their shape."""
        found = settle_indices(indices, self._size, self._axis)
        return found if isinstance(found, Fault) else found * self._step + self._base


class TupleIndices:
    """Which parts of a tensor index tuples pick, the parts being numbered in order."""

    def __init__(self, x: Dims, indices: Dims, batch: int) -> None:
        self.depth = indices[-1]
        self._batch = batch
        self._sizes = x[batch : batch + self.depth]
        self._steps = [prod(self._sizes[at + 1 :]) for at in range(self.depth)]
        self.part = x[batch + self.depth :]
        self.count = prod(x[: batch + self.depth])
        firsts = np.arange(prod(x[:batch]), dtype=np.int64) * prod(self._sizes)
        self._firsts = firsts.reshape((*x[:batch], *(1,) * (len(indices) - 1 - batch)))

    def of(self, indices: Array) -> Indices | Fault:
        """The number of each part, in the shape of the indices without their last axis."""
        total: Indices = np.broadcast_to(self._firsts, indices.shape[:-1])
        for at, (size, step) in enumerate(zip(self._sizes, self._steps, strict=True)):
            found = settle_indices(indices[..., at], size, self._batch + at)
            if isinstance(found, Fault):
                where = (*(found.position or ()), at)
                return Fault(found.kind, found.message, where)
            total = total + found * step
        return total


def _gather_axis(call: Call) -> Run:
    x_shape = call.input(0).shape
    axis = call.attributes["axis"] % len(x_shape)
    size = x_shape[axis]

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        found = settle_indices(present(inputs[1]), size, axis)
        if isinstance(found, Fault):
            return found
        np.take(present(inputs[0]), found, axis=axis, out=outputs[0], mode="clip")
        return None

    return run


def _fit_gather_axis(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices = inputs
    return gather(x, indices, fitting_axis(attributes["axis"], len(x)))


def _gather_elements(call: Call) -> Run:
    x_shape = call.input(0).shape
    places = FlatIndices(x_shape, call.input(1).shape, call.attributes["axis"] % len(x_shape))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        found = places.of(present(inputs[1]))
        if isinstance(found, Fault):
            return found
        present(inputs[0]).reshape(-1).take(found, out=outputs[0], mode="clip")
        return None

    return run


def fit_element_indices(x: Dims, indices: Dims, attributes: Attributes) -> None:
    """Raise a Misfit where indices along an axis do not lie beside elements of a tensor."""
    axis = fitting_axis(attributes["axis"], len(x))
    expect_rank(indices, len(x), len(x), "`indices`")
    for at, (size, count) in enumerate(zip(x, indices, strict=True)):
        if at != axis and count > size:
            told = f"`indices` has the shape {dims_text(indices)}"
            raise Misfit(f"{told}, expected at most {size} along axis {at}")


def _fit_gather_elements(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices = inputs
    fit_element_indices(x, indices, attributes)
    return indices


def _gather_nd(call: Call) -> Run:
    tuples = TupleIndices(call.input(0).shape, call.input(1).shape, call.attributes["batch_dims"])

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        found = tuples.of(present(inputs[1]))
        if isinstance(found, Fault):
            return found
        parts = present(inputs[0]).reshape(tuples.count, *tuples.part)
        parts.take(found, axis=0, out=outputs[0], mode="clip")
        return None

    return run


def fit_tuples(x: Dims, indices: Dims, batch: int) -> Dims:
    """The shape of the parts that index tuples pick, one for each tuple."""
    expect_rank(x, 1, name="`input`")
    expect_rank(indices, 1, name="`indices`")
    most = min(len(x), len(indices)) - 1
    if not 0 <= batch <= most:
        raise Misfit(f"`batch_dims` is {batch}, expected 0 to {most}")
    if x[:batch] != indices[:batch]:
        told = f"`indices` has the shape {dims_text(indices)}"
        raise Misfit(f"{told}, expected it to begin with {dims_text(x[:batch])}")
    if indices[-1] > len(x) - batch:
        told = f"the last axis of `indices` has the size {indices[-1]}"
        raise Misfit(f"{told}, expected at most {len(x) - batch}")
    return (*indices[:-1], *x[batch + indices[-1] :])


def _fit_gather_nd(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, indices = inputs
    return fit_tuples(x, indices, attributes["batch_dims"])


def _one_hot(call: Call) -> Run:
    rank, depth = len(call.output.shape), call.attributes["depth"]
    axis = call.attributes["axis"] % rank
    shape = tuple(depth if at == axis else 1 for at in range(rank))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        indices, values = present(inputs[0]), present(inputs[1])
        wide = count_from_front(indices.astype(np.int64, copy=False), depth)
        is_met = np.expand_dims(wide, axis) == np.arange(depth).reshape(shape)
        outputs[0][...] = np.where(is_met, values[1], values[0])
        return None

    return run


def _fit_one_hot(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    indices, values = inputs
    axis = fitting_axis(attributes["axis"], len(indices) + 1)
    expect_shape(values, (2,), "`values`")
    expect_least((attributes["depth"],), 1, "depth")
    return (*indices[:axis], attributes["depth"], *indices[axis:])


def last_starts(x: Dims, sizes: Dims) -> Array:
    """The last start along each axis from which a part of these sizes lies inside."""
    return np.array([size - part for size, part in zip(x, sizes, strict=True)], np.int64)


def clamped_box(starts: Array, last: Array, sizes: Dims) -> tuple[slice, ...]:
    """The part of these sizes from starts that are moved inside."""
    moved = np.minimum(np.maximum(starts, 0), last).tolist()
    return tuple(slice(at, at + size) for at, size in zip(moved, sizes, strict=True))


def _dynamic_slice(call: Call) -> Run:
    sizes = call.output.shape
    last = last_starts(call.input(0).shape, sizes)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        outputs[0][...] = present(inputs[0])[clamped_box(present(inputs[1]), last, sizes)]
        return None

    return run


def fit_part(x: Dims, sizes: Dims, starts: Dims, name: str) -> None:
    """Raise a Misfit where a part does not lie inside a tensor, or has other starts than axes."""
    expect_rank(x, 1, name="`input`")
    expect_shape(starts, (len(x),), "`starts`")
    for axis, (size, part) in enumerate(zip(x, sizes, strict=True)):
        if not 1 <= part <= size:
            raise Misfit(f"{name} has {part} along axis {axis}, expected 1 to {size}")


def _fit_dynamic_slice(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, starts = inputs
    sizes = tuple(attributes["sizes"])
    expect_length(sizes, len(x), "sizes")
    fit_part(x, sizes, starts, "`sizes`")
    return sizes


GRAPH_GATHER = (
    Primitive("core.GatherAxis", _gather_axis, Fitting(_fit_gather_axis), moves_outputs),
    Primitive(
        "core.GatherElements",
        bind_at_first_run(_gather_elements),
        Fitting(_fit_gather_elements),
        moves_outputs,
    ),
    Primitive(
        "core.GatherNd", bind_at_first_run(_gather_nd), Fitting(_fit_gather_nd), moves_outputs
    ),
    Primitive("core.OneHot", _one_hot, Fitting(_fit_one_hot), moves_outputs),
    Primitive("core.DynamicSlice", _dynamic_slice, Fitting(_fit_dynamic_slice), moves_outputs),
)
