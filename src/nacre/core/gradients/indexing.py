"""Gradients of gathers and scatters: a gather goes back as a scatter that adds, and the reverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.writer import Value, where


def scatter_add(value: Value, indices: Value, axis: int, size: int) -> Value:
    """What indices in the place of an axis have picked, added up along that axis again."""
    count = indices.rank
    picked = tuple(range(axis, axis + count))
    order = (*picked, *(a for a in range(value.rank) if a not in picked))
    moved = value.transpose(order)
    rest = moved.shape[count:]
    zeros = value.writer.fill(0.0, value.dtype, (size, prod(rest)))
    rows = moved.reshape((prod(indices.shape), prod(rest)))
    sums = zeros.op("ScatterNd", indices.reshape((-1, 1)), rows, reduction="add")
    return sums.reshape((size, *rest)).transpose(
        (*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1))
    )


def gather(site: GradientSite) -> Value:
    """Of `Gather`, along the first axis."""
    return scatter_add(site.g, site.operands[1], 0, site.x.shape[0])


def gather_axis(site: GradientSite) -> Value:
    """Along any axis."""
    axis = site.attributes["axis"] % site.x.rank
    return scatter_add(site.g, site.operands[1], axis, site.x.shape[axis])


def gather_elements(site: GradientSite) -> Value:
    """Element by element."""
    zeros, axis = site.zeros(site.x), site.attributes["axis"]
    return zeros.op("ScatterElements", site.operands[1], site.g, axis=axis, reduction="add")


def gather_nd(site: GradientSite) -> Value:
    """By tuples; those of a batch get the place of that batch before them."""
    indices, batch = site.operands[1], site.attributes["batch_dims"]
    if batch:
        shape = (*indices.shape[:-1], 1)
        places = [site.writer.iota(shape, axis, indices.dtype) for axis in range(batch)]
        indices = places[0].op("Concat", *places[1:], indices, axis=indices.rank - 1)
    return site.zeros(site.x).op("ScatterNd", indices, site.g, reduction="add")


def top_values(site: GradientSite) -> Value:
    """To where the values came from."""
    given = {name: site.attributes[name] for name in ("k", "axis", "largest")}
    places = site.x.op("TopKIndices", **given)
    zeros = site.zeros(site.x)
    return zeros.op("ScatterElements", places, site.g, axis=given["axis"], reduction="add")


def one_hot(site: GradientSite) -> Value:
    """By the two values: the sum of what is not met, and of what is."""
    met = site.writer.iota((2,), 0).compare("Eq", 1.0)
    given = site.attributes
    is_met = site.operands[0].op("OneHot", met, depth=given["depth"], axis=given["axis"])
    every = tuple(range(site.y.rank))
    parts = [
        where(is_met, *sides).sum(every) for sides in ((0.0, site.compact_g), (site.compact_g, 0.0))
    ]
    return parts[0].reshape((1,)).op("Concat", parts[1].reshape((1,)), axis=0)


def dynamic_slice(site: GradientSite) -> Value:
    """Zeros around the part."""
    return site.zeros(site.x).op("DynamicUpdate", site.g, site.operands[1])


def dynamic_update_input(site: GradientSite) -> Value:
    """Zeros in the place of the part."""
    return site.g.op("DynamicUpdate", site.zeros(site.operands[1]), site.operands[2])


def dynamic_update_part(site: GradientSite) -> Value:
    """The part."""
    return site.g.op("DynamicSlice", site.operands[2], sizes=site.operand.shape)


@dataclass(frozen=True)
class _Scatter:
    """A scatter and the gather that goes with it, for the indices at hand."""

    site: GradientSite
    gather: Callable[[Value], Value]  # what an operand has where updates go
    scatter: Callable[[Value, Value, str], Value]  # into a tensor, updates, by a reduction
    updates: Value  # in the shape that the scatter takes

    def by_input(self, word: str) -> Value:
        """The gradient by the tensor that is scattered into."""
        g, site = self.site.g, self.site
        if word == "none":
            return self.scatter(g, site.zeros(self.updates), "none")
        if word == "mul":
            return self.scatter(g, self.updates, "mul")
        return g if word == "add" else where(self._is_input_kept(), g / self._ties(), 0.0)

    def by_updates(self, word: str) -> Value:
        """The gradient by the updates."""
        if word == "add":
            return self.gather(self.site.g)
        if word == "none":
            return where(self._is_last(), self.gather(self.site.g), 0.0)
        if word == "mul":
            return self.gather(self.site.g) * self._others()
        return where(self._is_update_result(), self.gather(self.site.g / self._ties()), 0.0)

    def _is_last(self) -> Value:
        """Which updates were not replaced by later ones at the same place."""
        shape = self.updates.shape
        numbers = self.site.writer.iota((prod(shape),), 0).reshape(shape)
        none = self.site.writer.fill(-1, "i64", self.site.x.shape)
        return self.gather(self.scatter(none, numbers, "none")).compare("Eq", numbers)

    def _is_input_kept(self) -> Value:
        return self.site.x.compare("Eq", self.site.y)

    def _is_update_result(self) -> Value:
        return self.updates.compare("Eq", self.gather(self.site.y))

    def _ties(self) -> Value:
        """How many elements share the smallest or largest at each place, as in PyTorch."""
        kept, met = (
            self._as_number(flag) for flag in (self._is_input_kept(), self._is_update_result())
        )
        return self.scatter(kept, met, "add")

    def _as_number(self, flag: Value) -> Value:
        return flag.op("Cast", to=self.site.x.dtype)

    def _others(self) -> Value:
        """The product of everything that met an update at its place, zeros counted apart."""
        x, updates = self.site.x, self.updates
        is_zero, was_zero = updates.compare("Eq", 0.0), x.compare("Eq", 0.0)
        product = self.scatter(where(was_zero, 1.0, x), where(is_zero, 1.0, updates), "mul")
        zeros = self.scatter(self._as_number(was_zero), self._as_number(is_zero), "add")
        rest = self.gather(product) / where(is_zero, 1.0, updates)
        left = self.gather(zeros) - self._as_number(is_zero)
        return where(left.compare("Eq", 0.0), rest, 0.0)


def _elements(site: GradientSite) -> _Scatter:
    _, indices, updates = site.operands
    axis = site.attributes["axis"]
    return _Scatter(
        site,
        lambda value: value.op("GatherElements", indices, axis=axis),
        lambda into, new, word: into.op("ScatterElements", indices, new, axis=axis, reduction=word),
        updates,
    )


def _tuples(site: GradientSite) -> _Scatter:
    _, indices, updates = site.operands
    return _by_tuples(site, indices, updates)


def _rows(site: GradientSite) -> _Scatter:
    """`ScatterRows`; an index without axes is of one row, which may have an axis of 1 for it."""
    _, indices, rows = site.operands
    tuples = indices.reshape((*indices.shape, 1))
    return _by_tuples(site, tuples, rows.reshape((*indices.shape, *site.x.shape[1:])))


def _by_tuples(site: GradientSite, indices: Value, updates: Value) -> _Scatter:
    return _Scatter(
        site,
        lambda value: value.op("GatherNd", indices),
        lambda into, new, word: into.op("ScatterNd", indices, new, reduction=word),
        updates,
    )


def _scatter_rules(scatter_of: Callable[[GradientSite], _Scatter]) -> tuple[Rule, None, Rule]:
    def by_input(site: GradientSite) -> Value:
        return scatter_of(site).by_input(site.attributes.get("reduction", "none"))

    def by_updates(site: GradientSite) -> Value:
        gradient = scatter_of(site).by_updates(site.attributes.get("reduction", "none"))
        return gradient.reshape(site.operand.shape)

    return by_input, None, by_updates


# None: an operand that has no gradient, such as indices.
INDEXING: Mapping[str, tuple[Rule | None, ...]] = MappingProxyType(
    {
        "Gather": (gather, None),
        "GatherAxis": (gather_axis, None),
        "GatherElements": (gather_elements, None),
        "GatherNd": (gather_nd, None),
        "ScatterElements": _scatter_rules(_elements),
        "ScatterNd": _scatter_rules(_tuples),
        "ScatterRows": _scatter_rules(_rows),
        "TopKValues": (top_values,),
        "OneHot": (None, one_hot),
        "DynamicSlice": (dynamic_slice, None),
        "DynamicUpdate": (dynamic_update_input, dynamic_update_part, None),
    }
)
