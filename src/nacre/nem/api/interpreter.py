"""`NemInterpreter`: load, check, run and debug NEM programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.source import Source, Unreadable
from nacre.nem.api.backends import AnyBackend, BackendChoice
from nacre.nem.api.ddr import Ddr, DdrInfo, require_host_memory, require_size
from nacre.nem.api.device_info import DeviceConfig, device_config
from nacre.nem.api.documents import TEXT_NAME, host_imports
from nacre.nem.api.fusing import chains_of
from nacre.nem.api.program_changes import change_program
from nacre.nem.api.programs import LoadedProgram, report_allowed_errors
from nacre.nem.api.replay import Replay, differing_buffers, witness_orders, witness_steps
from nacre.nem.api.timing import Figures, read_profile, time_plan
from nacre.nem.api.tree_text import tree_text
from nacre.nem.bytecode.sources import read_program
from nacre.nem.checks.engine import CheckOptions, named_device, resize_memories
from nacre.nem.model.devices import Device, default_device
from nacre.nem.model.figures import figure_problems
from nacre.nem.model.files import unreadable_finding
from nacre.nem.model.imports import Imports
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.plan.fusion.chains import Fusion
from nacre.nem.run.memory.host import host_error, whole_number
from nacre.nem.run.memory.memory import Memory, MemoryLevel, memory_sizes
from nacre.nem.run.options import HISTORY_BYTES, RunOptions, Scheduling, Uninitialized
from nacre.nem.run.sessions.session import RunResult, Session
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.fused import FusedResult, time_fused
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES, MAX_TASK_INSTANCES
from nacre.nem.syntax.ast import Document

Inputs = Mapping[str, Any]  # arrays (or bytes) by buffer; `NAME@OFFSET` fills a part
Progress = Callable[[int, int], None]  # steps taken, steps in all


class NemInterpreter:
    """An interpreter for one device. DDR belongs to it and outlives runs."""

    def __init__(
        self,
        device: str | Path | Device | None = None,
        ddr_size: int = DEFAULT_DDR_BYTES,
        l1_size: int | None = None,
        l2_size: int | None = None,
        *,
        uninitialized: Uninitialized = "poison",
        ordered: bool = False,
        strict: bool = False,
        include_roots: Sequence[Path] = (),
        max_instances: int = MAX_TASK_INSTANCES,
    ) -> None:
        _require_choice("uninitialized", uninitialized, ("poison", "zero"))
        self._device = _device(device, tuple(include_roots))
        for what, size in (("l1_size", l1_size), ("l2_size", l2_size)):
            if size is not None:
                require_size(size, what)
        self._ddr = Ddr(ddr_size, poison=uninitialized == "poison")
        self._check_options = CheckOptions(
            device=self._device,
            strict=strict,
            include_roots=tuple(include_roots),
            ddr_size_bytes=ddr_size,
            l2_size_bytes=l2_size,
            l1_size_bytes=l1_size,
            max_instances=max_instances,
        )
        self._ordered, self._strict = ordered, strict
        self._scheduling: Scheduling = "deterministic"
        self._seed = 0
        self._backends = BackendChoice()
        self._latest: LoadedProgram | None = None
        self._mode = "functional"
        self._profile: Figures | None = None

    # Programs

    def load(self, path: str | Path, imports: Imports = ()) -> LoadedProgram:
        """Read a program from a file; a file that cannot be read raises InputError.

        `imports` marks buffers whose contents the host provides: `["W", "X:mutable:noalias"]`.
        """
        program = LoadedProgram(_read(path), self._check_options)
        self._latest = program.with_imports(host_imports(imports))
        return self._latest

    def load_string(
        self, text: str, imports: Imports = (), *, name: str = TEXT_NAME
    ) -> LoadedProgram:
        """Read a program from its text; `name` is what findings call it."""
        if not isinstance(text, str):
            raise host_error(f"a program is text, found {type(text).__name__}")
        program = LoadedProgram(Source(name, text), self._check_options)
        self._latest = program.with_imports(host_imports(imports))
        return self._latest

    def parse(self, path: str | Path) -> Document:
        """The syntax tree of a file; syntax errors raise InputError."""
        return LoadedProgram(_read(path), self._check_options).valid_document()

    def validate(self, program: LoadedProgram) -> list[Diagnostic]:
        """Every finding about a program, in order."""
        return self._require_program(program).diagnostics

    def dump_ast(self, program: LoadedProgram | Document) -> None:
        """Print a syntax tree."""
        if isinstance(program, LoadedProgram):
            sys.stdout.write(tree_text(program.document, program.source))
        elif isinstance(program, Document):
            sys.stdout.write(tree_text(program, None))
        else:
            self._require_program(program)

    # How programs run

    def set_mode(self, mode: str) -> None:
        """`functional`: dependences alone decide the order. `timed`: the device's units do."""
        _require_choice("mode", mode, ("functional", "timed"))
        _require_one_order(mode, self._scheduling)
        self._mode = mode

    def set_timing_profile(self, profile: Figures | str | Path | None) -> None:
        """Figures that replace the device's in timed runs: a mapping, or a .json or .toml file."""
        self._profile = read_profile(profile)

    def set_scheduling(
        self, scheduling: Literal["deterministic", "random"], seed: int | None = None
    ) -> None:
        """Take ready tasks in program order, or at random, the same for one seed."""
        _require_choice("scheduling", scheduling, ("deterministic", "random"))
        number = 0 if seed is None else whole_number(seed, "the seed")
        _require_one_order(self._mode, scheduling)
        self._scheduling, self._seed = scheduling, number

    def set_compute_backend(self, backend: AnyBackend) -> None:
        """Use `numpy`, `npm`, `auto`, a registered backend or an object for all opcodes."""
        self._backends.use(backend)

    def set_opcode_backend(self, opcode: str, backend: AnyBackend) -> None:
        """Use a backend for one opcode."""
        self._backends.use_for(opcode, backend)

    def run(
        self,
        program: LoadedProgram,
        inputs: Inputs | None = None,
        *,
        allow: Iterable[str] = (),
        order: Sequence[str] | None = None,
        detect_races: bool = False,
        imports: Imports = (),
        fuse: bool = False,
        observed: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> RunResult:
        """Run a program to its end.

        A program with errors raises InputError, except for codes or groups in `allow`. What goes
        wrong while it runs is in the result: `status` and `diagnostics`. With `fuse` values pass
        from task to task where a binder may do that, except in the buffers that are `observed`.
        """
        session = self.start(
            program, inputs, allow=allow, order=order, detect_races=detect_races,
            history_bytes=0, imports=imports, fuse=fuse, observed=observed,
        )  # fmt: skip
        return session.run(progress)

    def time(
        self,
        program: LoadedProgram,
        changes: Mapping[str, int] | None = None,
        profile: Figures | None = None,
        *,
        allow: Iterable[str] = (),
    ) -> TimedResult:
        """Time a program without computing values, perhaps on a device with other figures.

        `changes` are figures such as `{"NMU.int8_macs": 8192, "topology.l1_size_bytes": 2 << 20}`.
        """
        allowed = self._require_program(program).require_runnable(allow)
        figures = self._profile if profile is None else read_profile(profile)
        if changes is not None and (changes or not isinstance(changes, Mapping)):
            # On another device the program may no longer fit, or lack a unit: that is the answer.
            program = change_program(program, changes)
            allowed = program.require_runnable(allow)
        with report_allowed_errors(allowed):
            return time_plan(
                program.plan, program.device, figures, changes or {}, whole=bool(allowed)
            )

    def time_fused(
        self,
        program: LoadedProgram,
        *,
        observed: Iterable[str] = (),
        imports: Imports = (),
    ) -> FusedResult:
        """Time a program as it is, and in chains; buffers that are `observed` are written."""
        program = self._require_program(program).with_imports(host_imports(imports))
        timing = self.time(program)
        return time_fused(timing, chains_of(program, _names(observed)))

    def start(
        self,
        program: LoadedProgram,
        inputs: Inputs | None = None,
        *,
        allow: Iterable[str] = (),
        order: Sequence[str] | None = None,
        detect_races: bool = False,
        history_bytes: int = HISTORY_BYTES,
        imports: Imports = (),
        fuse: bool = False,
        observed: Iterable[str] = (),
        constant: Iterable[str] = (),
    ) -> Session:
        """A session to step through, both ways; the host leaves `constant` buffers as they are."""
        self._require_untimed(order)
        options = self._options(
            inputs, order=order, detect_races=detect_races, history_bytes=history_bytes,
            fuse=fuse, observed=_names(observed), constant=_names(constant),
        )  # fmt: skip
        program = self._require_program(program).with_imports(host_imports(imports))
        return self._session(program, options, allow)

    def replay(
        self, program: LoadedProgram, diagnostic: Diagnostic, inputs: Inputs | None = None
    ) -> Replay:
        """Run the two tasks of a hazard in both orders, after everything that must precede them."""
        steps = number_steps(self._require_program(program).plan)
        self._ddr.place(program.plan.program.buffers)
        sessions = []
        for order in witness_orders(steps, *witness_steps(diagnostic, steps)):
            options = self._options(inputs, order=order)
            # Neither run may see what the other left in DDR.
            sessions.append(self._session(program, options, ["HAZ"], self._ddr.level.copy()))
        first, second = (session.run() for session in sessions)
        return Replay(first, second, differing_buffers(*sessions))

    def _options(self, inputs: Inputs | None, **others: Any) -> RunOptions:  # noqa: ANN401
        return RunOptions(
            scheduling=self._scheduling,
            seed=self._seed,
            ordered=self._ordered,
            strict=self._strict,
            backends=self._backends.backends,
            inputs={} if inputs is None else inputs,
            **others,
        )

    def _session(
        self,
        program: LoadedProgram,
        options: RunOptions,
        allow: Iterable[str],
        ddr: MemoryLevel | None = None,
    ) -> Session:
        program = self._require_program(program).with_host_filled(options.inputs)
        allowed = program.require_runnable(allow)
        options = replace(options, allowed=allowed, imports=program.options.imports)
        plan = program.plan
        sizes = memory_sizes(program.device, self._ddr.size)
        on_chip_bytes = sum(sizes.by_memory.values())
        require_host_memory(
            on_chip_bytes, "the device's L2 and L1 memory", help="name a smaller device"
        )
        chains = Fusion()
        if options.fuse:
            chains = chains_of(program, options.observed, has_errors=bool(allowed))
        with report_allowed_errors(allowed):
            memory = Memory(plan.program, sizes, ddr or self._ddr.level, chains.streamed)
            timing = None
            if self._mode == "timed" and options.order is None:
                timing = time_plan(plan, program.device, self._profile, whole=bool(allowed))
            return Session(plan, program.device, memory, options, timing)

    def _require_untimed(self, order: Sequence[str] | None) -> None:
        if order is not None and self._mode == "timed":
            raise host_error(
                "an order and mode `timed` both decide which step comes next",
                'leave `order` out, or call `set_mode("functional")` first',
            )

    def _require_program(self, program: LoadedProgram) -> LoadedProgram:
        if not isinstance(program, LoadedProgram):
            raise host_error("load the program first: `interp.load(path)` or `load_string(text)`")
        return program

    # Device

    def get_device_info(self, program: LoadedProgram | None = None) -> DeviceConfig:
        """The device of the interpreter, or that of a program."""
        if program is not None:
            device = self._require_program(program).device
        elif self._device is not None:
            device = self._device
        else:
            device = resize_memories(default_device(), self._check_options)
        return device_config(device, self._ddr.size)

    # DDR

    def ddr_write(self, offset: int, data: object) -> None:
        """Put bytes into DDR."""
        self._ddr.write(offset, data)

    def ddr_write_tensor(self, offset: int, tensor: npt.ArrayLike) -> None:
        """Put an array's bytes into DDR."""
        self._ddr.write(offset, tensor)

    def ddr_load_file(self, offset: int, path: str | Path) -> None:
        """Put the bytes of a file into DDR; of a .npy file, those of its array."""
        self._ddr.load_file(offset, path)

    def ddr_load_npy(self, offset: int, path: str | Path) -> None:
        """Put the array of a .npy file into DDR."""
        self._ddr.load_npy(offset, path)

    def ddr_read(self, offset: int, size: int) -> bytes:
        """Take bytes from DDR."""
        return self._ddr.read(offset, size)

    def ddr_read_tensor(
        self, offset: int, shape: tuple[int, ...] | int, dtype: npt.DTypeLike
    ) -> np.ndarray[Any, Any]:
        """Take an array from DDR."""
        return self._ddr.read_tensor(offset, shape, dtype)

    def ddr_info(self) -> DdrInfo:
        """How large DDR is, and how much of it the program loaded last takes."""
        latest = self._latest
        if latest is not None and latest.is_program and not has_errors(latest.diagnostics):
            self._ddr.place(latest.plan.program.buffers)
        return self._ddr.info()


def _read(path: str | Path) -> Source:
    if not isinstance(path, str | Path):
        raise host_error(f"a path is text or a Path, found {type(path).__name__}")
    source = read_program(Path(path))
    if isinstance(source, Unreadable):
        raise InputError([unreadable_finding(str(path), Path(path), source)])
    return source


def _device(device: str | Path | Device | None, include_roots: tuple[Path, ...]) -> Device | None:
    """The device that a caller names: a built-in one, a file's, or a value."""
    if device is None:
        return None
    if isinstance(device, Device):
        if problems := figure_problems(device):
            raise host_error("; ".join(problems))
        return device
    try:
        target = named_device(str(device), include_roots)
    except UnknownDeviceError as error:
        raise host_error(str(error)) from None
    errors = [d for d in target.diagnostics if d.severity == "error"]
    if errors:
        raise InputError(errors)
    return target.device


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(map(str, names))


def _require_one_order(mode: str, scheduling: str) -> None:
    """The device decides the order of a timed run: there is nothing left to take at random."""
    if mode == "timed" and scheduling == "random":
        raise host_error(
            "scheduling `random` and mode `timed` both decide which step comes next",
            'call `set_scheduling("deterministic")` or `set_mode("functional")` first',
        )


def _require_choice(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        listed = " or ".join(f"`{choice}`" for choice in allowed)
        raise host_error(f"{what} is `{value}`, expected {listed}")
