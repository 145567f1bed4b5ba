"""What each operation becomes: one row for each form that the device's units have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from nacre.core.module import CoreOperation

# How an operation is cut into tiles: rows of a product, rows of windows, rows of elements, rows of
# a transposition; a view costs nothing, for dense elements keep their order.
Kind = Literal["linear", "window", "map", "turn", "view"]
Given = Callable[[Mapping[str, Any]], dict[str, object]]  # attributes in Core IR to those in NEM


def _none(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {}


class Lowering(Struct, frozen=True):
    """One row: an operation, with its `op` where it has one, and the opcode that computes it."""

    opcode: str
    kind: Kind
    nem: str
    op: str = ""
    attributes: Given = _none


def _products(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"accum_type": "f32"}


def _alpha(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"alpha": float(attributes["alpha"])}


def _bounds(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"min_val": float(attributes["min"]), "max_val": float(attributes["max"])}


def _swap(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"perm": (1, 0, 2)}


def _maps() -> tuple[Lowering, ...]:
    unary = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Sqrt": "sqrt", "Abs": "abs"}
    binary = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow")
    return (
        Lowering("ReluNan", "map", "relu"),
        Lowering("LeakyRelu", "map", "leaky_relu", attributes=_alpha),
        Lowering("Clip", "map", "clamp", attributes=_bounds),
        Lowering("Silu", "map", "silu"),
        Lowering("Gelu", "map", "gelu"),
        Lowering("Neg", "map", "neg"),
        Lowering("Exp", "map", "exp"),
        Lowering("Log", "map", "log"),
        *(Lowering("Unary", "map", nem, op) for op, nem in unary.items()),
        *(Lowering("BinOp", "map", op.lower(), op) for op in binary),
    )


_ROWS = (
    Lowering("Linear", "linear", "gemm", attributes=_products),
    Lowering("Conv", "window", "conv2d", attributes=_products),
    *_maps(),
    Lowering("Transpose", "turn", "transpose", attributes=_swap),
    *(Lowering(opcode, "view", "") for opcode in ("Reshape", "ExpandDims", "Squeeze")),
)

_TABLE: dict[tuple[str, str], Lowering] = {(row.opcode, row.op): row for row in _ROWS}
LOWERINGS: Mapping[tuple[str, str], Lowering] = MappingProxyType(_TABLE)


def register_lowering(row: Lowering) -> None:
    """Add a form from outside; one that exists is replaced."""
    _TABLE[row.opcode, row.op] = row


def lowering_of(op: CoreOperation) -> Lowering | None:
    """The form of an operation."""
    return LOWERINGS.get((op.opcode, str(op.attributes.get("op", ""))))
