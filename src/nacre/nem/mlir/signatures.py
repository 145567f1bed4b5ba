"""The operations of the dialect: one a statement, one an opcode, which follows from its row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nacre.base.diagnostics import InternalError
from nacre.nem.mlir.kinds import (
    ARRAY,
    ATTRIBUTES,
    DESCRIPTOR,
    EXPRESSION,
    INTEGER,
    NAME,
    PLAIN_TENSOR,
    STRING,
    TENSOR,
    TYPES,
    VALUE,
    Kind,
)
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec, Opcode, OperandSpec

Arity = Literal["single", "optional", "variadic"]


class Part(Struct, frozen=True):
    """Operands or results of one role."""

    name: str
    types: tuple[str, ...]
    arity: Arity = "single"


class Entry(Struct, frozen=True):
    """An attribute of an operation."""

    name: str
    kind: Kind
    required: bool = True


class Signature(Struct, frozen=True):
    """What an operation takes and gives."""

    name: str
    summary: str
    operands: tuple[Part, ...] = ()
    results: tuple[Part, ...] = ()
    attributes: tuple[Entry, ...] = ()
    has_body: bool = False

    @property
    def has_segments(self) -> bool:
        """Whether `operand_segment_sizes` must say which operand is which."""
        return sum(part.arity != "single" for part in self.operands) > 1


def _opt(name: str, kind: Kind) -> Entry:
    return Entry(name, kind, required=False)


_NAMED = Entry("name", STRING)
_DECORATORS = _opt("decorators", ARRAY)
_DEPS = Part("deps", ("token",), "variadic")
_TOKEN = Part("token", ("token",), "optional")
_BUFFER = Part("buffer", ("buffer",))
_PLACE = (
    Entry("offset", EXPRESSION),
    Entry("extent", EXPRESSION),
    _opt("type", TENSOR),
    _DECORATORS,
)
_TASK = (
    _opt("token", STRING),
    Entry("form", Kind(words=("async", "sync"))),
    _opt("operand_decorators", ARRAY),
    _DECORATORS,
)

# Opcodes may not have attributes of these names, nor operations other ones.
SEGMENTS = "operand_segment_sizes"
ORDER = "nem.order"  # in which attributes of a task were written, where not as in the table

_DOCUMENT = (
    Signature("include", "`include`", attributes=(Entry("path", STRING),)),
    Signature("device_ref", "`device NAME`, or `device` and the name of a file",
              attributes=(Entry("target", STRING | NAME),)),
    Signature("program", "the header of a program", attributes=(_NAMED,)),
)  # fmt: skip

_STATEMENTS = (
    Signature("const", "`const`", attributes=(_NAMED, Entry("value", VALUE))),
    Signature("let", "`let` of anything but a region",
              attributes=(_NAMED, Entry("value", VALUE | DESCRIPTOR | PLAIN_TENSOR), _DECORATORS)),
    Signature("let_region", "`let` of a region", (_BUFFER,), (Part("region", ("region",)),),
              (_NAMED, *_PLACE)),
    Signature("buffer_decl", "`buffer`", results=(Part("buffer", ("buffer",)),),
              attributes=(_NAMED, Entry("level", Kind(words=("DDR", "L2", "L1"))),
                          _opt("index", EXPRESSION), Entry("size", VALUE),
                          _opt("align", INTEGER), _DECORATORS)),
    Signature("region_decl", "a region; without a name it stands where it is used",
              (_BUFFER,), (Part("region", ("region",)),), (_opt("name", STRING), *_PLACE)),
    Signature("wait", "`wait`", (Part("tokens", ("token",), "variadic"),)),
    Signature("loop", "`loop`", has_body=True,
              attributes=(Entry("variable", STRING), Entry("first", EXPRESSION),
                          Entry("last", EXPRESSION), _DECORATORS)),
    Signature("lookup", "a name that no operation before it defines; the checker judges it",
              results=(Part("value", ("buffer", "region", "token")),), attributes=(_NAMED,)),
    Signature("task", "a task that does not fit its opcode; the checker judges it",
              (Part("inputs", ("region",), "variadic"), Part("outputs", ("region",), "variadic"),
               _DEPS), (_TOKEN,),
              (Entry("opcode", STRING), Entry("attributes", ARRAY), *_TASK)),
)  # fmt: skip

_CONFIGS = (
    Signature("type_family", "a type family", has_body=True,
              attributes=(_NAMED, _opt("parameters", ARRAY))),
    Signature("operand_binding", "what an operand of a family is bound to",
              attributes=(Entry("operand", STRING), Entry("type", STRING))),
    Signature("attribute_binding", "what an attribute of a family is bound to",
              attributes=(_NAMED, Entry("value", STRING), _opt("on", STRING))),
    Signature("variants", "the variants of a family", has_body=True),
    Signature("variant", "a variant, its bindings and its conformance",
              attributes=(_NAMED, Entry("operands", ARRAY), Entry("conformance", ARRAY))),
    Signature("device", "a device", has_body=True,
              attributes=(_NAMED, _opt("extends", STRING))),
    Signature("spec_version", "the version that a device is written for",
              attributes=(Entry("version", STRING),)),
    Signature("topology", "engines, units and memories", has_body=True),
    Signature("num_engines", "how many engines there are", attributes=(Entry("count", INTEGER),)),
    Signature("l2_size_bytes", "the size of L2", attributes=(Entry("size", EXPRESSION),)),
    Signature("device_units", "the units that engines share", has_body=True),
    Signature("per_engine", "what every engine has", has_body=True),
    Signature("units", "how many units of a type there are",
              attributes=(Entry("unit", STRING), Entry("count", INTEGER))),
    Signature("l1_size_bytes", "the size of L1", attributes=(Entry("size", EXPRESSION),)),
    Signature("unit_characteristics", "figures of units", has_body=True),
    Signature("characteristics", "figures of the units of a type", has_body=True,
              attributes=(Entry("unit", STRING),)),
    Signature("characteristic", "a figure",
              attributes=(Entry("key", STRING), Entry("value", INTEGER))),
    Signature("mandatory", "the variants that every device of the kind has", has_body=True),
    Signature("extended", "the variants that a device has beside them", has_body=True),
    Signature("variant_ref", "a variant of a family",
              attributes=(Entry("family", STRING), _opt("types", ARRAY),
                          Entry("variant", STRING))),
)  # fmt: skip


def attribute_kind(spec: AttributeSpec) -> Kind:
    """What the value of an opcode's attribute may be; a name may be that of a `let`."""
    match spec.type:
        case "int" | "float":
            return EXPRESSION
        case "bool":
            return INTEGER | NAME
        case "int_list":
            return ARRAY | NAME
        case "string":
            return STRING | NAME
        case "id" if spec.allowed:
            return Kind(names=spec.allowed)
        case _:
            return NAME


