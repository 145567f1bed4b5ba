"""The functional machine: an image run on bytes, in any order that its tags allow."""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.tcb.image import STREAM, Image, Operand
from nacre.tcb.machine.actions import Action, UnboundBlockError, bind_block
from nacre.tcb.machine.findings import Findings
from nacre.tcb.machine.host_arrays import Array, host_array
from nacre.tcb.machine.instances import Instances, unroll
from nacre.tcb.machine.memory import FlatMemory, HostData, Memories
from nacre.tcb.machine.operands import BoundOperand, UnboundOperandError, layout_of
from nacre.tcb.machine.tag_states import TagStates, stuck_finding
from nacre.tcb.rules.running import TCB52, TCB53, TCB59

RunStatus = Literal["completed", "failed", "stuck"]


@dataclass(frozen=True, eq=False)
class ImageRun:
    """What a run leaves."""

    status: RunStatus
    diagnostics: tuple[Diagnostic, ...]
    order: tuple[int, ...]  # instances as they ran
    instances: Instances
    memories: Memories

    def read(self, name: str) -> bytes:
        """The bytes of a port or of a buffer; those that nobody wrote are 0xFF."""
        return self.memories.read(name)

    @property
    def outputs(self) -> dict[str, Array]:
        """What the host reads after a run, by the names of ports; bytes where that is all known.

        Those of a bundle are the model's own values.
        """
        ports = self.instances.image.ports
        read = (port for port in ports if port.kind in ("output", "inout"))
        return {port.name: host_array(port, self.read(port.name)) for port in read}


def run_image(image: Image, inputs: Mapping[str, HostData], *, seed: int | None = None) -> ImageRun:
    """Run an image on what the host gives for ports or buffers.

    Without a seed blocks run in the order of the program, with one in a random order of those that
    tags allow.
    """
    instances = unroll(image)
    memories = Memories(image, inputs)
    findings = Findings(instances)
    machine = _Machine(instances, memories, findings)
    tags = TagStates(instances)
    order = _run(machine, tags, _InOrder() if seed is None else _AtRandom(seed))
    status: RunStatus = "completed"
    if machine.has_failed:
        status = "failed"
    elif len(order) < instances.count:
        status = "stuck"
        findings.diagnostics.append(stuck_finding(instances, tags.counts, tags.waiting()))
    return ImageRun(status, tuple(findings.diagnostics), tuple(order), instances, memories)


class _Bag(Protocol):
    """Instances that may run."""

    def add(self, instances: list[int]) -> None:
        """Put some in."""

    def take(self) -> int | None:
        """Take one out; None: it is empty."""


class _InOrder:
    def __init__(self) -> None:
        self._heap: list[int] = []

    def add(self, instances: list[int]) -> None:
        for instance in instances:
            heapq.heappush(self._heap, instance)

    def take(self) -> int | None:
        return heapq.heappop(self._heap) if self._heap else None


class _AtRandom:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._list: list[int] = []

    def add(self, instances: list[int]) -> None:
        self._list += instances

    def take(self) -> int | None:
        if not self._list:
            return None
        at = self._random.randrange(len(self._list))
        self._list[at], self._list[-1] = self._list[-1], self._list[at]
        return self._list.pop()


def _run(machine: _Machine, tags: TagStates, bag: _Bag) -> list[int]:
    """Run until nothing may run, or something fails; the instances in their order."""
    order: list[int] = []
    bag.add(tags.begin())
    while (instance := bag.take()) is not None:
        if not machine.run(instance):
            return order
        order.append(instance)
        bag.add(tags.complete(instance))
    return order


class _Machine:
    """Blocks bound to memory, each when it first runs."""

    def __init__(self, instances: Instances, memories: Memories, findings: Findings) -> None:
        self._instances, self._memories, self._findings = instances, memories, findings
        self._actions: dict[int, Action] = {}
        self._is_task: list[bool] = (instances.kinds == 0).tolist()
        self._block: list[int] = instances.block.tolist()
        self._row: list[int] = instances.row.tolist()
        self._streams: dict[int, _Stream] = {}  # by the block that produces
        self.has_failed = False

    def run(self, instance: int) -> bool:
        """Run an instance; False where the run cannot go on."""
        if not self._is_task[instance]:
            return True
        block, row = self._block[instance], self._row[instance]
        action = self._actions.get(block) or self._bind(block, instance)
        is_fine = action is not None and self._take_streams(block, instance, row)
        is_fine = is_fine and action is not None and action.run(instance, row)
        if is_fine and block in self._streams:
            self._streams[block].keep(row)
        self.has_failed = not is_fine
        return is_fine

    def _take_streams(self, block: int, instance: int, row: int) -> bool:
        """Have what streams into a block at hand, and a place for what streams out of it."""
        producer = self._instances.blocks[block].producer
        inputs = self._instances.blocks[block].block.inputs
        is_fed = any(operand is not None and operand.memory == STREAM for operand in inputs)
        if is_fed and (producer is None or not self._streams[producer].show(row)):
            message = "takes a value that nothing has streamed into it"
            self._findings.report(TCB59, instance, message)
            return False
        if block in self._streams:
            self._streams[block].clear()
        return True

    def _bind(self, block: int, instance: int) -> Action | None:
        placed = self._instances.blocks[block]
        try:
            inputs = [None if o is None else self._operand(block, o, is_output=False)
                      for o in placed.block.inputs]  # fmt: skip
            outputs = [self._operand(block, o, is_output=True) for o in placed.block.outputs]
            action = bind_block(placed.block, inputs, outputs, self._findings)
        except UnboundOperandError as error:
            number = int(self._instances.numbers[block][error.row])
            self._findings.report(TCB53, number, f"has an operand at {error}")
            return None
        except UnboundBlockError as error:
            self._findings.report(TCB52, instance, f"cannot run: {error}")
            return None
        self._actions[block] = action
        return action

    def _operand(self, block: int, operand: Operand, *, is_output: bool) -> BoundOperand:
        grid = self._instances.blocks[block].grid
        if operand.memory == STREAM:
            producer = block if is_output else self._instances.blocks[block].producer
            return BoundOperand(operand, grid, self._stream(producer, operand).memory)
        memory = self._memories.levels.get(operand.memory)
        if memory is None:
            raise UnboundOperandError(f"{operand.memory}, which is no memory of the machine", 0)
        return BoundOperand(operand, grid, memory)

    def _stream(self, producer: int | None, operand: Operand) -> _Stream:
        """Where values are on their way from a block; without one there is nothing to be had."""
        key = -1 if producer is None else producer
        if key not in self._streams:
            self._streams[key] = _Stream(layout_of(operand).span)
        return self._streams[key]


class _Stream:
    """Values that pass from one block to the next, row by row, and are never written."""

    def __init__(self, size: int) -> None:
        self.memory = FlatMemory(STREAM, size)
        self._values: dict[int, bytes] = {}

    def clear(self) -> None:
        """Make room for the next value."""
        self.memory.written[:] = False

    def keep(self, row: int) -> None:
        """Put the value that has just been made aside."""
        self._values[row] = self.memory.data.tobytes()

    def show(self, row: int) -> bool:
        """Have the value of a row in its memory; False where there is none."""
        data = self._values.pop(row, None)
        if data is not None:
            self.memory.write(0, np.frombuffer(data, np.uint8))
        return data is not None
