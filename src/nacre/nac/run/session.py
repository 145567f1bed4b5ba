"""Sessions: state between runs, and what repeats prepared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.program.interface import StateRecord
from nacre.nac.rules.limits import require_limits
from nacre.nac.rules.seeds import require_seed
from nacre.nac.run.arrays import ArrayDomain
from nacre.nac.run.calls import Budget
from nacre.nac.run.dry_run import dry_run
from nacre.nac.run.inputs import check_inputs
from nacre.nac.run.interpreter import Interpreter, TimedInterpreter, Timing
from nacre.nac.run.limited import LimitedRuns
from nacre.nac.run.limits import Limits, limits_for
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import owner
from nacre.nac.run.opaque import Randomness, require_kernels
from nacre.nac.run.optimised import OptimisedProgram, OptimisedPrograms
from nacre.nac.run.states import initial_state, require_next_state, require_states
from nacre.nac.run.trace import Trace, trace_of
from nacre.nac.spec.instructions import PARAMETER

_MOST_TRACES = 8  # kept for inputs of different types
_MOST_PEAKS = 1024


class NacSession:
    """A program made ready once and run many times; its state is kept between runs."""

    def __init__(
        self,
        model: LoadedProgram,
        optimised: OptimisedPrograms | None = None,
        *,
        max_bytes: int | None = None,
        max_work: int | None = None,
        timed: bool = False,
        seed: int = 0,
    ) -> None:
        self._model = model
        most = require_limits(max_bytes=max_bytes, max_work=max_work)
        self._most = (
            model.max_bytes if max_bytes is None else most["max_bytes"],
            model.max_work if max_work is None else most["max_work"],
        )
        self._is_timed = timed
        self.seed = require_seed(seed)  # of the random numbers of a run
        self._runs = 0  # since the start
        self._optimised = optimised  # None: the program is run as it is written
        self._state: dict[int, Array] = {}
        self._traces: dict[object, Trace] = {}
        self._ready: dict[object, OptimisedProgram] = {}
        self._last: OptimisedProgram | None = (
            None  # what the last run repeated, in a program without state
        )
        self._peaks: dict[object, int] = {}  # of dry runs, by types
        limit = model.memory_limit
        self._limited = None if limit is None else LimitedRuns(model, limit)
        self.peak_bytes = 0  # of the last run, with what is kept
        self.timings: tuple[Timing, ...] = ()  # of the last run, where they were asked for
        require_states(model, limits_for(model.file_bytes, (), *self._most))
        self.reset()

    def reset(self) -> None:
        """Put the state back to its initial value, and random numbers to their start."""
        self._runs = 0
        records = self._model.surroundings.states
        if not records:
            return
        self._state = {id_: initial_state(self._model, record) for id_, record in records.items()}

    @property
    def state(self) -> dict[str, Array]:
        """The state as it stands, by its name, or by its id where it has none."""
        records = self._model.surroundings.states
        return {records[id_].name or str(id_): array.copy() for id_, array in self._state.items()}

    def run(self, inputs: Mapping[str, Any] | None = None) -> list[Array]:
        """The outputs in order; InputError says why not, and the state is as it was."""
        if self._last is not None:
            repeated = self._repeat_last(self._last, inputs)
            if repeated is not None:
                return repeated
        given = check_inputs(self._model, {} if inputs is None else inputs)
        outputs, borrowed = self._compute(given)
        records = self._model.surroundings.states
        new = {id_: self._next_state(record, outputs) for id_, record in records.items()}
        hidden = {r.output for r in records.values() if not r.returned}
        returned = [value for place, value in enumerate(outputs) if place not in hidden]
        self._state = new
        self._runs += 1
        return _detach(returned, borrowed)

    def _repeat_last(
        self, ready: OptimisedProgram, inputs: Mapping[str, Any] | None
    ) -> list[Array] | None:
        """The outputs for inputs of the types that the last ones had; None where that is not so."""
        try:
            return ready.session.try_fast_run(inputs)
        except InputError:  # the instructions tell where
            return None

    def _compute(self, given: Mapping[int, Array]) -> tuple[list[Any], set[int]]:
        """The operands of the output, and the owners of arrays that belong to somebody else.

        What a run does follows from the types of its inputs, in almost every program: the second
        run for the same types repeats the first without looking anything up.
        """
        key = tuple((index, array.dtype, array.shape) for index, array in given.items())
        ready = self._ready.get(key)
        if ready is not None:
            outputs = self._run_optimised(ready, key, given)
            if outputs is not None:
                self._last = None if self._state else ready
                return outputs, set()
        self._last = None
        trace = self._traces.get(key)
        if trace is not None and ready is None:
            self.peak_bytes = trace.peak_bytes
            return trace.run(given, self._state)
        if self._model.has_opaque:
            require_kernels(self._model)
        limits = limits_for(self._model.file_bytes, given.values(), *self._most)
        if key not in self._peaks:
            peak = dry_run(self._model, given, self._state, limits)
            if len(self._peaks) < _MOST_PEAKS:
                self._peaks[key] = peak
        if self._limited is not None and not self._limited.holds_all(self._peaks.get(key, 0)):
            return self._run_within_limit(self._limited, key, given, limits)
        if self._optimised is not None and ready is None:
            optimised = self._optimised.of(self._model, key, given)
            most = min(limits.bytes, self._model.memory_limit or limits.bytes)
            if optimised is not None and optimised.peak_bytes <= most:
                self._ready[key] = optimised
                outputs = self._run_optimised(optimised, key, given)
                if outputs is not None:
                    return outputs, set()
        return self._interpret(key, given, limits)

    def _run_within_limit(
        self, runs: LimitedRuns, key: object, given: Mapping[int, Array], limits: Limits
    ) -> tuple[list[Any], set[int]]:
        """The same within the limit of memory; nothing of the weights stays."""
        plan = runs.plan(key, given, self._state, limits)
        randomness = Randomness(self.seed, self._runs)
        result = runs.run(plan, given, self._state, limits, self._is_timed, randomness)
        self.peak_bytes, self.timings = result.peak_bytes, result.timings
        return result.outputs, result.borrowed

    def _run_optimised(
        self, ready: OptimisedProgram, key: object, given: Mapping[int, Array]
    ) -> list[Any] | None:
        """The operands of the output; None where a kernel refuses values.

        What it says about them has no place in the file: that, the instructions tell.
        """
        # Weights that lie in the file take memory as well while they are used.
        self.peak_bytes = max(ready.peak_bytes, self._peaks.get(key, 0))
        try:
            return ready.run(given, self._state)
        except InputError:
            return None

    def _interpret(
        self, key: object, given: Mapping[int, Array], limits: Limits
    ) -> tuple[list[Any], set[int]]:
        """The same, instruction by instruction."""
        budget = Budget(limits)
        randomness = Randomness(self.seed, self._runs)
        run = ArrayDomain(self._model, given, self._state, budget, randomness=randomness)
        memory, weights = budget.memory, self._model.weights
        kind = TimedInterpreter if self._is_timed else Interpreter
        interpreter = kind(self._model, run, memory, self._model.schedule)
        outputs = interpreter.outputs()
        self.peak_bytes = max(memory.peak, weights.kept_bytes + memory.value_peak)
        if isinstance(interpreter, TimedInterpreter):
            self.timings = tuple(interpreter.timings)
        is_same = run.is_static and all(
            weights.is_kept(i.id)
            for i in self._model.program
            if i.kind == "input" and i.variant == PARAMETER
        )
        if is_same and not self._is_timed and len(self._traces) < _MOST_TRACES:
            self._traces[key] = trace_of(self._model, given, run.entries, self.peak_bytes)
        return outputs, run.borrowed

    @property
    def kept_bytes(self) -> int:
        """What the model keeps between runs: weights that do not lie in the file as they are."""
        return self._model.weights.kept_bytes

    def _next_state(self, record: StateRecord, outputs: Sequence[Any]) -> Array:
        require_next_state(self._model, record, outputs)
        return np.array(outputs[record.output])


def _detach(outputs: Sequence[Any], borrowed: set[int]) -> list[Array]:
    """Outputs that nothing else looks at."""
    seen = set(borrowed)
    detached = []
    for value in outputs:
        array = np.asarray(value)
        if id(owner(array)) in seen or array.base is not None:
            array = array.copy()
        seen.add(id(owner(array)))
        detached.append(array)
    return detached