def _operand(spec: OperandSpec) -> Part:
    arity: Arity = "variadic" if spec.variadic else "single" if spec.required else "optional"
    return Part(spec.name, ("region",), arity)


def _opcode(row: Opcode) -> Signature:
    attributes = [Entry(a.name, attribute_kind(a), a.required) for a in row.attributes]
    if "open_attributes" in row.traits:
        attributes.append(_opt("attributes", ARRAY))
    reserved = {entry.name for entry in _TASK} | {SEGMENTS}
    if clash := reserved & {entry.name for entry in attributes}:
        raise InternalError(f"attribute {clash} of `{row.name}` means something else in MLIR")
    operands = (*map(_operand, (*row.inputs, *row.outputs)), _DEPS)
    return Signature(row.name, row.summary, operands, (_TOKEN,), (*attributes, *_TASK))


def _require_distinct(signatures: Sequence[Signature]) -> Iterator[tuple[str, Signature]]:
    names = {*TYPES, *ATTRIBUTES}  # which share their names with operations
    for signature in signatures:
        if signature.name in names:
            raise InternalError(f"operation `nem.{signature.name}` is declared twice")
        names.add(signature.name)
        yield signature.name, signature


SIGNATURES: Mapping[str, Signature] = MappingProxyType(
    dict(
        _require_distinct(
            [*_DOCUMENT, *_STATEMENTS, *_CONFIGS, *(_opcode(row) for row in OPCODES.values())]
        )
    )
)


def segment_sizes(parts: Sequence[OperandSpec], count: int) -> list[int] | None:
    """How many of `count` operands each part takes, in order; None where they do not fit."""
    sizes = [int(part.required) for part in parts]
    remaining = count - sum(sizes)
    for at, part in enumerate(parts):
        if remaining > 0 and not part.required and not part.variadic:
            sizes[at], remaining = 1, remaining - 1
    for at, part in enumerate(parts):
        if part.variadic and remaining > 0:
            sizes[at], remaining = sizes[at] + remaining, 0
    return None if remaining else sizes
