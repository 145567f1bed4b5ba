"""The equations of Einsum: `ij,jk->ik`, what they mean for operands of given shapes.

An axis is named by a letter; `...` stands for axes without a name, which are counted from the end
and broadcast. A letter that an operand has twice takes its diagonal. Where no output is given, it
has the unnamed axes and then, in the order of their codes, the letters that stand once. Letters
and unnamed axes that the output does not have are summed over. A dimension of 1 stretches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nacre.base.excerpt import backquote
from nacre.kernels.interface.fitting import Misfit, dims_text
from nacre.kernels.interface.shapes import Dims

# A letter; an axis without a name has its distance from the last such axis.
Label = str | int
Labels = tuple[Label, ...]

_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


@dataclass(frozen=True)
class Equation:
    """What every axis of every operand is called, and what the result has."""

    operands: tuple[Labels, ...]
    output: Labels
    sizes: dict[Label, int]

    @property
    def shape(self) -> Dims:
        """The shape of the result."""
        return tuple(self.sizes[label] for label in self.output)


def equation_of(text: str, shapes: Sequence[Dims]) -> Equation:
    """An equation for operands of these shapes; a Misfit says why it is none."""
    inputs, arrow, output = re.sub(r"\s", "", text).partition("->")
    terms = inputs.split(",")
    for term in (*terms, output):
        if not _TERM.fullmatch(term):
            found = f"`equation` has the term {backquote(term)}"
            raise Misfit(f"{found}, expected letters, and `...` at most once")
    if len(terms) != len(shapes):
        raise Misfit(f"`equation` has {len(terms)} terms, expected {len(shapes)}")
    operands = tuple(
        _labels(term, dims, index)
        for index, (term, dims) in enumerate(zip(terms, shapes, strict=True))
    )
    sizes = _sizes(operands, shapes)
    unnamed = tuple(sorted((label for label in sizes if isinstance(label, int)), reverse=True))
    result = _output(output, unnamed, sizes) if arrow else _implied_labels(operands, unnamed)
    return Equation(operands, result, sizes)


def _labels(term: str, dims: Dims, index: int) -> Labels:
    letters = term.replace("...", "")
    hidden = len(dims) - len(letters)
    if hidden < 0 or (hidden > 0 and "..." not in term):
        found = f"operand {index} has the shape {dims_text(dims)}"
        raise Misfit(f"{found}, expected {len(letters)} axes for the term {backquote(term)}")
    before, _, behind = term.partition("...")
    return (*before, *range(hidden - 1, -1, -1), *behind)


def _sizes(operands: Sequence[Labels], shapes: Sequence[Dims]) -> dict[Label, int]:
    """The size of every label; 1 gives way to any other size."""
    sizes: dict[Label, int] = {}
    for labels, dims in zip(operands, shapes, strict=True):
        own: dict[Label, int] = {}
        for label, dim in zip(labels, dims, strict=True):
            if own.setdefault(label, dim) != dim:
                raise Misfit(f"{_axis_text(label)} is {own[label]} and {dim} in one operand")
            if sizes.setdefault(label, dim) == 1:
                sizes[label] = dim
            if dim not in (1, sizes[label]):
                raise Misfit(f"{_axis_text(label)} is {sizes[label]} and {dim}, expected one size")
    return sizes


def _axis_text(label: Label) -> str:
    return (
        f"axis `{label}`" if isinstance(label, str) else f"axis {label + 1} from the end of `...`"
    )


def _output(term: str, unnamed: Labels, sizes: dict[Label, int]) -> Labels:
    letters = term.replace("...", "")
    for letter, count in Counter(letters).items():
        if letter not in sizes:
            raise Misfit(
                f"`equation` has `{letter}` in the output, expected a letter of an operand"
            )
        if count > 1:
            raise Misfit(f"`equation` has `{letter}` twice in the output, expected it once")
    before, dots, behind = term.partition("...")
    return (*before, *(unnamed if dots else ()), *behind)


def _implied_labels(operands: Sequence[Labels], unnamed: Labels) -> Labels:
    counts = Counter(label for labels in operands for label in labels if isinstance(label, str))
    return (*unnamed, *sorted(letter for letter, count in counts.items() if count == 1))
