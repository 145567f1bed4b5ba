"""Operations of type families and devices, read back into the tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from xdsl.ir import Attribute as MlirAttribute

from nacre.nem.mlir.dialect import NemOperation
from nacre.nem.mlir.nodes import (
    MalformedError,
    dotted_of,
    expression_of,
    integer_of,
    list_of,
    parameters,
    string_of,
    word_of,
    words_of,
)
from nacre.nem.syntax.ast import (
    AttributeBinding,
    Characteristic,
    CharacteristicsBlock,
    Conformance,
    DeviceConfig,
    NameRef,
    OperandBinding,
    PerEngine,
    StringLit,
    Topology,
    TypeFamily,
    TypeParam,
    UnitBlock,
    UnitCharacteristics,
    UnitCount,
    VariantBlock,
    VariantDecl,
    VariantRef,
)

Read = TypeVar("Read")


def body_of(op: NemOperation) -> Iterator[NemOperation]:
    """The operations of a body, without the one that ends it."""
    for block in op.regions[0].blocks if op.regions else ():
        yield from (inner for inner in block.ops if isinstance(inner, NemOperation))


class _Body:
    """The entries of a body, which must come in the order in which they are laid out."""

    def __init__(self, op: NemOperation) -> None:
        self._op = op
        self._left = deque(body_of(op))

    def entries_named(self, name: str, read: Callable[[NemOperation], Read]) -> tuple[Read, ...]:
        """The entries of that name that come next."""
        nodes = []
        while self._left and self._left[0].signature.name == name:
            nodes.append(read(self._left.popleft()))
        return tuple(nodes)

    def one(self, name: str, read: Callable[[NemOperation], Read]) -> Read | None:
        """The entry of that name, where it comes next."""
        is_next = self._left and self._left[0].signature.name == name
        return read(self._left.popleft()) if is_next else None

    def finish(self) -> None:
        """Refuse what is left."""
        if self._left:
            raise MalformedError(
                f"`{self._left[0].name}` does not stand in `{self._op.name}`, or not there"
            )


def _optional_word(op: NemOperation, key: str) -> NameRef | None:
    return word_of(op.attributes[key]) if key in op.attributes else None


def _conformance_of(attribute: MlirAttribute) -> Conformance:
    if attribute.name != "nem.conformance":
        raise MalformedError(f"{attribute} is no conformance")
    level, types = parameters(attribute)
    return Conformance(0, 0, word_of(level), words_of(types))


def _binding_of(attribute: MlirAttribute) -> OperandBinding:
    if attribute.name != "nem.binding":
        raise MalformedError(f"{attribute} is no binding")
    operand, type_ = parameters(attribute)
    return OperandBinding(0, 0, word_of(operand), word_of(type_))


def _parameter_of(attribute: MlirAttribute) -> TypeParam:
    if attribute.name != "nem.parameter":
        raise MalformedError(f"{attribute} is no parameter")
    name, types = parameters(attribute)
    return TypeParam(0, 0, word_of(name), words_of(types))


def family_of(op: NemOperation) -> TypeFamily:
    """A type family."""
    entries, body = op.attributes, _Body(op)
    params = list_of(entries["parameters"], _parameter_of) if "parameters" in entries else ()
    operands = body.entries_named("operand_binding", _operand_binding)
    attributes = body.entries_named("attribute_binding", _attribute_binding)
    variants = body.one("variants", _variants_of)
    body.finish()
    if variants is None:
        raise MalformedError(f"`{op.name}` has no `nem.variants`")
    return TypeFamily(0, 0, dotted_of(entries["name"]), params, operands, attributes, variants, 0)


def _operand_binding(op: NemOperation) -> OperandBinding:
    return OperandBinding(0, 0, word_of(op.attributes["operand"]), word_of(op.attributes["type"]))


def _attribute_binding(op: NemOperation) -> AttributeBinding:
    name, value = word_of(op.attributes["name"]), word_of(op.attributes["value"])
    return AttributeBinding(0, 0, name, value, _optional_word(op, "on"))


def _variants_of(op: NemOperation) -> tuple[VariantDecl, ...]:
    body = _Body(op)
    variants = body.entries_named("variant", _variant_of)
    body.finish()
    return variants


def _variant_of(op: NemOperation) -> VariantDecl:
    attributes = op.attributes
    operands = list_of(attributes["operands"], _binding_of)
    conformance = list_of(attributes["conformance"], _conformance_of)
    return VariantDecl(0, 0, word_of(attributes["name"]), operands, conformance)


def device_of(op: NemOperation) -> DeviceConfig:
    """A device."""
    body = _Body(op)
    version = body.one(
        "spec_version", lambda o: StringLit(0, 0, string_of(o.attributes["version"]))
    )
    topology = body.one("topology", _topology_of)
    characteristics = body.one("unit_characteristics", _characteristics_of)
    mandatory = body.one("mandatory", _block_of)
    extended = body.one("extended", _block_of)
    body.finish()
    name, extends = word_of(op.attributes["name"]), _optional_word(op, "extends")
    blocks = characteristics, mandatory, extended
    return DeviceConfig(0, 0, name, extends, version, topology, *blocks, 0)


def _topology_of(op: NemOperation) -> Topology:
    body = _Body(op)
    engines = body.one("num_engines", lambda o: integer_of(o.attributes["count"]))
    l2_size = body.one("l2_size_bytes", lambda o: expression_of(o.attributes["size"]))
    shared = body.one("device_units", lambda o: UnitBlock(0, 0, _units_of(o)))
    engine = body.one("per_engine", _engine_of)
    body.finish()
    return Topology(0, 0, engines, l2_size, shared, engine, (0, 0))


def _units_of(op: NemOperation) -> tuple[UnitCount, ...]:
    body = _Body(op)
    units = body.entries_named("units", _unit_of)
    body.finish()
    return units


def _unit_of(op: NemOperation) -> UnitCount:
    return UnitCount(0, 0, word_of(op.attributes["unit"]), integer_of(op.attributes["count"]))


def _engine_of(op: NemOperation) -> PerEngine:
    body = _Body(op)
    units = body.entries_named("units", _unit_of)
    l1_size = body.one("l1_size_bytes", lambda o: expression_of(o.attributes["size"]))
    body.finish()
    return PerEngine(0, 0, units, l1_size, 0)


def _characteristics_of(op: NemOperation) -> CharacteristicsBlock:
    body = _Body(op)
    groups = body.entries_named("characteristics", _group_of)
    body.finish()
    return CharacteristicsBlock(0, 0, groups)


def _group_of(op: NemOperation) -> UnitCharacteristics:
    body = _Body(op)
    entries = body.entries_named("characteristic", _characteristic_of)
    body.finish()
    return UnitCharacteristics(0, 0, word_of(op.attributes["unit"]), entries)


def _characteristic_of(op: NemOperation) -> Characteristic:
    return Characteristic(0, 0, word_of(op.attributes["key"]), integer_of(op.attributes["value"]))


def _block_of(op: NemOperation) -> VariantBlock:
    body = _Body(op)
    variants = body.entries_named("variant_ref", _variant_ref_of)
    body.finish()
    return VariantBlock(0, 0, variants)


def _variant_ref_of(op: NemOperation) -> VariantRef:
    attributes = op.attributes
    types = words_of(attributes["types"]) if "types" in attributes else None
    family, variant = dotted_of(attributes["family"]), word_of(attributes["variant"])
    return VariantRef(0, 0, family.name, types, variant.name)


def config_operations(op: NemOperation) -> Iterator[NemOperation]:
    """The operation and what stands in its body, in the order of their lines."""
    yield op
    for inner in body_of(op):
        yield from config_operations(inner)


CONFIGS: Sequence[str] = ("type_family", "device")
