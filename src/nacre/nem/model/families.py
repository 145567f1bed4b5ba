"""Type families resolved: every legal combination of element types as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from nacre.base.diagnostics import InternalError
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.source import Source, Span
from nacre.nem.model.builtins import BASELINE_FILE, builtin
from nacre.nem.spec.opcodes import OPCODES, Opcode
from nacre.nem.syntax.ast import TypeFamily, VariantDecl
from nacre.nem.syntax.printer import variant_id

ABSENT = "absent"
ANY = "any_supported"


@dataclass(frozen=True)
class Instance:
    """One legal combination: a variant of a family with its type parameters filled in."""

    id: str  # gemm.float<f16>.no_bias
    family: str
    variant: str
    types: tuple[str, ...]
    operands: Mapping[
        str, str
    ]  # operand of the family -> element type, `absent` or `any_supported`
    attributes: Mapping[str, str]  # accum -> f32, quant -> required, mode -> constant
    quant_on: str | None  # the operand of `quant = required on OPERAND`
    is_must: bool


@dataclass(frozen=True)
class Family:
    """A type family, from its declaration."""

    node: TypeFamily
    source: Source

    @property
    def name(self) -> str:
        """Its id, such as `gemm.float`."""
        return self.node.name.name

    @property
    def span(self) -> Span:
        """Where its name stands."""
        return self.source.span(self.node.name.start, self.node.name.end)

    @property
    def parameter_count(self) -> int:
        """How many type parameters it has."""
        return len(self.node.params)

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of its variants."""
        return tuple(variant.name.name for variant in self.node.variants)

    @cached_property
    def instances(self) -> Mapping[str, Instance]:
        """Every combination that a conformance list names, by its id."""
        by_id: dict[str, Instance] = {}
        for variant in self.node.variants:
            for entry in variant.conformance:
                types = tuple(t.name for t in entry.types)
                if len(types) == self.parameter_count:
                    instance = self._instance(variant, types, entry.level.name == "MUST")
                    by_id.setdefault(instance.id, instance)
        return by_id

    def admits(self, instance: Instance) -> bool:
        """Whether the types of a combination are in the sets of its parameters."""
        sets = [{type_.name for type_ in parameter.types} for parameter in self.node.params]
        return all(type_ in set_ for type_, set_ in zip(instance.types, sets, strict=True))

    def _instance(self, variant: VariantDecl, types: tuple[str, ...], is_must: bool) -> Instance:
        bound = {p.name.name: t for p, t in zip(self.node.params, types, strict=True)}
        bindings = (*self.node.operands, *variant.operands)
        quant_on = next((a.on.name for a in self.node.attributes if a.on is not None), None)
        return Instance(
            variant_id(self.name, types, variant.name.name),
            self.name,
            variant.name.name,
            types,
            {b.operand.name: bound.get(b.type.name, b.type.name) for b in bindings},
            {
                attribute_name(a.name.name): bound.get(a.value.name, a.value.name)
                for a in self.node.attributes
            },
            quant_on,
            is_must,
        )


# What a family calls the type that sums are kept in, and the attribute of tasks that gives it.
ACCUM: Final = "accum"
ACCUMULATOR: Final = "accum_type"
QUANT: Final = "quant"
REQUIRED: Final = "required"


def attribute_name(name: str) -> str:
    """The name of a family's attribute: `accum_type` may be written as tasks write it."""
    return ACCUM if name == ACCUMULATOR else name


def input_type(opcode: Opcode, instance: Instance) -> str | None:
    """The type of an opcode's input by a variant; required operands that it leaves out have it."""
    for name, type_ in instance.operands.items():
        if type_ != ABSENT and any(spec.role == "input" for spec in opcode.operands_bound_to(name)):
            return type_
    return None


def is_bound_type(name: str, family: TypeFamily) -> bool:
    """Whether a type name in a family means something: a type, a parameter, or a special word."""
    return (
        name in ELEMENT_TYPES
        or name in (ABSENT, ANY)
        or any(name == parameter.name.name for parameter in family.params)
    )


@cache
def standard_families() -> Mapping[str, Family]:
    """The families of the language text, from the shipped baseline."""
    parsed = builtin(BASELINE_FILE)
    if parsed is None:
        raise InternalError("the baseline file is missing")
    return {f.name.name: Family(f, parsed.source) for f in parsed.document.families}


@cache
def must_instances() -> frozenset[str]:
    """The variants that every conformant device has."""
    return frozenset(
        instance.id
        for family in standard_families().values()
        for instance in family.instances.values()
        if instance.is_must
    )


def governs(family: str, opcode: Opcode) -> bool:
    """Whether a family says which types an opcode takes."""
    if family in standard_families():
        return family in opcode.families
    return family.partition(".")[0] in opcode.family_domains


def effective_by_opcode(instances: Iterable[Instance]) -> dict[str, list[Instance]]:
    """For every opcode that some family governs, the combinations that are legal for it."""
    available = list(instances)
    table = {}
    for opcode in OPCODES.values():
        legal = [i for i in available if governs(i.family, opcode) and _fits(i, opcode)]
        if legal or opcode.families:
            table[opcode.name] = legal
    return table


def _fits(instance: Instance, opcode: Opcode) -> bool:
    """The registry limits variants of standard families; a user's own speak for themselves."""
    return instance.family not in standard_families() or opcode.allows_variant(instance.variant)
