"""Promises of the machine, of what lies in its memories, and of origins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite, prod

from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.suggest import did_you_mean
from nacre.tcb.figures import FIGURES, figure_problem
from nacre.tcb.image import Constant, Image, Machine, Placement, Port
from nacre.tcb.judging.problems import Problem, Problems
from nacre.tcb.rules.image import TCB20, TCB21, TCB29, TCB30, TCB31, TCB37
from nacre.tcb.text.disassembly import Place

_PER_ENGINE = "L1"
_MOST_ENGINES = 1 << 16
_NUMBERED = re.compile(r"(\w+)\[(0|[1-9][0-9]*)\]")


def capacities(machine: Machine) -> dict[str, int]:
    """The bytes of each memory, by the name that operands use."""
    found: dict[str, int] = {}
    for name, size in machine.memories:
        if name == _PER_ENGINE:
            found |= {
                f"{name}[{engine}]": size for engine in range(min(machine.engines, _MOST_ENGINES))
            }
        else:
            found[name] = size
    return found


def unknown_memory(memory: str, known: Mapping[str, int], place: Place) -> Problem:
    """A memory that the machine does not have."""
    numbered = _NUMBERED.fullmatch(memory)
    is_beyond = numbered is not None and f"{numbered[1]}[0]" in known
    help_ = None if is_beyond else did_you_mean(memory, known)
    return Problem(TCB21, place, f"the machine has no memory {backquote(memory)}", help_)


def judge_machine(machine: Machine) -> Problems:
    """The machine's counts."""
    place = ("machine", 0)
    if not 0 < machine.engines <= _MOST_ENGINES:
        message = f"{machine.engines:,} engines; a machine has 1 to {_MOST_ENGINES:,}"
        yield Problem(TCB20, place, message)
    limits = (("tokens", machine.token_limit), ("tags", machine.tags),
              ("tags of the device", machine.device_tags))  # fmt: skip
    for what, limit in limits:
        if limit is not None and limit < 0:
            yield Problem(TCB20, place, f"{limit:,} {what}")
    groups = (("unit", machine.units), ("unit of the device", machine.device_units),
              ("memory", machine.memories))  # fmt: skip
    for what, pairs in groups:
        yield from _judge_counts(what, pairs, place)
    yield from _repeated("figure", [name for name, _ in machine.figures], place, TCB20)
    for name, value in machine.figures:
        spec = FIGURES.get(name)
        if spec is None:
            message = f"there is no figure {backquote(name)}"
            yield Problem(TCB20, place, message, did_you_mean(name, FIGURES))
        elif (wrong := figure_problem(spec, value)) is not None:
            yield Problem(TCB20, place, f"figure `{name}` is {value!r}: {wrong}")


def _judge_counts(what: str, pairs: Sequence[tuple[str, int]], place: Place) -> Problems:
    for name, count in pairs:
        if count < 0:
            yield Problem(TCB20, place, f"{what} {backquote(name)} has the number {count:,}")
    yield from _repeated(what, [name for name, _ in pairs], place, TCB20)


def _repeated(what: str, names: Iterable[str], place: Place, rule: Rule) -> Problems:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield Problem(rule, place, f"{what} {backquote(name)} is there twice")
        seen.add(name)


def judge_placements(image: Image, known: Mapping[str, int]) -> Problems:
    """Where buffers lie: inside their memories, and apart."""
    names: set[tuple[str, str]] = set()
    for at, buffer in enumerate(image.placements):
        place = ("place", at)
        what = f"buffer {backquote(buffer.buffer)}"
        yield from _judge_bytes(buffer, buffer.size, known, place, TCB29, what)
        if (buffer.buffer, buffer.memory) in names:
            yield Problem(TCB29, place, f"{what} has two places in `{buffer.memory}`")
        names.add((buffer.buffer, buffer.memory))
    spans = [(p.memory, p.address, p.size, p.buffer) for p in image.placements]
    yield from _judge_apart("place", spans, TCB29)


def judge_ports(image: Image, known: Mapping[str, int]) -> Problems:
    """What the host fills and reads."""
    names: set[str] = set()
    for at, port in enumerate(image.ports):
        place = ("port", at)
        what = f"port {backquote(port.name)}"
        yield from _judge_bytes(port, port.size, known, place, TCB30, what)
        if port.name in names:
            yield Problem(TCB30, place, f"{what} is there twice")
        names.add(port.name)
        yield from _judge_elements(port, place, what)
        yield from _judge_host_values(port, place, what)


