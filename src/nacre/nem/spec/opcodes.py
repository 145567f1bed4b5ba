"""The opcodes as rows, and what can be asked of them; opcodes.yaml is where they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from nacre.nem.spec.opcode_rows import (
    AttributeRow,
    AttributeType,
    Category,
    Default,
    Direction,
    Hardware,
    NameMap,
    Names,
    OpcodeRow,
    OperandRow,
    Role,
    Status,
    Trait,
)
from nacre.nem.spec.opcode_table import REGISTRY_VERSION, ROWS

__all__ = [
    "OPCODES",
    "REGISTRY_VERSION",
    "AttributeSpec",
    "Opcode",
    "OperandSpec",
    "opcode",
]


class OperandSpec(Struct, frozen=True):
    """One operand of an opcode; a variadic one stands for one or more regions."""

    name: str
    direction: Direction
    required: bool
    variadic: bool
    role: Role
    rank: int | None  # exactly
    min_rank: int | None
    layout: str | None
    elem: str | None  # "integer" where no family binds the operand and any integer type will do
    shape: str  # the rule, in words

    @property
    def is_main(self) -> bool:
        """Whether compute expects it in L1; biases, scales, tables and indices may lie anywhere."""
        return self.role in ("input", "weight", "output")


class AttributeSpec(Struct, frozen=True):
    """One attribute of an opcode. An optional one without default depends on the operands."""

    name: str
    type: AttributeType
    required: bool
    default: Default
    allowed: Names  # the closed list of an `id`; empty: any
    length: int | None  # of an int_list
    minimum: int | None  # of an int, or of every member of an int_list
    summary: str


class Opcode(Struct, frozen=True):
    """One row of the registry."""

    name: str
    summary: str
    category: Category
    operands: tuple[OperandSpec, ...]
    attributes: tuple[AttributeSpec, ...]
    families: Names
    variants: Names  # the only ones that can match; empty: all
    bindings: NameMap  # family operand -> operands, where the names differ
    quant_on: NameMap  # family -> operands that its `quant = required` means
    same_elem: Names  # without family: operands that share one element type
    traits: tuple[Trait, ...]
    unit: str  # "varies" when the memory levels of the operands choose it
    eligible_units: Names  # the preferred one first
    hardware: Hardware
    status: Status
    forms: Names

    def __post_init__(self) -> None:
        _require_unique(f"operand of `{self.name}`", (operand.name for operand in self.operands))
        _require_unique(f"attribute of `{self.name}`", (item.name for item in self.attributes))

    @property
    def inputs(self) -> tuple[OperandSpec, ...]:
        """The operands after `in`, in order."""
        return tuple(operand for operand in self.operands if operand.direction == "in")

    @property
    def outputs(self) -> tuple[OperandSpec, ...]:
        """The operands after `out`, in order."""
        return tuple(operand for operand in self.operands if operand.direction == "out")

    @property
    def required_inputs(self) -> tuple[OperandSpec, ...]:
        """The inputs that every task gives; they come before the optional ones."""
        return tuple(operand for operand in self.inputs if operand.required)

    @property
    def min_inputs(self) -> int:
        """The smallest number of input regions."""
        return len(self.required_inputs)

    @property
    def max_inputs(self) -> int | None:
        """The largest number of input regions; None without bound."""
        return _max_count(self.inputs)

    @property
    def min_outputs(self) -> int:
        """The smallest number of output regions."""
        return sum(operand.required for operand in self.outputs)

    @property
    def max_outputs(self) -> int | None:
        """The largest number of output regions; None without bound."""
        return _max_count(self.outputs)

    @property
    def required_attributes(self) -> tuple[AttributeSpec, ...]:
        """The attributes that every task gives."""
        return tuple(item for item in self.attributes if item.required)

    @property
    def is_product(self) -> bool:
        """Whether it sums products of its input and its weights."""
        return self.category in ("linear_algebra", "convolution")

    @property
    def family_domains(self) -> Names:
        """What the first part of a family's id must be for it to govern this opcode."""
        return tuple(dict.fromkeys((self.name, *(f.partition(".")[0] for f in self.families))))

    def operand(self, name: str) -> OperandSpec | None:
        """The operand of that name, if there is one."""
        return next((operand for operand in self.operands if operand.name == name), None)

    def attribute(self, name: str) -> AttributeSpec | None:
        """The attribute of that name, if there is one."""
        return next((item for item in self.attributes if item.name == name), None)

    def allows_variant(self, variant: str) -> bool:
        """Whether the opcode can match a family variant of that name."""
        return not self.variants or variant in self.variants

    def operands_bound_to(self, family_operand: str) -> tuple[OperandSpec, ...]:
        """The operands that a family means by one of its own; none when the opcode has no such."""
        names = dict(self.bindings).get(family_operand, (family_operand,))
        bound = tuple(operand for operand in self.operands if operand.name in names)
        role = _ROLES_IN_FAMILIES.get(family_operand)
        return bound or tuple(operand for operand in self.operands if operand.role == role)

    def quant_operands(self, family: str) -> tuple[OperandSpec, ...]:
        """The operands that must carry `quant` when that family says `quant = required`."""
        names = dict(self.quant_on).get(family)
        if names is None:
            return tuple(o for o in self.operands if o.role in ("input", "weight"))
        return tuple(operand for operand in self.operands if operand.name in names)


# What families may call operands whose opcode does not say how families call them.
_ROLES_IN_FAMILIES: Mapping[str, Role] = MappingProxyType(
    {"input": "input", "src": "input", "output": "output", "dst": "output"}
)


def opcode(name: str) -> Opcode | None:
    """The opcode of that name, without `.async` or `.sync`, if there is one."""
    return OPCODES.get(name)


def _max_count(operands: tuple[OperandSpec, ...]) -> int | None:
    return None if any(operand.variadic for operand in operands) else len(operands)


def _require_unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} `{name}` is declared twice")
        seen.add(name)


def _operand(row: OperandRow) -> OperandSpec:
    name, direction, required, variadic, role, limits, shape = row
    rank, min_rank, layout, elem = limits or (None, None, None, None)
    return OperandSpec(
        name, direction, required, variadic, role, rank, min_rank, layout, elem, shape
    )


def _attribute(row: AttributeRow) -> AttributeSpec:
    name, kind, required, default, limits, summary = row
    allowed, length, minimum = limits or ((), None, None)
    return AttributeSpec(name, kind, required, default, allowed, length, minimum, summary)


def _opcode(row: OpcodeRow) -> Opcode:
    identity, execution, typing, operands, attributes, summary = row
    name, category, hardware, status, traits = identity
    unit, eligible_units, forms = execution
    families, variants, bindings, quant_on, same_elem = typing
    return Opcode(
        name=name,
        summary=summary,
        category=category,
        operands=tuple(_operand(operand) for operand in operands),
        attributes=tuple(_attribute(attribute) for attribute in attributes),
        families=families,
        variants=variants,
        bindings=bindings,
        quant_on=quant_on,
        same_elem=same_elem,
        traits=traits,
        unit=unit,
        eligible_units=eligible_units,
        hardware=hardware,
        status=status,
        forms=forms,
    )


_require_unique("opcode", (row[0][0] for row in ROWS))

OPCODES: Mapping[str, Opcode] = MappingProxyType({row[0][0]: _opcode(row) for row in ROWS})
