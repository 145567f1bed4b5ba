"""Shape functions that can say why operands and attributes do not go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nacre.kernels.interface.call import Attributes
from nacre.kernels.interface.shapes import Dims, axis_of


class Misfit(ValueError):  # noqa: N818 - carries a finding, not a failure of ours
    """Operands and attributes that do not go together: what was found, and what was expected."""


Fit = Callable[[Sequence[Dims], Attributes], Dims]  # raises Misfit


class Fitting:
    """The shape function of a primitive with one output and no input left out in the middle."""

    __slots__ = ("_fit",)

    def __init__(self, fit: Fit) -> None:
        self._fit = fit

    def __call__(self, inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        """The output's shape; None where there is none."""
        try:
            return [self._fit(present_inputs(inputs), attributes)]
        except Misfit:
            return None

    def reason(self, inputs: Sequence[Dims | None], attributes: Attributes) -> str | None:
        """Why there is no output; None where there is one."""
        try:
            self._fit(present_inputs(inputs), attributes)
        except Misfit as misfit:
            return str(misfit)
        return None


def present_inputs(inputs: Sequence[Dims | None]) -> list[Dims]:
    """The inputs that are there: those left out stand at the end."""
    return [dims for dims in inputs if dims is not None]


def fitting_axis(axis: int, rank: int, name: str = "axis") -> int:
    """An axis counted from the front; a Misfit where there is none."""
    found = axis_of(axis, rank)
    if found is None:
        expected = f"{-rank} to {rank - 1}" if rank else "no axis: the tensor is a scalar"
        raise Misfit(f"`{name}` is {axis}, expected {expected}")
    return found


def fitting_axes(axes: Sequence[int], rank: int, name: str = "axes") -> Dims:
    """Several axes counted from the front, each once."""
    found = tuple(fitting_axis(axis, rank, name) for axis in axes)
    if len(set(found)) != len(found):
        raise Misfit(f"`{name}` names an axis twice: {dims_text(axes)}")
    return found


def expect_rank(dims: Dims, least: int, most: int | None = None, name: str = "the input") -> None:
    """Raise a Misfit where a tensor has another number of axes."""
    if least <= len(dims) and (most is None or len(dims) <= most):
        return
    wanted = f"{least}" if most == least else f"at least {least}"
    if most is not None and most != least:
        wanted = f"{least} to {most}"
    raise Misfit(f"{name} has the shape {dims_text(dims)}, expected {wanted} axes")


def expect_length(values: Sequence[object], length: int, name: str) -> None:
    """Raise a Misfit where a list has another length."""
    if len(values) != length:
        raise Misfit(f"`{name}` has {len(values)} entries, expected {length}")


def expect_least(values: Sequence[int], least: int, name: str) -> None:
    """Raise a Misfit where an entry of a list is too small."""
    for value in values:
        if value < least:
            raise Misfit(f"`{name}` has {value}, expected at least {least}")


def expect_shape(dims: Dims, wanted: Dims, name: str) -> None:
    """Raise a Misfit where a tensor has another shape than follows from the rest."""
    if dims != wanted:
        raise Misfit(f"{name} has the shape {dims_text(dims)}, expected {dims_text(wanted)}")


def dims_text(dims: Sequence[int]) -> str:
    """Dimensions or axes for a message, cut where there are many."""
    text = ", ".join(map(str, dims[:8]))
    return f"[{text}, ...]" if len(dims) > 8 else f"[{text}]"
