"""Steps of random graphs that end in operations which a device only has by name."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from tests.compile.random_graphs import MOST, Dims, Growing


def gather_elements(g: Growing) -> None:
    """Elements by their numbers along an axis."""
    x = g.pick()
    shape, axis, picked = _picked(g, x)
    g.add("GatherElements", x, g.indices(picked, shape[axis]), axis=axis)


def scatter_elements(g: Growing) -> None:
    """Numbers added where indices say."""
    x = g.pick()
    shape, axis, picked = _picked(g, x)
    indices = g.indices(picked, shape[axis])
    g.add("ScatterElements", x, indices, g.weights(*picked), axis=axis, reduction="add")


def _picked(g: Growing, x: int) -> tuple[Dims, int, Dims]:
    """A shape, an axis of it, and the shape with some other size there."""
    shape = g.shape(x)
    axis = g.number(0, len(shape) - 1)
    return shape, axis, (*shape[:axis], g.number(1, 5), *shape[axis + 1 :])


def gather_tuples(g: Growing) -> None:
    """Parts by tuples of numbers, image by image or not."""
    x = g.pick()
    shape = g.shape(x)
    batch = g.number(0, min(2, len(shape) - 1))
    length = g.number(1, min(2, len(shape) - batch))
    count = tuple(g.number(1, 4) for _ in range(g.number(0, 2)))
    made = (*shape[:batch], *count, *shape[batch + length :])
    if not made or len(made) > 5 or prod(made) > MOST:
        return
    below = min(shape[batch : batch + length])
    indices = g.indices((*shape[:batch], *count, length), below)
    g.add("GatherNd", x, indices, batch_dims=batch)


def one_hot(g: Growing) -> None:
    """Numbers of classes as rows with one number that is not as the others."""
    count = tuple(g.number(1, 7) for _ in range(g.number(1, 3)))
    depth = g.number(1, 9)
    if g.number(0, 1):
        indices = g.indices(count, depth)
    else:
        x = g.pick()
        indices = g.builder.add("ArgMax", x, axis=g.number(0, len(g.shape(x)) - 1))
    rank = len(g.shape(indices))
    if rank > 4 or prod(g.shape(indices)) * depth > MOST:
        return
    g.add("OneHot", indices, g.weights(2), depth=depth, axis=g.number(0, rank))


def along(g: Growing) -> None:
    """Sums so far, and the largest."""
    x = g.pick()
    shape = g.shape(x)
    axis = g.number(0, len(shape) - 1)
    word = g.draw(st.sampled_from(("CumSum", "TopKValues")))
    if word == "CumSum":
        flags = {"exclusive": bool(g.number(0, 1)), "reverse": bool(g.number(0, 1))}
        g.add("CumSum", x, axis=axis, **flags)
    else:
        g.add("TopKValues", x, k=g.number(1, shape[axis]), axis=axis, largest=True)


def triangle(g: Growing) -> None:
    """Zeros above or below a diagonal."""
    x = g.pick(g.number(2, 4))
    g.add("Trilu", x, upper=bool(g.number(0, 1)), k=g.number(-2, 2))


def response_norm(g: Growing) -> None:
    """Channels by their neighbours."""
    g.add("Lrn", g.pick(4), size=g.draw(st.sampled_from((1, 3, 5))), alpha=1e-2, bias=1.5)


NAMED = (gather_elements, scatter_elements, gather_tuples, one_hot, along, triangle, response_norm)
