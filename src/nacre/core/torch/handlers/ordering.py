"""Operations of ATen that order elements."""

from __future__ import annotations

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.remedies import NOT_EMPTY
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported


@handles("topk.default")
def topk(use: AtenCall) -> list[int]:
    """The k largest or smallest elements, in order, and where they lie."""
    return _ordered(use, int(use.get("k")), bool(use.get("largest", True)))


@handles("sort.default", "sort.stable")
def sort(use: AtenCall) -> list[int]:
    """All elements in order; the first of equals comes first."""
    axis, dims = use.axis(), use.shape_of("self")
    return _ordered(use, dims[axis] if dims else 1, bool(use.get("descending", False)))


def _ordered(use: AtenCall, count: int, is_largest: bool) -> list[int]:
    x = use.value("self")
    if use.type_of(x).rank == 0:
        raise Unsupported("it is of a scalar", "leave it out")
    if count == 0:
        raise Unsupported("the result has no elements; Core IR has no empty tensors", NOT_EMPTY)
    axis = int(use.get("dim", -1)) % use.type_of(x).rank
    given = {"k": count, "axis": axis, "largest": is_largest}
    return [use.add(opcode, x, **given) for opcode in ("TopKValues", "TopKIndices")]
