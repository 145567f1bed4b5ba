"""Core IR at scale: our modules beside xDSL's of the same number of operations, and onnx-ir's.

Each tool and size has a process of its own, one after the other. Times are processor times, the
best of some runs. xDSL reads the generic form of `arith` on tensors; onnx-ir has no text form and
is only built.

    python benchmarks/core_scale.py            1,000, 10,000 and 100,000 operations
    python benchmarks/core_scale.py --quick    leaves out the largest
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

SIZES = (1_000, 10_000, 100_000)
ENOUGH_SECONDS = 3.0  # a stage is repeated until all its runs have taken this long
MOST_RUNS = 10
KINDS = ("Add", "Mul", "Sub", "Neg")
LANES = 64  # independent chains, each of a shape of its own: a model has tens of types, not one

Seconds = dict[str, float]  # by stage
Rows = dict[str, dict[int, Seconds]]  # by tool and size


def use(index: int) -> tuple[str, int, int]:
    """What an operation does, to the last value of its lane and to one further back."""
    row, lane = divmod(index, LANES)
    return KINDS[row % 4], index - LANES, max(lane, index - LANES * (1 + row % 7))


def width(index: int) -> int:
    """The second dimension of a value."""
    return 8 + index % LANES


# The same chains of additions, products, differences and signs for everyone.


def core_text(count: int) -> str:
    """A module of so many operations in our text form."""
    lines = [
        f'%{lane} = Input () {{name="x{lane}"}} : tensor<f32[4, {width(lane)}]>'
        for lane in range(LANES)
    ]
    for index in range(LANES, count):
        kind, last, other = use(index)
        text = f"Neg (%{last})" if kind == "Neg" else f"BinOp (%{last}, %{other}) {{op={kind}}}"
        lines.append(f"%{index} = {text} : tensor<f32[4, {width(index)}]>")
    results = ", ".join(f"%{index}" for index in range(count - LANES, count))
    return "\n".join([*lines, f"outputs: {results}", ""])


def mlir_text(count: int) -> str:
    """The same in MLIR's generic form."""
    tensors = [f"tensor<4x{width(lane)}xf32>" for lane in range(LANES)]
    results = range(count - LANES, count)
    types = f"({', '.join(tensors)}) -> ({', '.join(tensors[i % LANES] for i in results)})"
    lines = [
        '"builtin.module"() ({',
        f'"func.func"() <{{function_type = {types}, sym_name = "f"}}> ({{',
        f"^bb0({', '.join(f'%{lane}: {tensor}' for lane, tensor in enumerate(tensors))}):",
    ]
    for index in range(LANES, count):
        kind, last, other = use(index)
        tensor = tensors[index % LANES]
        if kind == "Neg":
            lines.append(f'%{index} = "arith.negf"(%{last}) : ({tensor}) -> {tensor}')
        else:
            name = f"arith.{kind.lower()}f"
            lines.append(
                f'%{index} = "{name}"(%{last}, %{other}) : ({tensor}, {tensor}) -> {tensor}'
            )
    values = ", ".join(f"%{i}" for i in results)
    given = ", ".join(tensors[i % LANES] for i in results)
    tail = [f'"func.return"({values}) : ({given}) -> ()', "}) : () -> ()", "}) : () -> ()", ""]
    return "\n".join(lines + tail)


# What is measured. Imports stand inside, so that a process loads only what it measures.


def measure_nacre(count: int) -> Seconds:
    from nacre.core import canonicalise, parse, print_module, verify

    text = core_text(count)
    module = parse(text)
    if verify(module) or print_module(module) != text:
        raise ValueError("the generated module is wrong")
    return {
        "parse": best(lambda: parse(text)),
        "verify": best(lambda: verify(module)),
        "print": best(lambda: print_module(module)),
        "canonicalise": best(lambda: canonicalise(module)),
    }


def measure_xdsl(count: int) -> Seconds:
    from io import StringIO

    from xdsl.context import Context
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin, ModuleOp
    from xdsl.dialects.func import Func
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    context = Context()
    for dialect in (Builtin, Arith, Func):
        context.load_dialect(dialect)
    text = mlir_text(count)

    Parser(context, mlir_text(LANES + 4)).parse_module()  # loads code
    made: list[ModuleOp] = []
    seconds = best(lambda: made.append(Parser(context, text).parse_module()))
    module = made[0]
    return {
        "parse": seconds,
        "verify": best(module.verify),
        "print": best(lambda: Printer(StringIO(), print_generic_format=True).print_op(module)),
    }


