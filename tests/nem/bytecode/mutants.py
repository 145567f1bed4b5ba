"""Files that are nearly right: `python -m tests.nem.bytecode.mutants --count 1000000 --seed 1`.

Each is refused with a code, or is the file of what it says, whose every part stands somewhere and
which can be checked. A second of processor time is too long.
"""

from __future__ import annotations

import random
from pathlib import Path

from nacre.nem.bytecode.library import bytecode_source
from nacre.nem.bytecode.packing import pack
from tests.damaged_files import try_files
from tests.nem.bytecode.test_hostile import SEEDS, mutated, require_exact

ROOT = Path(__file__).resolve().parents[3]
FILES = ("examples/gemm_int4.nem", "examples/two_engines.nem", "examples/conv2d_maxpool.nem",
         "src/nacre/nem/spec/devices/npm_lite.nem")  # fmt: skip


def files() -> list[bytes]:
    """What is changed."""
    packed = [pack(text) for text in SEEDS]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in FILES]
    packed += [pack(text) for text in texts]
    packed += [pack(text.replace(", ", ",  ")) for text in texts]  # with places of their own
    return packed


def outcome(_draw: random.Random, data: bytes) -> str:
    """The code of a refusal, or `exact`."""
    if require_exact(data):
        return "exact"
    return bytecode_source(data, "f.nemb").parsed.diagnostics[0].code


if __name__ == "__main__":
    seeds = files()
    try_files(__doc__, ".nemb", lambda draw: mutated(draw, draw.choice(seeds)), outcome)
