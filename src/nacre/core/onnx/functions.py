"""Functions: those of the model, and those by which ONNX itself defines operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, islice
from typing import Any

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.module import TensorType
from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import STANDARD, Node, opsets_of
from nacre.core.unsupported import Unsupported

# Domain, name and overload.
Key = tuple[str, str, str]
_MOST_RINGS = 16  # that are told apart
_MOST_NAMED = 4  # functions of a ring in a message


class Function(Struct, frozen=True):
    """The body of a function for one call: no attribute refers to one of the call any more."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Any, ...]  # onnx.NodeProto
    opsets: Mapping[str, int]


def key_of(proto: Any) -> Key:  # noqa: ANN401 - onnx.NodeProto or onnx.FunctionProto
    """What a call names a function by."""
    name = getattr(proto, "op_type", None) or proto.name
    domain = proto.domain if proto.domain not in STANDARD else ""
    return domain, name, proto.overload


def local_functions(protos: Iterable[Any]) -> tuple[dict[Key, Any], list[str]]:
    """The functions of a model, and the names of those that it has twice."""
    functions: dict[Key, Any] = {}
    twice = []
    for proto in protos:
        if key_of(proto) in functions:
            twice.append(proto.name)
        functions[key_of(proto)] = proto
    return functions, twice


def find_recursion(functions: Mapping[Key, Any]) -> tuple[frozenset[Key], list[str]]:
    """Functions without which none calls itself in whatever way, and what is said of the rings."""
    inner = {key: [k for k in _calls(f.node) if k in functions] for key, f in functions.items()}
    endless: set[Key] = set()
    messages: list[str] = []
    done: set[Key] = set()
    for start in functions:
        path = {start: iter(inner[start])} if start not in done else {}
        while path:  # the functions that call each other down to here, and what they still call
            key = next(reversed(path))
            callee = next(path[key], None)
            if callee is None:
                del path[key]
                done.add(key)
            elif callee in path:  # every ring has a call from its end to its beginning
                if callee not in endless and len(messages) < _MOST_RINGS:
                    messages.append(_recursion_text(callee, path))
                endless |= {key, callee}
            elif callee not in done:
                path[callee] = iter(inner[callee])
    return frozenset(endless), messages


def _recursion_text(start: Key, path: Iterable[Key]) -> str:
    """What is said of a function that the last one of a path calls again."""
    between = list(islice(dropwhile(lambda key: key != start, path), 1, _MOST_NAMED + 2))
    named = [backquote(_title(key)) for key in between[:_MOST_NAMED]]
    more = ["and others"] if len(between) > _MOST_NAMED else []
    by_way = f" by way of {', '.join([*named, *more])}" if between else ""
    return f"the function {backquote(_title(start))} calls itself{by_way}"


def _title(key: Key) -> str:
    return f"{key[0]}.{key[1]}" if key[0] else key[1]


def _calls(nodes: Iterable[Any]) -> Iterator[Key]:
    """What nodes call, those of graphs inside too."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield key_of(node)
        for attribute in node.attribute:
            graphs = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
            waiting += [held for graph in graphs for held in graph.node]


def flattened_node_count(start: Key, functions: Mapping[Key, Any], most: int) -> int:
    """How many nodes a call stands for at least, laid out flat; not counted beyond `most`.

    Functions inside of functions can double with every level; none of them calls itself.
    """
    sizes: dict[Key, int] = {}
    open_: list[Key] = [start]
    entered: set[Key] = set()
    while open_:
        key = open_[-1]
        inner = [key_of(node) for node in functions[key].node]
        held = [one for one in inner if one in functions]
        waiting = [one for one in held if one not in sizes]
        if key in entered or not waiting:
            total = len(inner) + sum(sizes[one] for one in held)
            sizes[key] = min(total, most)
            open_.pop()
            continue
        entered.add(key)
        open_ += [one for one in dict.fromkeys(waiting) if one not in entered]
    return sizes[start]


def bind_attributes(function: Any, attributes: Iterable[Any]) -> Function:  # noqa: ANN401
    """A function with the attributes of a call, else with the defaults that it has for them."""
    given = {a.name: a for a in function.attribute_proto}
    given |= {a.name: a for a in attributes}
    return Function(
        tuple(function.input),
        tuple(function.output),
        tuple(_resolve_attributes(node, given) for node in function.node),
        opsets_of(function.opset_import),
    )


def _resolve_attributes(node: Any, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - onnx.NodeProto
    """A node whose attributes hold what they refer to; one that refers to nothing is left out."""
    if not _has_attribute_reference(node):
        return node
    resolved = onnx.NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    for attribute in node.attribute:
        source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is None:
            continue
        copy = resolved.attribute.add()
        copy.CopyFrom(source)
        copy.name = attribute.name
        if source is attribute and attribute.type == onnx.AttributeProto.GRAPH:
            del copy.g.node[:]
            copy.g.node.extend([_resolve_attributes(inner, given) for inner in attribute.g.node])
    return resolved


def _has_attribute_reference(node: Any) -> bool:  # noqa: ANN401 - onnx.NodeProto
    return any(
        attribute.ref_attr_name
        or (
            attribute.type == onnx.AttributeProto.GRAPH
            and any(_has_attribute_reference(inner) for inner in attribute.g.node)
        )
        for attribute in node.attribute
    )


def function_definition(
    node: Node,
    proto: Any,  # noqa: ANN401 - onnx.NodeProto
    types: Sequence[TensorType | None],
) -> Function | None:
    """The function by which ONNX defines an operation; None where it defines it otherwise."""
    try:
        schema = onnx.defs.get_schema(node.op, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    versions = [v for v in schema.all_function_opset_versions if v <= node.opset]
    if not versions:
        return None
    version = max(versions)
    try:
        if version in schema.function_opset_versions:
            raw = schema.get_function_with_opset_version(version)
        else:
            raw = schema.get_context_dependent_function_with_opset_version(
                version, proto.SerializeToString(), [_type_proto(t) for t in types]
            )
        function = onnx.FunctionProto.FromString(raw)
    except Exception:  # from the bindings of onnx, which does not say which it raises
        message = f"the function by which ONNX defines it in opset {version} cannot be had"
        raise Unsupported(message, "write the node with simpler operations") from None
    defaults = [a.default_value for a in schema.attributes.values() if a.default_value.type]
    return bind_attributes(function, [*defaults, *proto.attribute])


def _type_proto(type_: TensorType | None) -> bytes:
    if type_ is None:
        return b""
    kind = onnx.helper.np_dtype_to_tensor_dtype(GRAPH_TYPES[type_.dtype].dtype)
    raw: bytes = onnx.helper.make_tensor_type_proto(kind, type_.shape).SerializeToString()
    return raw
