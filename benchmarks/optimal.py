"""How far plans of small random graphs are from the fastest that there are.

`python -m benchmarks.optimal --count 300` makes graphs from seeds; CP-SAT (the extra `optimal`)
chooses tiles over all that are legal, groups, tensors that stay in L1 and the start of every task.
What it finds is emitted, checked and timed like any plan. Ratios are ours over proven optima.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nacre.compile.options import Options
from nacre.compile.target import target_of
from tests.compile.optimal import graphs
from tests.compile.optimal.search import Comparison, compare
from tests.compile.optimal.tile_choices import UnsupportedGraphError

_DEVICE = str(Path(graphs.__file__).with_name("npm_small.nem"))


def main() -> None:
    """One line for each graph, then the distribution."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="graphs (30)")
    parser.add_argument("--seed", type=int, default=0, help="of the first (0)")
    parser.add_argument("--device", default=_DEVICE, help="a name or a file")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each, in CP-SAT's own (1)")
    given = parser.parse_args()
    print("seed   ours   best  bound  ratio  tasks", flush=True)
    found = list[Comparison]()
    for seed in range(given.seed, given.seed + given.count):
        target = target_of(given.device)
        try:
            one = compare(graphs.random_graph(seed), target, Options(target.device), given.seconds)
        except UnsupportedGraphError as problem:
            print(f"{seed:>4}  left out: {problem}", flush=True)
            continue
        found.append(one)
        print(f"{seed:>4}  {_row(one)}", flush=True)
    print(_summary(found))


def _row(one: Comparison) -> str:
    figures = f"{one.ours:>5}  {one.best:>5}  {one.bound:>5}  {one.ratio:>5.3f}  {one.our_tasks:>5}"
    return figures + ("" if one.is_proven else "  not proven")


def _summary(found: list[Comparison]) -> str:
    ratios = sorted(one.ratio for one in found if one.is_proven)
    if not ratios:
        return f"{len(found)} graphs, no optimum proven"
    limits = (1.0, 1.05, 1.1, 1.25)
    parts = [f"{sum(ratio <= limit for ratio in ratios)} within {limit}" for limit in limits]
    return (
        f"{len(found)} graphs, {len(ratios)} optima proven: ours over them {median(ratios):.3f} at "
        f"the median, {ratios[-1]:.3f} at worst; {', '.join(parts)}"
    )


if __name__ == "__main__":
    main()
