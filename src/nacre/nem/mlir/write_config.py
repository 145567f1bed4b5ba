"""Type families and devices as operations: one a line of the canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nacre.nem.mlir.values import quote, strings, value_attribute
from nacre.nem.mlir.writer import OperationWriter
from nacre.nem.syntax.ast import (
    CharacteristicsBlock,
    DeviceConfig,
    NameRef,
    PerEngine,
    Topology,
    TypeFamily,
    UnitCharacteristics,
    UnitCount,
    VariantBlock,
    VariantDecl,
    VariantRef,
)


def _block(
    w: OperationWriter, op: str, attributes: Iterable[str], body: Callable[[], None]
) -> None:
    around = w.begin()
    location = w.open(op)
    body()
    w.close([*attributes, *around], location)


def _entry(w: OperationWriter, op: str, *attributes: str) -> None:
    around = w.begin()
    w.write(op, [*attributes, *around])


def _word(key: str, node: NameRef) -> str:
    return f'{key} = "{node.name}"'


def _words(nodes: Iterable[NameRef]) -> str:
    return strings(node.name for node in nodes)


def write_family(w: OperationWriter, node: TypeFamily) -> None:
    """A type family and its variants."""
    attributes = [_word("name", node.name)]
    if node.params:
        params = (f'#nem.parameter<"{p.name.name}", {_words(p.types)}>' for p in node.params)
        attributes.append(f"parameters = [{', '.join(params)}]")

    def body() -> None:
        for operand in node.operands:
            _entry(
                w, "operand_binding", _word("operand", operand.operand), _word("type", operand.type)
            )
        for bound in node.attributes:
            on = [] if bound.on is None else [_word("on", bound.on)]
            _entry(
                w, "attribute_binding", _word("name", bound.name), _word("value", bound.value), *on
            )
        _block(w, "variants", [], lambda: _write_variants(w, node.variants))

    _block(w, "type_family", attributes, body)


def _write_variants(w: OperationWriter, nodes: Sequence[VariantDecl]) -> None:
    for node in nodes:
        operands = (f'#nem.binding<"{o.operand.name}", "{o.type.name}">' for o in node.operands)
        levels = (
            f'#nem.conformance<"{c.level.name}", {_words(c.types)}>' for c in node.conformance
        )
        _entry(
            w,
            "variant",
            _word("name", node.name),
            f"operands = [{', '.join(operands)}]",
            f"conformance = [{', '.join(levels)}]",
        )


def write_device(w: OperationWriter, node: DeviceConfig) -> None:
    """A device, its blocks in the order of the grammar."""
    extends = [] if node.extends is None else [_word("extends", node.extends)]

    def body() -> None:
        if node.spec_version is not None:
            _entry(w, "spec_version", f"version = {quote(node.spec_version.value)}")
        if node.topology is not None:
            _write_topology(w, node.topology)
        if node.characteristics is not None:
            _write_characteristics(w, node.characteristics)
        for name, block in (("mandatory", node.mandatory), ("extended", node.extended)):
            if block is not None:
                _write_block(w, name, block)

    _block(w, "device", [_word("name", node.name), *extends], body)


def _write_topology(w: OperationWriter, node: Topology) -> None:
    def body() -> None:
        if node.num_engines is not None:
            _entry(w, "num_engines", f"count = {node.num_engines.value}")
        if node.l2_size is not None:
            _entry(w, "l2_size_bytes", f"size = {value_attribute(node.l2_size)}")
        units = node.device_units
        if units is not None:
            _block(w, "device_units", [], lambda: _write_units(w, units.units))
        engine = node.per_engine
        if engine is not None:
            _block(w, "per_engine", [], lambda: _write_engine(w, engine))

    _block(w, "topology", [], body)


def _write_units(w: OperationWriter, nodes: Sequence[UnitCount]) -> None:
    for node in nodes:
        if node.count is not None:
            _entry(w, "units", _word("unit", node.unit), f"count = {node.count.value}")


def _write_engine(w: OperationWriter, node: PerEngine) -> None:
    _write_units(w, node.units)
    if node.l1_size is not None:
        _entry(w, "l1_size_bytes", f"size = {value_attribute(node.l1_size)}")


def _write_characteristics(w: OperationWriter, node: CharacteristicsBlock) -> None:
    def body() -> None:
        for group in node.groups:
            _write_group(w, group)

    _block(w, "unit_characteristics", [], body)


def _write_group(w: OperationWriter, node: UnitCharacteristics) -> None:
    def body() -> None:
        for entry in node.entries:
            if entry.value is not None:
                value = f"value = {entry.value.value}"
                _entry(w, "characteristic", _word("key", entry.key), value)

    _block(w, "characteristics", [_word("unit", node.unit)], body)


def _write_block(w: OperationWriter, name: str, node: VariantBlock) -> None:
    def body() -> None:
        for variant in node.variants:
            _write_variant_ref(w, variant)

    _block(w, name, [], body)


def _write_variant_ref(w: OperationWriter, node: VariantRef) -> None:
    types = [] if node.types is None else [f"types = {_words(node.types)}"]
    _entry(w, "variant_ref", f'family = "{node.family}"', *types, f'variant = "{node.variant}"')
