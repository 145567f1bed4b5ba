"""Instructions made ready: names, constants and operands looked up once, when a file is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.core.aten.handlers.parts import PARTS
from nacre.core.aten.schemas import Schema
from nacre.core.opaque.schemas import OpaqueSchema, parse_schema
from nacre.core.unsupported import Unsupported
from nacre.nac.checks.examination import operand_offsets
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.values import ConstantValue, Instruction, NacFile
from nacre.nac.operations.registry import our_operations
from nacre.nac.program import in_place
from nacre.nac.program.binding import Given, Numbers, Ref, as_numbers, bind_arguments
from nacre.nac.program.calls import core_schema, handlers
from nacre.nac.program.interface import operation_table
from nacre.nac.program.operation_calls import CallResult, OperationCall
from nacre.nac.rules.running import NAC41
from nacre.nac.run.specialised import BoundCall, TypedCall
from nacre.nac.spec.calls import schemas
from nacre.nac.spec.instructions import (
    CONTROL_FLOW,
    CONVERGENCE,
    INPUT,
    OUTPUT,
    SYSTEM,
    SYSTEM_NAMES,
)
from nacre.nac.spec.operations import call_of

Kind = Literal["call", "input", "output", "branch", "converge"]
_KINDS: Mapping[int, Kind] = {
    INPUT: "input", CONTROL_FLOW: "branch", CONVERGENCE: "converge", OUTPUT: "output",
}  # fmt: skip
_MOST_FINDINGS = 100  # about arguments
Route = tuple[int, int]  # where an array comes from: the instruction, the place in its results


@dataclass(frozen=True, eq=False)
class PreparedCall:
    """A call with its constants; instructions that look alike share what was made for types."""

    name: str
    constants: Mapping[str, Given]
    schema: Schema
    typed: dict[object, TypedCall] = field(default_factory=dict)  # by types
    _bound: dict[object, BoundCall] = field(default_factory=dict)

    def arguments(self, computed: Mapping[str, Given]) -> dict[str, Given]:
        """All arguments in the order of their schema."""
        given = {**self.constants, **computed}
        return {p.name: given[p.name] for p in self.schema.parameters if p.name in given}

    def bound_for(self, key: object, paths: Sequence[Route]) -> BoundCall | None:
        """What was made for types, or for types and the very weights that lie there."""
        return self._bound.get(key) or self._bound.get((key, *paths))

    def keep(self, key: object, paths: Sequence[Route], bound: BoundCall) -> None:
        """Keep it for instructions that look alike; with weights in it, for those of one place."""
        self._bound[(key, *paths) if bound.is_for_weights else key] = bound


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument that is computed."""

    name: str
    kind: str
    source: Given  # a Ref, or a tuple with some


@dataclass(frozen=True, slots=True)
class OpaqueForm:
    """What is known of a call by its name alone."""

    schema: OpaqueSchema
    results: tuple[CallResult | None, ...] = ()  # as the file says; none where it does not
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class PreparedInstruction:
    """An instruction ready to run."""

    kind: Kind
    name: str  # as people read it
    variant: int = 0
    id: int = 0  # of the parameter, state or constant that is loaded
    call: PreparedCall | None = None
    operands: tuple[Operand, ...] = ()
    refs: tuple[int, ...] = ()  # every instruction that it uses
    opaque: OpaqueForm | None = None  # of a call that has no form in Core IR


def schema_of(call: str) -> Schema | None:
    """The schema of a call that can be run."""
    return schemas().get(call) if call in handlers() else core_schema(call)


def prepare(
    file: NacFile, source: Source
) -> tuple[tuple[PreparedInstruction, ...], list[Diagnostic]]:
    """Every instruction, and what the runtime cannot do; the file has been verified."""
    prepared: list[PreparedInstruction] = []
    findings: list[Diagnostic] = []
    calls: dict[object, PreparedCall] = {}
    safe: dict[int, bool] = {}  # of the calls in place so far, whether nobody notices
    values = _constant_values(file)
    offsets = file.record_offsets.get("OPS ", ())
    kept = operation_table(file).calls
    for index, instruction in enumerate(file.instructions):
        if instruction.is_system:
            prepared.append(_prepare_system(index, instruction))
            continue
        name = file.name_of[instruction.op]
        signature = file.signature_of.get(instruction.variant, "")
        given = arguments(index, instruction, signature, values)
        opaque = _opaque_form(name, kept.get(index), given)
        schema = _known_schema(name) if opaque is None else opaque.schema.schema
        assert schema is not None
        taken = bind_arguments(schema, given)
        is_in_place = opaque is None and schema.call != call_of(name)
        if is_in_place and not in_place.may_run_out_of_place(file, index, safe):
            taken = "it changes a tensor in place that others use"
        if isinstance(taken, str):
            if len(findings) < _MOST_FINDINGS:
                place = Position(offsets[index] if offsets else 0, "OPS ", index)
                findings.append(finding(NAC41, source, place, f"{backquote(name, 80)}: {taken}"))
            continue
        prepared.append(_call(name, schema, taken, calls, opaque))
    return tuple(prepared), findings


