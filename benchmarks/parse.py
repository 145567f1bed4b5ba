"""Parsing speed: nacre on a NEM program and xDSL on a generic MLIR module, side by side.

Every figure comes from a process of its own, one after the other, so that neither the heap nor
the peak memory of one measurement colours the next. Times are processor times, the best of some
runs: other work on the machine disturbs them less than it does the clock on the wall.

    python benchmarks/parse.py            1,000, 10,000 and 100,000 lines; takes some minutes
    python benchmarks/parse.py --quick    leaves out the longest
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from nacre.nem.syntax.parser import ParseResult

SIZES = (1_000, 10_000, 100_000)
ENOUGH_SECONDS = 6.0  # a measurement is repeated until all its runs have taken this long
MOST_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process measured."""

    lines: int
    characters: int
    statements: int  # MLIR: operations
    seconds: float
    peak_bytes: int  # growth of the peak resident size during the first run

    @property
    def lines_per_second(self) -> float:
        """Lines of text a second."""
        return self.lines / self.seconds

    @property
    def statements_per_second(self) -> float:
        """Statements or operations a second."""
        return self.statements / self.seconds


# The two inputs. Both are valid, both are made of repeated blocks with fresh names.

_NEM_HEAD = """\
include "nem_reference.nem"
device nem_reference
program generated:

const TiM = 8
const K = 16
const N = 8
const elem_bytes = 2
const a_bytes = TiM * K * elem_bytes
const b_bytes = K * N * elem_bytes
const y_bytes = TiM * N * elem_bytes
"""

_NEM_LAYER = """
# Layer $n: a product, an activation and a normalisation, four tiles of rows.
const T$n = 2 * 2
const bias${n}_bytes = N * elem_bytes
buffer A${n}_DDR : DDR (size=T$n * a_bytes, align=64)
buffer B${n}_L2 : L2 (size=b_bytes, align=64)
buffer C${n}_L2 : L2 (size=bias${n}_bytes)
buffer A${n}_L2 : L2 (size=T$n * a_bytes, align=64)
buffer Y${n}_L2 : L2 (size=T$n * y_bytes, align=64)
buffer A${n}_L1 : L1[$engine] (size=2 * a_bytes, align=64)  # two slots
buffer B${n}_L1 : L1[$engine] (size=b_bytes, align=64)
buffer Y${n}_L1 : L1[$engine] (size=2 * y_bytes, align=64)

B${n}_l1 = region(B${n}_L1, 0, b_bytes) elem=f16, shape=[K, N], layout=KN
let C${n}_l2 = region(C${n}_L2, 0, bias${n}_bytes) elem=f16, shape=[N], layout=N @readonly
tD$n = transfer.async(dst=region(A${n}_L2, 0, 4 * a_bytes), src=region(A${n}_DDR, 0, 4 * a_bytes))
tB$n = transfer.async(
         dst=B${n}_l1,
         src=region(B${n}_L2, 0, b_bytes)
             elem=f16, shape=[K, N], layout=KN
      )
wait(tB$n, tD$n)
loop i in [0..T$n - 1] @max_in_flight(2):
  let A_tile_i = region(A${n}_L2, i * a_bytes, a_bytes)
                 elem=f16, shape=[TiM, K], layout=MK
  let Y_tile_i = region(Y${n}_L2, i * y_bytes, y_bytes)
                 elem=f16, shape=[TiM, N], layout=MN
                 @materialized
  let A_pp_i = region(A${n}_L1, (i mod 2) * a_bytes, a_bytes) elem=f16, shape=[TiM, K], layout=MK
  let Y_pp_i = region(Y${n}_L1, (i mod 2) * y_bytes, y_bytes) elem=f16, shape=[TiM, N], layout=MN
  tA = transfer.async(dst=A_pp_i, src=A_tile_i)
  # The product waits for its tile; the weights have been waited for above.
  tG = gemm.async
         in  A_pp_i, B${n}_l1, C${n}_l2
         out Y_pp_i
         deps=[tA]
         accum_type=f32
         @resource(NMU[0])
  tR = gelu.async in Y_pp_i out Y_pp_i deps=[tG] @resource(CSTL[i mod 2])
  tN = rmsnorm.async in Y_pp_i out Y_pp_i @materialized deps=[tR] axis=1 epsilon=1.0e-5
  tS = store.async(dst=Y_tile_i, src=Y_pp_i, deps=[tN])
  wait(tS)
endloop
"""

