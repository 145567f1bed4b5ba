"""What running a program costs beside its arithmetic.

(a) Small tasks: 4 KB copies and additions, tasks per second. (b) Tiled gemm and convolution
against the same kernels called in a bare loop over plain arrays: the ratio is the price of memory
levels, poison, order and bounds. (c) The same pattern of copies in JAX Pallas' interpret mode.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# One thread: the machine calls one kernel at a time, and threads that wait would be measured too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Call, TensorType
from nacre.kernels.numbers.quantization import per_tensor
from nacre.kernels.registry import PRIMITIVES
from neminterp import NemInterpreter

Array = npt.NDArray[Any]
REPEATS = 5
check_scale = importlib.import_module("check_scale")  # beside this script


def small(count: int, elem: str) -> str:
    """Copies in, an addition, copies out, 4 KB each, in two slots."""
    size = 4096 * 8 // ELEMENT_TYPES[elem].bits
    return f"""
buffer X : L2 (size=262144)
buffer Y : L2 (size=262144)
buffer A : L1 (size=8192)
buffer B : L1 (size=8192)
loop i in [0..{count // 3} - 1] @max_in_flight(2):
    let a = region(A, (i mod 2) * 4096, 4096) elem={elem}, shape=[{size}], layout=C
    let b = region(B, (i mod 2) * 4096, 4096) elem={elem}, shape=[{size}], layout=C
    tX = transfer.async(dst=a, src=region(X, (i mod 64) * 4096, 4096))
    tA = add.async in a, a out b deps=[tX]
    tY = transfer.sync(dst=region(Y, (i mod 2) * 4096, 4096), src=b, deps=[tA])
endloop
"""


@dataclass(frozen=True)
class Tiled:
    """A program that brings tiles in, computes and takes results out."""

    name: str
    opcode: str
    elem: str
    tiles: int
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    attributes: dict[str, Any]
    layouts: tuple[str, str, str]

    @property
    def bits(self) -> int:
        """Of an element."""
        return ELEMENT_TYPES[self.elem].bits

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor."""
        return int(np.prod(shape)) * self.bits // 8

    def text(self) -> str:
        """The program."""
        x, w, y = (self.bytes_of(shape) for shape in (self.x, self.w, self.y))
        quant = ", quant=per_tensor(scale=0.01, zero_point=0)" if self.elem == "i8" else ""
        typed = zip((self.x, self.w, self.y), self.layouts, strict=True)
        shapes = [f"elem={self.elem}, shape={list(s)}, layout={name}{quant}" for s, name in typed]
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in self.attributes.items()}
        attributes = " ".join(f"{k}={v}" for k, v in given.items())
        return f"""
buffer X_D : DDR (size={self.tiles} * {x})
buffer W_D : DDR (size={w})
buffer Y_D : DDR (size={self.tiles} * {y})
buffer X_L : L1 (size=2 * {x})
buffer W_L : L1 (size={w})
buffer Y_L : L1 (size=2 * {y})
let W = region(W_L, 0, {w}) {shapes[1]}
tW = transfer.sync(dst=W, src=region(W_D, 0, {w}))
loop i in [0..{self.tiles} - 1] @max_in_flight(2):
    let X = region(X_L, (i mod 2) * {x}, {x}) {shapes[0]}
    let Y = region(Y_L, (i mod 2) * {y}, {y}) {shapes[2]}
    tX = transfer.async(dst=X, src=region(X_D, i * {x}, {x}))
    tC = {self.opcode}.async in X, W out Y deps=[tX] {attributes}
    tS = store.async(dst=region(Y_D, i * {y}, {y}), src=Y, deps=[tC])
endloop
"""

    def arrays(self) -> tuple[Array, Array]:
        """Tiles and weights."""
        rng = np.random.default_rng(1)
        shapes = (self.tiles, *self.x), self.w
        if self.elem == "i8":
            x, w = (rng.integers(-128, 128, s, np.int8) for s in shapes)
            return x, w
        x16, w16 = (rng.standard_normal(s).astype(np.float16) for s in shapes)
        return x16, w16

    def call(self) -> Call:
        """The same use of the kernel."""
        element = ELEMENT_TYPES[self.elem]
        quant = per_tensor(0.01) if self.elem == "i8" else None
        x, w, y = (TensorType(element, shape, quant) for shape in (self.x, self.w, self.y))
        return Call((x, w), (y,), self.attributes)


CONV = {"pads": (0, 0, 0, 0), "strides": (1, 1), "dilations": (1, 1), "groups": 1}
NHWC = ("NHWC", "HWIO", "NHWC")
TILED = [
    Tiled(f"gemm {elem}", "gemm", elem, 256, (64, 256), (256, 128), (64, 128),
          {"accum_type": accum}, ("MK", "KN", "MN"))
    for elem, accum in (("f16", "f32"), ("i8", "i32"))
] + [
    Tiled(f"conv2d {elem}", "conv2d", elem, 64, (1, 16, 16, 64), (3, 3, 64, 128),
          (1, 14, 14, 128), {**CONV, "accum_type": accum}, NHWC)
    for elem, accum in (("f16", "f32"), ("i8", "i32"))
]  # fmt: skip


def best(run: Callable[[], float]) -> float:
    """The least of several measurements."""
    return min(run() for _ in range(REPEATS))


def machine_seconds(text: str, inputs: dict[str, Array], device: str | None = None) -> float:
    """A run of a loaded and checked program whose inputs are in place, as in the bare loop."""
    interp = NemInterpreter(device)
    program = interp.load_string(text)
    interp.run(program, inputs)  # checks the program and fills DDR, which outlives the run

    def once() -> float:
        session = interp.start(program, {k: v for k, v in inputs.items() if k == "X"},
                               history_bytes=0)  # fmt: skip
        start = time.perf_counter()
        result = session.run()
        seconds = time.perf_counter() - start
        if result.status != "completed" or result.diagnostics:
            raise SystemExit(f"the benchmark's own program failed: {result.diagnostics}")
        return seconds

    return best(once)


def bare_seconds(tiled: Tiled) -> float:
    """The kernel in a loop, tiles copied in and out as the program does."""
    tiles, weights = tiled.arrays()
    run = PRIMITIVES[tiled.opcode].bind(tiled.call())
    x = np.empty(tiled.x, tiles.dtype)
    y = np.empty(tiled.y, tiles.dtype)
    results = np.empty((tiled.tiles, *tiled.y), tiles.dtype)

    def once() -> float:
        start = time.perf_counter()
        for i in range(tiled.tiles):
            np.copyto(x, tiles[i])
            run([x, weights], [y])
            np.copyto(results[i], y)
        return time.perf_counter() - start

    once()
    return best(once)


def small_tasks(count: int) -> None:
    """Print tasks per second."""
    print(f"{'small tasks':14} {'tasks':>9} {'rate':>14}")
    for elem in ("i8", "f16"):
        x = {"X": np.zeros(262144, np.uint8)}
        seconds = machine_seconds(small(count, elem), x)
        print(f"{'copy, add ' + elem:14} {count // 3 * 3:>9,} {count / seconds:>12,.0f}/s")


def against_bare_loop() -> None:
    """Print the price of the machine."""
    print(f"\n{'tiled':12} {'machine':>12} {'bare loop':>12} {'ratio':>7}")
    for tiled in TILED:
        tiles, weights = tiled.arrays()
        inputs = {"X_D": tiles, "W_D": weights}
        ours = machine_seconds(tiled.text(), inputs, "nem_reference")
        bare = bare_seconds(tiled)
        print(f"{tiled.name:12} {ours * 1e3:>9.2f} ms {bare * 1e3:>9.2f} ms {ours / bare:>6.2f}x")


def against_pallas(count: int) -> None:
    """Print DMAs per second of both, in one run."""
    x = {"X": np.zeros(count // 2 * 4096, np.uint8)}
    ours = count / machine_seconds(check_scale.copies(count), x)
    print(f"\n{'DMAs of 4 KB':14} {'nacre':>14} {'Pallas':>12} {'ratio':>8}")
    try:
        theirs = pallas_rate(256)
    except ImportError:
        print(f"{count:>14,} {ours:>12,.0f}/s   jax is not installed")
        return
    print(f"{count:>14,} {ours:>12,.0f}/s {theirs:>10,.0f}/s {ours / theirs:>7,.0f}x")


def pallas_rate(count: int) -> float:
    """DMAs per second of Pallas' interpret mode."""
    run = check_scale.pallas_copies(count, detect_races=False)
    run()  # the first call compiles
    return count / best(run)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes a tenth as large")
    factor = 10 if parser.parse_args().quick else 1
    small_tasks(300_000 // factor)
    against_bare_loop()
    against_pallas(40_000 // factor)


if __name__ == "__main__":
    main()
