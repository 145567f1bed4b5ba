"""Files that are nearly right: `python -m tests.tcb.mutants --count 20000 --seed 1`.

Each is refused with a code, or is the file of what it says, which is judged then. A second of
processor time is too long.
"""

from __future__ import annotations

import random

from nacre.base.diagnostics import InputError
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.judge import judge
from nacre.tcb.text.disassembly import disassemble
from tests.damaged_files import try_files
from tests.tcb.test_binary import SEEDS, mutated, refusal


def outcome(_draw: random.Random, data: bytes) -> str:
    """The code of a refusal, or whether an image is sound."""
    try:
        image = decode(data)
    except InputError as error:
        return refusal(error)
    assert encode(image) == data
    disassemble(image)
    return "judged" if judge(image) else "sound"


if __name__ == "__main__":
    files = [encode(seed()) for seed in SEEDS]
    try_files(__doc__, ".tcb", lambda draw: mutated(draw, draw.choice(files)), outcome)
