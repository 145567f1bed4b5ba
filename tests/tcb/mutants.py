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
from time import process_time

from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.judge import judge
from nacre.tcb.text.disassembly import disassemble
from tests.tcb.test_binary import SEEDS, mutated, outcome

SECONDS = 1.0


def main() -> None:
    """Try them, and say what became of them; a file that breaks a promise is kept."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--count", type=int, default=10_000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    draw = random.Random(options.seed)
    files = [encode(seed()) for seed in SEEDS]
    outcomes: Counter[str] = Counter()
    longest = 0.0
    for number in range(options.count):
        data = mutated(draw, draw.choice(files))
        begun = process_time()
        try:
            found = outcome(data)
            if found == "exact":
                disassemble(decode(data))
                found = "sound" if not judge(decode(data)) else "judged"
        except BaseException:
            Path(f"mutant-{options.seed}-{number}.tcb").write_bytes(data)
            raise
        taken = process_time() - begun
        longest = max(longest, taken)
        outcomes["slow" if taken > SECONDS else found] += 1
    told = [f"{options.count:,} files, the longest took {longest:.2f} s"]
    told += [f"{found:6} {count:9,}" for found, count in outcomes.most_common()]
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
