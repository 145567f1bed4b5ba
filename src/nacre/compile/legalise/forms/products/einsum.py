"""`Einsum` as products of two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.kernels.products.einsum_equation import Label, equation_of

Names = tuple[Label, ...]


def einsum(site: RewriteSite) -> int | None:
    """Operands from the left to the right, each multiplied into what is there."""
    if site.op.type.element.is_integer:
        return None
    shapes = [site.type(value).shape for value in site.operands]
    equation = equation_of(str(site.attributes["equation"]), shapes)
    if any(len(set(names)) < len(names) for names in equation.operands):
        return None
    terms = _Terms(site, equation.sizes)
    value, names = site.operands[0], equation.operands[0]
    for index in range(1, len(site.operands)):
        later = {n for rest in equation.operands[index + 1 :] for n in rest} | {*equation.output}
        value, names = terms.product(
            (value, names), (site.operands[index], equation.operands[index]), later
        )
    value, names = terms.sum_unnamed(value, names, {*equation.output})
    missing = [name for name in equation.output if name not in names]
    if missing:
        return None
    return terms.reorder(value, names, equation.output)


class _Terms:
    """Tensors whose axes have names."""

    def __init__(self, site: RewriteSite, sizes: dict[Label, int]) -> None:
        self._site = site
        self._sizes = sizes

    def sum_unnamed(self, value: int, names: Names, wanted: set[Label]) -> tuple[int, Names]:
        """A tensor summed over axes that nobody else names."""
        over = tuple(axis for axis, name in enumerate(names) if name not in wanted)
        if not over:
            return value, names
        made = self._site.add("Sum", value, axes=over, keepdims=False)
        return made, tuple(name for name in names if name in wanted)

    def reorder(self, value: int, names: Names, order: Sequence[Label]) -> int:
        """A tensor with its axes in an order."""
        permutation = tuple(names.index(name) for name in order)
        if permutation == tuple(range(len(names))):
            return value
        return self._site.add("Transpose", value, permutation=permutation)

    def broadcast_to(self, value: int, names: Names) -> int:
        """A tensor whose axes have the sizes that their names have."""
        shape = tuple(self._sizes[name] for name in names)
        if self._site.type(value).shape == shape:
            return value
        return self._site.add("Broadcast", value, shape=shape)

    def product(
        self, one: tuple[int, Names], two: tuple[int, Names], later: set[Label]
    ) -> tuple[int, Names]:
        """The product of two, summed over what they share and nobody needs later."""
        a, left = self.sum_unnamed(*one, later | {*two[1]})
        b, right = self.sum_unnamed(*two, later | {*left})
        shared = [name for name in left if name in right]
        summed = [name for name in shared if name not in later]
        if not summed:
            return self._elementwise(a, left, b, right)
        batch = [name for name in shared if name in later]
        rows = [name for name in left if name not in right]
        columns = [name for name in right if name not in left]
        a, b = self.broadcast_to(a, left), self.broadcast_to(b, right)
        first = self.reorder(a, left, (*batch, *rows, *summed))
        second = self.reorder(b, right, (*batch, *summed, *columns))
        counts = [self._size(names) for names in (batch, rows, summed, columns)]
        site = self._site
        result = site.add(
            "MatMul",
            site.reshape(first, (counts[0], counts[1], counts[2])),
            site.reshape(second, (counts[0], counts[2], counts[3])),
        )
        names = (*batch, *rows, *columns)
        return site.reshape(result, tuple(self._sizes[name] for name in names)), names

    def _elementwise(self, a: int, left: Names, b: int, right: Names) -> tuple[int, Names]:
        names = (*left, *(name for name in right if name not in left))
        aligned = []
        for value, own in ((a, left), (b, right)):
            order = [name for name in names if name in own]
            ordered = self.reorder(value, own, order)
            dims = dict(zip(order, self._site.type(ordered).shape, strict=True))
            aligned.append(self._site.reshape(ordered, [dims.get(name, 1) for name in names]))
        product = self._site.add("BinOp", aligned[0], aligned[1], op="Mul")
        return self.broadcast_to(product, names), names

    def _size(self, names: Sequence[Label]) -> int:
        return prod(self._sizes[name] for name in names)


EINSUM_FORMS: Rules = {"Einsum": [einsum]}
