"""A convolution in int8, in tiles of rows that overlap: with bias and ReLU."""

from __future__ import annotations

from nacre.nem.api.templates.setting import Setting, near_square, power_of_two

_WIDTH = 32
_KERNEL = 3
_RING = 2

_TEXT = """\
# {name}: Y = relu(conv2d(X, W) + B) in int8, a tile of rows at a time.
#
# A 3 x 3 window needs a row above and a row below. So a tile of ToH rows of Y needs ToH + 2 rows
# of X, and neighbouring tiles of X overlap by two rows, their halo, which are loaded twice. Columns
# are padded with zeros. Rows are not: Y has two rows fewer than X.
{engine_remark}{directive}

program {name}:

# Sized for {memory:,} bytes of memory: the smaller of L1 and L2.
const Kh = 3
const Kw = 3
const halo = Kh - 1
const W = {width}  # columns of X and Y
const Cin = {inputs}
const Cout = {outputs}  # the weights take a quarter of the memory at most
const ToH = {rows}  # rows of a tile of Y; two tiles of X and Y take a quarter of the memory at most
const TiH = ToH + halo  # rows of a tile of X
const T = {tiles}  # tiles: Y has T * ToH rows, X has T * ToH + halo
const ring = {ring}  # slots for tiles, and tiles in flight

const rowX_bytes = W * Cin
const tileX_bytes = TiH * rowX_bytes
const tileY_bytes = ToH * W * Cout
const W_bytes = Kh * Kw * Cin * Cout
const B_bytes = Cout * 4  # i32

# The host fills X, W and B before the program runs and reads Y after it.
buffer X_DDR : DDR (size=(T * ToH + halo) * rowX_bytes, align=64)
buffer W_DDR : DDR (size=W_bytes, align=64)
buffer B_DDR : DDR (size=B_bytes, align=64)
buffer Y_DDR : DDR (size=T * tileY_bytes, align=64)

# On the way in and out, L2 holds as many tiles as are in flight.
buffer X_L2 : L2 (size=ring * tileX_bytes, align=64)
buffer W_L2 : L2 (size=W_bytes, align=64)
buffer B_L2 : L2 (size=B_bytes, align=64)
buffer Y_L2 : L2 (size=ring * tileY_bytes, align=64)

buffer X_L1 : {l1} (size=ring * tileX_bytes, align=64)
buffer W_L1 : {l1} (size=W_bytes, align=64)
buffer Y_L1 : {l1} (size=ring * tileY_bytes, align=64)

# A stored integer q stands for scale * (q - zero_point). Put your network's figures here.
let qX = per_tensor(scale=0.02, zero_point=3)
let qW = per_tensor(scale=0.005, zero_point=0)
let qY = per_tensor(scale=0.125, zero_point=-10)
let TileX = elem=i8, shape=[1, TiH, W, Cin], layout=NHWC, quant=qX
let TileY = elem=i8, shape=[1, ToH, W, Cout], layout=NHWC, quant=qY

let W_l1 = region(W_L1, 0, W_bytes) elem=i8, shape=[Kh, Kw, Cin, Cout], layout=HWIO, quant=qW
let B_l2 = region(B_L2, 0, B_bytes) elem=i32, shape=[Cout], layout=C  # small: it may stay in L2

# Every tile needs the same weights, so they are loaded once, and the loop starts after them.
tD = transfer.async(dst=region(W_L2, 0, W_bytes), src=region(W_DDR, 0, W_bytes))
tW = transfer.async(dst=W_l1, src=region(W_L2, 0, W_bytes), deps=[tD])
tB = transfer.async(dst=B_l2, src=region(B_DDR, 0, B_bytes))
wait(tW, tB)

# Iteration i uses slot i mod ring, and starts when iteration i - ring is complete: no slot has two
# users at a time.
loop i in [0..T - 1] @max_in_flight(ring):
    let slot = i mod ring
    let X_l2 = region(X_L2, slot * tileX_bytes, tileX_bytes) type=TileX
    let X_l1 = region(X_L1, slot * tileX_bytes, tileX_bytes) type=TileX
    let Y_l1 = region(Y_L1, slot * tileY_bytes, tileY_bytes) type=TileY
    let Y_l2 = region(Y_L2, slot * tileY_bytes, tileY_bytes) type=TileY

    # Tiles are ToH rows apart and TiH rows high: they share their halo.
    tX = transfer.async(dst=X_l2, src=region(X_DDR, i * ToH * rowX_bytes, tileX_bytes))
    tL = transfer.async(dst=X_l1, src=X_l2, deps=[tX])

    # Pads are top, left, bottom, right. The variant is conv2d.int8<i8>.with_bias, which every
    # device has.
    tC = conv2d.async in X_l1, W_l1, B_l2 out Y_l1 deps=[tL]
        pads=[0, 1, 0, 1] strides=[1, 1] dilations=[1, 1] groups=1 accum_type=i32
    tR = relu.async in Y_l1 out Y_l1 deps=[tC]

    tS = store.async(dst=Y_l2, src=Y_l1, deps=[tR])
    tY = transfer.async(dst=region(Y_DDR, i * tileY_bytes, tileY_bytes), src=Y_l2, deps=[tS])
endloop
"""


def write(setting: Setting) -> str:
    """The program's text."""
    share = setting.memory_bytes // 4
    outputs, inputs = near_square(power_of_two(share // (_KERNEL * _KERNEL)))
    halo_bytes = (_KERNEL - 1) * _WIDTH * inputs
    row_bytes = _WIDTH * (inputs + outputs)
    return _TEXT.format(
        name=setting.name,
        directive=setting.directive,
        engine_remark=setting.engine_remark,
        l1=setting.l1,
        memory=setting.memory_bytes,
        width=_WIDTH,
        inputs=inputs,
        outputs=outputs,
        rows=power_of_two((share // _RING - halo_bytes) // row_bytes),
        tiles=4,
        ring=_RING,
    )
