"""Calls that are known by their names alone: what a file says of their arguments and results.

The format has a place for names and arguments, and none for the types of results, without which
nothing that follows can be planned. We write these as the resource `nacre.operations.json`:

    {"calls": {"3": {"schema": "self:T n:i? dim:i norm:s?",
                     "results": [{"dtype": "complex64", "shape": [4, 5]}]}}}

by instruction; a call that gives a list has `"several": true`, and null for a result that nothing
uses. The names of arguments are those of the framework; what stands behind a `*` goes by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

import msgspec
import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.opaque.calls import PARTS, ResultType
from nacre.core.opaque.schemas import parse_schema
from nacre.nac.format.values import NacFile
from nacre.nac.operations.operation import ArrayType
from nacre.nac.spec.elements import MOST_AXES

OPERATIONS = "nacre.operations.json"
COMPLEX = {parts: name for name, parts in PARTS.items()}
_MOST_ELEMENTS = 1 << 40
_MOST_PROBLEMS = 20


class CallResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type of a result: an element type of Core IR, or `complex64` and `complex128`."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def array_type(self) -> ArrayType:
        """The same for arrays."""
        known = GRAPH_TYPES.get(self.dtype)
        dtype = np.dtype(self.dtype) if known is None else known.dtype
        return ArrayType(dtype, self.shape)


class OperationCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is said of one call."""

    schema: str
    results: tuple[CallResult | None, ...]
    several: bool = False


class OperationTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The resource."""

    calls: dict[int, OperationCall] = {}


def call_result(result: ResultType) -> CallResult:
    """A result as a file has it."""
    type_ = result.type
    if result.is_complex:
        return CallResult(COMPLEX[type_.dtype], type_.shape[:-1])
    return CallResult(type_.dtype, type_.shape)


def module_result(type_: ArrayType, name: str) -> ResultType:
    """A result as a module has it; `name` is that of the element type."""
    if name in PARTS:
        return ResultType(TensorType(PARTS[name], (*type_.shape, 2)), is_complex=True)
    return ResultType(TensorType(name, type_.shape))


def table_problems(file: NacFile, table: OperationTable) -> list[str]:
    """What is wrong with what a table says of the calls of a file."""
    return list(islice(_problems(file, table), _MOST_PROBLEMS))


def _problems(file: NacFile, table: OperationTable) -> Iterator[str]:
    count = len(file.instructions)
    for index, call in table.calls.items():
        if not 0 <= index < count or file.instructions[index].is_system:
            yield f"instruction {index} is no call"
            continue
        try:
            parse_schema(file.name_of.get(file.instructions[index].op, ""), call.schema)
        except ValueError as error:
            yield f"the schema of instruction {index}: {error}"
        if not call.results or (len(call.results) > 1 and not call.several):
            yield f"instruction {index} gives {len(call.results)} results, and says no list"
        for result in call.results:
            problem = None if result is None else _type_problem(result)
            if problem is not None:
                yield f"a result of instruction {index}: {problem}"


def _type_problem(result: CallResult) -> str | None:
    if result.dtype not in GRAPH_TYPES and result.dtype not in PARTS:
        return f"`{result.dtype[:40]}` is no element type"
    if len(result.shape) > MOST_AXES - 1 or any(dim < 1 for dim in result.shape):
        return "its shape is none of a tensor"
    return "it has too many elements" if prod(result.shape) > _MOST_ELEMENTS else None
