"""Blocks bound to memory: what an instance does when its turn comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.rules import Rule
from nacre.base.weight_compression import BrokenCompressionError, decompress
from nacre.kernels.interface.call import Array, Call, Fault, Run, TensorType
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.quantization import quantizer
from nacre.kernels.registry import PRIMITIVES
from nacre.tcb.image import Block
from nacre.tcb.machine.findings import Findings
from nacre.tcb.machine.memory import POISON
from nacre.tcb.machine.operands import BoundOperand, tensor_type, tensor_types
from nacre.tcb.rules.running import TCB54, TCB55, TCB56, TCB57

COPIES = ("transfer", "store")


class UnboundBlockError(Exception):
    """A block that no primitive computes; the message says why."""


class Action(ABC):
    """What the instances of one block do."""

    @abstractmethod
    def run(self, instance: int, row: int) -> bool:
        """Do it; False where the run cannot go on."""


class Copy(Action):
    """Elements from one place to another, perhaps in other numbers; gaps are left alone."""

    def __init__(
        self, source: BoundOperand, target: BoundOperand, convert: Callable[[Array], Array] | None
    ) -> None:
        self._source, self._target, self._convert = source, target, convert

    def run(self, instance: int, row: int) -> bool:
        """Copy; elements that nobody wrote stay so."""
        source, target = self._source, self._target
        values = source.array(row)
        if self._convert is not None:
            values = self._convert(values)
        elif source.memory is target.memory:
            values = values.copy()
        came = source.layout.flags(source.memory.written, source.address(row)).copy()
        target.put(row, values)
        target.mark_written(row, came)
        return True


class Decompression(Action):
    """A transfer whose source is compressed."""

    def __init__(self, source: BoundOperand, target: BoundOperand, findings: Findings) -> None:
        self._source, self._target, self._findings = source, target, findings
        self._element = ELEMENT_TYPES[source.operand.elem]
        self._count = int(np.prod(source.operand.dims, dtype=np.int64))

    def run(self, instance: int, row: int) -> bool:
        """Decompress; bytes that nobody wrote make the whole destination so."""
        source, target = self._source, self._target
        form = source.operand.compression
        if form is None:
            raise ValueError("a source that is not compressed")
        low = source.address(row)
        given = source.memory.data[low : low + source.span]
        missing = np.flatnonzero(~source.memory.written[low : low + source.span])
        plain = np.full(bytes_needed(self._count, self._element), POISON, np.uint8)
        is_known = False
        try:
            found, used = decompress(given, self._count, self._element.bits, form)
            is_known = not missing.size or int(missing[0]) >= used
            plain = found if is_known else plain
        except BrokenCompressionError as error:
            if not missing.size:
                message = f"cannot decompress its source: {error}"
                self._findings.report(TCB57, instance, message)
                return False
        target.put(row, source.layout.array(plain, 0))
        target.mark_written(row, is_known)
        return True


_FAULT_RULES: dict[str, Rule] = {
    "index": TCB55,
    "division": TCB55,
    "exponent": TCB55,
    "wrap": TCB56,
    "backend": TCB55,
}


class Compute(Action):
    """A primitive: reads, computes, writes."""

    def __init__(
        self,
        run: Run,
        inputs: Sequence[BoundOperand | None],
        outputs: Sequence[BoundOperand],
        findings: Findings,
    ) -> None:
        self._run, self._findings = run, findings
        self._inputs, self._outputs = inputs, outputs

    def run(self, instance: int, row: int) -> bool:
        """Compute; a fatal fault leaves the outputs as they were."""
        inputs = []
        for part, operand in enumerate(self._inputs):
            if operand is not None and not operand.is_written(row):
                self._report_gap(instance, part, operand, row)
            inputs.append(None if operand is None else _read(operand, row))
        outputs = [operand.array(row) for operand in self._outputs]
        views = [
            values.view(np.bool_) if operand.is_truth else values
            for operand, values in zip(self._outputs, outputs, strict=True)
        ]
        fault = self._run(inputs, views)
        if fault is not None:
            self._report(fault, instance)
            if fault.is_fatal:
                return False
        for operand, values in zip(self._outputs, outputs, strict=True):
            if not operand.layout.is_view:
                operand.put(row, values)
            operand.mark_written(row)
        return True

    def _report_gap(self, instance: int, part: int, operand: BoundOperand, row: int) -> None:
        low = operand.address(row)
        where = f"{operand.memory.name} at {low} to {low + operand.span}"
        message = f"reads input {part} from {where}, where nothing has written some bytes"
        self._findings.report(TCB54, instance, message, part)

    def _report(self, fault: Fault, instance: int) -> None:
        where = f" at element {list(fault.position)}" if fault.position is not None else ""
        message = f"cannot go on: {fault.message}{where}" if fault.is_fatal else fault.message
        self._findings.report(_FAULT_RULES[fault.kind], instance, message)


def _read(operand: BoundOperand, row: int) -> Array:
    values = operand.array(row)
    return values != 0 if operand.is_truth else values


def bind_block(
    block: Block,
    inputs: Sequence[BoundOperand | None],
    outputs: Sequence[BoundOperand],
    findings: Findings,
) -> Action:
    """What a block does; UnboundBlockError where that cannot be told."""
    if block.op in COPIES:
        return _bind_copy(block, inputs, outputs, findings)
    primitive = PRIMITIVES.get(block.op)
    if primitive is None:
        raise UnboundBlockError(f"there is no primitive `{block.op}`")
    types = cast(tuple[TensorType, ...], tensor_types(block.outputs))
    call = Call(tensor_types(block.inputs), types, dict(block.attributes), block.is_ordered)
    try:
        expected = primitive.shape([t.shape if t else None for t in call.inputs], call.attributes)
        if expected is None or list(expected) != [t.shape for t in call.outputs]:
            raise UnboundBlockError("its shapes and attributes do not go together")
        run = primitive.bind(call)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise UnboundBlockError(str(error)) from None
    return Compute(run, inputs, outputs, findings)


def _bind_copy(
    block: Block,
    inputs: Sequence[BoundOperand | None],
    outputs: Sequence[BoundOperand],
    findings: Findings,
) -> Action:
    if len(inputs) != 1 or len(outputs) != 1 or inputs[0] is None:
        raise UnboundBlockError(f"`{block.op}` takes one input and one output")
    source, target = inputs[0], outputs[0]
    if source.operand.dims != target.operand.dims:
        raise UnboundBlockError("source and destination differ in shape")
    if source.operand.compression is not None:
        return Decompression(source, target, findings)
    return Copy(source, target, _conversion(block))


def _conversion(block: Block) -> Callable[[Array], Array] | None:
    """What the store path makes of elements; None: nothing."""
    (target,) = block.outputs
    if block.format == "raw":
        return None
    type_ = tensor_type(target)
    if type_.quant is not None:
        quantize = quantizer(type_)
        return lambda values: quantize(widen_to_f32(values))
    run = PRIMITIVES["cast"].bind(Call(tensor_types(block.inputs), (type_,)))
    return lambda values: _run_alone(run, values, type_)


def _run_alone(run: Run, values: Array, type_: TensorType) -> Array:
    made = np.empty(type_.shape, type_.dtype)
    run([values], [made])
    return made
