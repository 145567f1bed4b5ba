"""Tasks against type families: the combination that a task is, or how it differs from each.

Everything follows from the registry (which operands a family means, where `quant` belongs) and
from the families themselves, those of users included.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.devices import Device
from nacre.nem.model.families import (
    ABSENT,
    ACCUM,
    ACCUMULATOR,
    ANY,
    QUANT,
    REQUIRED,
    Instance,
    effective_by_opcode,
    input_type,
    standard_families,
)
from nacre.nem.model.program import Task
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec, Opcode, OperandSpec

Kind = Literal["missing", "elem", "accum", "attribute", "lacks_quant", "has_quant", "forbidden"]

# Of two variants that differ in as many things, the nearer one: a bias that is missing or of
# another type is nearer than one that must go.
_WEIGHTS: dict[Kind, int] = {
    "missing": 0,
    "accum": 1,
    "attribute": 1,
    "lacks_quant": 1,
    "has_quant": 1,
    "elem": 2,
    "forbidden": 3,
}


class OperandUse(Struct, frozen=True):
    """An operand of a task as families see it."""

    name: str  # in the opcode's signature
    elem: str
    has_quant: bool


class Signature(Struct, frozen=True):
    """What a task gives: its operands in order, and the words among its attributes."""

    op: str
    uses: tuple[OperandUse, ...]
    words: tuple[tuple[str, str], ...]  # attributes whose values families may ask for

    @property
    def opcode(self) -> Opcode:
        """The row of the registry."""
        return OPCODES[self.op]

    def operand_indices(self, specs: Iterable[OperandSpec]) -> tuple[int, ...]:
        """Where the operands of these names stand."""
        names = {spec.name for spec in specs}
        return tuple(i for i, use in enumerate(self.uses) if use.name in names)


class Difference(Struct, frozen=True):
    """One thing in which a task differs from a variant."""

    kind: Kind
    names: tuple[str, ...]  # of operands, or of the attribute
    operand_indices: tuple[int, ...]  # of operands in the task; none where something is missing
    actual: str = ""
    wanted: str = ""

    def __str__(self) -> str:
        return describe_differences((self,))


class Match(Struct, frozen=True):
    """A variant and how a task differs from it; exactly matched where it does not."""

    instance: Instance
    differences: tuple[Difference, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the task is of this variant."""
        return not self.differences

    @property
    def distance(self) -> tuple[int, int, int]:
        """How far off the variant is: how many differences, how grave, how many other kinds."""
        return (
            len(self.differences),
            sum(_WEIGHTS[d.kind] for d in self.differences),
            sum(_is_other_kind(d) for d in self.differences),
        )

    @property
    def bits_lost(self) -> int:
        """How many bits its types have less."""
        return sum(_bits_lost(d) for d in self.differences)


def _is_other_kind(difference: Difference) -> bool:
    actual, wanted = (ELEMENT_TYPES.get(t) for t in (difference.actual, difference.wanted))
    return actual is not None and wanted is not None and actual.is_integer != wanted.is_integer


def _bits_lost(difference: Difference) -> int:
    actual, wanted = (ELEMENT_TYPES.get(t) for t in (difference.actual, difference.wanted))
    if actual is None or wanted is None or actual.is_integer != wanted.is_integer:
        return 0
    return max(0, actual.bits - wanted.bits)


class TypeMatches(Struct, frozen=True):
    """What the families say about a task."""

    signature: Signature
    available: tuple[Match, ...]  # on the device, in its order
    nearest: Match | None  # on the device
    nearest_known: Match | None  # in any family

    @property
    def is_legal(self) -> bool:
        """Whether the device has a variant that the task matches."""
        return self.nearest is not None and self.nearest.is_exact

    @property
    def instance(self) -> Instance | None:
        """The variant that the task matches, on the device or not."""
        for match in (self.nearest, self.nearest_known):
            if match is not None and match.is_exact:
                return match.instance
        return None


