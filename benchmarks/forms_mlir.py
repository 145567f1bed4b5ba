"""Programs as modules of MLIR: our import and export beside xDSL's parser and printer alone.

Both work on the same module. Import is from its text to the canonical text of NEM, verified;
export from that text to the module's. xDSL's share is to parse that text, and to print the module
that it parsed. Every figure is processor time, the best of some runs in a fresh process.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import nacre
from nacre import nem
from nacre.core.builder import Builder

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 2.0  # times xDSL's own
RUNS = 3


def _example() -> str:
    return (ROOT / "examples/conv2d_relu.nem").read_text(encoding="utf-8")


def _device() -> str:
    return (ROOT / "src/nacre/nem/spec/nem_baseline_1.0.nem").read_text(encoding="utf-8")


def _plan(layers: int) -> str:
    """The plan of some products in a row."""
    import numpy as np

    random = np.random.default_rng(1)
    build = Builder()
    value = build.input("x", "f32", (256, 256))
    for _ in range(layers):
        weights = build.constant(random.normal(size=(256, 256)).astype(np.float32) / 16)
        value = build.add(
            "Relu", build.add("Linear", value, weights, build.constant(np.zeros(256, np.float32)))
        )
    return nacre.compile(build.module(value), "npm_lite").program


PROGRAMS: dict[str, Callable[[], str]] = {
    "example": _example,
    "families and a device": _device,
    "plan of 4 layers": lambda: _plan(4),
    "plan of 40 layers": lambda: _plan(40),
}


def measure(name: str) -> dict[str, float]:
    """Seconds of each stage."""
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    from nacre.nem.mlir.dialect import nem_context

    program = nem.format(PROGRAMS[name]())
    text = nem.to_mlir(program, "p.nem")
    module = Parser(nem_context(), text).parse_module()

    def show() -> None:
        printer = Printer(io.StringIO(), print_generic_format=True, print_debuginfo=True)
        printer.print_op(module)

    return {
        "operations": sum(1 for _ in module.walk()),
        "xDSL parse": _best(lambda: Parser(nem_context(), text).parse_module()),
        "import": _best(lambda: nem.from_mlir(text)),
        "xDSL print": _best(show),
        "export": _best(lambda: nem.to_mlir(program, "p.nem")),
    }


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        before = process_time()
        work()
        times.append(process_time() - before)
    return min(times)


def measure_apart(name: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """One row a program; ratios are ours to xDSL's."""
    yield (
        f"{'program':22} {'operations':>10} {'xDSL parse':>11} {'import':>9} {'ratio':>6}"
        f" {'xDSL print':>11} {'export':>9} {'ratio':>6}"
    )
    for name, row in found.items():
        parse, read = row["xDSL parse"], row["import"]
        shown, written = row["xDSL print"], row["export"]
        yield (
            f"{name:22} {row['operations']:>10,.0f} {parse:>9.3f} s {read:>7.3f} s"
            f" {read / parse:>6.2f} {shown:>9.3f} s {written:>7.3f} s {written / shown:>6.2f}"
        )


def main() -> None:
    options = _arguments()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    if importlib.util.find_spec("xdsl") is None:
        print("xDSL: not installed")
        return
    names = list(PROGRAMS)[:-1] if options.quick else list(PROGRAMS)
    found = {name: measure_apart(name) for name in names}
    print("\n".join(table(found)))
    worst = max(
        max(row["import"] / row["xDSL parse"], row["export"] / row["xDSL print"])
        for row in found.values()
    )
    print(f"\nat most {worst:.2f} times xDSL's own; the limit is {LIMIT:.0f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MLIR import and export beside xDSL's own.")
    parser.add_argument("--quick", action="store_true", help="leave out the largest program")
    parser.add_argument("--measure", choices=PROGRAMS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
