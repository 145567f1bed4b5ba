"""Gradients of `Einsum`: the sum of products of the gradient with all other operands.

Axes that only this operand has were summed over, so the gradient is the same along them; a letter
that it has twice took its diagonal, so the gradient lies on that diagonal.
"""

from __future__ import annotations

from string import ascii_letters

from nacre.core.gradients.site import GradientSite
from nacre.core.gradients.writer import NoGradient, Value, where
from nacre.kernels.products.einsum_equation import Equation, Label, Labels, equation_of


def einsum(site: GradientSite) -> Value:
    """By the operand that is asked for."""
    shapes = [value.shape for value in site.operands]
    equation = equation_of(site.attributes["equation"], shapes)
    own, others = equation.operands[site.index], _drop_operand(equation.operands, site.index)
    reached = {*equation.output, *(label for labels in others for label in labels)}
    sizes = dict(zip(own, site.operand.shape, strict=True))
    # An axis of 1 that was stretched is summed over again.
    kept = tuple(
        label
        for label in dict.fromkeys(own)
        if label in reached and sizes[label] == equation.sizes[label]
    )
    names = _names(equation)
    terms = [_labels_text(labels, names) for labels in (equation.output, *others)]
    text = f"{','.join(terms)}->{_labels_text(kept, names)}"
    rest = [v for at, v in enumerate(site.operands) if at != site.index]
    gradient = site.g.op("Einsum", *rest, equation=text)
    return _on_diagonals(site, own, gradient.reshape(_label_sizes(own, kept, gradient)))


def _drop_operand(operands: tuple[Labels, ...], index: int) -> tuple[Labels, ...]:
    return operands[:index] + operands[index + 1 :]


def _names(equation: Equation) -> dict[Label, str]:
    """A letter for every axis, those without a name included."""
    free = [c for c in ascii_letters if c not in equation.sizes]
    unnamed = [label for label in equation.sizes if isinstance(label, int)]
    if len(unnamed) > len(free):
        raise NoGradient(f"the equation has {len(equation.sizes)} axes, expected at most 52")
    names: dict[Label, str] = {c: c for c in equation.sizes if isinstance(c, str)}
    return {**names, **dict(zip(unnamed, free, strict=False))}


def _labels_text(labels: Labels, names: dict[Label, str]) -> str:
    return "".join(names[label] for label in labels)


def _label_sizes(operand_labels: Labels, gradient_labels: Labels, gradient: Value) -> list[int]:
    """The sizes of a gradient at the first place of each of its labels, 1 elsewhere."""
    sizes = dict(zip(gradient_labels, gradient.shape, strict=True))
    return [
        sizes.get(label, 1) if operand_labels.index(label) == axis else 1
        for axis, label in enumerate(operand_labels)
    ]


def _on_diagonals(site: GradientSite, operand_labels: Labels, value: Value) -> Value:
    shape = site.operand.shape
    for axis, label in enumerate(operand_labels):
        first = operand_labels.index(label)
        if axis != first and shape[axis] > 1:
            square = tuple(n if a in (first, axis) else 1 for a, n in enumerate(shape))
            places = [site.writer.iota(square, a) for a in (first, axis)]
            value = where(places[0].compare("Eq", places[1]), value, 0.0)
    return value
