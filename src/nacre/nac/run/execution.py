"""One run: instructions in order, results held as long as the schedule says."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import quoted
from nacre.base.hints import setting
from nacre.core.aten.call import Elements, TooLarge, Value
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.program.binding import Given, Ref, described
from nacre.nac.rules.running import NAC47, NAC48, NAC52
from nacre.nac.run.convergence import merged
from nacre.nac.run.limits import Limits, TooMuch
from nacre.nac.run.memory import Memory, owner
from nacre.nac.run.program import Operand, Prepared, Route, the_one
from nacre.nac.run.specialised import Compiled, Typed, bound, typed
from nacre.nac.spec.instructions import BRANCH, LIFTED, PARAMETER, STATE

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel

# What kernels, and handlers on arguments without sense, raise.
FAULTS = (ArithmeticError, LookupError, ValueError, TypeError, InputError)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one instruction took."""

    instruction: int
    name: str
    seconds: float
    bytes: int  # of the results alive after it


@dataclass(slots=True)
class Gathered:
    """The operands of a call: arrays, where each comes from, and what was made for their types."""

    arrays: list[Array] = field(default_factory=list)
    paths: list[Route] = field(default_factory=list)
    key: list[object] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Entry:
    """A call that was run."""

    compiled: Compiled
    paths: tuple[Route, ...]


