"""Operations of `nacre-1` between reals and the integers that stand for them.

`axis` says along which axis scales and zero points run; it plays no part where there is only one.
The fused operations carry their scales as attributes: one, or one for each output channel.
"""

from __future__ import annotations

from nacre.core.rows.convolution import CONVOLUTION
from nacre.core.specs import always, like, named, optional, required, row

_AXIS = optional("axis", "int", 1)
_TO = required("to", "dtype")
_X_SCALE, _X_ZERO = required("x_scale", "float"), optional("x_zero", "int", 0)
_W_SCALES, _W_ZEROS = required("w_scales", "floats"), optional("w_zeros", "ints", ())
_Y_SCALE, _Y_ZERO = required("y_scale", "float"), optional("y_zero", "int", 0)
_SCALES = (_X_SCALE, _X_ZERO, _W_SCALES, _W_ZEROS, _Y_SCALE, _Y_ZERO)
_CALLS = "quantized_decomposed.dequantize_per_tensor.default"
_BACK = "quantized_decomposed.quantize_per_tensor.default"
_CONV, _MAX_POOL = CONVOLUTION[0], CONVOLUTION[2]

QUANTIZED = (
    row("Quantize", "round(x / scale) + zero, held inside the type",
        "input:float scale:same zero:byte", _AXIS, _TO, result=named("to"), aten=_BACK),
    row("Dequantize", "(x - zero) * scale", "input:byte scale:float zero:byte", _AXIS,
        result=like(1), aten=_CALLS),
    row("DynamicQuantizeScale", "the scale of u8 that holds the range of x and 0", "input:float",
        aten="quantized_decomposed.choose_qparams.tensor"),
    row("DynamicQuantizeZero", "the zero point that goes with that scale", "input:float",
        result=always("u8"), aten="quantized_decomposed.choose_qparams.tensor"),
    row("QConv", "Conv of dequantised tensors, quantised; the bias is in units of both scales",
        "input:byte weight:byte bias?:index", *_CONV.attributes, *_SCALES, _TO,
        result=named("to"), aten=f"{_CALLS} convolution.default {_BACK}"),
    row("QLinear", "Linear of dequantised tensors, quantised",
        "input:byte weight:byte bias?:index", *_SCALES, _TO, result=named("to"),
        aten=f"{_CALLS} linear.default {_BACK}"),
    row("QBinOp", "BinOp of dequantised tensors, quantised", "lhs:byte rhs:byte",
        required("op", "word", "Add", "Sub", "Mul", "Div", "Min", "Max"),
        required("a_scale", "float"), optional("a_zero", "int", 0),
        required("b_scale", "float"), optional("b_zero", "int", 0), _Y_SCALE, _Y_ZERO, _TO,
        result=named("to"), aten=f"{_CALLS} add.Tensor {_BACK}"),
    row("QPool", "a pooling of dequantised elements, quantised", "input:byte",
        required("op", "word", "Max", "Avg"), *_MAX_POOL.attributes,
        optional("count_pad", "bool", False), _X_SCALE, _X_ZERO, _Y_SCALE, _Y_ZERO, _TO,
        result=named("to"), aten=f"{_CALLS} avg_pool2d.default {_BACK}"),
)  # fmt: skip
