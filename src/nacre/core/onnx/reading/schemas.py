"""What ONNX itself says about a node: attributes, and how many operands of which types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import STANDARD, Node

OLDEST_OPSET = 6  # of older ones, operations that have not changed since
CONVERT = "convert the model: `onnx.version_converter.convert_version(model, {opset})`"


def opset_problem(opsets: Mapping[str, int], nodes: Iterable[Any]) -> Unsound | None:
    """What is wrong with the version of the standard operations that a model asks for."""
    version, newest = opsets.get(""), onnx.defs.onnx_opset_version()
    if version is None:
        if not any(node.domain in STANDARD for node in nodes):
            return None
        help_ = "add the opset that the model was written for to `opset_import`"
        return Unsound("the model does not say which opset it uses", help_)
    if not 1 <= version <= newest:
        message = f"the model uses opset {version}, expected {OLDEST_OPSET} to {newest}"
        return Unsound(message, CONVERT.format(opset=newest))
    return None


def require_schema(proto: Any, opsets: Mapping[str, int]) -> None:  # noqa: ANN401
    """Raise Unsound where a standard node breaks its own schema."""
    if proto.domain not in STANDARD:
        return
    version = opsets.get("", 1)
    schema = _schema(proto.op_type, version)
    if schema is None:
        _require_old_enough(proto.op_type, version)
        return
    newer = _schema(proto.op_type, max(version, OLDEST_OPSET))
    if newer is None or newer.since_version != schema.since_version:
        message = f"its form in opset {version} is not known"
        expected = f"expected that of {OLDEST_OPSET} or later"
        raise Unsound(f"{message}, {expected}", CONVERT.format(opset=13))
    _require_counts(proto, schema)
    _require_operands(proto, schema)
    _require_attributes(proto, schema)


# Older than the opset that took them up, and known to onnxruntime ever since.
# It writes LayerNormalization into models of any opset when it fuses.
_EXPERIMENTAL = frozenset({"LayerNormalization", "MeanVarianceNormalization", "ThresholdedRelu"})


def _require_old_enough(operation: str, version: int) -> None:
    """An operation that a later opset brings does not exist yet."""
    if operation in _EXPERIMENTAL:
        return
    newest = onnx.defs.onnx_opset_version()
    first = next((v for v in range(version + 1, newest + 1) if _schema(operation, v)), None)
    if first is not None:
        message = f"it does not exist in opset {version}, but from {first} on"
        raise Unsound(message, CONVERT.format(opset=first))


def _require_counts(proto: Any, schema: Any) -> None:  # noqa: ANN401
    counts = (
        ("operands", len(proto.input), schema.min_input, schema.max_input),
        ("outputs", len(proto.output), schema.min_output, schema.max_output),
    )
    for what, count, least, most in counts:
        if count > most:
            raise Unsound(f"it has {count} {what}, expected at most {most}")
        if count < least:
            raise Unsound(f"it has {count} {what}, expected at least {least}")


# Operands that ONNX demands in some versions, although nothing looks at them.
_IDLE = frozenset({("Resize", "roi"), ("Resize", "scales")})


def _require_operands(proto: Any, schema: Any) -> None:  # noqa: ANN401
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for name, formal in zip(proto.input, schema.inputs, strict=False):
        if not name and formal.option == single and (proto.op_type, formal.name) not in _IDLE:
            raise Unsound(f"its operand `{formal.name}` is missing", "give the node this operand")


def _require_attributes(proto: Any, schema: Any) -> None:  # noqa: ANN401
    seen: set[str] = set()
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None:
            help_ = did_you_mean(attribute.name, schema.attributes) or _attributes_text(
                schema.attributes
            )
            raise Unsound(f"it has no attribute {backquote(attribute.name)}", help_)
        if attribute.name in seen:
            raise Unsound(f"attribute `{attribute.name}` is given twice", "leave one of them out")
        seen.add(attribute.name)
        if attribute.type and attribute.type != int(known.type.value):
            expected = f"expected {str(known.type).rpartition('.')[2]}"
            kind = _attribute_kind(attribute.type)
            raise Unsound(f"attribute `{attribute.name}` is {kind}, {expected}")
    for name, known in schema.attributes.items():
        if known.required and name not in seen:
            raise Unsound(f"attribute `{name}` is missing", f"give the node its `{name}`")


def _attribute_kind(kind: int) -> str:
    names = {value: name for name, value in onnx.AttributeProto.AttributeType.items()}
    return str(names.get(kind, f"of the unknown kind {kind}"))


def _attributes_text(names: Iterable[str]) -> str:
    known = ", ".join(f"`{name}`" for name in names)
    return f"its attributes are {known}" if known else "it has none: leave it out"


@lru_cache(maxsize=4096)
def _schema(operation: str, version: int) -> Any:  # noqa: ANN401 - onnx.defs.OpSchema
    try:
        return onnx.defs.get_schema(operation, version, "")
    except onnx.defs.SchemaError:
        return None


# Element types


def require_types(node: Node, dtypes: Sequence[np.dtype[Any] | None]) -> None:
    """Raise Unsound where an operand of a standard node has a type that ONNX does not allow."""
    if node.domain:
        return
    wrong = _mismatch(node.op, node.opset, tuple(None if d is None else _kind(d) for d in dtypes))
    if wrong is not None:
        raise Unsound(wrong, "add a Cast before it")


@lru_cache(maxsize=4096)
def _mismatch(operation: str, version: int, kinds: tuple[str | None, ...]) -> str | None:
    schema = _schema(operation, version)
    if schema is None:
        return None
    bound: dict[str, tuple[int, str]] = {}
    for index, kind in enumerate(kinds):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if kind is None:
            continue
        if kind not in formal.types:
            allowed = ", ".join(sorted({_title(t) for t in formal.types if t.startswith("tensor")}))
            return f"operand {index} is of `{_title(kind)}`, expected {allowed or 'no tensor'}"
        if not formal.is_homogeneous:
            continue
        first, other = bound.setdefault(formal.type_str, (index, kind))
        if other != kind:
            types = f"`{_title(other)}` and `{_title(kind)}`"
            return f"operands {first} and {index} are of {types}, expected one type"
    return None


@lru_cache(maxsize=64)
def _kind(dtype: np.dtype[Any]) -> str:
    """`tensor(float)` for f32: what schemas call an element type."""
    if dtype.kind in "OSU":
        return "tensor(string)"
    try:
        kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    except (KeyError, ValueError):
        return f"tensor({dtype})"
    return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"


@cache
def _core_names() -> Mapping[str, str]:
    return MappingProxyType({_kind(e.dtype): name for name, e in GRAPH_TYPES.items()})


def _title(kind: str) -> str:
    """Core IR's name for a type of schemas, else ONNX's."""
    return _core_names().get(kind) or kind.removeprefix("tensor(").removesuffix(")").upper()
