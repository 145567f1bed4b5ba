"""`Opaque` operations as calls: what a module keeps by name, a file has under that name.

Core IR holds complex tensors as pairs; files have them as they are, between `view_as_complex` and
`view_as_real`. So whoever reads a file finds the calls that the model had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nacre.core.module import CoreOperation, Module
from nacre.core.opaque.arguments import Operand, decode_arguments, operands_among
from nacre.core.opaque.calls import OPAQUE, ResultType, call_key
from nacre.core.opaque.schemas import parse_schema
from nacre.nac.format.packing import limit_error
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.program.operation_calls import CallResult, OperationCall, call_result
from nacre.nac.spec.calls import constant_code, tensor_code

TO_COMPLEX, TO_PAIRS = "aten.view_as_complex.default", "aten.view_as_real.default"
_NEAR = 1 << 14  # instructions: what lies further back is made again


@dataclass
class OpaqueLowering:
    """Writes the calls of a module that are kept by their names."""

    module: Module
    assembler: Assembler
    operand: Callable[[int], Ref]  # the instruction that gives a value
    define: Callable[[int, Ref], None]
    calls: dict[int, OperationCall] = field(default_factory=dict)  # by instruction
    _complex: dict[int, Ref] = field(default_factory=dict)  # values that complex results are

    def __post_init__(self) -> None:
        self._groups: dict[object, list[CoreOperation]] = {}
        for op in self.module.operations:
            if op.opcode == OPAQUE:
                self._groups.setdefault(call_key(op), []).append(op)
        self._paired = _values_taken_as_pairs(self.module)

    def lower(self, op: CoreOperation) -> None:
        """The call of an operation and all of its results, where it is the first of them."""
        results = self._groups[call_key(op)]
        if op is not results[0]:
            return
        name, given = str(op.attributes["name"]), op.attributes
        try:
            schema = parse_schema(name, str(given["schema"])).schema
        except ValueError as error:
            raise limit_error("argument", f"{name}: {error}") from None
        arguments = decode_arguments(given["arguments"])
        if len(arguments) != len(schema.parameters):
            count = len(schema.parameters)
            raise limit_error("argument", f"{name}: {len(arguments)} arguments of {count}")
        refs: list[Any] = []
        codes = ""
        for parameter, argument in zip(schema.parameters, arguments, strict=True):
            for part in argument if parameter.is_list else (argument,):
                is_tensor = isinstance(part, Operand)
                refs.append(self._ref(op, part) if is_tensor else part)
                codes += (
                    tensor_code(schema, parameter) if is_tensor else constant_code(parameter, part)
                )
        made = self.assembler.call(name, *refs, codes=codes)
        self.calls[made.index] = _described(results)
        for result in results:
            self._define(result, made)

    def _ref(self, op: CoreOperation, operand: Operand) -> Ref:
        value = op.operands[operand.place]
        if not operand.is_complex:
            return self.operand(value)
        found = self._complex.get(value)
        if found is None or self.assembler.count - found.index > _NEAR:
            found = self.assembler.call(TO_COMPLEX, self.operand(value), codes="T")
            self._complex[value] = found
        return found

    def _define(self, op: CoreOperation, made: Ref) -> None:
        """The value of one result."""
        result = made
        if op.attributes.get("results", 0):
            place = op.attributes.get("result", 0)
            result = self.assembler.call("getitem", made, place, codes="Ti")
        if op.attributes.get("complex"):
            self._complex[op.value_id] = result
            is_near = len(self.module.operations) < _NEAR
            if op.value_id not in self._paired and is_near:
                return  # nobody looks at its parts
            result = self.assembler.call(TO_PAIRS, result, codes="T")
        self.define(op.value_id, result)


def _values_taken_as_pairs(module: Module) -> set[int]:
    """Values that something takes for tensors of floats."""
    taken = {*module.outputs, *(state.output for state in module.states)}
    for op in module.operations:
        if op.opcode != OPAQUE:
            taken.update(op.operands)
            continue
        operands = operands_among(decode_arguments(op.attributes["arguments"]))
        taken.update(op.operands[o.place] for o in operands if not o.is_complex)
    return taken


def _described(results: list[CoreOperation]) -> OperationCall:
    """What the file says of a call."""
    first = results[0].attributes
    types: dict[int, CallResult] = {
        op.attributes.get("result", 0): call_result(
            ResultType(op.type, bool(op.attributes.get("complex")))
        )
        for op in results
    }
    count = first.get("results", 0)
    listed = tuple(types.get(place) for place in range(max(count, 1)))
    return OperationCall(str(first["schema"]), listed, several=bool(count))
