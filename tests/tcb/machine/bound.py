"""Programs of NEM as images, and both run on the same bytes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.run.sessions.session import Session
from nacre.tcb.image import Image
from nacre.tcb.machine.run import run_image
from neminterp import NemInterpreter
from tests.nem.run.programs import stored

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.nem"))
DEVICE = "npm_lite"  # for programs that name none

Contents = Mapping[str, bytes]


def bound(program: LoadedProgram) -> Image:
    """A program as an image for its device."""
    return bind_plan(
        program.plan, program.name, program.device, BindOptions(ddr_bytes=1 << 24)
    ).image


def loaded(text: str, device: str | None = DEVICE) -> LoadedProgram:
    """A program from a text."""
    return NemInterpreter(device=device).load_string(text)


@cache
def example(path: Path) -> LoadedProgram:
    """A program from a file."""
    return NemInterpreter().load(path)


def random_contents(program: LoadedProgram, seed: int) -> Contents:
    """Something for every buffer."""
    rng = random.Random(seed)
    return {b.name: rng.randbytes(b.size or 0) for b in program.plan.program.buffers}


def nem_session(program: LoadedProgram, inputs: Contents) -> Session:
    """What NEM's machine leaves."""
    interpreter = NemInterpreter(device=program.device)
    result = interpreter.run(program, dict(inputs))
    assert result.status == "completed", result.diagnostics
    assert result.session is not None
    return result.session


def require_same_bytes(program: LoadedProgram, inputs: Contents, seeds: range) -> None:
    """Every buffer has the bytes of NEM's run, in the order of the program and in others."""
    expected = stored(nem_session(program, inputs))
    image = bound(program)
    for seed in (None, *seeds):
        result = run_image(image, inputs, seed=seed)
        assert result.status == "completed", result.diagnostics
        found = {name: result.read(name) for name in expected}
        assert found == expected, (seed, result.order)
