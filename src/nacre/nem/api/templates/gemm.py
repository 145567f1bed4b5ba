"""A fully connected layer in f16: product, bias, ReLU."""

from __future__ import annotations

from nacre.nem.api.templates.setting import Setting, near_square, power_of_two

_F16_BYTES = 2
_RING = 2

_TEXT = """\
# {name}: Y = relu(A x B + C) in f16, a tile of rows at a time.
#
# A tile goes from DDR to L2 and on to L1, is multiplied there, passes ReLU, and goes back the same
# way. Two tiles are in flight: while one is multiplied, the next is loaded or the last one stored.
{engine_remark}{directive}

program {name}:

# Sized for {memory:,} bytes of memory: the smaller of L1 and L2.
const TiM = {rows}  # rows of a tile; two tiles of A and Y take a quarter of the memory at most
const K = {depth}  # columns of A, and rows of B
const N = {columns}  # columns of B and Y; B takes a quarter of the memory at most
const T = {tiles}  # tiles: A and Y have T * TiM rows
const ring = {ring}  # slots for tiles, and tiles in flight

const elem_bytes = 2  # f16
const tileA_bytes = TiM * K * elem_bytes
const tileY_bytes = TiM * N * elem_bytes
const B_bytes = K * N * elem_bytes
const C_bytes = N * elem_bytes

# The host fills A, B and C before the program runs and reads Y after it.
buffer A_DDR : DDR (size=T * tileA_bytes, align=64)
buffer B_DDR : DDR (size=B_bytes, align=64)
buffer C_DDR : DDR (size=C_bytes, align=64)
buffer Y_DDR : DDR (size=T * tileY_bytes, align=64)

# On the way in and out, L2 holds as many tiles as are in flight.
buffer A_L2 : L2 (size=ring * tileA_bytes, align=64)
buffer B_L2 : L2 (size=B_bytes, align=64)
buffer C_L2 : L2 (size=C_bytes, align=64)
buffer Y_L2 : L2 (size=ring * tileY_bytes, align=64)

buffer A_L1 : {l1} (size=ring * tileA_bytes, align=64)
buffer B_L1 : {l1} (size=B_bytes, align=64)
buffer Y_L1 : {l1} (size=ring * tileY_bytes, align=64)

let TileA = elem=f16, shape=[TiM, K], layout=MK
let TileY = elem=f16, shape=[TiM, N], layout=MN

let B_l1 = region(B_L1, 0, B_bytes) elem=f16, shape=[K, N], layout=KN
let C_l2 = region(C_L2, 0, C_bytes) elem=f16, shape=[N], layout=N  # small: it may stay in L2

# Every tile needs the same B and C, so both are loaded once, and the loop starts after them.
tB = transfer.async(dst=region(B_L2, 0, B_bytes), src=region(B_DDR, 0, B_bytes))
tW = transfer.async(dst=B_l1, src=region(B_L2, 0, B_bytes), deps=[tB])
tC = transfer.async(dst=C_l2, src=region(C_DDR, 0, C_bytes))
wait(tW, tC)

# Iteration i uses slot i mod ring, and starts when iteration i - ring is complete: no slot has two
# users at a time.
loop i in [0..T - 1] @max_in_flight(ring):
    let slot = i mod ring
    let A_l2 = region(A_L2, slot * tileA_bytes, tileA_bytes) type=TileA
    let A_l1 = region(A_L1, slot * tileA_bytes, tileA_bytes) type=TileA
    let Y_l1 = region(Y_L1, slot * tileY_bytes, tileY_bytes) type=TileY
    let Y_l2 = region(Y_L2, slot * tileY_bytes, tileY_bytes) type=TileY

    tD = transfer.async(dst=A_l2, src=region(A_DDR, i * tileA_bytes, tileA_bytes))
    tA = transfer.async(dst=A_l1, src=A_l2, deps=[tD])

    # Sums are kept in f32; the variant is gemm.float<f16>.with_bias, which every device has.
    tG = gemm.async in A_l1, B_l1, C_l2 out Y_l1 deps=[tA] accum_type=f32
    tR = relu.async in Y_l1 out Y_l1 deps=[tG]

    tS = store.async(dst=Y_l2, src=Y_l1, deps=[tR])
    tY = transfer.async(dst=region(Y_DDR, i * tileY_bytes, tileY_bytes), src=Y_l2, deps=[tS])
endloop
"""


def write(setting: Setting) -> str:
    """The program's text."""
    share = setting.memory_bytes // 4
    depth, columns = near_square(power_of_two(share // _F16_BYTES))
    row_bytes = (depth + columns) * _F16_BYTES
    return _TEXT.format(
        name=setting.name,
        directive=setting.directive,
        engine_remark=setting.engine_remark,
        l1=setting.l1,
        memory=setting.memory_bytes,
        rows=power_of_two(share // (_RING * row_bytes)),
        depth=depth,
        columns=columns,
        tiles=4,
        ring=_RING,
    )
