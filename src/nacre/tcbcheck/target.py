"""What an image is bound to, as the program has it: a device, and what the host fills and reads.

Figures of the microarchitecture are the image's own: they say what blocks cost, never what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import fields

from nacre.base.diagnostics import Diagnostic
from nacre.base.hints import setting
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Program
from nacre.nem.run.memory.memory import MemorySizes, memory_sizes
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS
from nacre.tcb.figures import Figures
from nacre.tcb.image import Image, Machine, Placement, Port, PortKind
from nacre.tcbcheck.rules import TCB90, TCB91

_DDR = "DDR"


class ExpectedPort(Struct, frozen=True):
    """What the host fills or reads: a buffer, under its own name for it."""

    name: str
    kind: PortKind
    buffer: str
    elem: str | None = None
    dims: tuple[int, ...] | None = None
    host_elem: str | None = None
    scale: float | None = None
    zero: int | None = None


class Target(Struct, frozen=True, eq=False):
    """The device that a program names, and its host; without ports buffers in DDR are these."""

    device: Device
    ports: tuple[ExpectedPort, ...] = ()
    imported: tuple[str, ...] = ()  # buffers that the host provides
    ddr_bytes: int = DEFAULT_DDR_BYTES

    @property
    def sizes(self) -> MemorySizes:
        """The bytes of its memories."""
        return memory_sizes(self.device, self.ddr_bytes)

    def ports_of(self, program: Program) -> tuple[ExpectedPort, ...]:
        """Those of a program."""
        own = (b.name for b in program.buffers if b.level == _DDR)
        return self.ports or tuple(ExpectedPort(name, "inout", name) for name in own)

    def visible(self, program: Program) -> frozenset[str]:
        """Buffers of a program that its host sees."""
        return frozenset((*self.imported, *(port.buffer for port in self.ports_of(program))))


def compare_machine(program: Program, machine: Machine, target: Target) -> Iterator[Diagnostic]:
    """What of an image's machine is another than the program's device has."""
    for what, found, expected in _machine_facts(machine, target):
        if found != expected:
            message = f"the image is bound to {what} {_text(found)}, expected {_text(expected)}"
            option = setting("`--device`", "`device=`")
            help_ = f"{option} names the device that it was bound for, if it is another"
            yield TCB90.at(program.source.span(0, 0), message, help=help_)


def _machine_facts(machine: Machine, target: Target) -> Iterator[tuple[str, object, object]]:
    """Names, what the image says, and what holds; how much DDR there is, no device says."""
    device, sizes, figures = target.device, target.sizes, Figures(dict(machine.figures))
    yield "device", machine.device, device.name
    yield "a device of hash", machine.device_hash, device.digest
    yield "engines:", machine.engines, device.num_engines
    own = {unit: device.count(unit) for unit in ENGINE_UNITS if unit != "SEQ"}
    yield "units", dict(machine.units), {unit: count for unit, count in own.items() if count}
    shared = {unit: device.count(unit) for unit in DEVICE_UNITS}
    shared = {unit: count for unit, count in shared.items() if count}
    yield "units of the device", dict(machine.device_units), shared
    memories = {name: size for name, size in machine.memories if name != _DDR}
    yield "memories", memories, {"L2": sizes.l2, "L1": sizes.l1}
    limit = timing_profile(device).get("SEQ", "max_active_tokens")
    yield "tokens of an engine:", machine.token_limit, limit
    yield "tags of an engine:", machine.tags, figures.count("tags.engine") or None
    yield "tags of the device:", machine.device_tags, figures.count("tags.device") or None


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={count}" for name, count in sorted(value.items())) or "none"
    return "any number" if value is None else f"{value}"


def compare_ports(
    program: Program, image: Image, placements: Mapping[str, Placement], target: Target
) -> Iterator[Diagnostic]:
    """Ports that the image lacks, has in excess, or has otherwise than the program's host."""
    found: dict[str, list[Port]] = {}
    for port in image.ports:
        found.setdefault(port.name, []).append(port)
    nodes = {buffer.name: buffer.node for buffer in program.buffers}
    for expected in target.ports_of(program):
        ports, place = found.pop(expected.name, []), placements.get(expected.buffer)
        problem = None
        if len(ports) != 1:
            problem = f"is there {len(ports)} times, expected once"
        elif place is not None:
            problem = _port_problem(ports[0], _port_at(expected, place))
        if problem is not None:
            node = nodes.get(expected.buffer)
            span = program.source.span(0, 0) if node is None else program.span(node)
            yield TCB91.at(span, f"the port `{expected.name}` {problem}")
    for name in found:
        message = f"the image has a port `{name}`, which is none of the program's"
        yield TCB91.at(program.source.span(0, 0), message)


def _port_at(expected: ExpectedPort, place: Placement) -> Port:
    where = (place.memory, place.address, place.size)
    types = (expected.elem, expected.dims, expected.host_elem)
    if expected.scale is None:
        return Port(expected.name, expected.kind, *where, *types)
    return Port(
        expected.name, expected.kind, *where, *types, (expected.scale,), (expected.zero or 0,)
    )


def _port_problem(port: Port, expected: Port) -> str | None:
    for field in fields(Port):
        mine, right = getattr(port, field.name), getattr(expected, field.name)
        if mine != right:
            return f"has {field.name.replace('_', ' ')} {mine}, expected {right}"
    return None