class Execution:
    """One run of a program."""

    def __init__(
        self,
        model: NacModel,
        given: Mapping[int, Array],
        state: Mapping[int, Array],
        limits: Limits,
        is_timed: bool = False,
    ) -> None:
        self._model = model
        self._given = given
        self._state = state
        self._results: list[Any] = [None] * len(model.program)
        self._clock = time.perf_counter if is_timed else None
        self.memory = Memory(limits.bytes)
        self._limits = limits
        self._work = 0  # steps so far
        self.timings: list[Timing] = []
        self.borrowed: set[int] = set()  # owners of arrays that belong to somebody else
        self.entries: dict[int, Entry] = {}
        self.is_static = True  # what was run follows from the types of inputs

    def outputs(self) -> list[Any]:
        """What the program returns."""
        made = self._stretch(0, len(self._results))
        return made if isinstance(made, list) else [made]

    def _stretch(self, start: int, end: int) -> Any:  # noqa: ANN401 - what an output gives
        """Run instructions up to the output of their stretch."""
        index, program, blocks = start, self._model.program, self._model.blocks
        while index < end:
            instruction = program[index]
            begun = self._clock() if self._clock is not None else 0.0
            if instruction.kind == "output":
                found = self._returned(index, instruction)
                self._after(index)
                if instruction.variant == BRANCH and len(found) == 1:
                    return found[0]
                return found
            result = self._result(index, instruction)
            if self._results[index] is None:
                self.memory.hold(result, self._is_kept(index))
                self._results[index] = result
            self._after(index)
            if self._clock is not None:
                spent = self._clock() - begun
                self.timings.append(Timing(index, instruction.name, spent, self.memory.live))
            index = blocks.behind.get(index, index + 1)
        return []

    def _returned(self, index: int, instruction: Prepared) -> list[Any]:
        try:
            return [self._one(ref, "an output") for ref in instruction.refs]
        except Unsupported as problem:
            raise self._model.fault(index, NAC47, f"{self._shown(index)}: {problem}") from None

    def _one(self, index: int, name: str) -> Any:  # noqa: ANN401 - see Compiled
        return the_one(self._results[index], self._model.program[index], name)

    def _result(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Compiled
        try:
            if instruction.kind == "call":
                return self._called(index, instruction)
            if instruction.kind == "input":
                return self._loaded(index, instruction)
            return self._branched(index, instruction)
        except TooLarge as problem:
            raise self._too_large(index, problem.bytes) from None
        except TooMuch as problem:
            raise self._too_much(index, problem.work) from None
        except Unsupported as problem:
            raise self._model.fault(index, NAC47, f"{self._shown(index)}: {problem}") from None
        except MemoryError:
            message = f"{self._shown(index)} needs more memory than there is"
            raise self._model.fault(index, NAC48, message) from None

    def _too_large(self, index: int, bytes_: int) -> InputError:
        live, limit = self.memory.live, self._limits.bytes
        message = f"{self._shown(index)} needs {bytes_:,} bytes, {live:,} of {limit:,} are taken"
        help_ = f"if that is meant, allow more: {setting('`--max-bytes`', '`max_bytes=`')}"
        return self._model.fault(index, NAC48, message, help_)

    def _too_much(self, index: int, work: int) -> InputError:
        done, limit = self._work, self._limits.work
        message = f"{self._shown(index)} takes {work:,} steps, {done:,} of {limit:,} are taken"
        help_ = f"if that is meant, allow more: {setting('`--max-work`', '`max_work=`')}"
        return self._model.fault(index, NAC52, message, help_)

    def _called(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Compiled
        site = instruction.site
        assert site is not None
        gathered = Gathered()
        arguments = {o.name: self._gathered(o, gathered) for o in instruction.operands}
        compiled = site.found(key := tuple(gathered.key), gathered.paths)
        if compiled is None:
            call = self._typed(instruction, arguments, gathered)
            self._spend(call.bytes, call.work)
            compiled = self._bound(call, gathered)
            if not compiled.is_for_elements:
                site.keep(key, gathered.paths, compiled)
        else:
            self._spend(compiled.bytes, compiled.work)
        if compiled.is_for_elements:
            self.is_static = False
        self.entries[index] = Entry(compiled, tuple(gathered.paths))
        try:
            return compiled.run(gathered.arrays)
        except FAULTS as error:
            raise Unsupported(str(error)) from error

    def _spend(self, bytes_: int, work: int) -> None:
        """Ask for what a call takes before it takes anything."""
        if not self.memory.has_room(bytes_):
            raise TooLarge(bytes_)
        if self._work + work > self._limits.work:
            raise TooMuch(work)
        self._work += work

    def _typed(
        self, instruction: Prepared, arguments: Mapping[str, Given], gathered: Gathered
    ) -> Typed:
        site = instruction.site
        assert site is not None
        found = site.typed.get(key := tuple(gathered.key))
        if found is not None:
            return found
        both = {**site.constants, **arguments}
        ordered = {name: both[name] for name in self._model.order(site.call, list(both))}
        room = self.memory.limit - self.memory.live
        elements = self._elements(gathered)
        try:
            made = typed(site.call, ordered, gathered.arrays, room, elements)
        except InputError as error:
            raise Unsupported("; ".join(d.message for d in error.diagnostics)) from error
        except FAULTS as error:
            raise Unsupported(f"its arguments make no sense ({error})") from error
        if not made.is_for_elements:
            site.typed[key] = made
        return made

    def _elements(self, gathered: Gathered) -> Elements:
        return gathered.arrays.__getitem__

    def _bound(self, call: Typed, gathered: Gathered) -> Compiled:
        fixed = [at for at, (index, _) in enumerate(gathered.paths) if self._is_kept(index)]
        try:
            return bound(call, gathered.arrays, fixed)
        except FAULTS as error:
            raise Unsupported(f"its arguments make no sense ({error})") from error

    def _is_kept(self, index: int) -> bool:
        """Whether a result is a weight that stays between runs, whatever the schedule says."""
        instruction = self._model.program[index]
        is_weight = instruction.kind == "input" and instruction.variant == PARAMETER
        return is_weight and self._model.weights.is_kept(instruction.id)

    def _gathered(self, operand: Operand, gathered: Gathered) -> Given:
        """An argument, in which `Value(i)` stands for the i-th array."""
        source = operand.source
        if isinstance(source, Ref):
            return self._referred(source.index, operand, gathered)
        return tuple(
            self._referred(part.index, operand, gathered) if isinstance(part, Ref) else part
            for part in source
        )

    def _referred(self, index: int, operand: Operand, gathered: Gathered) -> Given:
        found, kind = self._results[index], operand.kind
        if not isinstance(found, list) or kind != "a":
            return self._taken(self._one(index, f"`{operand.name}`"), kind, (index, 0), gathered)
        parts = enumerate(found)
        return tuple(self._taken(part, kind, (index, at), gathered) for at, part in parts)

    def _taken(self, found: Any, kind: str, path: Route, gathered: Gathered) -> Given:  # noqa: ANN401
        if isinstance(found, np.ndarray):
            if kind in "Ta":
                gathered.arrays.append(found)
                gathered.paths.append(path)
                gathered.key.append((found.dtype, found.shape))
                return Value(len(gathered.arrays) - 1)
            self.is_static = False
            found = self._number_of(found)
        gathered.key.append((type(found), repr(found)))
        return found

    def _number_of(self, array: Array) -> Any:  # noqa: ANN401 - a number of Python
        """The number that a tensor of one element is."""
        if array.size != 1:
            raise Unsupported(f"a tensor {list(array.shape)} stands where a number is expected")
        return array.item()

    def _loaded(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - tensor or number
        if self._results[index] is not None:  # fetched before
            return self._results[index]
        if instruction.variant == PARAMETER:
            found: Any = self._model.weights[instruction.id]
        elif instruction.variant == STATE:
            found = self._given.get(index, self._state[instruction.id])
        elif instruction.variant == LIFTED and index not in self._given:
            found = self._model.lifted(instruction.id)
        else:
            found = self._given[index]
        if isinstance(found, np.ndarray):
            self.borrowed.add(id(owner(found)))
        return found

    def _branched(self, index: int, instruction: Prepared) -> Any:  # noqa: ANN401 - see Compiled
        branches = self._model.blocks.branches[index]
        self.is_static = False
        if instruction.kind == "branch":
            chosen = self._results[instruction.refs[0]]
            is_true = bool(self._number_of(chosen) if isinstance(chosen, np.ndarray) else chosen)
            return self._stretch(*branches[0 if is_true else 1])
        made = [self._stretch(*branch) for branch in branches]
        return self._merged(made, instruction.variant)

    def _merged(self, branches: Sequence[Any], percent: int) -> Any:  # noqa: ANN401 - see Compiled
        return merged(branches, percent)

    def _after(self, index: int) -> None:
        """The memory commands of a tick."""
        schedule = self._model.schedule
        for target in schedule.loads[index]:
            if self._results[target] is None and target > index:
                result = self._loaded(target, self._model.program[target])
                self.memory.hold(result, self._is_kept(target))
                self._results[target] = result
        for target in schedule.drops[index]:
            self.memory.drop(self._results[target])
            self._results[target] = None

    def _shown(self, index: int) -> str:
        instruction = self._model.program[index]
        shown = ", ".join(format_type(self._results[ref]) for ref in instruction.refs)
        return f"{quoted(instruction.name, 80)} of ({shown})"


def format_type(result: Any) -> str:  # noqa: ANN401 - an array, several, a number
    """A result in a message: a tensor by its type."""
    if isinstance(result, np.ndarray):
        return f"{result.dtype}[{', '.join(map(str, result.shape))}]"
    if isinstance(result, list):
        return f"[{', '.join(map(format_type, result))}]"
    return described(result)
