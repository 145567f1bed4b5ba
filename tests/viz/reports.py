"""Programs whose reports the tests of this folder look at."""

from __future__ import annotations

from pathlib import Path

from nacre.nem.run.timing.result import TimedResult
from tests.nem.run.timing.timed import timed, timed_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LITE = 'include "npm_lite.nem"\ndevice npm_lite\nprogram case:\n'

# Three loops around one another, the inner ones of different lengths, a wait and a sync task.
NESTED = (
    LITE
    + """
buffer M : L2 (size=4096)
buffer P : L1 (size=4096)
buffer Q : L1 (size=4096)
let X = region(P, 0, 1024) elem=f16, shape=[512], layout=C
let Y = region(Q, 0, 1024) elem=f16, shape=[512], layout=C
t0 = transfer.sync(dst=region(P, 0, 1024), src=region(M, 0, 1024))
loop h in [2..4]:
    tH = relu.async in X out Y deps=[t0]
    loop w in [h..5] @max_in_flight(2):
        tW = transfer.async(dst=region(P, 1024, 512), src=region(M, 1024, 512), deps=[tH])
        loop k in [0..w - 2] @max_in_flight(3):
            tK = store.async(dst=region(M, 2048, 512), src=region(P, 2048, 512), deps=[tW, t0])
        endloop
        wait(tW)
        tZ = relu.async in X out Y deps=[tW]
    endloop
endloop
"""
)

# Names and comments as a stranger might write them to harm who opens the page.
HOSTILE = (
    "# </script><script>alert(1)</script> <!-- <img src=x onerror=alert(2)> {{script}} \u202eabc\n"
    + LITE
    + "buffer A : L2 (size=64)\nbuffer B : L1 (size=64)\n"
    + "t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) # </SCRIPT > &amp;\n"
)
HOSTILE_TITLE = "</title><script>alert(3)</script>\" onload='alert(4)' {{data}}"

NOTHING = LITE + "buffer A : L2 (size=64)\n"

# One token: the second task takes none, for the first keeps its own until the third starts.
STUCK = (
    LITE
    + """
buffer A : L2 (size=64)
buffer B : L1 (size=256)
t0 = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
t1 = transfer.async(dst=region(B, 64, 64), src=region(A, 0, 64))
t2 = transfer.async(dst=region(B, 128, 64), src=region(A, 0, 64), deps=[t0, t1])
"""
)
ONE_TOKEN = {"SEQ": {"max_active_tokens": 1}}


def example(name: str) -> TimedResult:
    """An example of the project, timed."""
    return timed_file(EXAMPLES / f"{name}.nem")


def gemm(trips: int, *, compile: bool = False) -> TimedResult:
    """Five tasks an iteration, a ring of four slots, four iterations in flight."""
    return timed(gemm_text(trips), compile=compile)


def gemm_text(trips: int) -> str:
    """The same as a program."""
    return (
        LITE
        + f"""
buffer A_D : DDR (size={trips} * 4096)
buffer B_L2 : L2 (size=4096)
buffer Y_D : DDR (size={trips} * 4096)
buffer A_L1 : L1 (size=4 * 4096)
buffer B_L1 : L1 (size=4096)
buffer Y_L1 : L1 (size=4 * 4096)
let B = region(B_L1, 0, 2048) elem=f16, shape=[32, 32], layout=KN
tB = transfer.sync(dst=B, src=region(B_L2, 0, 2048))
loop i in [0..{trips} - 1] @max_in_flight(4):
    let X = region(A_L1, (i mod 4) * 4096, 4096) elem=f16, shape=[64, 32], layout=MK
    let Y = region(Y_L1, (i mod 4) * 4096, 4096) elem=f16, shape=[64, 32], layout=MN
    tX = transfer.async(dst=X, src=region(A_D, i * 4096, 4096))
    tG = gemm.async in X, B out Y deps=[tX] accum_type=f32
    tR = relu.async in Y out Y deps=[tG]
    tA = add.async in Y, Y out Y deps=[tR]
    tS = store.async(dst=region(Y_D, i * 4096, 4096), src=Y, deps=[tA])
endloop
"""
    )
