"""Nodes of ONNX as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound

# Domains that mean the standard operations.
STANDARD = frozenset({"", "ai.onnx"})


class Node(Struct, frozen=True):
    """One node."""

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]  # empty for one that is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int

    @property
    def key(self) -> str:
        """The operation, with its domain where it is not the standard one."""
        return self.op if self.domain in STANDARD else f"{self.domain}.{self.op}"

    @property
    def title(self) -> str:
        """The node for a message."""
        named = f" {backquote(self.name)}" if self.name else ""
        return f"{backquote(self.key)}{named}"


NO_NODE = Node("", "", "", (), (), {}, 0)  # where there is none
ReadTensor = Callable[[Any], Any]


def node_of(proto: Any, opsets: Mapping[str, int], read: ReadTensor) -> Node:  # noqa: ANN401
    """A NodeProto as a value; tensors among its attributes as arrays, graphs as they are."""
    domain = proto.domain if proto.domain not in STANDARD else ""
    return Node(
        proto.op_type,
        domain,
        proto.name,
        tuple(proto.input),
        tuple(proto.output),
        {a.name: attribute_value(a, read) for a in proto.attribute},
        opsets.get(domain, 1),
    )


# AttributeProto.AttributeType to the field that holds it.
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings",
           11: "sparse_tensor"}  # fmt: skip


def attribute_value(attribute: Any, read: ReadTensor) -> Any:  # noqa: ANN401
    """The value of an AttributeProto."""
    field = _FIELDS.get(attribute.type)
    if field is None:
        raise Unsound(f"attribute `{attribute.name}` has the type {attribute.type}")
    value = getattr(attribute, field)
    if field == "s":
        return _text(value)
    if field in ("t", "sparse_tensor"):
        return read(value)
    if field == "strings":
        return tuple(_text(item) for item in value)
    if field in ("ints", "floats"):
        return tuple(value)
    return value


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def opsets_of(imports: Sequence[Any]) -> dict[str, int]:
    """The version of each domain."""
    found: dict[str, int] = {}
    for entry in imports:
        domain = entry.domain if entry.domain not in STANDARD else ""
        found[domain] = int(entry.version)
    return found
