"""The programs that the tests of the API drive, and what they must compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

# The names that the interpreter's specification uses: X_pp_i, Y_tile_i, tX, tW, tC, tR.
PIPELINE = """program matmul_example:

buffer X_DDR : DDR (size=4096, align=64)
buffer W_DDR : DDR (size=512, align=64)
buffer Y_DDR : DDR (size=4096, align=64)
buffer X_L2 : L2 (size=4096, align=64)
buffer W_L2 : L2 (size=512, align=64)
buffer X_L1 : L1 (size=1024, align=64)
buffer W_L1 : L1 (size=512, align=64)
buffer Y_L1 : L1 (size=1024, align=64)

let W_l1 = region(W_L1, 0, 512) elem=f16, shape=[16, 16], layout=KN

tL = transfer.async(dst=region(X_L2, 0, 4096), src=region(X_DDR, 0, 4096))
tV = transfer.async(dst=region(W_L2, 0, 512), src=region(W_DDR, 0, 512))
tW = transfer.async(dst=W_l1, src=region(W_L2, 0, 512), deps=[tV])
wait(tL, tW)

loop i in [0..7] @max_in_flight(2):
    let X_pp_i = region(X_L1, (i mod 2) * 512, 512) elem=f16, shape=[16, 16], layout=MK
    let Y_pp_i = region(Y_L1, (i mod 2) * 512, 512) elem=f16, shape=[16, 16], layout=MN
    let Y_tile_i = region(Y_DDR, i * 512, 512) elem=f16, shape=[16, 16], layout=MN @materialized
    tX = transfer.async(dst=X_pp_i, src=region(X_L2, i * 512, 512))
    tC = gemm.async in X_pp_i, W_l1 out Y_pp_i deps=[tX] accum_type=f32
    tR = relu.async in Y_pp_i out Y_pp_i deps=[tC]
    tS = transfer.async(dst=Y_tile_i, src=Y_pp_i, deps=[tR])
endloop
"""
STEPS_BEFORE_THE_LOOP = 4  # three transfers and a wait
STEPS = STEPS_BEFORE_THE_LOOP + 8 * 4

NESTED = """
buffer A : L2 (size=96)
buffer B : L1 (size=96)
loop i in [0..1]:
    loop j in [0..2] @max_in_flight(2):
        let P_i_j = region(B, i * 48 + j * 16, 16) elem=i8, shape=[16], layout=C
        tX = transfer.async(dst=P_i_j, src=region(A, i * 48 + j * 16, 16))
        tN = neg.async in P_i_j out P_i_j deps=[tX]
    endloop
    tQ = transfer.async(dst=region(A, i * 48, 48), src=region(B, i * 48, 48))
endloop
"""


def tiles(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Small integers as f16: eight tiles of X, and W. Their products are exact."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 9, size=(8, 16, 16)).astype(np.float16)
    w = rng.integers(-4, 5, size=(16, 16)).astype(np.float16)
    return x, w


def expected(x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the pipeline must leave in Y_DDR."""
    exact = np.einsum("tmk,kn->tmn", x.astype(np.float64), w.astype(np.float64))
    return np.asarray(np.maximum(exact, 0), np.float16)


def write_program(folder: Path, text: str = PIPELINE, name: str = "program.nem") -> str:
    """A program in a file; its path as people write it."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
