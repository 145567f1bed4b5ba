"""Files that are nearly right: `python -m tests.nac.mutants --count 20000 --seed 1`.

Each is refused with a code, or is the file of what it says: written again it has the same bytes, it
can be loaded, listed and run, with its plan if it has one. Two seconds of processor time are too
long. A file that breaks a promise is kept.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.nac.format.file import examine, to_bytes
from nacre.nac.mep.model_machine import machine_of
from nacre.nac.program.lift import lift
from nacre.nac.program.lower import lower
from nacre.nac.run.model import NacModel, load
from nacre.nac.verify import verify
from tests.damaged_files import try_files
from tests.nac.files import small
from tests.nac.format.test_hostile import attributes
from tests.nac.mep.carrying import carrying
from tests.nac.program.test_choices import two_layers

SECONDS = 2.0  # of processor time for one file
MAX_BYTES, MAX_WORK, MAX_STEPS = 64 * 2**20, 2**24, 5_000
RUN_SHARE = 0.2  # of the sound files, how many are run
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
CODES = ("NAC", "MOD")  # of the file, and of the module that it is lifted to


def residual() -> bytes:
    """A file whose schedule holds a value past the next one."""
    made = Builder()
    x = made.input("x", "f32", (2, 2))
    weights = made.constant(np.ones((2, 2), np.float32))
    total = made.add("BinOp", made.add("Linear", x, weights), x, op="Add")
    return to_bytes(lower(made.module(made.add("Relu", total))))


def picking() -> bytes:
    """A file with rows by index in a branch, which would fail where the other one is meant."""
    made = Builder()
    x, rows = made.input("x", "f32", (2, 3)), made.input("rows", "i64", (2,))
    total = made.add("Sum", x, axes=(0, 1), keepdims=False)
    yes = made.add("Compare", total, made.constant(np.float32(0)), op="Gt")
    one = made.add("GatherAxis", x, made.add("BinOp", rows, rows, op="Mul"), axis=0)
    return to_bytes(lower(made.module(made.add("Where", yes, one, made.add("Neg", x)))))


@cache
def seeds() -> tuple[bytes, ...]:
    """Files with every section between them."""
    choosing = to_bytes(lower(two_layers())), picking()
    return (to_bytes(small()), carrying(), attributes(), residual(), *choosing)


# Changes


def _flip(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _replace(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] = draw.randrange(256)


def _number(draw: random.Random, data: bytearray) -> None:
    """A number of 1, 2, 4 or 8 bytes that is large, small or near what stood there."""
    layout = draw.choice("BHIQ")
    size = struct.calcsize(f"<{layout}")
    if len(data) < size:
        return
    at = draw.randrange(len(data) - size + 1)
    (old,) = struct.unpack_from(f"<{layout}", data, at)
    number = draw.choice((*NUMBERS, old + 1, old - 1, 2 * old, len(data)))
    struct.pack_into(f"<{layout}", data, at, number % (1 << 8 * size))


def _cut(draw: random.Random, data: bytearray) -> None:
    at = draw.randrange(len(data))
    del data[at : at + draw.choice((1, 2, 4, 16))]


def _insert(draw: random.Random, data: bytearray) -> None:
    at = draw.randrange(len(data) + 1)
    data[at:at] = draw.randbytes(draw.choice((1, 2, 4, 16)))


def _copy(draw: random.Random, data: bytearray) -> None:
    """A stretch of the file in the place of another."""
    size = min(draw.choice((1, 4, 8, 32)), len(data))
    source, target = (draw.randrange(len(data) - size + 1) for _ in range(2))
    data[target : target + size] = data[source : source + size]


def _truncate(draw: random.Random, data: bytearray) -> None:
    del data[draw.randrange(len(data)) :]


CHANGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    _flip, _flip, _replace, _number, _number, _number, _cut, _insert, _copy, _truncate,
)  # fmt: skip


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A file with a few changes."""
    made = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if made:
            draw.choice(CHANGES)(draw, made)
    return bytes(made)


# What becomes of them


def require_codes(found: list[Diagnostic] | tuple[Diagnostic, ...]) -> None:
    """That every finding has a code of NAC's, or of what a file carries."""
    assert all(one.code.startswith(CODES) for one in found), [str(one) for one in found]


def fate(data: bytes, *, is_run: bool) -> str:
    """The code of a refusal, or how far a sound file comes."""
    found = verify(data)
    require_codes(found)
    if has_errors(found):
        return next(one.code for one in found if one.severity == "error")
    examined = examine(data)
    assert examined.file is not None
    assert to_bytes(examined.file) == data
    if not is_run:
        return "sound"
    try:
        model = load(data, max_bytes=MAX_BYTES, max_work=MAX_WORK)
        run(model)
        if all(one.dtype is not None and one.shape is not None for one in model.inputs):
            lift(model)
    except InputError as error:
        require_codes(error.diagnostics)
        return f"run: {error.diagnostics[0].code}"
    return "runs"


def run(model: NacModel) -> None:
    """Run a model on ones, and the plan that it carries."""
    shapes = {one: (2, 3) if one.shape is None else one.shape for one in model.inputs}
    given: Mapping[str, Any] = {
        one.name: np.ones(shape, GRAPH_TYPES[one.dtype or "f32"].dtype)
        for one, shape in shapes.items()
        if int(np.prod(shape)) < 1 << 16
    }
    model.run(given)
    if model.file.plan is not None:
        machine_of(model, max_steps=MAX_STEPS, max_bytes=MAX_BYTES).run(["abc", 3, 8, -1])


def outcome(draw: random.Random, data: bytes) -> str:
    """What becomes of a file that is run now and then."""
    return fate(data, is_run=draw.random() < RUN_SHARE)


if __name__ == "__main__":
    try_files(__doc__, ".nac", lambda draw: mutated(draw, draw.choice(seeds())), outcome, SECONDS)
