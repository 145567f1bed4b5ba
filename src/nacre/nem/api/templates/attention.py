"""Attention of one head in f16, in tiles of queries: scores, softmax, values."""

from __future__ import annotations

from nacre.nem.api.templates.setting import Setting, power_of_two

_F16_BYTES = 2
_WIDTH = 64
_RING = 2

_TEXT = """\
# {name}: O = softmax(Q x transpose(K)) x V in f16, one head, a tile of queries at a time.
#
# Rows of scores are whole: a tile has a score for every key, so softmax needs no second pass. The
# host gives Q already multiplied by 1 / sqrt(D).
{engine_remark}{directive}

program {name}:

# Sized for {memory:,} bytes of memory: the smaller of L1 and L2.
const D = {width}  # elements of a query, a key and a value
const L = {keys}  # keys and values; K, its transpose and V take a quarter of the memory at most
const TiM = {rows}  # queries of a tile; two tiles, mostly scores, take a half of the memory at most
const T = {tiles}  # tiles: Q and O have T * TiM rows
const ring = {ring}  # slots for tiles, and tiles in flight

const elem_bytes = 2  # f16
const tileQ_bytes = TiM * D * elem_bytes
const tileS_bytes = TiM * L * elem_bytes
const K_bytes = L * D * elem_bytes

# The host fills Q, K and V before the program runs and reads O after it.
buffer Q_DDR : DDR (size=T * tileQ_bytes, align=64)
buffer K_DDR : DDR (size=K_bytes, align=64)
buffer V_DDR : DDR (size=K_bytes, align=64)
buffer O_DDR : DDR (size=T * tileQ_bytes, align=64)

# On the way in and out, L2 holds as many tiles as are in flight.
buffer Q_L2 : L2 (size=ring * tileQ_bytes, align=64)
buffer K_L2 : L2 (size=K_bytes, align=64)
buffer V_L2 : L2 (size=K_bytes, align=64)
buffer O_L2 : L2 (size=ring * tileQ_bytes, align=64)

# Scores never leave L1.
buffer Q_L1 : {l1} (size=ring * tileQ_bytes, align=64)
buffer K_L1 : {l1} (size=K_bytes, align=64)
buffer KT_L1 : {l1} (size=K_bytes, align=64)
buffer V_L1 : {l1} (size=K_bytes, align=64)
buffer S_L1 : {l1} (size=ring * tileS_bytes, align=64)
buffer O_L1 : {l1} (size=ring * tileQ_bytes, align=64)

let TileQ = elem=f16, shape=[TiM, D], layout=MK
let TileS = elem=f16, shape=[TiM, L], layout=MN

let K_l1 = region(K_L1, 0, K_bytes) elem=f16, shape=[L, D], layout=NK
let KT_l1 = region(KT_L1, 0, K_bytes) elem=f16, shape=[D, L], layout=KN
let V_l1 = region(V_L1, 0, K_bytes) elem=f16, shape=[L, D], layout=KN

# A product has no transposed form, so the keys are transposed, once for all tiles.
tK = transfer.async(dst=region(K_L2, 0, K_bytes), src=region(K_DDR, 0, K_bytes))
tL = transfer.async(dst=K_l1, src=region(K_L2, 0, K_bytes), deps=[tK])
tT = transpose.async in K_l1 out KT_l1 deps=[tL] perm=[1, 0]
tV = transfer.async(dst=region(V_L2, 0, K_bytes), src=region(V_DDR, 0, K_bytes))
tW = transfer.async(dst=V_l1, src=region(V_L2, 0, K_bytes), deps=[tV])
wait(tT, tW)

# Iteration i uses slot i mod ring, and starts when iteration i - ring is complete: no slot has two
# users at a time.
loop i in [0..T - 1] @max_in_flight(ring):
    let slot = i mod ring
    let Q_l2 = region(Q_L2, slot * tileQ_bytes, tileQ_bytes) type=TileQ
    let Q_l1 = region(Q_L1, slot * tileQ_bytes, tileQ_bytes) type=TileQ
    let S_l1 = region(S_L1, slot * tileS_bytes, tileS_bytes) type=TileS
    let O_l1 = region(O_L1, slot * tileQ_bytes, tileQ_bytes) type=TileQ
    let O_l2 = region(O_L2, slot * tileQ_bytes, tileQ_bytes) type=TileQ

    tD = transfer.async(dst=Q_l2, src=region(Q_DDR, i * tileQ_bytes, tileQ_bytes))
    tQ = transfer.async(dst=Q_l1, src=Q_l2, deps=[tD])

    # Scores of every query with every key, then shares of each key, then the mean of the values.
    tS = matmul.async in Q_l1, KT_l1 out S_l1 deps=[tQ] accum_type=f32
    tP = softmax.async in S_l1 out S_l1 deps=[tS] axis=1
    tO = matmul.async in S_l1, V_l1 out O_l1 deps=[tP] accum_type=f32

    tR = store.async(dst=O_l2, src=O_l1, deps=[tO])
    tY = transfer.async(dst=region(O_DDR, i * tileQ_bytes, tileQ_bytes), src=O_l2, deps=[tR])
endloop
"""


def write(setting: Setting) -> str:
    """The program's text."""
    share = setting.memory_bytes // 4
    keys = power_of_two(share // (3 * _WIDTH * _F16_BYTES))
    row_bytes = (2 * _WIDTH + keys) * _F16_BYTES
    return _TEXT.format(
        name=setting.name,
        directive=setting.directive,
        engine_remark=setting.engine_remark,
        l1=setting.l1,
        memory=setting.memory_bytes,
        width=_WIDTH,
        keys=keys,
        rows=power_of_two(2 * share // (_RING * row_bytes)),
        tiles=4,
        ring=_RING,
    )