_MLIR_HEAD = '"builtin.module"() ({\n'

_MLIR_FUNCTION = """\
"func.func"() <{function_type = (i32, i32) -> i32, sym_name = "layer$n"}> ({
^bb0(%a: i32, %b: i32):
  %c0 = "arith.constant"() <{value = 64 : i32}> : () -> i32
  %c1 = "arith.constant"() <{value = 16 : i32}> : () -> i32
  %0 = "arith.addi"(%a, %b) : (i32, i32) -> i32
  %1 = "arith.muli"(%0, %c0) : (i32, i32) -> i32
  %2 = "arith.addi"(%1, %c1) <{overflowFlags = #arith.overflow<nsw>}> : (i32, i32) -> i32
  %3 = "arith.cmpi"(%2, %c0) <{predicate = 2 : i64}> : (i32, i32) -> i1
  %4 = "arith.select"(%3, %2, %0) : (i1, i32, i32) -> i32
  %5 = "arith.remsi"(%4, %c1) : (i32, i32) -> i32
  %6 = "arith.muli"(%5, %c0) : (i32, i32) -> i32
  %7 = "arith.addi"(%6, %4) : (i32, i32) -> i32
  %8 = "func.call"(%7, %1) <{callee = @extern}> : (i32, i32) -> i32
  %9 = "arith.subi"(%8, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
  "func.return"(%9) : (i32) -> ()
}) {layout = "MN", shape = [8 : i64, 16 : i64], in_flight = 2 : i64} : () -> ()
"""

_MLIR_TAIL = """\
"func.func"() <{function_type = (i32, i32) -> i32, sym_name = "extern"}> ({
}) {sym_visibility = "private"} : () -> ()
}) : () -> ()
"""


def nem_text(lines: int) -> str:
    """A program of about so many lines: buffers, regions, tasks on one line and on several."""
    return _repeated(_NEM_HEAD, _NEM_LAYER, "", lines)


def mlir_text(lines: int) -> str:
    """A module of about so many lines, in the generic form, which needs no custom syntax."""
    return _repeated(_MLIR_HEAD, _MLIR_FUNCTION, _MLIR_TAIL, lines)


def _repeated(head: str, block: str, tail: str, lines: int) -> str:
    fixed, each = head.count("\n") + tail.count("\n"), block.count("\n")
    count = max(1, round((lines - fixed) / each))
    template = Template(block)
    return head + "".join(template.substitute(n=n, engine=n % 4) for n in range(count)) + tail


# What is measured. Imports stand inside, so that a process loads only what it measures.


def parse_nem(text: str) -> ParseResult:
    from nacre.base.source import Source
    from nacre.nem.syntax.parser import parse

    return parse(Source("generated.nem", text))


def format_nem(text: str) -> str:
    from nacre.base.source import Source
    from nacre.nem.syntax.formatter import format_source

    return format_source(Source("generated.nem", text))


def check_nem(text: str) -> None:
    from nacre.base.source import Source
    from nacre.nem.checks.engine import CheckOptions, check_source

    found = check_source(Source("generated.nem", text), CheckOptions(strict=True)).diagnostics
    if found:
        raise ValueError(f"the generated program is wrong: {found[0]}")


def parse_mlir(text: str) -> ModuleOp:
    from xdsl.context import Context
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.parser import Parser

    context = Context()
    for dialect in (Builtin, Arith, Func):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def nem_statements(text: str) -> int:
    """Statements of a program, those inside its loops too."""
    from nacre.nem.syntax.ast import Loop

    body = parse_nem(text).document.body
    return len(body) + sum(len(s.body) for s in body if isinstance(s, Loop))


