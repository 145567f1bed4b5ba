"""The scale and zero point of every value: values that share them, and what they must cover."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2

from nacre.compile.quantise.affine import WIDE_HIGH, Affine, affine_of_range
from nacre.compile.quantise.following_function import function_after
from nacre.compile.quantise.islands import FloatIslands
from nacre.compile.quantise.observers import Function, Histogram, Observer
from nacre.compile.quantise.roles import Graph, added_number, bounds_of, scale_factor
from nacre.core.module import CoreOperation

# A part of a Concat that others use too takes over its scale if it has half of its range.
_LEAST_SHARE = 0.5
# An operand takes over the scale of another that meets the same weights from so much of its range.
_LEAST_TIED = 1 / 16
_FEW_WEIGHTS = 1 << 12
# 16 bits are more than f16 has: what was not seen may be larger.
_WIDE_ROOM = 1.5
_LEAST_WIDE = 2.0**-24  # f16 has no smaller number
_BOUNDED = ("input", "product", "pair", "scale", "map", "pool")  # may take over bounds that follow


class Scales:
    """Finds scales: values that must agree are gathered first."""

    def __init__(
        self,
        graph: Graph,
        islands: FloatIslands,
        histograms: Mapping[int, Histogram],
        observer: Observer,
        given: Mapping[int, Affine],
    ) -> None:
        self._graph, self._islands, self._histograms = graph, islands, histograms
        self._observer, self._given = observer, given
        self._parents: dict[int, int] = {}
        self._fixed: dict[int, Affine] = {}  # of groups, by the model itself
        self._factors: dict[int, tuple[int, float]] = {}  # of groups: another value's, times that
        self._sums: dict[int, tuple[int, float]] = {}  # of values: another value, plus that
        self._shifted: set[int] = set()  # those of them that take its integers
        self.bounded: set[int] = set()  # values whose range is that of what bounds them
        self.functions: dict[int, Function] = {}  # that scales of values were chosen for
        self._affines: dict[int, Affine] = {}
        self._gather()

    def of(self, value: int) -> Affine:
        """The scale of a value; of one in floats, that in which integers would have it."""
        root = self._root(value)
        if root not in self._affines:
            self._affines[root] = self._choose(root)
        return self._affines[root]

    def wide(self, value: int) -> Affine:
        """The scale of a value in 16 bits: a power of two, so that f16 multiplies by it exactly."""
        least = max(self.largest_magnitude(value) * _WIDE_ROOM / WIDE_HIGH, _LEAST_WIDE)
        return Affine(2.0 ** ceil(log2(least)), 0)

    def is_factor(self, value: int) -> bool:
        """Whether a value is another one under another scale."""
        return self._root(value) == value and value in self._factors

    def is_alias(self, value: int) -> bool:
        """Whether a value has the integers of another one, with another scale or zero point."""
        self.of(value)
        return self.is_factor(value) or value in self._shifted

    def _root(self, value: int) -> int:
        while self._parents.get(value, value) != value:
            value = self._parents[value]
        return value

    def _gather(self) -> None:
        graph = self._graph
        for value, affine in self._given.items():
            self._fixed[value] = affine
        for op in graph.module.operations:
            if graph.roles[op.value_id] == "constant" or not self._is_i8(op.value_id):
                continue
            factor = scale_factor(graph, op)
            if op.opcode == "Concat":
                self._concat(op)
            elif graph.roles[op.value_id] == "keep":
                self._join(op.operands[0], op.value_id)
            elif factor is not None and op.value_id not in self._fixed:
                source = graph.computed_operands(op)[0]
                if self._is_i8(source):
                    self._factors[op.value_id] = source, factor
            elif bounds_of(op) is not None:
                self._move_bounds_up(op)
            elif (number := added_number(graph, op)) is not None and not self._given:
                source = graph.computed_operands(op)[0]
                if self._is_i8(source):
                    self._sums[op.value_id] = source, number
        self._share_weight_scales()

    def _share_weight_scales(self) -> None:
        """One scale for all that is multiplied by the same weights: they are stored once then.

        That is worth some accuracy for the weights of a recurrence, and hardly any for the ones of
        a mean; operands of very unlike ranges have their own scales.
        """
        graph = self._graph
        tied: dict[tuple[int, ...], list[tuple[int, float]]] = {}  # a value, and how far all reach
        for op in graph.module.operations:
            if graph.roles[op.value_id] != "product" or not self._is_i8(op.value_id):
                continue
            source, reach = op.operands[0], self.largest_magnitude(op.operands[0])
            weights = graph.constants[op.operands[1]]
            least = _LEAST_SHARE if weights.size <= _FEW_WEIGHTS else _LEAST_TIED
            alike = tied.setdefault(op.operands[1:], [])
            for at, (first, most) in enumerate(alike):
                if min(reach, most) >= least * max(reach, most) or not min(reach, most):
                    self._join(first, source)
                    alike[at] = first, max(reach, most)
                    break
            else:
                alike.append((source, reach))

    def _is_i8(self, value: int) -> bool:
        return self._islands.is_i8(self._graph, value)

    def _join(self, source: int, result: int) -> bool:
        """One scale for two values, unless the model gives them two."""
        a, b = self._root(source), self._root(result)
        if a == b:
            return True
        is_set = [root in self._fixed or root in self._factors for root in (a, b)]
        if all(is_set):
            return a in self._fixed and self._fixed.get(a) == self._fixed.get(b)
        if is_set[1]:
            a, b = b, a
        self._parents[b] = a
        return True

    def _move_bounds_up(self, op: CoreOperation) -> None:
        """Give bounds to what they bound, if nothing else sees it: there they cost nothing."""
        source = op.operands[0]
        is_free = source not in self._fixed and not self.is_factor(source)
        is_moved = self._graph.roles[source] == "keep"
        if (
            self._is_i8(source)
            and (self._graph.roles[source] in _BOUNDED or (is_moved and self._given))
            and self._graph.only_user(source) is op
            and is_free
            and self._join(op.value_id, source)
        ):
            self.bounded.add(source)
            self._sums.pop(source, None)

    def _concat(self, op: CoreOperation) -> None:
        graph, whole = self._graph, self.largest_magnitude(op.value_id)
        for part in dict.fromkeys(op.operands):
            if part in graph.constants or not self._is_i8(part):
                continue
            root = self._root(part)
            if root in self._factors or root in self._fixed:
                continue  # it is quantised once more
            if self._is_only_here(part, op) or self.largest_magnitude(part) >= _LEAST_SHARE * whole:
                self._join(part, op.value_id)

    def _is_only_here(self, value: int, op: CoreOperation) -> bool:
        """Whether a value and what it was moved from have no other use."""
        graph = self._graph
        if graph.only_user(value) is not op:
            return False
        maker = graph.op(value)
        if graph.roles[value] == "keep" and len(graph.computed_operands(maker)) == 1:
            return self._is_only_here(maker.operands[0], maker)
        return graph.roles[value] != "input"

    def largest_magnitude(self, value: int) -> float:
        """The largest magnitude of a value on the data."""
        found = self._histograms.get(value)
        return 0.0 if found is None or found.is_empty else max(-found.low, found.high)

    def _choose(self, root: int) -> Affine:
        if root in self._fixed:
            return self._fixed[root]
        if root in self._factors:
            source, factor = self._factors[root]
            return self.of(source).times(factor)
        moved = self._shifted_affine(root)
        if moved is not None:
            self._shifted.add(root)
            return moved
        inherited = self._inherited_affine(root) if self._given else None
        if inherited is not None:
            return inherited
        members = [value for value in self._members(root) if value not in self.bounded]
        # What is moved has the elements of what it was moved from.
        computed = [v for v in members if self._graph.roles[v] != "keep"] or members
        wide = [v for v in members if self._graph.op(v).opcode in ("Concat", "Pad")]
        total = Histogram()
        for value in dict.fromkeys((*computed, *wide)):
            if value in self._histograms:
                total = total.merge(self._histograms[value])
        if total.is_empty:
            return affine_of_range(0.0, 0.0)
        affine = self._observer(total, self._function_of_members(computed))
        numbers = [n for source, n in self._sums.values() if self._root(source) == root]
        return affine.with_step_dividing(numbers[0]) if len(numbers) == 1 else affine

    def _shifted_affine(self, root: int) -> Affine | None:
        """The scale of a sum with a number: that of the other operand, with another zero point."""
        if root not in self._sums:
            return None
        roles, op = self._graph.roles, self._graph.op
        others = [value for value in self._members(root) if value != root]
        if any(roles[value] != "keep" or op(value).opcode == "Concat" for value in others):
            return None
        source, number = self._sums[root]
        return self.of(source).plus(number)

    def _inherited_affine(self, value: int) -> Affine | None:
        """The scale that a value in floats has from what it was moved or multiplied from."""
        graph = self._graph
        computed = graph.computed_operands(graph.op(value))
        if value not in self._islands.floats or len(computed) != 1:
            return None
        factor = scale_factor(graph, graph.op(value))
        if factor is not None:
            return self.of(computed[0]).times(factor)
        return self.of(computed[0]) if graph.roles[value] == "keep" else None

    def _members(self, root: int) -> list[int]:
        if not hasattr(self, "_groups"):
            self._groups: dict[int, list[int]] = {}
            for op in self._graph.module.operations:
                self._groups.setdefault(self._root(op.value_id), []).append(op.value_id)
        return self._groups[root]

    def _function_of_members(self, members: list[int]) -> Function | None:
        """What becomes of each element before anything else sees it, where that is a function."""
        found = function_after(self._graph, members[0]) if len(members) == 1 else None
        if found is not None:
            self.functions[members[0]] = found
        return found