def measure_onnx_ir(count: int) -> Seconds:
    ir: Any = importlib.import_module("onnx_ir")  # may be missing, and has no types for us

    def build() -> None:
        type_ = ir.TensorType(ir.DataType.FLOAT)
        values = [
            ir.val(f"x{lane}", type=type_, shape=ir.Shape([4, width(lane)]))
            for lane in range(LANES)
        ]
        nodes = []
        for index in range(LANES, count):
            kind, last, other = use(index)
            used = [values[last]] if kind == "Neg" else [values[last], values[other]]
            nodes.append(ir.node(kind, used))
            values.append(nodes[-1].outputs[0])
        ir.Graph(values[:LANES], values[-LANES:], nodes=nodes, opset_imports={"": 20})

    return {"build": best(build)}


def best(work: Callable[[], object]) -> float:
    """The least processor time of some runs."""
    times: list[float] = []
    while sum(times) < ENOUGH_SECONDS and len(times) < MOST_RUNS:
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


TOOLS: Mapping[str, tuple[str, Callable[[int], Seconds]]] = {
    "nacre": ("nacre", measure_nacre),
    "xDSL": ("xdsl", measure_xdsl),
    "onnx-ir": ("onnx_ir", measure_onnx_ir),
}


def measure_apart(tool: str, count: int) -> Seconds:
    """The stages of a tool in a fresh process."""
    command = [sys.executable, __file__, "--measure", tool, "--count", f"{count}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: Seconds = json.loads(done.stdout)
    return found


# The report.


def growth_table(found: Rows) -> Iterator[str]:
    """One row a tool, stage and size; the exponent says how time grew since the row above."""
    yield f"{'tool':8} {'stage':13} {'operations':>10} {'seconds':>9} {'rate':>13} {'exponent':>9}"
    for tool, sizes in found.items():
        for stage in next(iter(sizes.values())):
            times = {count: seconds[stage] for count, seconds in sizes.items()}
            exponents = ["", *(f"{e:.2f}" for e in growth(list(times.items())))]
            for (count, seconds), exponent in zip(times.items(), exponents, strict=True):
                yield (
                    f"{tool:8} {stage:13} {count:>10,} {seconds:>9.4f}"
                    f" {count / seconds:>11,.0f}/s {exponent:>9}"
                ).rstrip()


def growth(times: Sequence[tuple[int, float]]) -> Iterator[float]:
    """The exponents between neighbouring sizes."""
    for (a, before), (b, after) in pairwise(times):
        yield math.log(after / before) / math.log(b / a)


def ratios(found: Rows) -> Iterator[str]:
    """How many times as fast ours is, stage by stage, at the largest size."""
    count = max(found["nacre"])
    ours = found["nacre"][count]
    for stage, theirs in found.get("xDSL", {}).get(count, {}).items():
        yield f"{stage} of {count:,} operations: {theirs / ours[stage]:.1f} times as fast as xDSL"
    if "onnx-ir" in found:
        ratio = found["onnx-ir"][count]["build"] / ours["parse"]
        yield f"parsing takes 1/{ratio:.1f} of the time in which onnx-ir builds the same graph"


def main() -> None:
    options = _arguments()
    if options.measure:
        print(json.dumps(TOOLS[options.measure][1](options.count)))
        return
    installed = [tool for tool, (name, _) in TOOLS.items() if importlib.util.find_spec(name)]
    found: Rows = {tool: {} for tool in installed}
    for count in SIZES[:-1] if options.quick else SIZES:
        for tool in installed:
            found[tool][count] = measure_apart(tool, count)
    print("\n".join([*growth_table(found), "", *ratios(found)]))
    for tool in TOOLS:
        if tool not in found:
            print(f"{tool}: not installed")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Core IR at scale, beside xDSL and onnx-ir.")
    parser.add_argument("--quick", action="store_true", help="leave out 100,000 operations")
    parser.add_argument("--measure", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=SIZES[0], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
