"""What each operation becomes: one row for each form that the device's units have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from nacre.core.module import CoreOperation

# How an operation is cut into tiles: rows of a product, rows of windows, elements, rows that are
# normalised, rows of a transposition. A view costs nothing, for dense elements keep their order;
# the next ones copy. An escape runs by name on the VPU.
Kind = Literal[
    "linear", "matmul", "window", "pool", "map", "rows", "turn",
    "view", "slice", "concat", "broadcast", "pad", "resize", "gather", "escape",
]  # fmt: skip
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


def _window(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"kernel_shape": attributes["kernel"], "strides": attributes["strides"] or (1, 1)}


def _last_axis(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"axis": -1}


def _norm(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"axis": -1, "epsilon": float(attributes["epsilon"])}


def _first_axis(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"axis": 0}


def _approximate(attributes: Mapping[str, Any]) -> dict[str, object]:
    given = str(attributes["approximate"])
    return {} if given == "none" else {"approximate": given}


def _filling(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"mode": "constant", "constant_value": float(attributes["value"])}


def _maps() -> tuple[Lowering, ...]:
    unary = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Sqrt": "sqrt", "Abs": "abs"}
    binary = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow")
    return (
        Lowering("ReluNan", "map", "relu"),
        Lowering("LeakyRelu", "map", "leaky_relu", attributes=_alpha),
        Lowering("Clip", "map", "clamp", attributes=_bounds),
        Lowering("Silu", "map", "silu"),
        Lowering("Gelu", "map", "gelu", attributes=_approximate),
        Lowering("Cast", "map", "cast"),
        Lowering("Neg", "map", "neg"),
        Lowering("Exp", "map", "exp"),
        Lowering("Log", "map", "log"),
        *(Lowering("Unary", "map", nem, op) for op, nem in unary.items()),
        *(Lowering("BinOp", "map", op.lower(), op) for op in binary),
    )


_ROWS = (
    Lowering("Linear", "linear", "gemm", attributes=_products),
    Lowering("MatMul", "matmul", "matmul", attributes=_products),
    Lowering("Conv", "window", "conv2d", attributes=_products),
    Lowering("MaxPool", "pool", "maxpool", attributes=_window),
    Lowering("AvgPool", "pool", "avgpool", attributes=_window),
    *_maps(),
    Lowering("Softmax", "rows", "softmax", attributes=_last_axis),
    Lowering("LogSoftmax", "rows", "log_softmax", attributes=_last_axis),
    Lowering("LayerNorm", "rows", "layernorm", attributes=_norm),
    Lowering("RmsNorm", "rows", "rmsnorm", attributes=_norm),
    Lowering("Transpose", "turn", "transpose", attributes=_swap),
    *(Lowering(opcode, "view", "") for opcode in ("Reshape", "ExpandDims", "Squeeze")),
    Lowering("Slice", "slice", "slice"),
    Lowering("Concat", "concat", "concat"),
    Lowering("Broadcast", "broadcast", ""),
    Lowering("Pad", "pad", "pad", attributes=_filling),
    Lowering("Resize", "resize", ""),
    *(Lowering(op, "gather", "gather", attributes=_first_axis) for op in ("Gather", "GatherAxis")),
)

_TABLE: dict[tuple[str, str], Lowering] = {(row.opcode, row.op): row for row in _ROWS}
LOWERINGS: Mapping[tuple[str, str], Lowering] = MappingProxyType(_TABLE)


def register_lowering(row: Lowering) -> None:
    """Add a form from outside; one that exists is replaced."""
    _TABLE[row.opcode, row.op] = row


def lowering_of(op: CoreOperation) -> Lowering | None:
    """The form of an operation."""
    return LOWERINGS.get((op.opcode, str(op.attributes.get("op", ""))))
