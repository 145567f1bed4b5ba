"""Where the statements and entries of a document begin, in the order in which they are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nacre.nem.syntax.ast import DeviceConfig, Document, Loop, Stmt, TypeFamily
from nacre.nem.syntax.layout import Line, LineWriter
from nacre.nem.syntax.layout_config import lay_out_device, lay_out_family


class OperationSpan(Struct, frozen=True):
    """A statement or an entry: where it starts, where its first part ends, where it is closed."""

    start: int
    end: int
    closing: int | None = None  # of `endloop` or a brace


def operation_spans(document: Document, tokens: Sequence[int]) -> list[OperationSpan]:
    """The place of everything that becomes an operation, in order."""
    spans = [OperationSpan(node.start, node.end) for node in document.includes]
    if document.device is not None:
        spans.append(OperationSpan(document.device.start, document.device.end))
    for config in document.configs:
        spans += _config_spans(config, tokens)
    if document.header is not None:
        spans.append(OperationSpan(document.header.start, document.header.end))
    _add_statements(document.body, spans)
    return spans


def _add_statements(body: Sequence[Stmt], spans: list[OperationSpan]) -> None:
    for node in body:
        if isinstance(node, Loop):
            spans.append(OperationSpan(node.start, node.header_end, node.endloop))
            _add_statements(node.body, spans)
        else:
            spans.append(OperationSpan(node.start, node.end))


def config_lines(config: TypeFamily | DeviceConfig, tokens: Sequence[int]) -> list[Line]:
    """The lines of a family or a device, as the formatter lays them out."""
    writer = LineWriter("", (), tokens)
    if isinstance(config, DeviceConfig):
        lay_out_device(writer, config)
    else:
        lay_out_family(writer, config)
    return writer.lines


def _config_spans(
    config: TypeFamily | DeviceConfig, tokens: Sequence[int]
) -> Iterator[OperationSpan]:
    """One for every line that begins an entry; the line that closes a block belongs to it."""
    lines = config_lines(config, tokens)
    closings: dict[int, int] = {}
    opened: list[int] = []
    for at, line in enumerate(lines):
        if line.opens:
            opened.append(at)
        elif line.closes:
            closings[opened.pop()] = line.start
    for at, line in enumerate(lines):
        if line.is_item:
            yield OperationSpan(line.start, line.start + len(line.text), closings.get(at))