def _known_schema(name: str) -> Schema | None:
    """The schema of an operation that has a form in Core IR."""
    call = call_of(name)
    return schema_of(call) or schema_of(in_place.out_of_place_call(call))


def _opaque_form(
    name: str, described: OperationCall | None, given: Sequence[Given]
) -> OpaqueForm | None:
    """What is known of a call that stays by its name; None where Core IR has a form for it.

    Where neither the file nor a kernel of ours names its arguments, they go by their places.
    """
    if described is not None:
        schema = parse_schema(name, described.schema)
        return OpaqueForm(schema, described.results, described.several)
    if _known_schema(name) is not None:
        return None
    ours = our_operations().get(name)
    if ours is not None and ours.schema is not None:
        return OpaqueForm(ours.schema)
    return OpaqueForm(parse_schema(name, " ".join(f"a{place}:a" for place in range(len(given)))))


def _constant_values(file: NacFile) -> dict[int, ConstantValue]:
    """The constants by id; lists with the same bytes are one, and each is unpacked once."""
    known: dict[tuple[int, bytes], ConstantValue] = {}
    values: dict[int, ConstantValue] = {}
    for id_, constant in file.constant_of.items():
        key = (constant.tag, constant.payload)
        if key not in known:
            value = constant.value
            known[key] = as_numbers(value) if isinstance(value, tuple) else value
        values[id_] = known[key]
    return values


def arguments(
    index: int, instruction: Instruction, signature: str, values: Mapping[int, ConstantValue]
) -> list[Given]:
    """The arguments of an instruction in order: results of others, and constants."""
    ids = iter(instruction.c[1:])
    return [
        Ref(index + offset) if offset else _convert(values[next(ids)], code)
        for offset, code in zip(instruction.d, signature, strict=True)
    ]


def _convert(value: ConstantValue, code: str) -> ConstantValue:
    """A constant of the kind that its code says: in files in use 1, 1.0 and True share an id."""
    if not isinstance(value, bool | int | float):
        return value
    if code == "b":
        return bool(value)
    if code in "iA" and float(value).is_integer():
        return int(value)
    return float(value) if code == "f" else value


def _prepare_system(index: int, instruction: Instruction) -> PreparedInstruction:
    op, variant = instruction.op, instruction.variant
    name = f"{SYSTEM_NAMES[op]} {SYSTEM[op][variant].name}"
    id_ = instruction.c[1] if op == INPUT and instruction.c else 0
    offsets = operand_offsets(op, instruction.c, instruction.d)
    refs = tuple(index + offset for offset in offsets)
    return PreparedInstruction(_KINDS[op], name, variant, id_, refs=refs)


def _call(
    name: str,
    schema: Schema,
    arguments: Mapping[str, Given],
    calls: dict[object, PreparedCall],
    opaque: OpaqueForm | None,
) -> PreparedInstruction:
    operands: list[Operand] = []
    constants: dict[str, Given] = {}
    for parameter in schema.parameters:
        value = arguments[parameter.name]
        if refs_of(value):
            operands.append(Operand(parameter.name, parameter.kind, value))
        else:
            constants[parameter.name] = value
    layout = tuple((o.name, _operand_layout(o.source)) for o in operands)
    key = (id(schema), tuple(map(_key, constants.values())), layout)  # which it keeps alive
    prepared = calls.setdefault(key, PreparedCall(schema.call, constants, schema))
    refs = tuple(dict.fromkeys(ref for o in operands for ref in refs_of(o.source)))
    return PreparedInstruction("call", name, 0, 0, prepared, tuple(operands), refs, opaque)


def _key(value: Given) -> object:
    """A constant among keys: as a text, or 1, 1.0 and True would be one. A list is an object."""
    return id(value) if isinstance(value, Numbers) else repr(value)


def single_result(result: Any, maker: PreparedInstruction, name: str) -> Any:  # noqa: ANN401 - what a call gives
    """The result that stands where one is asked for; Unsupported where none of several does.

    Files in use name the first result of a norm by the norm itself. Parts are equals.
    """
    if not isinstance(result, list):
        return result
    has_first = maker.call is not None and maker.call.name not in PARTS
    if len(result) != 1 and not has_first:
        raise Unsupported(f"{name} is a list of {len(result)} tensors, expected one of them")
    return result[0]


def _operand_layout(source: Given) -> object:
    """How an operand is made up, without what it is made of."""
    if isinstance(source, Ref):
        return "ref"
    return tuple("ref" if isinstance(part, Ref) else repr(part) for part in source)


def refs_of(value: Any) -> list[int]:  # noqa: ANN401 - a Ref, a constant, a tuple of both
    """The instructions that an argument uses."""
    if isinstance(value, Ref):
        return [value.index]
    if isinstance(value, tuple) and not isinstance(value, Numbers):
        return [part.index for part in value if isinstance(part, Ref)]
    return []