@dataclass(slots=True)
class Matcher:
    """Matches tasks against the variants of a device; equal signatures are looked at once."""

    device: Device
    _known: dict[str, list[Instance]] = field(init=False)
    _matches: dict[Signature, TypeMatches] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        families = self.device.families.values()
        self._known = effective_by_opcode(i for f in families for i in f.instances.values())

    def governs(self, op: str) -> bool:
        """Whether a family that the device has says which types an opcode takes."""
        return op in self.device.effective_by_opcode

    def match(self, task: Task) -> TypeMatches | None:
        """How a task matches; None where no family governs it or its types are not known."""
        signature = signature_of(task)
        if signature is None or not self.governs(task.op):
            return None
        matches = self._matches.get(signature)
        if matches is None:
            matches = self._matches[signature] = self._match_signature(signature)
        return matches

    def _match_signature(self, signature: Signature) -> TypeMatches:
        available = tuple(match_variants(signature, self.device.effective_by_opcode[signature.op]))
        known = tuple(match_variants(signature, self._known[signature.op]))
        return TypeMatches(signature, available, nearest(available), nearest(known))


def signature_of(task: Task) -> Signature | None:
    """What a task gives; None where an operand is missing, one too many, or has no known type."""
    opcode = task.opcode
    if opcode is None:
        return None
    uses = []
    for operand in task.operands:
        region = operand.region
        if operand.spec is None or region is None or region.elem is None:
            return None
        uses.append(OperandUse(operand.spec.name, region.elem, region.quant is not None))
    names = {use.name for use in uses}
    if any(spec.required and spec.name not in names for spec in opcode.operands):
        return None
    words = ((spec.name, _attribute_word(task, spec)) for spec in opcode.attributes)
    known = tuple((name, word) for name, word in words if word is not None)
    return Signature(task.op, tuple(uses), known)


def _attribute_word(task: Task, spec: AttributeSpec) -> str | None:
    """The value of an attribute that families can name; None where it has another or none."""
    value = task.attributes.get(spec.name, spec.default)
    if spec.type == "bool" and isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return None
    if spec.type == "elem_type":
        return value if value in ELEMENT_TYPES else None
    return value if spec.type == "id" else None


def match_variants(signature: Signature, instances: Iterable[Instance]) -> Iterator[Match]:
    """A task against every variant."""
    for instance in instances:
        differences = (
            *_operand_differences(signature, instance),
            *_attribute_differences(signature, instance),
        )
        yield Match(instance, differences)


def nearest(candidates: Sequence[Match]) -> Match | None:
    """The variant with the fewest differences, the first of equals.

    Where equals differ in the same operands, the widest of them: a float becomes a float.
    """
    best = min((match.distance for match in candidates), default=None)
    equals = [match for match in candidates if match.distance == best]
    if len({tuple(d.operand_indices for d in match.differences) for match in equals}) == 1:
        return min(equals, key=lambda match: match.bits_lost)
    return equals[0] if equals else None


def _operand_differences(signature: Signature, instance: Instance) -> Iterator[Difference]:
    opcode = signature.opcode
    bound: set[str] = set()
    for family_operand, wanted in instance.operands.items():
        specs = opcode.operands_bound_to(family_operand)
        bound.update(spec.name for spec in specs)
        indices = signature.operand_indices(specs)
        if wanted == ABSENT:
            if indices:
                yield Difference("forbidden", _operand_names(signature, indices), indices)
        elif not indices:
            name = specs[0].name if specs else family_operand
            yield Difference("missing", (name,), (), wanted=wanted)
        elif wanted != ANY:
            yield from _element_differences(signature, indices, wanted)
    yield from _missing_operands(signature, instance, bound)
    # Optional operands are allowed as far as the variant speaks of them.
    loose = [spec for spec in opcode.operands if not spec.required and spec.name not in bound]
    indices = signature.operand_indices(loose)
    if indices:
        yield Difference("forbidden", _operand_names(signature, indices), indices)


def _missing_operands(
    signature: Signature, instance: Instance, bound: Container[str]
) -> Iterator[Difference]:
    """Required operands that a variant does not speak of: they have the type of its input."""
    opcode = signature.opcode
    wanted = input_type(opcode, instance)
    left = [o for o in opcode.operands if o.required and o.elem is None and o.name not in bound]
    if wanted is not None and wanted != ANY:
        yield from _element_differences(signature, signature.operand_indices(left), wanted)


