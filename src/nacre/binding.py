"""Binding at the front door: programs and bundles in, images out, which prove, run and time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.bind.measure.measured import MeasuredBinding
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions, BindRequest, Bound, Host, HostPort
from nacre.bind.uarch.builtin import load_uarch
from nacre.nem.api.documents import source_of
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.devices import Device
from nacre.tcb.files import load_image, save_image
from nacre.tcb.image import Image
from nacre.tcb.machine.host_arrays import to_memory, warn_of_lost_inputs
from nacre.tcb.machine.memory import HostData
from nacre.tcb.machine.run import ImageRun, run_image
from nacre.tcb.machine.timing import ImageTiming, time_image
from nacre.tcb.text.disassembly import disassemble
from nacre.tcbcheck.proof import Proof, prove_image
from nacre.tcbcheck.target import ExpectedPort, Target
from nacre.tcbcheck.verify import verify_image

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import Port
    from nacre.tcb.image import PortKind

    BindableProgram = str | Path | Bundle | LoadedProgram


@dataclass(frozen=True, eq=False, repr=False)
class TcbImage:
    """A program bound to hardware."""

    image: Image
    bound: Bound | None = None  # with every decision; None for one that was read from a file
    request: BindRequest | None = None  # what was bound, and how; None there too

    def __repr__(self) -> str:
        machine = self.image.machine
        blocks = sum(1 for stream in self.image.streams for _ in stream.blocks())
        return f"<TcbImage of {self.image.entry}: {blocks} blocks for {machine.uarch}>"

    @property
    def text(self) -> str:
        """The image as assembler text."""
        return disassemble(self.image)

    def save(self, path: str | Path) -> None:
        """Write it as a `.tcb` file, whole or not at all."""
        save_image(self.image, Path(path))

    @staticmethod
    def load(path: str | Path) -> TcbImage:
        """The image of a `.tcb` file, or of its text; InputError says what is wrong with it."""
        return TcbImage(load_image(Path(path)))

    def verify(self, program: BindableProgram, *, device: str | None = None) -> list[Diagnostic]:
        """Every way in which the image does not mean what a program means; none: it is proved.

        `device` is that which the program was bound for, where it is not the program's own.
        """
        loaded, host = _load(program, device)
        target = _target_of(loaded.device, host, loaded.options.ddr_size_bytes)
        return verify_image(loaded.plan, self.image, dict(host.constants), target)

    def run(
        self, inputs: Mapping[str, HostData] | None = None, *, seed: int | None = None
    ) -> ImageRun:
        """Run it on arrays or bytes by the names of inputs; `outputs` of the result has the others.

        Those of a bundle are the model's own values, as `Bundle.run` takes and gives them; arrays
        of the element types of the plan are taken as the memory has them. With a seed blocks run in
        a random order that tags allow.
        """
        if seed is not None and type(seed) is not int:
            raise TypeError(f"a seed is an integer, not {seed!r}")
        run = run_image(self.image, to_memory(self.image, inputs or {}), seed=seed)
        lost = warn_of_lost_inputs(self.image, inputs or {})
        return dataclasses.replace(run, diagnostics=(*lost, *run.diagnostics)) if lost else run

    def time(self, *, ideal: bool = False) -> ImageTiming:
        """How long it takes (`cycles`) on its hardware, or the same blocks on ideal hardware."""
        machine = replace(self.image.machine, figures=()) if ideal else self.image.machine
        return time_image(replace(self.image, machine=machine))

    def measure(self) -> MeasuredBinding:
        """Its cycles against those of its program, and why they differ; banks, compression.

        ValueError for an image that was read from a file: bind its program.
        """
        if self.bound is None or self.request is None:
            raise ValueError("an image from a file has no decisions to report: bind its program")
        return MeasuredBinding(self.request, self.bound)

    def report(self, path: str | Path) -> None:
        """Write a page about the binding, for a browser; whole or not at all.

        ValueError for an image that was read from a file: bind its program.
        """
        from nacre.viz.binding_page import write_binding

        measured = self.measure()
        write_binding(measured, path, prove_binding(measured))


def prove_binding(measured: MeasuredBinding) -> Proof:
    """Prove the image of a binding against its own program."""
    request = measured.request
    host, image = request.host, measured.bound.image
    target = _target_of(request.device, host, request.options.ddr_bytes)
    return prove_image(request.plan, image, dict(host.constants), target)


def _target_of(device: Device, host: Host, ddr_bytes: int) -> Target:
    """What an image is to be bound to."""
    ports = tuple(ExpectedPort(**asdict(port)) for port in host.ports)
    return Target(device, ports, host.imported, ddr_bytes)


def bind(
    program: BindableProgram,
    uarch: str | Path | None = None,
    *,
    device: str | Path | None = None,
    fuse: bool = True,
    wdm: bool = True,
    allow_serialise: bool = False,
) -> TcbImage:
    """Bind a program, a text, a file or a bundle, to the hardware of a device.

    `uarch` is the name of a microarchitecture or a file; without it that of the device holds, and
    where nacre has none the ideal one. `fuse` chains tasks, `wdm` compresses the weights of a
    bundle where the hardware can decompress them. InputError says what is wrong, all of it.
    """
    for name, value in (("fuse", fuse), ("wdm", wdm), ("allow_serialise", allow_serialise)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")
    loaded, host = _load(program, None if device is None else str(device))
    described = load_uarch(uarch, *loaded.device.line)
    options = BindOptions(described, fuse, wdm, allow_serialise, loaded.options.ddr_size_bytes)
    request = BindRequest(loaded.plan, loaded.name, loaded.device, options, host)
    bound = bind_plan(request.plan, request.name, request.device, options, host)
    return TcbImage(bound.image, bound, request)


def _load(program: BindableProgram, device: str | None) -> tuple[LoadedProgram, Host]:
    """A program without errors, and what is known of its host."""
    from nacre.compile.bundle.bundle import Bundle

    if isinstance(program, str | Path):
        program = _read(program, device)
    if isinstance(program, Bundle):
        if device is not None:
            raise ValueError("a bundle is for one device: compile the model for another")
        return program.runnable_program, _host_of(program)
    if not isinstance(program, LoadedProgram):
        expected = "a text, a path, a loaded program or a bundle"
        raise TypeError(f"a program is {expected}, not {type(program).__name__}")
    program.require_runnable()
    return program, Host(imported=tuple(mark.name for mark in program.options.imports))


def _read(program: str | Path, device: str | None) -> LoadedProgram | Bundle:
    """A bundle where there is a folder of that name, else a program from a file or a text."""
    if _is_folder(program):
        from nacre.compile.bundle.bundle import Bundle

        return Bundle.load(Path(program))
    source = source_of(program)
    if isinstance(source, Diagnostic):
        raise InputError([source])
    return LoadedProgram(source, CheckOptions(device=device))


def _is_folder(program: str | Path) -> bool:
    try:
        return program != "" and Path(program).is_dir()
    except (OSError, ValueError):  # a text, or a name that is too long
        return False


def _host_of(bundle: Bundle) -> Host:
    """Inputs and outputs under the names of the model, its weights, and whose tasks are whose."""
    manifest = bundle.manifest
    inputs = (_host_port(port, "input") for port in manifest.inputs)
    outputs = (_host_port(port, "output") for port in manifest.outputs)
    weights = () if manifest.weights is None else ((manifest.weights, bundle.weights),)
    layers = ((t, layer.name) for layer in manifest.layers for t in (*layer.tasks, *layer.loads))
    return Host((*inputs, *outputs), weights, layers=tuple(layers))


def _host_port(port: Port, kind: PortKind) -> HostPort:
    """A port with the model's own values, where memory has others; its axes are the memory's."""
    is_alike = port.dtype == port.elem and port.scale is None
    host = (None if is_alike else port.dtype, port.scale, port.zero)
    return HostPort(port.name, kind, port.buffer, port.elem, port.memory_shape, *host)
