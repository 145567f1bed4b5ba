"""Images broken on purpose: `python -m tests.tcbcheck.mutants --count 10000 --seed 1`.

The verifier refuses exactly those that can go wrong, by the verdict of trying, and with its code.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from nacre.bind.pipeline import bind_plan
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.tcb.text.disassembly import disassemble
from nacre.tcbcheck.verify import verify_image
from tests.bind.programs import PROGRAMS, checked
from tests.bind.test_order import pairs
from tests.nem.plan.mutants import pipeline
from tests.nem.run.programs import text
from tests.tcb.machine.bound import loaded
from tests.tcbcheck.mutations import ORDER_MUTATIONS, move_operand, mutate
from tests.tcbcheck.naive_verdict import is_right, verdict

MOST_INSTANCES = 30
OF_AN_IMAGE = 10  # mutants

Case = tuple[Plan, Device]


def cases(rng: random.Random) -> Iterator[Case]:
    """Small programs, without end: those of the tests, and pipelines at random."""
    while True:
        if rng.random() < 0.1:
            yield checked(PROGRAMS[rng.choice(("flat", "loop"))])
            continue
        program = loaded(text(pipeline(rng)))
        if program.plan.instances <= MOST_INSTANCES:
            yield program.plan, program.device


def try_mutants(count: int, seed: int) -> Counter[str]:
    """So many mutants; the text of one that is judged wrongly is kept."""
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for plan, device in cases(rng):
        image = bind_plan(plan, "p", device).image
        assert verify_image(plan, image) == []
        ordered = set(pairs(plan))
        for _ in range(OF_AN_IMAGE):
            mutation = rng.choice((*ORDER_MUTATIONS, move_operand))
            mutant = mutate(image, mutation, rng)
            if mutant is None:
                continue
            found = {finding.code for finding in verify_image(plan, mutant)}
            expected = {"TCB82"} if mutation is move_operand else verdict(mutant, ordered)
            number = sum(outcomes.values())
            if not is_right(found, expected):
                Path(f"mutant-{seed}-{number}.tcbs").write_text(disassemble(mutant))
                raise AssertionError(f"{mutation.__name__}: {found}, expected {expected}")
            outcomes["caught" if expected else "harmless"] += 1
            if number + 1 == count:
                return outcomes
    return outcomes


def main() -> None:
    """Try them, and say what became of them."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--count", type=int, default=1000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    begun = process_time()
    outcomes = try_mutants(options.count, options.seed)
    told = [f"{options.count:,} mutants in {process_time() - begun:.0f} s, all judged rightly"]
    told += [f"{count:7,} {found}" for found, count in outcomes.most_common()]
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
