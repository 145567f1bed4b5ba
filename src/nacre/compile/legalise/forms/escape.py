"""Escapes: operations that run by name on the VPU, how NEM writes them, how they may be cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any

from nacre.core.module import CoreOperation, Module, Shape
from nacre.core.opaque.calls import why_opaque
from nacre.core.ops import OPS
from nacre.core.values import Literal

Filled = Mapping[str, Any]


@dataclass(frozen=True)
class Escape:
    """A task by name: `op` of `compute`, and its other attributes, all of them given."""

    name: str
    attributes: Mapping[str, object]


def escape_of(op: CoreOperation) -> Escape | str:
    """How NEM writes an operation; a sentence where it cannot."""
    spec = OPS[op.opcode]
    if spec.primitive is None:
        return why_opaque(op) or "there is no kernel for it"
    filled = dict(spec.with_defaults(op.attributes))
    name = f"core.{op.opcode}"
    if "op" in filled:
        name = f"{name}.{filled.pop('op')}"
    for key, value in filled.items():
        problem = _problem(value)
        if problem is not None:
            return f"NEM cannot write its attribute `{key}`: {problem}"
    return Escape(name, MappingProxyType({key: _plain(value) for key, value in filled.items()}))


def _plain(value: object) -> object:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _problem(value: object) -> str | None:
    if isinstance(value, tuple):
        return next((found for item in value if (found := _problem(item)) is not None), None)
    if isinstance(value, float):
        return None if isfinite(value) else f"{value} is no number"
    if isinstance(value, str):
        return None if '"' not in value and "\n" not in value else "it holds a quotation mark"
    return "it is a tensor" if isinstance(value, Literal) else None


def independent_axes(module: Module, op: CoreOperation) -> int:
    """How many leading axes of the result are computed place by place.

    At a place along them, the result takes the same place of the operands that `have_rows`, and
    the others whole. So these axes may be cut.
    """
    shapes = [module.by_id[value].type.shape for value in op.operands]
    filled = OPS[op.opcode].with_defaults(op.attributes)
    if "elementwise" in OPS[op.opcode].traits:
        return op.type.rank
    count = _LEADING.get(op.opcode, _no_axes)
    return max(0, min(count(filled, shapes, op.type.shape), op.type.rank))


def have_rows(module: Module, op: CoreOperation) -> tuple[bool, ...]:
    """Which operands are cut with the first axis of the result, where that is independent."""
    shapes = [module.by_id[value].type.shape for value in op.operands]
    rank = op.type.rank
    if "elementwise" in OPS[op.opcode].traits:
        return tuple(len(shape) == rank and shape[0] == op.type.shape[0] for shape in shapes)
    return tuple(at == 0 or op.opcode in _ALL_HAVE_ROWS for at in range(len(shapes)))


Leading = Callable[[Filled, list[Shape], Shape], int]


def _no_axes(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return 0


def _before_axis(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    rank = len(shapes[0])
    return int(filled["axis"]) % rank if rank else 0


def _before_axes(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    rank = len(shapes[0])
    return min((axis % rank for axis in filled["axes"]), default=0)


def _before_equal_axis(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    """Before the axis, as far as all operands have the same sizes."""
    axis = _before_axis(filled, shapes, result)
    return _common(shapes, axis)


def _common(shapes: list[Shape], most: int) -> int:
    count = 0
    while count < most and len({shape[count : count + 1] for shape in shapes}) == 1:
        count += 1
    return count


def _images(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return 1


def _before_matrices(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return len(result) - 2


def _batches(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return len(result) - 2 if shapes[0][:-2] == shapes[1][:-2] else 0


def _rows(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return len(result) - 1


def _unchanged_axes(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    """Axes that keep their size; padding that cuts and adds as much counts as a change."""
    pads, scales = filled.get("pads", ()), filled.get("scales", ())
    rank, count = len(result), 0
    while count < rank and shapes[0][count] == result[count]:
        if pads and (pads[count] or pads[rank + count]):
            break
        if scales and scales[count] != 1.0:
            break
        count += 1
    return count


def _new_axis(filled: Filled, shapes: list[Shape], result: Shape) -> int:
    return int(filled["axis"]) % len(result)


_LEADING: Mapping[str, Leading] = MappingProxyType(
    {
        **dict.fromkeys(("CumSum", "CumProd", "Softmax", "LogSoftmax", "LayerNorm", "RmsNorm",
                         "ArgMax", "ArgMin", "TopKValues", "TopKIndices"), _before_axis),
        **dict.fromkeys(("Sum", "Mean", "Reduce", "Flip"), _before_axes),
        **dict.fromkeys(("GatherElements", "ScatterElements"), _before_equal_axis),
        "GatherNd": lambda filled, shapes, result: int(filled["batch_dims"]),
        **dict.fromkeys(("Conv", "ConvTranspose", "MaxPool", "AvgPool", "LpPool", "Lrn"), _images),
        "Trilu": _before_matrices,
        "MatMul": _batches,
        "Linear": _rows,
        **dict.fromkeys(("Pad", "Resize"), _unchanged_axes),
        "OneHot": _new_axis,
    }
)  # fmt: skip
# Of the others only the first operand has these axes: weights, numbers and borders have not, even
# where they are of the same size.
_ALL_HAVE_ROWS = frozenset({"GatherElements", "ScatterElements", "GatherNd", "MatMul"})
