"""A document of NEM as a module of MLIR, in text: one operation a statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from nacre.base.diagnostics import InputError, InternalError
from nacre.base.source import Source
from nacre.nem.mlir.fitting import misfit
from nacre.nem.mlir.operation_spans import operation_spans
from nacre.nem.mlir.signatures import ORDER, SEGMENTS, SIGNATURES, segment_sizes
from nacre.nem.mlir.token_marks import Page, token_attributes
from nacre.nem.mlir.trivia import DocumentTrivia
from nacre.nem.mlir.values import (
    attributes_attribute,
    bound_attribute,
    decorators_attribute,
    quote,
    region_type_attribute,
    strings,
    value_attribute,
)
from nacre.nem.mlir.write_config import write_device, write_family
from nacre.nem.mlir.writer import OperationWriter, TypedValue
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.ast import (
    Broken,
    BufferDecl,
    Compute,
    ConstDecl,
    Copy,
    DeviceConfig,
    Document,
    LetDecl,
    Loop,
    NameRef,
    Operand,
    RegionDecl,
    RegionExpr,
    Stmt,
    Wait,
)
from nacre.nem.syntax.formatter import format_parsed
from nacre.nem.syntax.lexer import tokenize
from nacre.nem.syntax.parser import ParseResult, parse

_END = "nem.end"  # of the module: what stands behind the last statement


def export_source(source: Source) -> str:
    """The module of a document; InputError where its text does not follow the grammar."""
    written = parse(source)
    if not written.is_valid:
        raise InputError(written.diagnostics)
    canonical = format_parsed(written)
    parsed = written if canonical == source.text else parse(Source(source.name, canonical))
    writer, trivia = _writer(written, parsed)
    _write_document(writer, parsed.document)
    end = f" attributes {{{_END} = {strings(trivia.end)}}}" if trivia.end else ""
    return "\n".join([f"module{end} {{", *writer.lines, "}", ""])


def _writer(written: ParseResult, parsed: ParseResult) -> tuple[OperationWriter, DocumentTrivia]:
    page = _page(parsed)
    origin = page
    tokens: list[list[str]] = [[] for _ in page.spans]
    if written is not parsed:
        origin = _page(written)
        tokens = token_attributes(origin, page)
    trivia = DocumentTrivia(page, parsed.comments)
    around = [[*trivia.attributes(span), *at] for span, at in zip(page.spans, tokens, strict=True)]
    return OperationWriter(written.source, origin.spans, around), trivia


def _page(parsed: ParseResult) -> Page:
    tokens = tokenize(parsed.source)
    return Page(parsed.source, tokens, operation_spans(parsed.document, tokens.starts))


def _write_document(w: OperationWriter, document: Document) -> None:
    for include in document.includes:
        around = w.begin()
        w.write("include", [f"path = {quote(include.path.value)}", *around])
    if document.device is not None:
        around, target = w.begin(), document.device.target
        w.write("device_ref", [f"target = {value_attribute(target)}", *around])
    for config in document.configs:
        if isinstance(config, DeviceConfig):
            write_device(w, config)
        else:
            write_family(w, config)
    if document.header is not None:
        around = w.begin()
        w.write("program", [_name_attribute(document.header.name), *around])
    _write_statements(w, document.body)


def _write_statements(w: OperationWriter, body: Sequence[Stmt]) -> None:
    for node in body:
        if isinstance(node, Loop):
            _write_loop(w, node)
        else:
            _write_statement(w, node, w.begin())


def _write_statement(w: OperationWriter, node: Stmt, around: list[str]) -> None:
    match node:
        case ConstDecl(name=name, value=value):
            w.write("const", [_name_attribute(name), f"value = {value_attribute(value)}", *around])
            w.define_other(name.name)
        case LetDecl(value=RegionExpr() as region):
            _write_region(w, "let_region", node, region, around)
        case LetDecl(name=name, value=bound):
            attribute = f"value = {bound_attribute(bound)}"
            w.write("let", [_name_attribute(name), attribute, *_decorators(node), *around])
            w.define_other(name.name)
        case RegionDecl(region=region):
            _write_region(w, "region_decl", node, region, around)
        case BufferDecl():
            _write_buffer(w, node, around)
        case Wait(tokens=tokens):
            w.write("wait", around, [w.find(token.name, "token") for token in tokens])
        case Copy():
            _write_copy(w, node, around)
        case Compute():
            _write_compute(w, node, around)
        case Broken() | Loop():
            raise InternalError("a statement that is broken has been reported")
        case _:
            assert_never(node)


def _name_attribute(name: NameRef) -> str:
    return f'name = "{name.name}"'


def _decorators(node: BufferDecl | RegionDecl | LetDecl | Copy | Compute | Loop) -> list[str]:
    decorators = node.decorators
    return [f"decorators = {decorators_attribute(decorators)}"] if decorators else []


def _write_loop(w: OperationWriter, node: Loop) -> None:
    around = w.begin()
    if node.variable is None or node.first is None or node.last is None:
        raise InternalError("a loop that lacks a part has been reported")
    attributes = [
        f'variable = "{node.variable.name}"',
        f"first = {value_attribute(node.first)}",
        f"last = {value_attribute(node.last)}",
        *_decorators(node),
        *around,
    ]
    location = w.open("loop")
    w.define_other(node.variable.name)
    _write_statements(w, node.body)
    w.close(attributes, location)


def _write_buffer(w: OperationWriter, node: BufferDecl, around: list[str]) -> None:
    if node.level is None or node.size is None:
        raise InternalError("a buffer that lacks a part has been reported")
    attributes = [_name_attribute(node.name), f'level = "{node.level.name}"']
    if node.level.index is not None:
        attributes.append(f"index = {value_attribute(node.level.index)}")
    attributes.append(f"size = {value_attribute(node.size)}")
    if node.align is not None:
        attributes.append(f"align = {node.align.value}")
    result = w.define(node.name.name, "buffer")
    w.write("buffer_decl", [*attributes, *_decorators(node), *around], result=result)


def _bounds(region: RegionExpr) -> list[str]:
    found = [
        f"offset = {value_attribute(region.offset)}",
        f"extent = {value_attribute(region.extent)}",
    ]
    if region.type is not None:
        found.append(f"type = {region_type_attribute(region.type)}")
    return found


def _write_region(
    w: OperationWriter,
    op: str,
    node: RegionDecl | LetDecl,
    region: RegionExpr,
    around: list[str],
) -> None:
    buffer = w.find(region.buffer.name, "buffer")
    attributes = [_name_attribute(node.name), *_bounds(region), *_decorators(node), *around]
    w.write(op, attributes, [buffer], w.define(node.name.name, "region"))


def _operands(w: OperationWriter, nodes: Iterable[Operand]) -> list[TypedValue]:
    return [_operand(w, node.value) for node in nodes]


def _operand(w: OperationWriter, value: NameRef | RegionExpr) -> TypedValue:
    if isinstance(value, NameRef):
        return w.find(value.name, "region")
    buffer = w.find(value.buffer.name, "buffer")
    result = w.unnamed("region")
    w.write("region_decl", _bounds(value), [buffer], result)
    return result


def _write_copy(w: OperationWriter, node: Copy, around: list[str]) -> None:
    if node.dst is None or node.src is None:
        raise InternalError("a copy that lacks a part has been reported")
    _write_task(w, node.op.name, node, ([node.src], [node.dst]), [], around)


def _write_compute(w: OperationWriter, node: Compute, around: list[str]) -> None:
    row = OPCODES[node.op.name]
    groups = node.inputs, node.outputs
    if misfit(row, len(node.inputs), len(node.outputs), node.attributes) is not None:
        unchecked = [
            f'opcode = "{row.name}"',
            f"attributes = {attributes_attribute(node.attributes)}",
        ]
        _write_task(w, "task", node, groups, unchecked, around)
        return
    known = [spec.name for spec in row.attributes]
    values = {attribute.name.name: attribute.value for attribute in node.attributes}
    more = [attribute for attribute in node.attributes if attribute.name.name not in known]
    attributes = [f"{name} = {value_attribute(values[name])}" for name in known if name in values]
    if more:
        attributes.append(f"attributes = {attributes_attribute(more)}")
    order = [*(n for n in known if n in values), *(attribute.name.name for attribute in more)]
    if order != list(values):
        around = [f"{ORDER} = {strings(values)}", *around]
    _write_task(w, row.name, node, groups, attributes, around)


def _write_task(
    w: OperationWriter,
    op: str,
    node: Copy | Compute,
    groups: tuple[Sequence[Operand], Sequence[Operand]],
    attributes: list[str],
    around: list[str],
) -> None:
    inputs, outputs = groups
    operands = _operands(w, [*inputs, *outputs])
    deps = [w.find(token.name, "token") for token in node.deps]
    every = [
        *attributes,
        f'form = "{"sync" if node.is_sync else "async"}"',
        *_operand_decorators([*inputs, *outputs]),
        *_decorators(node),
        *_segments(op, len(inputs), len(outputs), len(deps)),
        *around,
    ]
    result = None
    if node.token is not None:
        every.insert(0, f'token = "{node.token.name}"')
        result = w.define(node.token.name, "token")
    w.write(op, every, [*operands, *deps], result)


def _operand_decorators(nodes: Sequence[Operand]) -> list[str]:
    if not any(node.decorators for node in nodes):
        return []
    lists = ", ".join(decorators_attribute(node.decorators) for node in nodes)
    return [f"operand_decorators = [{lists}]"]


def _segments(op: str, inputs: int, outputs: int, deps: int) -> list[str]:
    if not SIGNATURES[op].has_segments:
        return []
    sizes = [inputs, outputs]
    if op in OPCODES:
        row = OPCODES[op]
        sizes = [
            *(segment_sizes(row.inputs, inputs) or ()),
            *(segment_sizes(row.outputs, outputs) or ()),
        ]
    return [f"{SEGMENTS} = array<i32: {', '.join(map(str, [*sizes, deps]))}>"]
