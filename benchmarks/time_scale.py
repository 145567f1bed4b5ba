"""How the timed machine scales, beside simpy modelling the same resources.

The program is a tiled gemm in a ring of four slots: five tasks an iteration on sDMA and DMA, NMU
and CSTL. simpy runs one process a task, with the same durations, the same units and the same
window. SCALE-Sim times a product of matrices of a common size; it needs a NumPy of its own, so
`SCALESIM_PYTHON` names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from nacre.base.loops.machine_code import is_available
from nacre.base.source import Source
from nacre.nem.model.resolver import resolve
from nacre.nem.model.target import builtin_device
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.timeline import Timeline, time_steps
from nacre.nem.syntax.parser import parse

WINDOW = 4
gemm = importlib.import_module("check_scale").gemm  # beside this script
DEVICE = builtin_device("nem_reference")


def plan_of(instances: int) -> Plan:
    """A gemm program expanded."""
    source = Source("scale.nem", gemm(instances))
    return build_plan(resolve(source, parse(source).document).program, 5_000_000)


def timed(plan: Plan, *, compile: bool) -> tuple[Timeline, float]:
    """From the plan to starts, ends and stalls."""
    start = time.perf_counter()
    timeline = time_steps(number_steps(plan), DEVICE, timing_profile(DEVICE), compile=compile)
    stalls = timeline.stalls.total.sum()
    seconds = time.perf_counter() - start
    if timeline.is_stuck or stalls < 0:
        raise SystemExit("the benchmark's own program did not finish")
    return timeline, seconds


def table(name: str, sizes: list[int], *, compile: bool) -> dict[int, float]:
    """Print the growth; seconds by size."""
    before: tuple[int, float] | None = None
    found: dict[int, float] = {}
    for size in sizes:
        plan = plan_of(size)
        seconds = min(timed(plan, compile=compile)[1] for _ in range(2))
        exponent = ""
        if before is not None:
            growth = math.log(seconds / before[1]) / math.log(plan.instances / before[0])
            exponent = f"{growth:8.2f}"
        rate = plan.instances / seconds
        print(f"{name:10} {plan.instances:>9,} {seconds:>9.3f} s {rate:>12,.0f}/s {exponent:>9}")
        before = (plan.instances, seconds)
        found[size] = seconds
    return found


def simpy_seconds(durations: list[int], trips: int) -> tuple[float, float]:
    """Seconds for the same program in simpy, and the cycles that it finds."""
    import simpy

    env = simpy.Environment()
    units = {
        "sDMA": simpy.Resource(env, DEVICE.count("sDMA")),
        "DMA": simpy.Resource(env, DEVICE.count("DMA")),
        "NMU": simpy.Resource(env, DEVICE.count("NMU")),
        "CSTL": simpy.Resource(env, DEVICE.count("CSTL")),
    }
    ways = [("sDMA", "DMA"), ("NMU",), ("CSTL",), ("CSTL",), ("CSTL",)]
    done = [env.event() for _ in range(trips)]

    def task(way: tuple[str, ...], duration: int) -> Generator[Any, Any, None]:
        requests = [units[name].request() for name in way]
        for request in requests:
            yield request
        yield env.timeout(duration)
        for name, request in zip(way, requests, strict=True):
            units[name].release(request)

    def iteration(i: int) -> Generator[Any, Any, None]:
        if i >= WINDOW:
            yield done[i - WINDOW]
        if i > 0:
            previous = done[i - 1]
        for way, duration in zip(ways, durations, strict=True):
            yield env.process(task(way, duration))
        if i > 0 and not previous.processed:
            yield previous
        done[i].succeed()

    for i in range(trips):
        env.process(iteration(i))
    start = time.perf_counter()
    env.run()
    return time.perf_counter() - start, env.now


def against_simpy(size: int, ours: dict[str, float]) -> None:
    """Print tasks per second of both, in one run."""
    try:
        import simpy  # noqa: F401
    except ImportError:
        print("\nsimpy is not installed: no comparison")
        return
    plan = plan_of(size)
    timeline, _ = timed(plan, compile=False)
    first = timeline.placement.duration[1:6].tolist()
    trips = size // 5
    seconds, cycles = simpy_seconds(first, trips)
    rate = plan.instances / seconds
    print(f"\n{'tasks':>9} {'simpy':>12} {'cycles':>12} {'ours':>12}")
    print(f"{plan.instances:>9,} {rate:>10,.0f}/s {cycles:>12,.0f} {timeline.cycles:>12,}")
    for name, own in ours.items():
        print(f"{name:10} is {seconds / own:5.1f} times as fast as simpy")


SCALESIM_CONFIG = """[general]
run_name = nacre
[architecture_presets]
ArrayHeight: 64
ArrayWidth: 64
IfmapSramSzkB: 512
FilterSramSzkB: 512
OfmapSramSzkB: 256
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Bandwidth: 32
Dataflow: ws
MemoryBanks: 1
ReadRequestBuffer: 64
WriteRequestBuffer: 64
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
SparseRep: ellpack_block
OptimizedMapping: false
BlockSize: 8
RandomNumberGeneratorSeed: 40
[run_presets]
InterfaceBandwidth: USER
UseRamulatorTrace: False
"""
SCALESIM_RUN = """
import contextlib, csv, glob, io, json, time
from scalesim.scale_sim import scalesim
with contextlib.redirect_stdout(io.StringIO()):
    sim = scalesim(save_disk_space=True, verbose=False, config="c.cfg", topology="t.csv",
                   layout="l.csv", input_type_gemm=True)
    start = time.perf_counter()
    sim.run_scale(top_path="out")
    seconds = time.perf_counter() - start
report = open(glob.glob("out/**/COMPUTE_REPORT.csv", recursive=True)[0]).read().splitlines()
print(json.dumps([seconds, int(report[1].split(",")[1])]))
"""


def against_scalesim(ours: float, cycles: int) -> None:
    """Print simulated cycles per second of both."""
    python = os.environ.get("SCALESIM_PYTHON")
    if python is None:
        print("\nSCALESIM_PYTHON is not set: no comparison with SCALE-Sim")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "c.cfg").write_text(SCALESIM_CONFIG)
        (place / "t.csv").write_text("Layer,M,N,K,\nG,64,128,256,\n")
        (place / "l.csv").write_text("layer" + ",x" * 20 + ",\nG" + ",1" * 20 + ",\n")
        done = subprocess.run([python, "-c", SCALESIM_RUN], cwd=place, capture_output=True,
                              text=True, check=True)  # fmt: skip
    seconds, theirs = json.loads(done.stdout.splitlines()[-1])
    print(f"\nSCALE-Sim: {theirs / seconds:,.0f} cycles/s on a 64 x 128 x 256 product; "
          f"nacre: {cycles / ours:,.0f} cycles/s")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes a tenth as large")
    factor = 10 if parser.parse_args().quick else 1
    sizes = [size // factor for size in (10_000, 100_000, 1_000_000)]
    print(f"{'loop':10} {'tasks':>9} {'seconds':>11} {'rate':>14} {'exponent':>9}")
    runs: list[tuple[str, bool]] = [("python", False)]
    if is_available():
        timed(plan_of(100), compile=True)  # compiles
        runs.append(("compiled", True))
    else:
        print("numba is not installed: the compiled loop is left out")
    middle = sizes[1]
    ours = {name: table(name, sizes, compile=jit)[middle] for name, jit in runs}
    against_simpy(middle, ours)
    timeline, _ = timed(plan_of(middle), compile=False)
    against_scalesim(ours["python"], timeline.cycles)


if __name__ == "__main__":
    main()
