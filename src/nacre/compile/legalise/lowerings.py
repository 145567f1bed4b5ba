"""What each operation becomes: one row for each form that the device's units have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from msgspec import Struct

from nacre.base.suggest import did_you_mean
from nacre.compile.target import request_error
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import kind_of
from nacre.nem.spec.opcodes import OPCODES

# How an operation is cut into tiles: rows of a product, rows of windows, elements, rows that are
# normalised, rows of a transposition. A view costs nothing, for dense elements keep their order;
# the next ones copy. An escape runs by name on the VPU.
Kind = Literal[
    "linear", "matmul", "window", "pool", "map", "rows", "turn",
    "view", "slice", "concat", "broadcast", "pad", "resize", "gather", "escape",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)
Given = Callable[[Mapping[str, Any]], dict[str, object]]  # attributes in Core IR to those in NEM

_COPIES = frozenset({""})  # what only moves elements has no opcode


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


def _saturating(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"saturate": True} if attributes["saturate"] else {}


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
        Lowering("Cast", "map", "cast", attributes=_saturating),
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
# Functions of single elements: they go wherever elements do.
MAP_OPCODES = tuple(dict.fromkeys(row.opcode for row in _ROWS if row.kind == "map"))
_OWN: Mapping[tuple[str, str], Lowering] = MappingProxyType(
    {(row.opcode, row.op): row for row in _ROWS}
)
_TABLE: dict[tuple[str, str], Lowering] = dict(_OWN)
LOWERINGS: Mapping[tuple[str, str], Lowering] = MappingProxyType(_TABLE)


def register_lowering(row: Lowering) -> None:
    """Add a form from outside; one that exists is replaced.

    An operation that the compiler would take apart stays whole where it has such a form.
    InputError where a row names what does not exist.
    """
    if not isinstance(row, Lowering):
        raise request_error(f"a form is a `Lowering`, found one {kind_of(row)}")
    if row.opcode not in OPS:
        hint = did_you_mean(row.opcode, OPS)
        raise request_error(f"Core IR has no operation `{row.opcode}`", hint or None)
    if row.kind not in KINDS:
        hint = did_you_mean(str(row.kind), KINDS)
        known = ", ".join(KINDS)
        raise request_error(f"no kind of layer `{row.kind}`, expected one of {known}", hint or None)
    if row.nem not in OPCODES and row.nem not in _COPIES:
        hint = did_you_mean(row.nem, OPCODES)
        raise request_error(f"NEM has no opcode `{row.nem}`", hint or None)
    problem = _misfit(row)
    if problem is not None:
        raise request_error(f"`{row.opcode}` cannot be a layer of kind `{row.kind}`: {problem}")
    _TABLE[row.opcode, row.op] = row


def _misfit(row: Lowering) -> str | None:
    """Why an operation cannot be cut as a kind is; None where it can."""
    spec = OPS[row.opcode]
    if row.kind == "map":
        return None if "elementwise" in spec.traits else "it is no function of elements"
    alike = [OPS[own.opcode] for own in _OWN.values() if own.kind == row.kind]
    known = [{attribute.name for attribute in other.attributes} for other in alike]
    needed = set[str]().union(*known[:1]).intersection(*known)
    lacking = sorted(needed - {attribute.name for attribute in spec.attributes})
    return f"it has no attribute `{lacking[0]}`" if lacking else None


def unregister_lowering(opcode: str, op: str = "") -> None:
    """Take back what was registered: the compiler's own form holds again, if it has one."""
    own = _OWN.get((opcode, op))
    if own is None:
        _TABLE.pop((opcode, op), None)
    else:
        _TABLE[opcode, op] = own


def lowering_of(op: CoreOperation) -> Lowering | None:
    """The form of an operation."""
    return LOWERINGS.get(_key(op))


def has_registered_form(op: CoreOperation) -> bool:
    """Whether an operation has a form only because somebody has registered one."""
    key = _key(op)
    return key in _TABLE and key not in _OWN


def has_registered_forms() -> bool:
    """Whether the table is another than the compiler's own."""
    return dict(_OWN) != _TABLE


def _key(op: CoreOperation) -> tuple[str, str]:
    return op.opcode, str(op.attributes.get("op", ""))
