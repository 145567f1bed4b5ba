"""What ONNX itself says about a node: its attributes, and how many operands it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from nacre.core.onnx.files import onnx
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.nodes import STANDARD

OLDEST_OPSET = 6  # of older ones, operations that have not changed since


def opset_problem(opsets: Mapping[str, int], nodes: Iterable[Any]) -> str | None:
    """What is wrong with the version of the standard operations that a model asks for."""
    version, newest = opsets.get(""), onnx.defs.onnx_opset_version()
    if version is None:
        is_needed = any(node.domain in STANDARD for node in nodes)
        return "the model does not say which opset it uses" if is_needed else None
    if not 1 <= version <= newest:
        return f"the model uses opset {version}, expected {OLDEST_OPSET} to {newest}"
    return None


def require_schema(proto: Any, opsets: Mapping[str, int]) -> None:  # noqa: ANN401
    """Raise Unsound where a standard node breaks its own schema."""
    if proto.domain not in STANDARD:
        return
    version = opsets.get("", 1)
    schema = _schema(proto.op_type, version)
    if schema is None:
        return
    newer = _schema(proto.op_type, max(version, OLDEST_OPSET))
    if newer is None or newer.since_version != schema.since_version:
        message = f"its form in opset {version} is not known"
        raise Unsound(f"{message}, expected that of {OLDEST_OPSET} or later")
    if len(proto.input) > schema.max_input:
        raise Unsound(f"it has {len(proto.input)} operands, expected at most {schema.max_input}")
    seen: set[str] = set()
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None:
            raise Unsound(f"it has no attribute `{attribute.name}`")
        if attribute.name in seen:
            raise Unsound(f"attribute `{attribute.name}` is given twice")
        seen.add(attribute.name)
        if attribute.type and attribute.type != int(known.type.value):
            raise Unsound(f"attribute `{attribute.name}` is of another type than ONNX says")


@lru_cache(maxsize=4096)
def _schema(operation: str, version: int) -> Any:  # noqa: ANN401 - onnx.defs.OpSchema
    try:
        return onnx.defs.get_schema(operation, version, "")
    except onnx.defs.SchemaError:
        return None
