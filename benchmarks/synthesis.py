"""The search for networks beside random search: hypervolumes at equal evaluations, paired by seed.

Both draw from one grammar (that of the families that come along) under one budget, train every
network for the same steps on the digits and time it on one device; a network that both meet is
evaluated once. The hypervolume is what lies below the errors of guessing and below a number of
cycles, and is dominated.

    python benchmarks/synthesis.py                    five seeds, which takes a quarter of an hour
    python benchmarks/synthesis.py --seeds 2 3 --out part.json
    python benchmarks/synthesis.py --read part.json other.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import nacre
from nacre.nac.run.model import NacModel
from nacre.nac.synthesis.evaluation import Evaluator
from nacre.nac.synthesis.examples import EXAMPLES
from nacre.nac.synthesis.families import families_corpus
from nacre.nac.synthesis.pareto import Point, front, hypervolume
from nacre.nac.synthesis.search import SearchResult, random_search, search
from nacre.nac.synthesis.short_training import Course
from nacre.nac.synthesis.synthesise import request_of

DEVICE, DATA = "npm4k", "digits"
PARAMETERS, MACS = 20_000, 300_000
STEPS, EVALUATIONS = 40, 80
SEEDS = (0, 1, 2, 3, 4)
CYCLES = 1000.0  # of the reference
GAIN, WINS = 1.10, 4  # at least so much more, in so many of five seeds

Points = list[Point]
Pair = dict[str, Any]


def cycles(model: NacModel) -> int | None:
    found = nacre.estimate(model, DEVICE)
    return found.cycles if found.fits else None


def measure(seed: int, evaluator: Evaluator, reference: Point) -> Pair:
    """Both searches from one seed."""
    grammar, data = families_corpus().grammar, evaluator.examples
    request = request_of(grammar, data.shape, PARAMETERS, MACS, data.classes)
    start = process_time()
    evolved = search(grammar, request, evaluator, EVALUATIONS, seed, reference=reference)
    middle = process_time()
    drawn = random_search(grammar, request, evaluator, EVALUATIONS, seed)
    return {
        "seed": seed,
        "reference": list(reference),
        "search": points_of(evolved),
        "random": points_of(drawn),
        "seconds": [middle - start, process_time() - middle],
    }


def points_of(result: SearchResult) -> Points:
    return [one.score.point for one in result.found]


def report(pairs: Sequence[Pair]) -> bool:
    """Print both sides of each seed; whether the search wins often enough by enough."""
    (error, most) = pairs[0]["reference"]
    print(f"{EVALUATIONS} evaluations each, {STEPS} steps on {DATA}, {DEVICE},"
          f" at most {PARAMETERS:,} parameters and {MACS:,} MACs")  # fmt: skip
    print(f"hypervolume below {error:.0%} errors and {most:,.0f} cycles, as a share of all of it\n")
    print(" seed    search    random      more   least error     at most 300 cycles   seconds")
    gains = []
    for pair in pairs:
        volumes = [
            hypervolume(as_points(pair[side]), (error, most)) for side in ("search", "random")
        ]
        gains.append(volumes[0] / volumes[1])
        shares = [volume / (error * most) for volume in volumes]
        errors = [min(p[0] for p in pair[side]) for side in ("search", "random")]
        quick = [quick_error(as_points(pair[side])) for side in ("search", "random")]
        print(f"{pair['seed']:5}{shares[0]:10.1%}{shares[1]:10.1%}{gains[-1] - 1:10.1%}"
              f"{errors[0]:8.1%}{errors[1]:7.1%}{quick[0]:14.1%}{quick[1]:8.1%}"
              f"{pair['seconds'][0]:9.0f}{pair['seconds'][1]:5.0f}")  # fmt: skip
    wins = sum(gain >= GAIN for gain in gains)
    print(f"\nmore by {mean(gains) - 1:.1%} in the mean; at least {GAIN - 1:.0%} more in {wins} of"
          f" {len(gains)} seeds")  # fmt: skip
    return wins >= min(WINS, len(gains))


def as_points(pairs: Sequence[Sequence[float]]) -> Points:
    return [(x, y) for x, y in pairs]


def quick_error(points: Points) -> float:
    """The least error within 300 cycles."""
    best = [points[at][0] for at in front(points) if points[at][1] <= 300]
    return min(best, default=1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--out", type=Path, help="write what was measured, to be read together")
    parser.add_argument("--read", type=Path, nargs="*", help="report what was measured before")
    given = parser.parse_args(arguments)
    if given.read:
        pairs = [pair for path in given.read for pair in json.loads(path.read_text())]
        return 0 if report(sorted(pairs, key=lambda pair: pair["seed"])) else 1
    data = EXAMPLES[DATA]()
    evaluator = Evaluator(data, cycles, Course(steps=STEPS))
    reference = (1.0 - 1.0 / data.classes, CYCLES)
    pairs = [measure(seed, evaluator, reference) for seed in given.seeds]
    if given.out is not None:
        given.out.write_text(json.dumps(pairs))
    return 0 if report(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
