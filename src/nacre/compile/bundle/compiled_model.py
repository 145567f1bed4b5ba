"""A compiled model: program, weights and manifest; run and timed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.source import Source
from nacre.compile.bundle.manifest import Manifest, Port
from nacre.compile.bundle.not_finite import warn_of_infinite_outputs, warn_of_lost_inputs
from nacre.compile.options import WEIGHT_BITS
from nacre.compile.placement.stage import WeightsPart
from nacre.compile.request import require_clock
from nacre.compile.target import request_error
from nacre.core.evaluation.evaluate import check_inputs
from nacre.core.evaluation.plan import initial_values, macs_of
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.nem.api.documents import TEXT_NAME
from nacre.nem.api.interpreter import NemInterpreter
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import Figures
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.run.sessions.session import RunResult, Session
from nacre.nem.run.timing.result import TimedResult

_MOSTLY = 0.5


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """What compiling a model for a device gives."""

    source: Module
    program: str  # NEM
    weights: bytes
    manifest: Manifest
    legal: Module  # what the plan is compared with
    parts: tuple[WeightsPart, ...] = ()  # what the weights are made of, as far as it is known
    has_reference: bool = True  # else `source` is only what the model takes and gives
    program_name: str = TEXT_NAME  # what findings call the program: its file, where it has one
    was_checked: bool = False  # the program is known to have no errors

    def __repr__(self) -> str:
        # Text and weights may be many megabytes.
        made, kind = self.manifest, type(self).__name__
        return f"<{kind} for {made.device} in {self.precision_text}: {len(made.layers)} layers>"

    @cached_property
    def float_share(self) -> float:
        """The share of an i8 plan's MACs that are of floats; 0 where it has none."""
        legal = self.legal
        macs = {op.value_id: macs_of(op, legal) for op in legal.operations}
        floats = sum(
            count
            for value, count in macs.items()
            if count and legal.by_id[legal.by_id[value].operands[0]].type.element.kind == "float"
        )
        total = sum(macs.values())
        return floats / total if self.manifest.precision == "i8" and total else 0.0

    @property
    def accuracy_precision(self) -> str:
        """The precision by whose bounds outputs are judged: weights of few values are as i8."""
        found, precision = self.manifest.compression, self.manifest.precision
        is_clustered = found is not None and bool(found.clustered)
        return "i8" if is_clustered or precision in WEIGHT_BITS else precision

    @property
    def precision_text(self) -> str:
        """The precision, and how much of an i8 plan is none."""
        share = self.float_share
        if not share:
            return self.manifest.precision
        if share == 1:
            return "i8, all in f16"
        share_text = f"{100 * share:.3g} % of the MACs"
        return f"i8, mostly f16 ({share_text})" if share > _MOSTLY else f"i8 ({share_text} in f16)"

    def run(
        self, inputs: Mapping[str, Any] | None = None, *, ordered: bool = False
    ) -> dict[str, Array]:
        """The outputs by name, in the model's own element types; state starts from its start."""
        return self.session(ordered=ordered).run(inputs)

    def session(self, *, ordered: bool = False) -> BundleSession:
        """A session that keeps the model's state between runs."""
        return BundleSession(self, ordered)

    def time(self, profile: Figures | None = None, clock_mhz: float | None = None) -> TimedResult:
        """How long the program takes; with a clock, in milliseconds too."""
        if clock_mhz is not None:
            require_clock(clock_mhz)
        machine, program = self._machine(ordered=False)
        result = machine.time(program, profile=profile)
        return TimedResult(result.timeline, clock_mhz)

    @cached_property
    def _read(self) -> LoadedProgram:
        """The program, checked once: when it was compiled, or before its first run."""
        # What decompresses is an extension of the language, of which strict checks warn.
        is_strict = self.manifest.compression is None
        options = CheckOptions(ddr_size_bytes=self._ddr_bytes, strict=is_strict)
        source = Source(self.program_name, self.program)
        return LoadedProgram(source, options, was_checked=self.was_checked)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """What the strictest check finds in the program."""
        return tuple(d for d in self._read.diagnostics if d.severity in ("error", "warning"))

    @cached_property
    def runnable_program(self) -> LoadedProgram:
        """The program, ready to run; InputError where it has errors."""
        self._read.require_runnable()
        return self._read

    @property
    def is_known_sound(self) -> bool:
        """Whether a check, now or before, has found no error in the program."""
        return self.was_checked or ("_read" in vars(self) and self._read.is_known_sound)

    @property
    def buffer_sizes(self) -> dict[str, int]:
        """The sizes of the program's buffers in bytes."""
        buffers = self.runnable_program.plan.program.buffers
        return {buffer.name: buffer.size or 0 for buffer in buffers}

    @property
    def _ddr_bytes(self) -> int:
        return self.manifest.ddr_bytes

    def _machine(
        self, ordered: bool, *, is_watched: bool = False
    ) -> tuple[NemInterpreter, LoadedProgram]:
        # The check has shown that nothing is read before it is written; validation looks again.
        kind: Literal["poison", "zero"] = "poison" if is_watched else "zero"
        machine = NemInterpreter(ddr_size=self._ddr_bytes, ordered=ordered, uninitialized=kind)
        return machine, self.runnable_program

    def start(
        self, arrays: Mapping[str, Array], ordered: bool, *, is_watched: bool = False
    ) -> Session:
        """A session of the program with its memory filled: weights, and inputs by name."""
        machine, program = self._machine(ordered, is_watched=is_watched)
        filled = self.to_memory(arrays)
        constant: tuple[str, ...] = ()
        if self.manifest.weights is not None:
            filled[self.manifest.weights] = self.weights
            # Whoever watches a run looks at memories on the chip.
            constant = () if is_watched else (self.manifest.weights,)
        return machine.start(program, filled, history_bytes=0, constant=constant)

    @cached_property
    def _idle_machines(self) -> dict[bool, list[Session]]:
        """Machines of runs that are over, by whether they are ordered: their tasks are bound."""
        return {False: [], True: []}

    def compute(self, arrays: Mapping[str, Array], ordered: bool) -> list[Array]:
        """What a run of the plan makes of inputs, all outputs and states in order."""
        idle = self._idle_machines[ordered]
        try:
            machine = idle.pop()  # runs on other threads take others
        except IndexError:
            machine = self.start(arrays, ordered)
        else:
            machine.restart(self.to_memory(arrays))
        result = machine.run()
        if result.status != "completed":
            raise InputError(list(result.diagnostics))
        outputs = [from_memory(result, port) for port in self.manifest.outputs]
        idle.append(machine)
        return outputs

    def to_memory(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Inputs by name as their buffers hold them."""
        return {port.buffer: port.to_memory(arrays[port.name]) for port in self.manifest.inputs}


class BundleSession:
    """Runs of a bundle one after the other; state is kept between them."""

    def __init__(self, bundle: CompiledModel, ordered: bool = False) -> None:
        self._bundle, self._ordered = bundle, ordered
        self._initial = initial_values(bundle.source)
        self._state: dict[str, Array] = dict(self._initial)

    @property
    def state(self) -> dict[str, Array]:
        """The state as it stands, by the name of the input that it feeds."""
        return dict(self._state)

    def reset(self) -> None:
        """Put the state back to its start."""
        self._state = dict(self._initial)

    def run(self, inputs: Mapping[str, Any] | None = None) -> dict[str, Array]:
        """The outputs of one run, by name."""
        if inputs is not None and not isinstance(inputs, Mapping):
            raise request_error(f"inputs are arrays by name, found {type(inputs).__name__}")
        manifest = self._bundle.manifest
        given = check_inputs(self._bundle.source, inputs or {}, self._state)
        arrays = {**self._state, **given}
        for port in manifest.inputs:
            require_range(port, arrays[port.name])
        lost = warn_of_lost_inputs(manifest, arrays)
        outputs = self._bundle.compute(arrays, self._ordered)
        for warning in (
            *lost,
            *warn_of_infinite_outputs(manifest, self._bundle.legal, arrays, outputs),
        ):
            warnings.warn(f"{warning.code}: {warning.message}", stacklevel=2)
        for state in manifest.states:
            self._state[state.input] = outputs[state.output]
        count = len(self._bundle.source.outputs)
        names = [port.name for port in manifest.outputs[:count]]
        return dict(zip(names, outputs[:count], strict=True))


def require_range(port: Port, array: Array) -> None:
    """Integers that the device holds in fewer bits must fit in them."""
    element = GRAPH_TYPES[port.elem]
    if port.scale is not None or array.dtype.kind not in "iu" or element.kind == "float":
        return
    beyond = (array < element.lowest) | (array > element.highest)
    if beyond.any():
        at = tuple(int(i) for i in np.argwhere(beyond)[0])
        raise request_error(
            f"input `{port.name}` is {int(array[at])} at {list(at)}, and the device holds it in "
            f"{port.elem}, up to {element.highest}"
        )


def from_memory(result: RunResult, port: Port) -> Array:
    """An output in the model's own element type."""
    raw = np.frombuffer(result.read_buffer(port.buffer), GRAPH_TYPES[port.elem].dtype)
    return port.real(port.in_model_order(raw))
