"""A schedule of memory within a limit: which weights are there when, and why a limit cannot be met.

While an instruction runs there must be room for what it uses, for what it makes, and for results
that are used later: no order of loads needs less. Whatever room is left is used to load weights
ahead, first each while the call before its user runs, then, where a weight is used again, to keep
it, then to load several calls ahead. A weight that is not kept is loaded again.

Of branches, nobody knows which one will be taken: weights of a branch come and go inside of it, and
what it takes from around it stays until all branches are behind.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.core.values import Array
from nacre.nac.program.blocks import Stretch
from nacre.nac.rules.running import NAC54
from nacre.nac.run.calls import Budget
from nacre.nac.run.dry_run import ShapeDomain, dry_run
from nacre.nac.run.interpreter import Interpreter, is_weight
from nacre.nac.run.limits import Limits, limits_for
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import Schedule, arrays_of, keep_all, owner
from nacre.nac.run.shape_only import shape_only_array
from nacre.nac.run.states import require_states, state_shapes

_CALLS_AHEAD = 4  # that a weight may be loaded before the one that uses it
_MOST_HOLDERS = 4  # that a message names


@dataclass(frozen=True)
class MemoryPlan:
    """What happens to memory after each instruction, and the most bytes that this takes."""

    schedule: Schedule
    peak_bytes: int
    loads: int  # of weights, again and again included


@dataclass
class _Tensor:
    """Memory that one or several results look at."""

    birth: int  # the instruction that makes it, or loads it
    bytes: int
    is_weight: bool
    results: set[int] = field(default_factory=set)
    # Instructions in order, of the branch where it is made: what is inside of others is theirs.
    uses: list[int] = field(default_factory=list)


def plan_memory(
    program: LoadedProgram,
    given: Mapping[int, Array],
    state: Mapping[int, Array],
    limits: Limits,
    limit: int,
) -> MemoryPlan:
    """A plan for inputs of these types; InputError where no plan meets the limit.

    What follows from elements is not seen here: the run itself refuses to take more.
    """
    if any(one.kind == "converge" for one in program.program):
        return MemoryPlan(program.schedule, 0, 0)
    # Shapes take no memory, and nothing goes: the bytes of a run are counted below.
    budget = Budget(Limits(sys.maxsize, limits.work))
    domain = ShapeDomain(program, given, state, budget)
    walk = Interpreter(program, domain, budget.memory, keep_all(len(program.program)))
    walk.outputs()
    tensors = _tensors(program, walk.results)
    planner = _Planner(program, tensors, domain.taken, limit)
    return planner.plan()


def _tensors(program: LoadedProgram, results: Sequence[object]) -> list[_Tensor]:
    found: dict[int, _Tensor] = {}
    by_result: dict[int, list[_Tensor]] = {}
    blocks = program.blocks
    # What a branch made is not made by the choice that hands it on.
    for index in sorted(range(len(results)), key=blocks.branches.__contains__):
        for array in arrays_of(results[index]):
            is_loaded = is_weight(program.program[index])
            tensor = found.setdefault(id(owner(array)), _Tensor(index, array.nbytes, is_loaded))
            tensor.results.add(index)
            by_result.setdefault(index, []).append(tensor)
    for index, instruction in enumerate(program.program):
        for ref in instruction.refs:
            for tensor in by_result.get(ref, ()):
                step = blocks.step_of(index, blocks.homes.get(tensor.birth))
                if tensor.uses[-1:] != [step]:
                    tensor.uses.append(step)
    return list(found.values())


class _Planner:
    """The bytes that are taken while each instruction runs, and from when on each weight is."""

    def __init__(
        self,
        program: LoadedProgram,
        tensors: Sequence[_Tensor],
        taken: Mapping[int, int],
        limit: int,
    ) -> None:
        self._program = program
        self._tensors = tensors
        self._limit = limit
        self._count = len(program.program)
        self._blocks = program.blocks
        self._last_call = self._calls_before()
        self.bytes = np.zeros(self._count, np.int64)
        self._stays: dict[int, list[list[int]]] = {}  # of weights: first and last instruction
        for tensor in tensors:
            self._add_tensor(tensor, taken)
        for index, bytes_ in taken.items():
            self.bytes[index] += bytes_

    def _calls_before(self) -> list[int]:
        """For each instruction the call before it; where there is none, the first load."""
        before: list[int] = []
        last: dict[Stretch | None, int] = {}
        for index in range(self._count):
            home = self._blocks.homes.get(index)
            before.append(last.get(home, 0 if home is None else home[0] + 1))
            if self._program.program[index].kind in ("call", "branch"):
                last[home] = index
        return before

    def _add_tensor(self, tensor: _Tensor, taken: Mapping[int, int]) -> None:
        if tensor.is_weight:
            self._stays[id(tensor)] = stays = list(self._stays_at_least(tensor))
            for first, last in stays:
                self._add(first, last, tensor.bytes)
            return
        # What a call makes is part of what it takes, what a choice hands on was made by a branch.
        is_made = tensor.birth in taken or tensor.birth in self._blocks.branches
        first = self._blocks.end_of(tensor.birth) + 1 if is_made else tensor.birth
        self._add(first, self._end(tensor), tensor.bytes)

    def _end(self, tensor: _Tensor) -> int:
        """The last instruction that needs a tensor."""
        return self._blocks.end_of(tensor.uses[-1] if tensor.uses else tensor.birth)

    def _stays_at_least(self, tensor: _Tensor) -> Iterator[list[int]]:
        """When a weight must be there: at each use, or all the time where others look at it."""
        if len(tensor.results) > 1 and tensor.uses:
            yield [tensor.uses[0], self._end(tensor)]
            return
        for use in tensor.uses:
            yield [use, self._blocks.end_of(use)]

    def _add(self, first: int, last: int, bytes_: int) -> None:
        self.bytes[first : last + 1] += bytes_

    def plan(self) -> MemoryPlan:
        """The whole of it."""
        self._require_room()
        uses = sorted(
            ((stay, tensor) for tensor in self._weights() for stay in self._stays[id(tensor)]),
            key=lambda use: use[0][0],
        )
        for stay, tensor in uses:
            self._load_earlier(stay, tensor, 1)
        for tensor in self._weights():
            self._keep_between(tensor)
        for stay, tensor in uses:
            if stay in self._stays[id(tensor)]:
                self._load_earlier(stay, tensor, _CALLS_AHEAD)
        loads = sum(map(len, self._stays.values()))
        return MemoryPlan(self._schedule(), int(self.bytes.max(initial=0)), loads)

    def _weights(self) -> Iterator[_Tensor]:
        return (tensor for tensor in self._tensors if tensor.is_weight and tensor.uses)

    def _load_earlier(self, stay: list[int], tensor: _Tensor, calls: int) -> None:
        """Begin a stay before so many calls more, or as many as there is room for."""
        others = [other[1] for other in self._stays[id(tensor)] if other[1] < stay[0]]
        home = self._blocks.homes.get(tensor.birth)
        earliest = max(others, default=0 if home is None else home[0]) + 1
        for _ in range(calls):
            wanted = max(self._last_call[stay[0]], earliest)
            if wanted >= stay[0] or not self._has_room(wanted, stay[0] - 1, tensor.bytes):
                return
            self._add(wanted, stay[0] - 1, tensor.bytes)
            stay[0] = wanted

    def _keep_between(self, tensor: _Tensor) -> None:
        """Join stays where there is room for the weight all the time."""
        stays = self._stays[id(tensor)]
        for before, after in list(pairwise(stays)):
            if self._has_room(before[1] + 1, after[0] - 1, tensor.bytes):
                self._add(before[1] + 1, after[0] - 1, tensor.bytes)
                after[0] = before[0]
                stays.remove(before)

    def _has_room(self, first: int, last: int, bytes_: int) -> bool:
        return int(self.bytes[first : last + 1].max(initial=0)) + bytes_ <= self._limit

    def _schedule(self) -> Schedule:
        drops: list[list[int]] = [[] for _ in range(self._count)]
        loads: list[list[int]] = [[] for _ in range(self._count)]
        for index, last in self._last_uses().items():
            drops[last].append(index)
        for tensor in self._weights():
            home = self._blocks.homes.get(tensor.birth)
            for first, last in self._stays[id(tensor)]:
                loads[self._blocks.step_of(first - 1, home)].append(tensor.birth)
                if last < self._count - 1:
                    drops[self._blocks.step_of(last, home)].append(tensor.birth)
        return Schedule(tuple(map(tuple, drops)), tuple(map(tuple, loads)), is_planned=True)

    def _last_uses(self) -> dict[int, int]:
        """When each result that is no weight goes; what is returned stays."""
        program, blocks = self._program.program, self._blocks
        last = {i: i for i, one in enumerate(program) if not is_weight(one)}
        for index, instruction in enumerate(program):
            for ref in instruction.refs:
                if ref in last:
                    last[ref] = blocks.step_of(index, blocks.homes.get(ref))
        return {index: end for index, end in last.items() if end < self._count - 1}

    def _require_room(self) -> None:
        least = int(self.bytes.max(initial=0))
        if least <= self._limit:
            return
        at = int(self.bytes.argmax())
        name = backquote(self._program.program[at].name, 80)
        holders = "; ".join(self._holders(at))
        message = (
            f"a memory limit of {self._limit:,} bytes cannot be met: {name} needs {least:,} bytes "
            f"at once: {holders}"
        )
        option = setting(f"`--memory-limit {least}`", f"`memory_limit={least}`")
        help_ = f"{least:,} bytes are the least that the program can be run in: {option}"
        raise InputError([self._program.finding(at, NAC54, message, help_)])

    def _holders(self, at: int) -> list[str]:
        """What takes most of the memory while an instruction runs."""
        alive = [t for t in self._tensors if t.birth != at and self._is_needed(t, at)]
        parts = [(tensor.bytes, self._describe(tensor, at)) for tensor in alive]
        own = int(self.bytes[at]) - sum(bytes_ for bytes_, _ in parts)
        parts.append((own, "its own results"))
        parts.sort(key=lambda part: -part[0])
        named = [f"{what} {bytes_:,}" for bytes_, what in parts[:_MOST_HOLDERS] if bytes_]
        rest = sum(bytes_ for bytes_, _ in parts[_MOST_HOLDERS:])
        return [*named, f"others {rest:,}"] if rest else named

    def _is_needed(self, tensor: _Tensor, at: int) -> bool:
        if tensor.is_weight:
            return any(first <= at <= last for first, last in self._stays[id(tensor)])
        return tensor.birth < at <= self._end(tensor)

    def _describe(self, tensor: _Tensor, at: int) -> str:
        instruction = self._program.program[tensor.birth]
        if tensor.is_weight:
            name = self._program.weights.names.get(instruction.id, str(instruction.id))
            return f"weight {backquote(name, 80)}"
        later = "" if at in tensor.uses else ", used later,"
        return f"v{tensor.birth} of {backquote(instruction.name, 80)}{later}"


def dry_run_findings(program: LoadedProgram) -> list[Diagnostic]:
    """What keeps a run from its end, as far as the types of inputs that the file says tell."""
    given = {
        wanted.instruction: shape_only_array(GRAPH_TYPES[wanted.dtype].dtype, wanted.shape)
        for wanted in program.inputs
        if wanted.dtype is not None and wanted.shape is not None
    }
    limits = limits_for(program.file_bytes, given.values(), program.max_bytes, program.max_work)
    try:
        require_states(program, limits)
        state = state_shapes(program)
        dry_run(program, given, state, limits)
        if program.memory_limit is not None:
            plan_memory(program, given, state, limits, program.memory_limit)
    except InputError as refused:
        return list(refused.diagnostics)
    return []
