"""Sums of products over named axes, as a chain of matrix products.

Every operand first loses what concerns it alone: diagonals are taken, axes that nothing else has
are summed over. Then two operands at a time become one, those first whose product is smallest,
each step a batched matrix product: BLAS for floats, exact modulo 2^64 for integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.interface.runs import present, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.einsum_equation import Equation, Label, Labels, equation_of
from nacre.kernels.products.graph_products import factoring, fill_with_sums, settle, sums_dtype
from nacre.kernels.reductions.reductions import float_sum

# Among so many operands the next two are chosen; those behind wait.
_CHOICE = 8


@dataclass(frozen=True)
class _OperandStep:
    """What happens to one operand before it meets others."""

    diagonal: tuple[Labels, Labels] | None  # labels as given, and each once
    squeezed: Dims  # axes of size 1 that others stretch
    summed: Dims  # axes that nothing else has, after that
    labels: Labels  # what is left

    def apply(self, x: Array, dtype: np.dtype[np.generic], is_ordered: bool) -> Array:
        """The operand in the type that it is computed in, without what concerns it alone."""
        if self.diagonal is not None:
            given, once = self.diagonal
            numbers = {label: index for index, label in enumerate(once)}
            x = np.einsum(x, [numbers[label] for label in given], [*range(len(once))])
        values = x.squeeze(self.squeezed).astype(dtype, copy=False)
        if not self.summed:
            return values
        if dtype.kind == "f":
            return float_sum(values, self.summed, is_ordered).squeeze(self.summed)
        total: Array = np.add.reduce(values, axis=self.summed)
        return total


@dataclass(frozen=True)
class _PairStep:
    """Two operands, by their places among those that are left, and what becomes of them."""

    first: int
    second: int
    a: Labels
    b: Labels
    batch: Labels  # in both, and needed afterwards
    summed: Labels  # in both, and not needed any more
    sizes: dict[Label, int]

    @property
    def labels(self) -> Labels:
        """What the product has: batch, then the rest of both."""
        return (*self.batch, *self._free(self.a), *self._free(self.b))

    @property
    def macs(self) -> int:
        """How many products it takes."""
        return self._size(self.labels) * self.depth

    @property
    def depth(self) -> int:
        """How many products each sum has."""
        return self._size(self.summed)

    def _free(self, labels: Labels) -> Labels:
        return tuple(one for one in labels if one not in self.batch and one not in self.summed)

    def _size(self, labels: Labels) -> int:
        return prod(self.sizes[label] for label in labels)

    def apply(self, a: Array, b: Array, elem: ElementType, is_ordered: bool) -> Array:
        """The product, its axes in the order of `labels`."""
        rows, columns, count = self._free(self.a), self._free(self.b), self._size(self.batch)
        left = _arrange(a, self.a, (*self.batch, *rows, *self.summed))
        right = _arrange(b, self.b, (*self.batch, *self.summed, *columns))
        factors = factoring(elem, self.depth, is_ordered)(
            left.reshape(count, self._size(rows), self.depth),
            right.reshape(count, self.depth, self._size(columns)),
        )
        sums = np.empty((count, self._size(rows), self._size(columns)), sums_dtype(elem))
        factors.multiply(factors.a, factors.b, sums)
        return sums.reshape(tuple(self.sizes[label] for label in self.labels))


def _arrange(x: Array, labels: Labels, wanted: Labels) -> Array:
    return x.transpose([labels.index(label) for label in wanted])


@dataclass(frozen=True)
class _ContractionSteps:
    """A whole equation, step by step."""

    lone: tuple[_OperandStep, ...]
    pairs: tuple[_PairStep, ...]
    labels: Labels  # of what comes out
    output: Labels


def _contraction_steps(equation: Equation, shapes: Sequence[Dims]) -> _ContractionSteps:
    lone = _operand_steps(equation, shapes)
    left = [one.labels for one in lone]
    pairs = []
    while len(left) > 1:
        near = combinations(range(min(len(left), _CHOICE)), 2)
        best = min((_pair_step(i, j, left, equation) for i, j in near), key=_cost)
        pairs.append(best)
        left = [labels for at, labels in enumerate(left) if at not in (best.first, best.second)]
        left.append(best.labels)
    return _ContractionSteps(lone, tuple(pairs), left[0], equation.output)


def _cost(pair: _PairStep) -> tuple[int, int, int, int]:
    """Small results first, then little work; then the order of the operands decides."""
    return pair.macs // pair.depth, pair.macs, pair.first, pair.second


def _operand_steps(equation: Equation, shapes: Sequence[Dims]) -> tuple[_OperandStep, ...]:
    once = [tuple(dict.fromkeys(given)) for given in equation.operands]
    sizes = [dict(zip(*pair, strict=True)) for pair in zip(equation.operands, shapes, strict=True)]
    squeezed = [
        tuple(at for at, one in enumerate(labels) if size[one] < equation.sizes[one])
        for labels, size in zip(once, sizes, strict=True)
    ]
    rest = [
        tuple(one for at, one in enumerate(labels) if at not in gone)
        for labels, gone in zip(once, squeezed, strict=True)
    ]
    uses = Counter(label for labels in (*rest, equation.output) for label in labels)
    return tuple(
        _OperandStep(
            diagonal=(given, labels) if len(labels) < len(given) else None,
            squeezed=gone,
            summed=tuple(at for at, one in enumerate(kept) if uses[one] == 1),
            labels=tuple(one for one in kept if uses[one] > 1),
        )
        for given, labels, gone, kept in zip(equation.operands, once, squeezed, rest, strict=True)
    )


def _pair_step(i: int, j: int, left: Sequence[Labels], equation: Equation) -> _PairStep:
    a, b = left[i], left[j]
    needed = {*equation.output}
    needed.update(label for at, labels in enumerate(left) if at not in (i, j) for label in labels)
    shared = tuple(label for label in a if label in b)
    batch = tuple(label for label in shared if label in needed)
    summed = tuple(label for label in shared if label not in needed)
    return _PairStep(i, j, a, b, batch, summed, equation.sizes)


def _bind(call: Call) -> Run:
    shapes = [call.input(index).shape for index in range(len(call.inputs))]
    chain = _contraction_steps(equation_of(call.attributes["equation"], shapes), shapes)
    y_type, elem, is_ordered = call.output, call.input(0).elem, call.ordered
    dtype = sums_dtype(elem)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        left = [
            one.apply(present(x), dtype, is_ordered)
            for one, x in zip(chain.lone, inputs, strict=True)
        ]
        for pair in chain.pairs:
            second, first = left.pop(pair.second), left.pop(pair.first)
            left.append(pair.apply(first, second, elem, is_ordered))
        found = _arrange(left[0], chain.labels, chain.output)

        def fill(sums: Array) -> None:
            sums[...] = found
            settle(sums, is_ordered)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    return quiet(run)


def fit_einsum(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape that the equation gives."""
    return equation_of(attributes["equation"], inputs).shape


def _work(call: Call) -> Work:
    shapes = [call.input(index).shape for index in range(len(call.inputs))]
    chain = _contraction_steps(equation_of(call.attributes["equation"], shapes), shapes)
    read = sum(call.input(i).count for i, one in enumerate(chain.lone) if one.summed)
    moved = call.output.count if not chain.pairs else 0
    return Work(macs=sum(pair.macs for pair in chain.pairs), elements=read + moved)


EINSUM = Primitive("core.Einsum", _bind, Fitting(fit_einsum), _work)
