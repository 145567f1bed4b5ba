"""How checking scales: task instances against seconds, and JAX Pallas' race detector beside it.

Three kinds of programs: a tiled gemm with a ring of slots, a convolution in three nested loops,
and a flat list of tasks without loops. The time is that of parsing, resolving, expanding and
proving the absence of races. Pallas runs the same pattern of copies in its interpret mode with
`detect_races=True`; it looks at executed paths only.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable

from nacre.base.source import Source
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.conflicts import find_conflicts
from nacre.nem.plan.plan import build_plan
from nacre.nem.syntax.parser import parse

GIB = 1024**3


def gemm(instances: int) -> str:
    """Five tasks an iteration, a ring of four slots, four iterations in flight."""
    trips = max(1, instances // 5)
    return f"""
buffer A_D : DDR (size={trips} * 4096)
buffer B_L2 : L2 (size=4096)
buffer Y_D : DDR (size={trips} * 2048)
buffer A_L1 : L1 (size=4 * 4096)
buffer B_L1 : L1 (size=4096)
buffer Y_L1 : L1 (size=4 * 2048)
let B = region(B_L1, 0, 4096) elem=f16, shape=[64, 32], layout=KN
tB = transfer.sync(dst=B, src=region(B_L2, 0, 4096))
loop i in [0..{trips} - 1] @max_in_flight(4):
    let X = region(A_L1, (i mod 4) * 4096, 4096) elem=f16, shape=[32, 64], layout=MK
    let Y = region(Y_L1, (i mod 4) * 2048, 2048) elem=f16, shape=[32, 32], layout=MN
    tX = transfer.async(dst=X, src=region(A_D, i * 4096, 4096))
    tG = gemm.async in X, B out Y deps=[tX] accum_type=f32
    tR = relu.async in Y out Y deps=[tG]
    tA = add.async in Y, Y out Y deps=[tR]
    tS = store.async(dst=region(Y_D, i * 2048, 2048), src=Y, deps=[tA])
endloop
"""


def conv(instances: int) -> str:
    """Three nested loops, windows of 1, 2 and 3, three tasks in the innermost body."""
    side = max(1, round((instances / 3) ** (1 / 3)))
    rows = max(1, instances // (3 * side * side))
    return f"""
const W = {side}
const K = {side}
buffer X_D : DDR (size={rows} * W * 1024)
buffer Y_D : DDR (size={rows} * W * K * 512)
buffer X_L1 : L1 (size=8192)
buffer Y_L1 : L1 (size=8192)
loop h in [0..{rows} - 1]:
    loop w in [0..W - 1] @max_in_flight(2):
        loop k in [0..K - 1] @max_in_flight(3):
            let slot = (w mod 2) * 4096 + (k mod 3) * 1024
            let X = region(X_L1, slot, 1024) elem=i8, shape=[1024], layout=C
            let Y = region(Y_L1, slot, 1024) elem=i8, shape=[1024], layout=C
            tX = transfer.async(dst=X, src=region(X_D, (h * W + w) * 1024, 1024))
            tR = relu.async in X out Y deps=[tX]
            let out = region(Y_D, ((h * W + w) * K + k) * 512, 512)
            tS = store.async(dst=out, src=region(Y_L1, slot, 512), deps=[tR])
        endloop
    endloop
endloop
"""


def flat(instances: int) -> str:
    """A list of tasks over sixteen slots, ordered by `deps` alone."""
    lines = ["buffer A : DDR (size=245760000)", "buffer B : L1 (size=65536)",
             "buffer C : DDR (size=245760000)"]  # fmt: skip
    for i in range(instances // 3):
        slot, tile = i % 16 * 4096, i % 60000 * 4096
        region = f"region(B, {slot}, 4096)"
        typed = f"{region} elem=i8, shape=[4096], layout=C"
        deps = [f"s{i - 16}"] * (i >= 16)
        again = f"s{i - 60000}"
        load = f", deps=[{', '.join(deps)}]" if deps else ""
        save = f"c{i}, {again}" if i >= 60000 else f"c{i}"
        lines += [
            f"t{i} = transfer.async(dst={region}, src=region(A, {tile}, 4096){load})",
            f"c{i} = relu.async in {typed} out {typed} deps=[t{i}]",
            f"s{i} = store.async(dst=region(C, {tile}, 4096), src={region}, deps=[{save}])",
        ]
    return "\n".join(lines) + "\n"


def copies(count: int) -> str:
    """`count` DMAs: in and out through two slots."""
    return f"""
