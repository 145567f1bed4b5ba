"""A call that is kept by its name: what importers make `Opaque` operations of, one for a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, TensorType
from nacre.core.opaque.arguments import Argument, encode_arguments

OPAQUE = "Opaque"
# Complex numbers as pairs: the type of their parts.
PARTS: Mapping[str, str] = MappingProxyType({"complex64": "f32", "complex128": "f64"})


@dataclass(frozen=True, slots=True)
class OpaqueCallNames:
    """Which calls importers keep by their names, beside those that nothing knows."""

    names: frozenset[str] = frozenset()  # where Core IR has no form for them
    complex_names: frozenset[str] = frozenset()  # on complex numbers, though it has one on others


@dataclass(frozen=True, slots=True)
class ComplexValue:
    """A value of the module that holds complex numbers, as pairs along its last axis.

    A type of its own: who does not know of them must not take it for a tensor of floats.
    """

    id: int


@dataclass(frozen=True, slots=True)
class ResultType:
    """The type of a result, as the module holds it."""

    type: TensorType
    is_complex: bool = False  # a last axis of 2 has real and imaginary parts


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A call by its name, with its arguments and what it gives."""

    name: str  # as files have it: `aten.fft_rfft.default`, `com.acme::Gate`
    schema: str  # names and kinds of its arguments, see `schemas`
    arguments: tuple[Argument, ...]
    operands: tuple[int, ...]
    results: tuple[ResultType | None, ...]  # None: one that nobody can have
    is_list: bool  # it gives several results, though it may be one


def add_call(builder: Builder, call: OpaqueCall, number: int) -> list[int | None]:
    """An operation for each result; `number` is that of no other call of the module."""
    text = encode_arguments(call.arguments)
    return [
        None if result is None else _add(builder, call, text, number, place, result)
        for place, result in enumerate(call.results)
    ]


def _add(
    builder: Builder, call: OpaqueCall, text: str, number: int, place: int, result: ResultType
) -> int:
    several: dict[str, object] = {"results": len(call.results)} if call.is_list else {}
    if place:
        several["result"] = place
    if result.is_complex:
        several["complex"] = True
    return builder.add(
        OPAQUE,
        *call.operands,
        name=call.name,
        schema=call.schema,
        arguments=text,
        call=number,
        dtype=result.type.dtype,
        shape=result.type.shape,
        **several,
    )


def values_of(
    ids: Sequence[int | None], results: Sequence[ResultType | None]
) -> list[int | ComplexValue | None]:
    """The values that operations gave, complex ones told apart."""
    return [
        ComplexValue(value) if value is not None and result is not None and result.is_complex
        else value
        for value, result in zip(ids, results, strict=True)
    ]  # fmt: skip


def call_key(op: CoreOperation) -> tuple[object, ...]:
    """What the results of one call have in common, and no other call has."""
    given = op.attributes
    said = (given[name] for name in ("call", "name", "schema", "arguments"))
    return (*said, given.get("results", 0), op.operands)


def why_opaque(op: CoreOperation) -> str | None:
    """Why nothing of ours computes an operation; None where something does."""
    if op.opcode != OPAQUE:
        return None
    return f"`{op.attributes.get('name')}` is known by its name alone; NAC files keep and run it"
