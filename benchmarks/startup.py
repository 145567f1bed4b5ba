"""Start-up: the time from a command to its first useful word, for nacre and for its peers.

Each command runs five times as a process of this environment, in rounds, so that a busy spell
meets all of them. Shown are the best time on the wall and the best processor time; ratios are of
processor times, which other work on the machine disturbs less.

    python benchmarks/startup.py
"""

from __future__ import annotations

import compileall
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nacre

RUNS = 5
BIN = Path(sys.executable).parent

# A short program of the usual kind: constants, buffers, a pipelined loop.
_HEAD = """\
include "npm_lite.nem"
device npm_lite
program short:

const T = 4
const tile_bytes = 64 * 64
buffer X_L2 : L2 (size=T * tile_bytes, align=64)
buffer Y_L2 : L2 (size=T * tile_bytes, align=64)
buffer X_L1 : L1 (size=2 * tile_bytes, align=64)
"""
_LOOP = """
loop i in [0..T - 1] @max_in_flight(2):
    let X_tile_i = region(X_L2, i * tile_bytes, tile_bytes) elem=i8, shape=[64, 64], layout=MN
    let Y_tile_i = region(Y_L2, i * tile_bytes, tile_bytes) elem=i8, shape=[64, 64], layout=MN
    let X_pp_i = region(X_L1, (i mod 2) * tile_bytes, tile_bytes)
        elem=i8, shape=[64, 64], layout=MN
    tX = transfer.async(dst=X_pp_i, src=X_tile_i)
    tR = relu.async in X_pp_i out X_pp_i deps=[tX]
    tS = store.async(dst=Y_tile_i, src=X_pp_i, deps=[tR])
endloop
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one process took, in seconds."""

    wall: float
    processor: float


def run_once(command: Sequence[str]) -> Run | None:
    """Run a program of this environment; None where it is not installed."""
    if not (BIN / command[0]).exists():
        return None
    wall, processor = time.perf_counter(), _processor_of_children()
    subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Run(time.perf_counter() - wall, _processor_of_children() - processor)


def _processor_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(measured: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """A row a command; ratios are to the first."""
    base = min(run.processor for run in next(iter(measured.values())))
    yield f"{'best of 5':28} {'wall':>10} {'processor':>10} {'ratio':>6}"
    for name, runs in measured.items():
        if not runs:
            yield f"{name:28} not installed"
            continue
        wall = min(run.wall for run in runs)
        processor = min(run.processor for run in runs)
        yield (
            f"{name:28} {wall * 1000:>7.0f} ms {processor * 1000:>7.0f} ms {processor / base:>6.1f}"
        )


def compile_sources() -> None:
    """Write bytecode as an installer does; a checkout may lack it, and peers come with theirs."""
    compileall.compile_dir(str(Path(nacre.__file__).parent), quiet=1)


def main() -> None:
    compile_sources()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "short.nem"
        text = _HEAD + _LOOP * 5
        program.write_text(text)
        lines = text.count("\n")
        commands = {
            "nacre --version": ["nacre", "--version"],
            f"nacre check ({lines} lines)": ["nacre", "check", str(program)],
            "xdsl-opt --help": ["xdsl-opt", "--help"],
            "vela --version": ["vela", "--version"],
        }
        measured: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                run = run_once(command)
                measured[name] += [run] if run is not None else []
    print("\n".join(table(measured)))


if __name__ == "__main__":
    main()
