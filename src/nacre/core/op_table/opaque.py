"""The operation that is known by its name alone.

It holds one result of a call: `call` says which, and keeps calls apart that look alike but draw
numbers of their own; `result` is the place among its `results`, of which a call that gives one
tensor has none. `dtype` and `shape` are what the framework says of the result; a `complex` one is
held as pairs along a last axis of 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nacre.core.module import TensorType
from nacre.core.opaque.arguments import decode_arguments, operands_among
from nacre.core.specs import optional, required, row
from nacre.core.values import Attributes


def _declared(types: Sequence[TensorType], given: Attributes) -> TensorType:
    return TensorType(str(given["dtype"]), tuple(given["shape"]))


def _problem(dtypes: Sequence[str], given: Mapping[str, Any]) -> str | None:
    """What is wrong with a call: arguments that are none, results that it does not have."""
    if not given["name"]:
        return "it has no name"
    try:
        arguments = decode_arguments(given["arguments"])
    except ValueError as error:
        return str(error)
    places = [operand.place for operand in operands_among(arguments)]
    if places != list(range(len(dtypes))):
        return f"its arguments name the operands {places}, expected each of {len(dtypes)} in order"
    if given["call"] < 0 or not 0 <= given["result"] < max(given["results"], 1):
        return f"it is result {given['result']} of {given['results']} of call {given['call']}"
    if given["complex"] and (given["dtype"] not in ("f32", "f64") or given["shape"][-1:] != (2,)):
        return "a complex result is held as floats with a last axis of 2"
    return None


OPAQUE = (
    replace(
        row("Opaque", "a call that is known by its name alone; nothing here computes it",
            "inputs*:any", required("name", "string"), required("schema", "string"),
            required("arguments", "string"), required("call", "int"), required("shape", "ints"),
            required("dtype", "dtype"), optional("result", "int", 0),
            optional("results", "int", 0), optional("complex", "bool", False), infer=_declared,
            traits=("opaque",), problem=_problem,
            no_gradient="it is known by its name alone, and so is its gradient"),
        least=0,
    ),
)  # fmt: skip
