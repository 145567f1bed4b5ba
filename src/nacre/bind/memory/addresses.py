"""Physical addresses: where every buffer lies in its memory."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.bind.rules import BND03
from nacre.nem.model.program import Program
from nacre.tcb.image import Machine, Placement


def place_buffers(program: Program, machine: Machine) -> dict[int, Placement]:
    """Buffers one after the other in the order of their declarations, by their index.

    InputError where a memory has no room for them.
    """
    sizes = dict(machine.memories)
    ends: dict[str, int] = {}
    found: dict[int, Placement] = {}
    findings: list[Diagnostic] = []
    for buffer in program.buffers:
        address = -(-ends.get(buffer.memory, 0) // buffer.align) * buffer.align
        size = buffer.size or 0
        ends[buffer.memory] = address + size
        found[buffer.index] = Placement(buffer.name, buffer.memory, address, size)
        most = sizes[buffer.memory.partition("[")[0]]
        if address + size > most:
            where = f"bytes {address} to {address + size - 1} of {buffer.memory}"
            message = f"buffer `{buffer.name}` would take {where}, which has {most}"
            findings.append(BND03.at(program.span(buffer.node), message))
    if findings:
        raise InputError(findings)
    return found
