"""Whether operands of blocks are laid out and quantised as regions of the program are."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.tcb.image import Operand

_Strides = tuple[int, ...] | None  # in elements; None: side by side


def same_quant(operand: Operand, quant: object) -> bool:
    """Whether an operand carries the quantisation of its region."""
    mine = operand.quant
    if mine is None or quant is None:
        return mine is quant
    scale, zero = quant.scale.tolist(), quant.zero_point.tolist()  # type: ignore[attr-defined]
    axis, group = quant.axis, quant.group_size  # type: ignore[attr-defined]
    return (list(mine.scales), list(mine.zero_points), mine.axis, mine.group_size) == (
        scale,
        zero,
        axis,
        group,
    )


def same_strides(dims: tuple[int, ...], a: _Strides, b: _Strides) -> bool:
    """Whether elements lie in the same order and at the same distances."""
    return a == b or list(_steps(dims, a)) == list(_steps(dims, b))


def _steps(dims: tuple[int, ...], strides: _Strides) -> Iterator[int]:
    """The strides of dimensions that have more than one element; others lead nowhere."""
    if strides is None:
        dense = [1]
        for dim in reversed(dims[1:]):
            dense.append(dense[-1] * dim)
        strides = tuple(reversed(dense)) if dims else ()
    return (step for dim, step in zip(dims, strides, strict=False) if dim > 1)
