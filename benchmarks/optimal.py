"""How far plans of small random graphs are from the fastest that there is: `python -m benchmarks.optimal`."""

from __future__ import annotations
import argparse, time, traceback
from statistics import median
from nacre.compile.options import Options
from nacre.compile.target import target_of
from tests.compile.optimal.graphs import random_graph
from tests.compile.optimal.search import compare
from tests.compile.optimal.tile_choices import UnsupportedGraphError

def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0); p.add_argument("--count", type=int, default=300)
    p.add_argument("--seconds", type=float, default=20); p.add_argument("--device", default="tests/compile/optimal/npm_small.nem")
    a = p.parse_args()
    t = target_of(a.device)
    ratios = []
    for seed in range(a.seed, a.seed + a.count):
        at = time.process_time()
        try:
            c = compare(random_graph(seed), t, Options(t.device), a.seconds)
        except UnsupportedGraphError as e:
            print(seed, "unsupported", e, flush=True); continue
        print(seed, "ours", c.ours, "tasks", c.our_tasks, "best", c.best, "bound", c.bound, "proven" if c.is_proven else "open", "timed", c.timed, f"{c.ratio:.3f}", "alternatives", c.alternatives, f"{time.process_time()-at:.1f}s", flush=True)
        if c.is_proven: ratios.append(c.ratio)
    print(len(ratios), "proven: median", median(ratios), "worst", max(ratios))
main()