def _element_differences(
    signature: Signature, indices: tuple[int, ...], wanted: str
) -> Iterator[Difference]:
    for index in indices:
        use = signature.uses[index]
        if use.elem != wanted:
            yield Difference("elem", (use.name,), (index,), use.elem, wanted)


def _attribute_differences(signature: Signature, instance: Instance) -> Iterator[Difference]:
    words = dict(signature.words)
    asked = {ACCUM: _accumulator(signature), **instance.attributes}
    for name, wanted in asked.items():
        word = words.get(ACCUMULATOR if name == ACCUM else name)
        if word is None or name == QUANT or word == wanted:
            continue
        if name == ACCUM:
            yield Difference("accum", (ACCUMULATOR,), (), word, wanted)
        elif wanted not in (REQUIRED, ABSENT):  # which are about `quant` alone: TYP20
            yield Difference("attribute", (name,), (), word, wanted)
    rule = instance.attributes.get(QUANT)
    if rule == REQUIRED:
        indices = signature.operand_indices(quantised_operands(signature.opcode, instance))
        lacking = tuple(p for p in indices if _lacks_quant(signature.uses[p]))
        if lacking:
            yield Difference("lacks_quant", _operand_names(signature, lacking), lacking)
    elif rule == ABSENT:
        carrying = tuple(i for i, use in enumerate(signature.uses) if use.has_quant)
        if carrying:
            yield Difference("has_quant", _operand_names(signature, carrying), carrying)


def _accumulator(signature: Signature) -> str:
    """Where sums are kept by a family that does not say: i32 of integers, f32 of floats."""
    factors = [spec for spec in signature.opcode.operands if spec.role in ("input", "weight")]
    indices = signature.operand_indices(factors)
    is_integer = all(ELEMENT_TYPES[signature.uses[index].elem].is_integer for index in indices)
    return "i32" if is_integer else "f32"


def _lacks_quant(use: OperandUse) -> bool:
    return not use.has_quant and ELEMENT_TYPES[use.elem].is_integer


def quantised_operands(opcode: Opcode, instance: Instance) -> tuple[OperandSpec, ...]:
    """The operands that must carry `quant` by a variant's `quant = required`.

    Of products, inputs and weights: their sums have a meaning of their own. Every other opcode
    computes on real values, so that all its operands need it, the result included; only indices
    are what they are.
    """
    if instance.quant_on is not None:
        return opcode.operands_bound_to(instance.quant_on)
    if opcode.is_product or instance.family in standard_families():
        return opcode.quant_operands(instance.family)
    return tuple(spec for spec in opcode.operands if spec.elem is None)


def _operand_names(signature: Signature, indices: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(signature.uses[index].name for index in indices))


def describe_differences(differences: Iterable[Difference]) -> str:
    """`` `A` and `B` are f32, the variant takes f16; `C` is missing ``."""
    parts = []
    for _, group in groupby(differences, key=lambda d: (d.kind, d.actual, d.wanted)):
        same = list(group)
        names = tuple(dict.fromkeys(name for d in same for name in d.names))
        parts.append(_describe_difference(same[0], names))
    return "; ".join(parts)


def _describe_difference(difference: Difference, names: tuple[str, ...]) -> str:
    listed, several = join_names(names), len(names) > 1
    if difference.kind == "missing":
        return f"{listed} is missing"
    if difference.kind == "forbidden":
        return f"{listed} {'are' if several else 'is'} given, the variant takes none"
    if difference.kind == "lacks_quant":
        return f"{listed} {'carry' if several else 'carries'} no `quant`, the variant needs it"
    if difference.kind == "has_quant":
        return f"{listed} {'carry' if several else 'carries'} `quant`, the variant takes none"
    verb = "are" if several else "is"
    return f"{listed} {verb} {difference.actual}, the variant takes {difference.wanted}"


def join_names(names: Sequence[str]) -> str:
    """Names in backticks as a list in words."""
    parts = [f"`{name}`" for name in names]
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]