buffer X : DDR (size={count // 2} * 4096)
buffer Y : DDR (size={count // 2} * 4096)
buffer B : L1 (size=8192)
loop i in [0..{count // 2} - 1] @max_in_flight(2):
    let slot = region(B, (i mod 2) * 4096, 4096)
    tI = transfer.async(dst=slot, src=region(X, i * 4096, 4096))
    tO = transfer.async(dst=region(Y, i * 4096, 4096), src=slot, deps=[tI])
endloop
"""


def measure(text: str) -> tuple[int, float]:
    """Task instances and the seconds from text to verdict."""
    start = time.perf_counter()
    source = Source("scale.nem", text)
    parsed = parse(source)
    plan = build_plan(resolve(source, parsed.document).program, 5_000_000)
    found = sum(1 for _ in find_conflicts(plan))
    seconds = time.perf_counter() - start
    if not parsed.is_valid or plan.problems or found:
        raise SystemExit("the benchmark's own program is not clean")
    return plan.instances, seconds


def table(name: str, make: Callable[[int], str], sizes: list[int]) -> None:
    """Print the growth of one kind of program."""
    before: tuple[int, float] | None = None
    for size in sizes:
        instances, seconds = min((measure(make(size)) for _ in range(2)), key=lambda m: m[1])
        exponent = ""
        if before is not None:
            growth = math.log(seconds / before[1]) / math.log(instances / before[0])
            exponent = f"{growth:8.2f}"
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
        print(f"{name:6} {instances:>9,} {seconds:>9.3f} s {instances / seconds:>12,.0f}/s "
              f"{memory:>6.2f} GiB {exponent:>9}")  # fmt: skip
        before = (instances, seconds)


def pallas_copies(count: int, *, detect_races: bool) -> Callable[[], float]:
    """The same copies in Pallas' interpret mode: a function that runs them and says how long."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(x, out, slots, semaphores):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        def body(i, carry):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            slot = jax.lax.rem(i, 2)
            load = pltpu.make_async_copy(x.at[i], slots.at[slot], semaphores.at[slot])
            load.start()
            load.wait()
            save = pltpu.make_async_copy(slots.at[slot], out.at[i], semaphores.at[slot])
            save.start()
            save.wait()
            return carry

        jax.lax.fori_loop(0, count // 2, body, 0)

    x = jnp.zeros((count // 2, 8, 128), jnp.float32)
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
        interpret=pltpu.InterpretParams(detect_races=detect_races),
    )

    def run() -> float:
        start = time.perf_counter()
        call(x).block_until_ready()
        return time.perf_counter() - start

    return run


def pallas_seconds(count: int) -> float:
    """How long Pallas takes with race detection, compilation included."""
    return pallas_copies(count, detect_races=True)()


def against_pallas(sizes: list[int]) -> None:
    """Print DMAs per second of both, in one run."""
    try:
        pallas_seconds(8)  # the first call compiles
    except ImportError:
        print("jax is not installed: no comparison with Pallas")
        return
    print(f"\n{'DMAs':>6} {'nacre':>14} {'Pallas':>12} {'ratio':>8}")
    for size in sizes:
        ours = min(measure(copies(size))[1] for _ in range(5))
        theirs = pallas_seconds(size)
        print(
            f"{size:>6} {size / ours:>12,.0f}/s {size / theirs:>10,.0f}/s {theirs / ours:>7,.0f}x"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes a tenth as large")
    factor = 10 if parser.parse_args().quick else 1
    print(
        f"{'kind':6} {'instances':>9} {'seconds':>11} {'rate':>14} {'memory':>10} {'exponent':>9}"
    )
    loops = [size // factor for size in (1_000, 10_000, 100_000, 1_000_000)]
    table("gemm", gemm, loops)
    table("conv", conv, loops)
    table("flat", flat, [size // factor for size in (1_000, 10_000, 100_000)])
    against_pallas([128, 256, 512, 1024])


if __name__ == "__main__":
    main()
