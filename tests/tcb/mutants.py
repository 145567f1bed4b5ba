"""Files that are nearly right: `python -m tests.tcb.mutants --count 20000 --seed 1`.

Each is refused with a code, or is the file of what it says, which is judged then. A second of
processor time is too long.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter, process_time

from nacre.base.diagnostics import InputError
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.judge import judge
from nacre.tcb.text.disassembly import disassemble
from tests.tcb.test_binary import SEEDS, mutated, refusal

SECONDS = 1.0


def fate(data: bytes) -> str:
    """The code of a refusal, or whether an image is sound."""
    try:
        image = decode(data)
    except InputError as error:
        return refusal(error)
    assert encode(image) == data
    disassemble(image)
    return "judged" if judge(image) else "sound"


def processor_seconds(data: bytes) -> float:
    """What a file takes, asked only where the clock on the wall says that it may be long."""
    begun = process_time()
    fate(data)
    return process_time() - begun


def main() -> None:
    """Try them, and say what became of them; a file that breaks a promise is kept."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--count", type=int, default=10_000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    draw = random.Random(options.seed)
    files = [encode(seed()) for seed in SEEDS]
    outcomes: Counter[str] = Counter()
    started = process_time()
    for number in range(options.count):
        data = mutated(draw, draw.choice(files))
        begun = perf_counter()
        try:
            found = fate(data)
        except BaseException:
            Path(f"mutant-{options.seed}-{number}.tcb").write_bytes(data)
            raise
        is_long = perf_counter() - begun > SECONDS and processor_seconds(data) > SECONDS
        outcomes["slow" if is_long else found] += 1
    taken = process_time() - started
    told = [f"{options.count:,} files in {taken:.0f} s, {options.count / taken:,.0f} a second"]
    told += [f"{found:6} {count:9,}" for found, count in outcomes.most_common()]
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
