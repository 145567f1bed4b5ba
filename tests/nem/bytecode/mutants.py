"""Files that are nearly right: `python -m tests.nem.bytecode.mutants --count 1000000 --seed 1`.

Each is refused with a code, or is the file of what it says, whose every part stands somewhere and
which can be checked. A second of processor time is too long.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from nacre.nem.bytecode.library import bytecode_source
from nacre.nem.bytecode.packing import pack
from tests.nem.bytecode.test_hostile import SEEDS, mutated, require_exact

ROOT = Path(__file__).resolve().parents[3]
FILES = ("examples/gemm_int4.nem", "examples/two_engines.nem", "examples/conv2d_maxpool.nem",
         "src/nacre/nem/spec/devices/npm_lite.nem")  # fmt: skip
SECONDS = 1.0


def main() -> None:
    """Try them, and say what became of them; a file that breaks a promise is kept."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--count", type=int, default=10_000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    draw = random.Random(options.seed)
    files = [pack(text) for text in SEEDS]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in FILES]
    files += [pack(text) for text in texts]
    files += [pack(text.replace(", ", ",  ")) for text in texts]  # with places of their own
    outcomes: Counter[str] = Counter()
    longest = 0.0
    for number in range(options.count):
        data = mutated(draw, draw.choice(files))
        begun = process_time()
        try:
            is_exact = require_exact(data)
        except BaseException:
            Path(f"mutant-{options.seed}-{number}.nemb").write_bytes(data)
            raise
        taken = process_time() - begun
        longest = max(longest, taken)
        found = "" if is_exact else bytecode_source(data, "f.nemb").parsed.diagnostics[0].code
        outcomes["slow" if taken > SECONDS else found or "exact"] += 1
    told = [f"{options.count:,} files, the longest took {longest:.2f} s"]
    told += [f"{outcome:6} {count:9,}" for outcome, count in outcomes.most_common()]
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