def _judge_elements(port: Port, place: Place, what: str) -> Problems:
    if (port.elem is None) != (port.dims is None):
        message = f"{what} has an element type or dimensions, expected both or none"
        yield Problem(TCB30, place, message)
    elif port.elem is not None and port.dims is not None:
        element = ELEMENT_TYPES.get(port.elem)
        if element is None:
            help_ = did_you_mean(port.elem, ELEMENT_TYPES)
            message = f"{what} has the element type {backquote(port.elem)}, which there is not"
            yield Problem(TCB30, place, message, help_)
        elif min(port.dims, default=1) < 1:
            yield Problem(TCB30, place, f"{what} has a dimension below 1")
        elif bytes_needed(prod(port.dims), element) != port.size:
            size = bytes_needed(prod(port.dims), element)
            message = f"{what} has {port.size:,} bytes, its elements take {size:,}"
            yield Problem(TCB30, place, message)


def _judge_host_values(port: Port, place: Place, what: str) -> Problems:
    """The host's own values: of a type that there is, with a scale where they are quantised."""
    if port.host_elem is not None and port.host_elem not in GRAPH_TYPES:
        help_ = did_you_mean(port.host_elem, GRAPH_TYPES)
        message = f"{what} takes the element type {backquote(port.host_elem)}, which there is not"
        yield Problem(TCB30, place, message, help_)
    if (port.host_elem is not None or port.scales or port.zero_points) and port.elem is None:
        yield Problem(TCB30, place, f"{what} takes values of the host, and has no elements")
    elif (len(port.scales), len(port.zero_points)) not in ((0, 0), (1, 1)):
        counts = f"{len(port.scales)} scales and {len(port.zero_points)} zero points"
        yield Problem(TCB30, place, f"{what} has {counts}, expected one of each, or none")
    elif not all(isfinite(scale) and scale > 0 for scale in port.scales):
        yield Problem(TCB30, place, f"{what} has a scale that is no number above 0")
    elif port.scales and (
        port.host_elem is None or not _zero_point_fits(port, port.zero_points[0])
    ):
        message = f"{what} has a zero point that its elements do not have, or no values of the host"
        yield Problem(TCB30, place, message)


def _zero_point_fits(port: Port, zero: int) -> bool:
    element = ELEMENT_TYPES.get(port.elem or "")
    return element is None or (element.is_integer and element.lowest <= zero <= element.highest)


def judge_constants(image: Image, known: Mapping[str, int]) -> Problems:
    """Bytes that lie there before a run: inside their memories, and apart."""
    for at, constant in enumerate(image.constants):
        place = ("constant", at)
        size = len(constant.data)
        yield from _judge_bytes(constant, size, known, place, TCB31, "the constant")
    spans = [(c.memory, c.address, len(c.data), "a constant") for c in image.constants]
    yield from _judge_apart("constant", spans, TCB31)


def _judge_bytes(
    value: Placement | Port | Constant,
    size: int,
    known: Mapping[str, int],
    place: Place,
    rule: Rule,
    what: str,
) -> Problems:
    capacity = known.get(value.memory)
    if capacity is None:
        yield unknown_memory(value.memory, known, place)
    elif value.address < 0 or size < 0 or value.address + size > capacity:
        end = value.address + size
        message = f"{what} takes bytes {value.address:,} to {end:,} of `{value.memory}`, "
        yield Problem(rule, place, f"{message}which has {capacity:,}")


def _judge_apart(
    statement: str, spans: Sequence[tuple[str, int, int, str]], rule: Rule
) -> Problems:
    filled = [at for at, span in enumerate(spans) if span[2] > 0]
    order = sorted(filled, key=lambda at: spans[at][:2])
    for before, behind in pairwise(order):
        memory, address, size, name = spans[before]
        if memory == spans[behind][0] and address + size > spans[behind][1]:
            message = (
                f"{backquote(spans[behind][3])} shares bytes of `{memory}` with {backquote(name)}"
            )
            yield Problem(rule, (statement, behind), message)


def judge_origins(image: Image) -> Problems:
    """Origins in the order of positions, each once."""
    for at, (before, origin) in enumerate(pairwise(image.origins), 1):
        if origin.position <= before.position:
            message = f"the origin of position {origin.position:,} stands behind that of "
            yield Problem(TCB37, ("origin", at), f"{message}{before.position:,}")
