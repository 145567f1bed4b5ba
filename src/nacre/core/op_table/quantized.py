"""Operations of `nacre-1` between reals and the integers that stand for them.

`axis` says along which axis scales and zero points run; it plays no part where there is only one.
With a `block` above 0 so many neighbours along that axis share one, and scales have the rank of the
tensor. The zero point has the type of the integers; left out it is 0, and floats of 8 bits have
none. The fused operations are on integers only and carry their scales as attributes: one, or one
for each output channel. Windows of `QPool` lie close together, as NEM has them.
"""

from __future__ import annotations

from functools import partial

from nacre.core.op_table.convolution import CONVOLUTION
from nacre.core.specs import fixed_type, optional, required, row, type_of_attribute, type_of_operand
from nacre.kernels.quantised.graph_fused import fused_problem
from nacre.kernels.quantised.graph_quantized import dequantize_problem, quantize_problem

_AXIS = optional("axis", "int", 1)
_BLOCK = optional("block", "int", 0)
_TO = required("to", "dtype")
_X_SCALE, _X_ZERO = required("x_scale", "float"), optional("x_zero", "int", 0)
_W_SCALES, _W_ZEROS = required("w_scales", "floats"), optional("w_zeros", "ints", ())
_Y_SCALE, _Y_ZERO = required("y_scale", "float"), optional("y_zero", "int", 0)
_SCALES = (_X_SCALE, _X_ZERO, _W_SCALES, _W_ZEROS, _Y_SCALE, _Y_ZERO)
_CALLS = "quantized_decomposed.dequantize_per_tensor.default"
_BACK = "quantized_decomposed.quantize_per_tensor.default"
_CONV, _MAX_POOL = CONVOLUTION[0], CONVOLUTION[2]

_POOL_ATTRIBUTES = tuple(a for a in _MAX_POOL.attributes if a.name != "dilations")

_row = partial(
    row,
    no_gradient="it rounds to steps, and what should pass through them is not for us to choose",
)
QUANTIZED = (
    _row("Quantize", "round(x / scale) + zero, held inside the type",
         "input:float scale:same zero?:byte", _AXIS, _BLOCK, _TO, result=type_of_attribute("to"),
         aten=_BACK, problem=quantize_problem),
    _row("Dequantize", "(x - zero) * scale", "input:byte scale:float zero?:byte", _AXIS, _BLOCK,
         result=type_of_operand(1), aten=_CALLS,
         problem=dequantize_problem),
    _row("DynamicQuantizeScale", "the scale of u8 that holds the range of x and 0", "input:float",
         aten="quantized_decomposed.choose_qparams.tensor"),
    _row("DynamicQuantizeZero", "the zero point that goes with that scale", "input:float",
         result=fixed_type("u8"), aten="quantized_decomposed.choose_qparams.tensor"),
    _row("QConv", "Conv of dequantised tensors, quantised; the bias is in units of both scales",
         "input:byte weight:byte bias?:index", *_CONV.attributes, *_SCALES, _TO,
         result=type_of_attribute("to"), aten=f"{_CALLS} convolution.default {_BACK}",
         problem=fused_problem),
    _row("QLinear", "Linear of dequantised tensors, quantised; the bias as in QConv",
         "input:byte weight:byte bias?:index", *_SCALES, _TO, result=type_of_attribute("to"),
         aten=f"{_CALLS} linear.default {_BACK}",
         problem=fused_problem),
    _row("QBinOp", "BinOp of dequantised tensors, quantised", "lhs:byte rhs:byte",
         required("op", "word", "Add", "Sub", "Mul", "Div", "Min", "Max"),
         required("a_scale", "float"), optional("a_zero", "int", 0),
         required("b_scale", "float"), optional("b_zero", "int", 0), _Y_SCALE, _Y_ZERO, _TO,
         result=type_of_attribute("to"), aten=f"{_CALLS} add.Tensor {_BACK}",
         problem=fused_problem),
    _row("QPool", "a pooling of dequantised elements, quantised", "input:byte",
         required("op", "word", "Max", "Avg"), *_POOL_ATTRIBUTES,
         optional("count_pad", "bool", False), _X_SCALE, _X_ZERO, _Y_SCALE, _Y_ZERO, _TO,
         result=type_of_attribute("to"), aten=f"{_CALLS} avg_pool2d.default {_BACK}",
         problem=fused_problem),
)  # fmt: skip
