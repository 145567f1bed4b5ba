"""A run written down: every kernel bound to the arrays that it reads and fills.

Where a program's course follows from the types of its inputs, all sizes and lifetimes are known
after one run. Results get places in one block of memory, in which those that the schedule has let
go of make room for others; only what leaves the run has memory of its own each time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from nacre.base.rules import Rule
from nacre.core.evaluation.memory import Allocation, lay_out
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.kernels.interface.call import Run
from nacre.nac.rules.running import NAC47, NAC48
from nacre.nac.run.arrays import RecordedCall
from nacre.nac.run.calls import FAULTS
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import owner
from nacre.nac.spec.instructions import LIFTED, PARAMETER


@dataclass(slots=True)
class Link:
    """One kernel, or a change of shape, between slots of a run."""

    instruction: int
    run: Run | None
    operands: tuple[int, ...]
    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ready: list[Array | None] | None = None  # the operands, where they are the same in each run
    target: list[Array] | None = None  # the result, where it has a place


@dataclass(frozen=True)
class Trace:
    """The links of a run in order, and where its arrays lie."""

    model: LoadedProgram
    links: tuple[Link, ...]
    slots: tuple[Array | None, ...]  # filled where an array is the same in each run
    loads: tuple[tuple[int, int], ...]  # slots of inputs and states, by instruction
    outputs: tuple[Any, ...]  # `Slot`s, and numbers
    peak_bytes: int
    borrowed: frozenset[int]  # owners of arrays that belong to somebody else

    def run(
        self, given: Mapping[int, Array], state: Mapping[int, Array]
    ) -> tuple[list[Any], set[int]]:
        """The operands of the output, and the owners of arrays that belong to somebody else."""
        slots = list(self.slots)
        borrowed = set(self.borrowed)
        program = self.model.program
        for slot, index in self.loads:
            array = given[index] if index in given else state[program[index].id]
            slots[slot] = array
            borrowed.add(id(owner(array)))
        for link in self.links:
            self._run_link(link, slots)
        outputs = [slots[o.slot] if isinstance(o, OutputSlot) else o for o in self.outputs]
        return outputs, borrowed

    def _run_link(self, link: Link, slots: list[Array | None]) -> None:
        if link.run is None:
            source = slots[link.operands[0]]
            assert source is not None
            slots[link.slot] = source.reshape(link.shape)
            return
        operands = link.ready or [slots[operand] for operand in link.operands]
        try:
            target = link.target or [np.empty(link.shape, link.dtype)]
            fault = link.run(operands, target)
        except MemoryError:
            raise self._refusal(link, NAC48, "there is not so much memory") from None
        except (Unsupported, *FAULTS) as error:
            raise self._refusal(link, NAC47, str(error)) from error
        if fault is not None and fault.is_fatal:
            raise self._refusal(link, NAC47, fault.message)
        slots[link.slot] = target[0]

    def _refusal(self, link: Link, rule: Rule, reason: str) -> Exception:
        name = self.model.program[link.instruction].name
        return self.model.fault(link.instruction, rule, f"`{name}`: {reason}")


@dataclass(frozen=True, slots=True)
class OutputSlot:
    """An output that is an array of the run."""

    slot: int


def trace_of(
    model: LoadedProgram,
    given: Container[int],
    entries: Mapping[int, RecordedCall],
    peak_bytes: int,
) -> Trace:
    """The trace of a run that was given these inputs and made these calls."""
    return _Tracer(model, given, entries).trace(peak_bytes)


@dataclass
class _Tracer:
    """Gives slots to the arrays of a run and finds out how long each must live."""

    model: LoadedProgram
    given: Container[int]  # inputs
    entries: Mapping[int, RecordedCall]
    links: list[Link] = field(default_factory=list)
    slots: list[Array | None] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    fixed: list[Array] = field(default_factory=list)  # that belong to the model
    _roots: list[int] = field(default_factory=list)  # by slot: the slot whose memory it is
    _births: list[int] = field(default_factory=list)  # slots in the order in which they are filled
    _deaths: dict[int, float] = field(default_factory=dict)  # by root, the last birth it sees
    _results: dict[int, list[int]] = field(default_factory=dict)  # slots by instruction
    _numbers: dict[int, Any] = field(default_factory=dict)
    _dropped: set[int] = field(default_factory=set)  # results that the schedule lets go of

    def trace(self, peak_bytes: int) -> Trace:
        """The whole of it."""
        outputs: tuple[Any, ...] = ()
        for index, instruction in enumerate(self.model.program):
            if instruction.kind == "input":
                self._load(index)
            elif instruction.kind == "output":
                outputs = tuple(self._output(ref) for ref in instruction.refs)
            else:
                self._call(index, self.entries[index])
            for target in self.model.schedule.drops[index]:
                for slot in self._results.get(target, ()):
                    self._extend_life(slot, len(self._births) - 1)
                self._dropped.add(target)
        self._keep_what_is_not_dropped()
        self._place({self._roots[o.slot] for o in outputs if isinstance(o, OutputSlot)})
        return Trace(
            self.model,
            tuple(self._links_per_run()),
            tuple(self.slots),
            tuple(self.loads),
            outputs,
            peak_bytes,
            frozenset(id(owner(array)) for array in self.fixed),
        )

    def _slot(self, array: Array | None = None, root: int | None = None) -> int:
        self.slots.append(array)
        slot = len(self.slots) - 1
        self._roots.append(slot if root is None else self._roots[root])
        if array is not None:
            self.fixed.append(array)
        return slot

    def _extend_life(self, slot: int, position: float) -> None:
        """The memory of a slot is needed up to a birth."""
        root = self._roots[slot]
        self._deaths[root] = max(self._deaths.get(root, -1), position)

    def _load(self, index: int) -> None:
        instruction = self.model.program[index]
        array: Any = None
        if instruction.variant == PARAMETER:
            array = self.model.weights[instruction.id]
        elif instruction.variant == LIFTED and index not in self.given:
            array = self.model.lifted_constant(instruction.id)
        if array is not None and not isinstance(array, np.ndarray):
            self._numbers[index] = array
            return
        slot = self._slot(array)
        if array is None:
            self.loads.append((slot, index))
        self._results[index] = [slot]

    def _call(self, index: int, entry: RecordedCall) -> None:
        compiled = entry.call
        if compiled.number is not None:
            self._numbers[index] = compiled.number.number
            return
        local: dict[int, int] = {}
        for value, (ref, place) in enumerate(entry.paths):
            local[value] = self._results[ref][place]
        for value, array in compiled.constants.items():
            local[value] = self._slot(array)
        for step in compiled.steps:
            operands = tuple(local[operand] for operand in step.operands)
            root = operands[0] if step.run is None else None
            slot = local[step.value] = self._slot(root=root)
            self.links.append(Link(index, step.run, operands, slot, step.shape, step.dtype))
            if step.run is not None:
                self._births.append(slot)
            for touched in (*operands, slot):
                self._extend_life(touched, len(self._births) - 1)
        self._results[index] = [local[value] for value in compiled.results]

    def _output(self, ref: int) -> Any:  # noqa: ANN401 - a Slot or a number
        if ref in self._numbers:
            return self._numbers[ref]
        return OutputSlot(self._results[ref][0])

    def _keep_what_is_not_dropped(self) -> None:
        for index, slots in self._results.items():
            if index not in self._dropped:
                for slot in slots:
                    self._extend_life(slot, inf)

    def _place(self, kept: set[int]) -> None:
        """Places for what does not leave the run."""
        by_slot = {link.slot: link for link in self.links}
        dying: dict[float, list[int]] = {}
        for root, position in self._deaths.items():
            dying.setdefault(position, []).append(root)
        births = [
            Allocation(
                slot, None if slot in kept else _bytes(by_slot[slot]), tuple(dying.get(at, ()))
            )
            for at, slot in enumerate(self._births)
        ]
        layout = lay_out(births)
        block = layout.block()
        for slot, offset in layout.offsets.items():
            link = by_slot[slot]
            array: Array = np.ndarray(link.shape, link.dtype, block, offset=offset)
            self.slots[slot] = array
            link.target = [array]

    def _links_per_run(self) -> Sequence[Link]:
        """The links that a run follows; shapes of arrays that stay are changed here, once."""
        left = []
        for link in self.links:
            operands = [self.slots[operand] for operand in link.operands]
            is_ready = all(array is not None for array in operands)
            if link.run is None and is_ready:
                assert operands[0] is not None
                self.slots[link.slot] = operands[0].reshape(link.shape)
                continue
            if is_ready:
                link.ready = operands
            left.append(link)
        return left


def _bytes(link: Link) -> int:
    count = link.dtype.itemsize
    for dim in link.shape:
        count *= dim
    return count
