"""GGUF files that are nearly right: `python -m tests.llm.gguf.mutants --count 20000 --seed 1`.

Each is refused with a code and a byte, or is read, one of ten with every tensor of it. A second of
processor time is too long, and so is memory beyond a few times the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.gguf.formats import FORMATS
from tests.damaged_files import try_files
from tests.llm.gguf_bytes import ARRAY, TEXT, U32, Pair, Tensor, gguf_bytes, small_file

_DECODED = 0.1  # of the files that are read
# Numbers at which counts and offsets go wrong.
_POWERS = (8, 16, 30, 31, 32, 62, 63, 64)
TELLING = (0, 1, 2, 7, 9, 31, 33, *(n for p in _POWERS for n in ((1 << p) - 1, 1 << p)))


def of_every_type() -> bytes:
    """A file with a tensor of each type."""
    draw = np.random.default_rng(0)
    tensors = [
        Tensor(f.name, (f.elements, 2), f.number, draw.bytes(2 * f.size_bytes))
        for f in FORMATS.values()
    ]
    pairs = [Pair("general.alignment", U32, 64), Pair("tokens", ARRAY, ["a", "b"], TEXT)]
    return gguf_bytes(pairs, tensors, alignment=64)


def swapped() -> bytes:
    """A file of the other byte order."""
    return small_file(big=True)


def empty() -> bytes:
    """A file with a header and nothing else."""
    return gguf_bytes()


SEEDS: tuple[Callable[[], bytes], ...] = (small_file, swapped, of_every_type, empty)


def mutated(draw: random.Random, data: bytes) -> bytes:
    """The bytes with some changes."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        _mutate(draw, changed)
    return bytes(changed)


def _mutate(draw: random.Random, data: bytearray) -> None:
    at = draw.randrange(len(data) + 1)
    kind = draw.randrange(6)
    if kind == 0 and at < len(data):
        data[at] = draw.randrange(256)
    elif kind == 1 and at < len(data):
        data[at] ^= 1 << draw.randrange(8)
    elif kind == 2:
        size = draw.choice((4, 8))
        number = draw.choice(TELLING) & ((1 << 8 * size) - 1)
        data[at : at + size] = number.to_bytes(size, draw.choice(("little", "big")))
    elif kind == 3:
        del data[at : at + draw.choice((1, 2, 4, 8, 100, len(data)))]
    elif kind == 4:
        data[at:at] = draw.randbytes(draw.choice((1, 2, 4, 8, 40)))
    else:
        other = draw.randrange(len(data) + 1)
        data[at:at] = data[other : other + draw.choice((4, 8, 12, 30, 200))]


def fate(data: bytes, *, decodes: bool = True) -> str:
    """The code of a refusal, or `read`; whether tensors are decoded, too."""
    try:
        file = parse_gguf(data)
    except InputError as error:
        (finding,) = error.diagnostics
        assert finding.message.startswith("at byte ")
        return finding.code
    for name, row in file.tensors.items() if decodes else ():
        assert file.tensor(name).shape == row.shape
    return "read"


def outcome(draw: random.Random, data: bytes) -> str:
    """What becomes of a file whose tensors are decoded now and then."""
    return fate(data, decodes=draw.random() < _DECODED)


if __name__ == "__main__":
    files = [seed() for seed in SEEDS]
    try_files(__doc__, ".gguf", lambda draw: mutated(draw, draw.choice(files)), outcome)
