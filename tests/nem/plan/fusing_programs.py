"""A product, an elementwise task and a store, and what programs about fusing are made of."""

from __future__ import annotations

HEAD = """\
include "npm_lite.nem"
device npm_lite
program p:
buffer A_L1 : L1 (size=4096)
buffer B_L1 : L1 (size=8192)
buffer Y_L1 : L1 (size=8192)
buffer Z_L1 : L1 (size=8192)
buffer Y_L2 : L2 (size=8192)
let A = region(A_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MK
let B = region(B_L1, 0, 8192) elem=f16, shape=[64, 64], layout=KN
let Y = region(Y_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MN
let Z = region(Z_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MN
let Out = region(Y_L2, 0, 4096) elem=f16, shape=[32, 64], layout=MN
"""
GEMM = "tG = gemm.async in A, B out Y accum_type=f32\n"
RELU = "tR = relu.async in Y out Z deps=[tG]\n"
STORE = "tS = store.async(dst=Out, src=Z, deps=[tR])\n"
INPUTS = ("A_L1", "B_L1")  # that the host fills
