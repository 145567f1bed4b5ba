"""Config documents as lines: type families and devices, one entry a line, in grammar order."""

from __future__ import annotations

from nacre.nem.syntax.ast import (
    CharacteristicsBlock,
    DeviceConfig,
    NameRef,
    OperandBinding,
    PerEngine,
    Topology,
    TypeFamily,
    UnitBlock,
    UnitCount,
    VariantBlock,
    VariantDecl,
)
from nacre.nem.syntax.layout import LineWriter
from nacre.nem.syntax.printer import string_text, value_text, variant_text


def lay_out_family(writer: LineWriter, node: TypeFamily) -> None:
    """A type family and its variants."""
    params = ", ".join(f"{p.name.name}: {{{_names(p.types)}}}" for p in node.params)
    head = f"type_family {node.name.name}{f'<{params}>' if params else ''} {{"
    writer.add(0, head, node.start, item=True, opens=True)
    for operand in node.operands:
        writer.add(1, _binding(operand), operand.start, item=True)
    for attribute in node.attributes:
        on = f" on {attribute.on.name}" if attribute.on is not None else ""
        text = f"{attribute.name.name} = {attribute.value.name}{on}"
        writer.add(1, text, attribute.start, item=True)
    writer.add(1, "variants:", node.variants_start, item=True)
    for variant in node.variants:
        _variant(writer, variant)
    writer.add(0, "}", node.end - 1, closes=True)


def _names(nodes: tuple[NameRef, ...]) -> str:
    return ", ".join(node.name for node in nodes)


def _binding(node: OperandBinding) -> str:
    return f"{node.operand.name}: {node.type.name}"


def _variant(writer: LineWriter, node: VariantDecl) -> None:
    bindings = " ".join(_binding(operand) for operand in node.operands)
    head = f"{node.name.name}: {{{f' {bindings} ' if bindings else ''}}}"
    writer.add(2, head, node.start, item=True)
    entries = " ".join(
        f"{entry.level.name} <{_names(entry.types)}>" if entry.types else entry.level.name
        for entry in node.conformance
    )
    text = f"conformance: {{{f' {entries} ' if entries else ''}}}"
    if node.operands:
        start = writer.token(node.operands[-1].type.start, len(("}", "conformance")))
    else:
        start = writer.token(node.start, len((":", "{", "}", "conformance")))
    writer.add(3, text, start)


def lay_out_device(writer: LineWriter, node: DeviceConfig) -> None:
    """A device, its blocks in the order of the grammar."""
    extends = f" extends {node.extends.name}" if node.extends is not None else ""
    writer.add(0, f"device {node.name.name}{extends} {{", node.start, item=True, opens=True)
    if node.spec_version is not None:
        text = f"spec_version = {string_text(node.spec_version.value)}"
        writer.add(1, text, node.spec_start, item=True)
    if node.topology is not None:
        _topology(writer, node.topology)
    if node.characteristics is not None:
        _characteristics(writer, node.characteristics)
    if node.mandatory is not None:
        _variants(writer, "opcode.mandatory", node.mandatory)
    if node.extended is not None:
        _variants(writer, "opcode.extended", node.extended)
    writer.add(0, "}", node.end - 1, closes=True)


def _topology(writer: LineWriter, node: Topology) -> None:
    writer.add(1, "topology {", node.start, item=True, opens=True)
    engines_start, l2_start = node.starts
    if node.num_engines is not None:
        writer.add(2, f"num_engines = {node.num_engines.value}", engines_start, item=True)
    if node.l2_size is not None:
        writer.add(2, f"l2_size_bytes = {value_text(node.l2_size)}", l2_start, item=True)
    if node.device_units is not None:
        _units(writer, node.device_units)
    if node.per_engine is not None:
        _per_engine(writer, node.per_engine)
    writer.add(1, "}", node.end - 1, closes=True)


def _units(writer: LineWriter, node: UnitBlock) -> None:
    writer.add(2, "device_units {", node.start, item=True, opens=True)
    for unit in node.units:
        _unit(writer, unit)
    writer.add(2, "}", node.end - 1, closes=True)


def _unit(writer: LineWriter, node: UnitCount) -> None:
    if node.count is not None:
        writer.add(3, f"{node.unit.name} = {node.count.value}", node.start, item=True)


def _per_engine(writer: LineWriter, node: PerEngine) -> None:
    writer.add(2, "per_engine {", node.start, item=True, opens=True)
    for unit in node.units:
        _unit(writer, unit)
    if node.l1_size is not None:
        writer.add(3, f"l1_size_bytes = {value_text(node.l1_size)}", node.l1_start, item=True)
    writer.add(2, "}", node.end - 1, closes=True)


def _characteristics(writer: LineWriter, node: CharacteristicsBlock) -> None:
    writer.add(1, "unit_characteristics {", node.start, item=True, opens=True)
    for group in node.groups:
        writer.add(2, f"{group.unit.name} {{", group.start, item=True, opens=True)
        for entry in group.entries:
            if entry.value is not None:
                writer.add(3, f"{entry.key.name} = {entry.value.value}", entry.start, item=True)
        writer.add(2, "}", group.end - 1, closes=True)
    writer.add(1, "}", node.end - 1, closes=True)


def _variants(writer: LineWriter, name: str, node: VariantBlock) -> None:
    writer.add(1, f"{name} {{", node.start, item=True, opens=True)
    for variant in node.variants:
        writer.add(2, variant_text(variant), variant.start, item=True)
    writer.add(1, "}", node.end - 1, closes=True)