def mlir_operations(text: str) -> int:
    """Operations of a module; one stands on each line that is not a label or a closing brace."""
    return sum('"(' in line for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Job:
    """What is timed, on which text."""

    text: Callable[[int], str]
    work: Callable[[str], object]
    statements: Callable[[str], int]


JOBS: Mapping[str, Job] = {
    "nacre parse": Job(nem_text, parse_nem, nem_statements),
    "nacre format": Job(nem_text, format_nem, nem_statements),
    "nacre check": Job(nem_text, check_nem, nem_statements),
    "xDSL parse": Job(mlir_text, parse_mlir, mlir_operations),
}


def measure(name: str, lines: int) -> Measured:
    """Run a job in this process: on a small text first, to load code, then on the real one."""
    job = JOBS[name]
    job.work(job.text(200))
    text = job.text(lines)
    before = _peak_bytes()
    times = [_timed(job.work, text)]
    peak = _peak_bytes() - before
    while sum(times) < ENOUGH_SECONDS and len(times) < MOST_RUNS:
        times.append(_timed(job.work, text))
    return Measured(
        lines=text.count("\n"),
        characters=len(text),
        statements=job.statements(text),
        seconds=min(times),
        peak_bytes=peak,
    )


def _timed(work: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure_apart(job: str, lines: int) -> Measured:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--measure", job, "--lines", f"{lines}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout))


# The report.


def growth_table(job: str, found: Sequence[Measured]) -> Iterator[str]:
    """One row a size; the exponent says how time grew with the lines since the row above."""
    yield f"{job}"
    yield f"  {'lines':>9} {'seconds':>9} {'lines/s':>10} {'exponent':>9} {'bytes/line':>11}"
    exponents = [""] + [f"{_exponent(a, b):.2f}" for a, b in pairwise(found)]
    for row, exponent in zip(found, exponents, strict=True):
        yield (
            f"  {row.lines:>9,} {row.seconds:>9.3f} {row.lines_per_second:>10,.0f}"
            f" {exponent:>9} {row.peak_bytes / row.lines:>11,.0f}"
        )


def _exponent(a: Measured, b: Measured) -> float:
    return math.log(b.seconds / a.seconds) / math.log(b.lines / a.lines)


def comparison(largest: Mapping[str, Measured]) -> Iterator[str]:
    """The two parsers at the largest size, and what else nacre does with the same program."""
    theirs = largest["xDSL parse"]
    yield f"the largest size: {theirs.lines:,} lines"
    yield f"  {'':14} {'lines/s':>10} {'statements/s':>13} {'MB/s':>6} {'characters/line':>16}"
    for job, row in largest.items():
        yield (
            f"  {job:14} {row.lines_per_second:>10,.0f} {row.statements_per_second:>13,.0f}"
            f" {_characters(row) / 1e6:>6.2f} {row.characters / row.lines:>16.1f}"
        )
    for job in ("nacre parse", "nacre check"):
        row = largest[job]
        statements = row.statements_per_second / theirs.statements_per_second
        yield (
            f"  {job} / xDSL parse: {row.lines_per_second / theirs.lines_per_second:.1f} in lines,"
            f" {statements:.1f} in statements, {_characters(row) / _characters(theirs):.1f} in"
            " characters"
        )


def _characters(row: Measured) -> float:
    return row.characters / row.seconds


def main() -> None:
    options = _arguments()
    if options.measure:
        print(json.dumps(asdict(measure(options.measure, options.lines))))
        return
    sizes = SIZES[:-1] if options.quick else SIZES
    # All jobs of one size after each other, so that a busy spell meets them alike.
    found: dict[str, list[Measured]] = {job: [] for job in JOBS}
    for lines in sizes:
        for job in JOBS:
            found[job].append(measure_apart(job, lines))
    print("seconds: processor time, best run; bytes/line: growth of the peak resident size\n")
    for job, rows in found.items():
        print("\n".join(growth_table(job, rows)))
    print()
    print("\n".join(comparison({job: rows[-1] for job, rows in found.items()})))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Parsing speed of nacre and of xDSL.")
    parser.add_argument("--quick", action="store_true", help="leave out 100,000 lines")
    parser.add_argument("--measure", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=int, default=SIZES[0], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
