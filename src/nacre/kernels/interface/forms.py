"""What Core ops with as many operands have in common: shape functions and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nacre.kernels.interface.call import Array, Attributes, Run
from nacre.kernels.interface.shapes import Dims

Shape = Callable[[Sequence[Dims | None], Attributes], list[Dims] | None]


def unary_shape(shape: Callable[[Dims, Attributes], Dims | None]) -> Shape:
    """The shape function of an op with one operand."""

    def run(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        if len(inputs) != 1 or inputs[0] is None:
            return None
        result = shape(inputs[0], attributes)
        return None if result is None else [result]

    return run


def binary_shape(shape: Callable[[Dims, Dims, Attributes], Dims | None]) -> Shape:
    """The shape function of an op with two operands."""

    def run(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        if len(inputs) != 2 or inputs[0] is None or inputs[1] is None:
            return None
        result = shape(inputs[0], inputs[1], attributes)
        return None if result is None else [result]

    return run


def binary_fill_run(fill: Callable[[Array, Array, Array], None]) -> Run:
    """A run that fills one output from two inputs and cannot go wrong."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        a, b = inputs
        assert a is not None
        assert b is not None
        fill(a, b, outputs[0])

    return run
