"""Files that tests share: the fixtures, and small ones made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from nacre.nac.format.values import Command, Header, Instruction, NacFile, Tick
from nacre.nac.program.assembly import Assembler

FOLDER = Path(__file__).parent / "fixtures"
FIXTURES = tuple(sorted(FOLDER.glob("*.nac")))


def small() -> NacFile:
    """`y = relu(x w' + b)`, the sum of which chooses a sign; weights, constants, a schedule."""
    made = Assembler()
    x = made.input("x")
    w = made.parameter(made.weight("layer.weight", np.arange(6, dtype=np.float32).reshape(2, 3)))
    b = made.parameter(made.weight("layer.bias", np.array([0.5, -0.5], np.float32)))
    y = made.call("aten.linear.default", x, w, b, codes="TWB")
    z = made.call("aten.relu.default", y)
    total = made.call("aten.sum.dim_IntList", z, (1,), True, None)
    made.output(made.call("nac.add", z, total), total)
    ticks = (
        Tick(0, (Command(40, 1), Command(40, 2))),
        Tick(3, (Command(20, 0), Command(20, 1), Command(20, 2), Command(30, 4))),
        Tick(4, (Command(10, 4),)),
        Tick(6, (Command(20, 4),)),
    )
    return made.file(schedule=ticks)


def changed(file: NacFile, **sections: object) -> NacFile:
    """A file with other sections; the tag of OPS has a blank."""
    named = {("OPS " if tag == "OPS" else tag): value for tag, value in sections.items()}
    return NacFile(file.header, {**file.sections, **named}, file.gaps)


def headed(file: NacFile, **fields: object) -> NacFile:
    """A file with another header."""
    header: Header = replace(file.header, **fields)
    return NacFile(header, file.sections, file.gaps)


def patched(file: NacFile, index: int, **fields: object) -> NacFile:
    """A file in which one instruction is another."""
    instructions = list(file.instructions)
    made: Instruction = replace(instructions[index], **fields)
    instructions[index] = made
    return changed(file, OPS=tuple(instructions))
