"""The rows of the opcode registry.

Generated from opcodes.yaml by `make docs`: change that file, not this one.
Row: identity, execution, typing, operands, attributes, summary.
Identity: name, category, hardware, status, traits. Execution: unit, eligible units, forms.
Typing: families, variants, bindings, quant_on, same_elem.
Operand: name, direction, required, variadic, role, (rank, min_rank, layout, elem), shape.
Attribute: name, type, required, default, (allowed, length, minimum), summary.
Operands and attributes that opcodes share are named after the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.nem.spec.opcode_rows import AttributeRow, OpcodeRow, OperandRow

# One scalar a line, as the formatter would have it, hides the rows.
# fmt: off

REGISTRY_VERSION = "1.0"

_TRANSFER_SRC: OperandRow = ("src", "in", True, False, "source", None, "any")
_TRANSFER_DST: OperandRow = ("dst", "out", True, False, "destination", None,
    "holds at least the bytes of src")
_GEMM_A: OperandRow = ("A", "in", True, False, "input", (None, 2, None, None), "[..., M, K]")
_GEMM_B: OperandRow = ("B", "in", True, False, "weight", (None, 2, None, None), "[..., K, N]")
_GEMM_C: OperandRow = ("C", "in", False, False, "bias", None, "broadcastable to Y")
_GEMM_Y: OperandRow = ("Y", "out", True, False, "output", None, "[..., M, N]")
_GEMM_ACCUM_TYPE: AttributeRow = ("accum_type", "elem_type", True, None, None,
    "the element type that sums are kept in")
_CONV2D_X: OperandRow = ("X", "in", True, False, "input", (4, None, "NHWC", None), "[N, H, W, Cin]")
_CONV2D_W: OperandRow = ("W", "in", True, False, "weight", (4, None, "HWIO", None),
    "[Kh, Kw, Cin / groups, Cout]")
_CONV2D_B: OperandRow = ("B", "in", False, False, "bias", (1, None, None, None), "[Cout]")
_CONV2D_Y: OperandRow = ("Y", "out", True, False, "output", None, "[N, Ho, Wo, Cout], derived")
_CONV2D_PADS: AttributeRow = ("pads", "int_list", True, None, ((), 4, 0),
    "[h_begin, w_begin, h_end, w_end]")
_CONV2D_STRIDES: AttributeRow = ("strides", "int_list", True, None, ((), 2, 1), "[h, w]")
_CONV2D_DILATIONS: AttributeRow = ("dilations", "int_list", True, None, ((), 2, 1), "[h, w]")
_CONV2D_GROUPS: AttributeRow = ("groups", "int", False, 1, ((), None, 1),
    "channel groups that do not mix")
_CONV1D_X: OperandRow = ("X", "in", True, False, "input", (3, None, "NWC", None), "[N, W, Cin]")
_CONV1D_W: OperandRow = ("W", "in", True, False, "weight", (3, None, "WIO", None),
    "[Kw, Cin / groups, Cout]")
_CONV1D_Y: OperandRow = ("Y", "out", True, False, "output", None, "[N, Wo, Cout], derived")
_CONV1D_PADS: AttributeRow = ("pads", "int_list", True, None, ((), 2, 0), "[w_begin, w_end]")
_CONV1D_STRIDES: AttributeRow = ("strides", "int_list", True, None, ((), 1, 1), "[w]")
_CONV1D_DILATIONS: AttributeRow = ("dilations", "int_list", True, None, ((), 1, 1), "[w]")
_CONV3D_X: OperandRow = ("X", "in", True, False, "input", (5, None, "NDHWC", None),
    "[N, D, H, W, Cin]")
_CONV3D_W: OperandRow = ("W", "in", True, False, "weight", (5, None, "DHWIO", None),
    "[Kd, Kh, Kw, Cin / groups, Cout]")
_CONV3D_Y: OperandRow = ("Y", "out", True, False, "output", None, "[N, Do, Ho, Wo, Cout], derived")
_CONV3D_PADS: AttributeRow = ("pads", "int_list", True, None, ((), 6, 0),
    "[d_begin, h_begin, w_begin, d_end, h_end, w_end]")
_CONV3D_STRIDES: AttributeRow = ("strides", "int_list", True, None, ((), 3, 1), "[d, h, w]")
_CONV3D_DILATIONS: AttributeRow = ("dilations", "int_list", True, None, ((), 3, 1), "[d, h, w]")
_DEPTHWISE_CONV2D_W: OperandRow = ("W", "in", True, False, "weight", (4, None, None, None),
    "[Kh, Kw, Cin, multiplier] or [Kh, Kw, 1, Cin * multiplier]")
_DEPTHWISE_CONV2D_B: OperandRow = ("B", "in", False, False, "bias", (1, None, None, None),
    "[Cin * multiplier]")
_DEPTHWISE_CONV2D_Y: OperandRow = ("Y", "out", True, False, "output", None,
    "[N, Ho, Wo, Cin * multiplier], Cin major")
_RELU_X: OperandRow = ("X", "in", True, False, "input", None, "any")
_RELU_Y: OperandRow = ("Y", "out", True, False, "output", None, "the shape of X")
_RELU_SATURATE: AttributeRow = ("saturate", "bool", False, False, None,
    "integer results saturate instead of wrapping")
_LEAKY_RELU_ALPHA: AttributeRow = ("alpha", "float", True, None, None, "the slope below zero")
_GELU_APPROXIMATE: AttributeRow = ("approximate", "id", False, "none",
    (("none", "tanh"), None, None), "erf itself, or its tanh approximation")
_ADD_A: OperandRow = ("A", "in", True, False, "input", None, "any")
_ADD_B: OperandRow = ("B", "in", True, False, "input", None, "the shape of A")
_ADD_Y: OperandRow = ("Y", "out", True, False, "output", None, "the shape of A")
_CLAMP_MIN_VAL: AttributeRow = ("min_val", "float", True, None, None, "the lower limit")
_CLAMP_MAX_VAL: AttributeRow = ("max_val", "float", True, None, None, "the upper limit")
_MAXPOOL_X: OperandRow = ("X", "in", True, False, "input", (4, None, "NHWC", None), "[N, H, W, C]")
_MAXPOOL_Y: OperandRow = ("Y", "out", True, False, "output", None, "[N, Ho, Wo, C], derived")
_MAXPOOL_KERNEL_SHAPE: AttributeRow = ("kernel_shape", "int_list", True, None, ((), 2, 1), "[h, w]")
_TRANSPOSE_Y: OperandRow = ("Y", "out", True, False, "output", None,
    "dimension i is dimension perm[i] of X")
_TRANSPOSE_PERM: AttributeRow = ("perm", "int_list", True, None, None,
    "a permutation of the axes of X")
_RESHAPE_Y: OperandRow = ("Y", "out", True, False, "output", None, "target_shape")
_RESHAPE_TARGET_SHAPE: AttributeRow = ("target_shape", "int_list", True, None, None,
    "the shape of Y, with as many elements as X")
_SLICE_Y: OperandRow = ("Y", "out", True, False, "output", None, "X cut by the attributes")
_SLICE_STARTS: AttributeRow = ("starts", "int_list", True, None, None,
    "the first index, one per axis")
_SLICE_ENDS: AttributeRow = ("ends", "int_list", True, None, None,
    "the index to stop before, one per axis")
_SLICE_AXES: AttributeRow = ("axes", "int_list", True, None, None, "the axes that are cut")
_SLICE_STEPS: AttributeRow = ("steps", "int_list", True, None, None,
    "the distance of indices, not zero")
_CONCAT_X: OperandRow = ("X", "in", True, True, "input", None, "equal off the axis")
_CONCAT_Y: OperandRow = ("Y", "out", True, False, "output", None,
    "X off the axis, the sum of all along it")
_CONCAT_AXIS: AttributeRow = ("axis", "int", True, None, None,
    "the axis that the opcode works along")
_SPLIT_Y: OperandRow = ("Y", "out", True, True, "output", None,
    "X off the axis, one of split_sizes along it")
_SPLIT_SPLIT_SIZES: AttributeRow = ("split_sizes", "int_list", True, None, None,
    "one size for each output")
_PAD_Y: OperandRow = ("Y", "out", True, False, "output", None, "every dimension of X plus its pads")
_PAD_PADS: AttributeRow = ("pads", "int_list", True, None, ((), None, 0),
    "[begins..., ends...], one each per axis")
_PAD_MODE: AttributeRow = ("mode", "id", True, None, (("constant", "edge", "reflect"), None, None),
    "where the new elements come from")
_PAD_CONSTANT_VALUE: AttributeRow = ("constant_value", "float", False, 0.0, None,
    "the element of mode constant")
_GATHER_X: OperandRow = ("X", "in", True, False, "table", None, "any")
_GATHER_INDICES: OperandRow = ("indices", "in", True, False, "indices",
    (None, None, None, "integer"), "any")
_GATHER_Y: OperandRow = ("Y", "out", True, False, "output", None,
    "X, indices.shape in place of the axis")
_REDUCE_SUM_Y: OperandRow = ("Y", "out", True, False, "output", None,
    "X without the axes, or with 1 there if keepdims")
_REDUCE_SUM_AXES: AttributeRow = ("axes", "int_list", True, None, None, "the axes that disappear")
_REDUCE_SUM_KEEPDIMS: AttributeRow = ("keepdims", "bool", True, None, None,
    "keeps every reduced axis with size 1")
_ARGMAX_Y: OperandRow = ("Y", "out", True, False, "output", (None, None, None, "integer"),
    "X without the axis, or with 1 there if keepdims")
_ARGMAX_AXIS: AttributeRow = ("axis", "int", True, None, None, "the axis that is searched")
_ARGMAX_KEEPDIMS: AttributeRow = ("keepdims", "bool", True, None, None,
    "keeps the searched axis with size 1")
_LAYERNORM_SCALE: OperandRow = ("scale", "in", False, False, "scale", (1, None, None, None),
    "the size of X along the axis")
_LAYERNORM_BIAS: OperandRow = ("bias", "in", False, False, "bias", (1, None, None, None),
    "the size of X along the axis")
_LAYERNORM_AXIS: AttributeRow = ("axis", "int", True, None, None,
    "the one axis that is normalised over")
_LAYERNORM_EPSILON: AttributeRow = ("epsilon", "float", True, None, None,
    "added to the variance before the root")
_CAST_ROUNDING: AttributeRow = ("rounding", "id", False, "nearest_even",
    (("nearest_even", "toward_zero", "floor", "ceil"), None, None),
    "how a float becomes an integer")
_CAST_SATURATE: AttributeRow = ("saturate", "bool", False, None, None,
    "whether values outside the new type stop at its ends or wrap")
_COMPUTE_X: OperandRow = ("X", "in", True, True, "input", None, "as the operation asks")
_COMPUTE_Y: OperandRow = ("Y", "out", True, True, "output", None, "as the operation asks")
_COMPUTE_OP: AttributeRow = ("op", "string", True, None, None, "the operation")

ROWS: tuple[OpcodeRow, ...] = (
    (("transfer", "data_movement", "supported", "stable", ()),
        ("varies", ("DMA", "sDMA"), ("async", "sync")), ((), (), (), (), ()),
        (_TRANSFER_SRC, _TRANSFER_DST), (),
        "copies a region to another one, between or within memory levels"),
    (("store", "data_movement", "supported", "stable", ()), ("CSTL", ("CSTL",), ("async", "sync")),
        ((), (), (), (), ()), (_TRANSFER_SRC, _TRANSFER_DST), (),
        "commits a region to its memory level, where later readers see it"),
    (("gemm", "linear_algebra", "supported", "stable", ()),
        ("NMU", ("NMU", "VPU"), ("async", "sync")),
        (("gemm.float", "gemm.int8", "gemm.int4"), (), (), (("gemm.int4", ("B",)),), ()),
        (_GEMM_A, _GEMM_B, _GEMM_C, _GEMM_Y), (_GEMM_ACCUM_TYPE,), "Y = A B, plus C where given"),
    (("matmul", "linear_algebra", "supported", "stable", ()),
        ("NMU", ("NMU", "VPU"), ("async", "sync")),
        (("gemm.float", "gemm.int8", "gemm.int4"), ("no_bias",), (), (("gemm.int4", ("B",)),), ()),
        (_GEMM_A, _GEMM_B, _GEMM_Y), (_GEMM_ACCUM_TYPE,), "Y = A B"),
    (("conv2d", "convolution", "supported", "stable", ()),
        ("NMU", ("NMU", "VPU"), ("async", "sync")),
        (("conv2d.float", "conv2d.int8", "conv2d.int4"), (), (), (("conv2d.int4", ("W",)),), ()),
        (_CONV2D_X, _CONV2D_W, _CONV2D_B, _CONV2D_Y),
        (_CONV2D_PADS, _CONV2D_STRIDES, _CONV2D_DILATIONS, _CONV2D_GROUPS, _GEMM_ACCUM_TYPE),
        "two-dimensional convolution with optional bias"),
    (("conv1d", "convolution", "future", "future", ()), ("NMU", ("NMU", "VPU"), ("async", "sync")),
        ((), (), (), (), ("X", "Y")), (_CONV1D_X, _CONV1D_W, _CONV2D_B, _CONV1D_Y),
        (_CONV1D_PADS, _CONV1D_STRIDES, _CONV1D_DILATIONS, _CONV2D_GROUPS, _GEMM_ACCUM_TYPE),
        "one-dimensional convolution with optional bias"),
    (("conv3d", "convolution", "future", "future", ()), ("NMU", ("NMU", "VPU"), ("async", "sync")),
        ((), (), (), (), ("X", "Y")), (_CONV3D_X, _CONV3D_W, _CONV2D_B, _CONV3D_Y),
        (_CONV3D_PADS, _CONV3D_STRIDES, _CONV3D_DILATIONS, _CONV2D_GROUPS, _GEMM_ACCUM_TYPE),
        "three-dimensional convolution with optional bias"),
    (("depthwise_conv2d", "convolution", "future", "future", ()),
        ("NMU", ("NMU", "VPU"), ("async", "sync")), ((), (), (), (), ("X", "Y")),
        (_CONV2D_X, _DEPTHWISE_CONV2D_W, _DEPTHWISE_CONV2D_B, _DEPTHWISE_CONV2D_Y),
        (_CONV2D_PADS, _CONV2D_STRIDES, _CONV2D_DILATIONS, _GEMM_ACCUM_TYPE),
        "two-dimensional convolution of each channel by itself, with optional bias"),
    (("relu", "elementwise_unary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_RELU_SATURATE,), "the larger of x and 0"),
    (("leaky_relu", "elementwise_unary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_LEAKY_RELU_ALPHA, _RELU_SATURATE), "x where x > 0, else alpha * x"),
    (("sigmoid", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "1 / (1 + exp(-x))"),
    (("tanh", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "the hyperbolic tangent of x"),
    (("exp", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "e to the power x"),
    (("log", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "the natural logarithm of x"),
    (("sqrt", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "the square root of x"),
    (("abs", "elementwise_unary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_RELU_SATURATE,), "x without its sign"),
    (("neg", "elementwise_unary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_RELU_SATURATE,), "x with the opposite sign"),
    (("gelu", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_GELU_APPROXIMATE,), "x times the normal distribution function of x"),
    (("silu", "elementwise_unary", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "x * sigmoid(x)"),
    (("add", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "a + b"),
    (("sub", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "a - b"),
    (("mul", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "a * b"),
    (("div", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "a / b; integers truncate toward zero"),
    (("min", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "the smaller of a and b"),
    (("max", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "the larger of a and b"),
    (("pow", "elementwise_binary", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("A", "B")), ("output", ("Y",))), (), ()),
        (_ADD_A, _ADD_B, _ADD_Y), (_RELU_SATURATE,), "a to the power b"),
    (("clamp", "elementwise_other", "supported", "stable", ("in_place",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("eltwise",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_CLAMP_MIN_VAL, _CLAMP_MAX_VAL, _RELU_SATURATE),
        "x limited to the range from min_val to max_val"),
    (("maxpool", "pooling", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")), ((), (), (), (), ("X", "Y")),
        (_MAXPOOL_X, _MAXPOOL_Y), (_MAXPOOL_KERNEL_SHAPE, _CONV2D_PADS, _CONV2D_STRIDES),
        "the largest element under each window"),
    (("avgpool", "pooling", "supported", "stable", ()),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")), ((), (), (), (), ("X", "Y")),
        (_MAXPOOL_X, _MAXPOOL_Y), (_MAXPOOL_KERNEL_SHAPE, _CONV2D_PADS, _CONV2D_STRIDES),
        "the mean of each window, padding left out of the count"),
    (("transpose", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _TRANSPOSE_Y),
        (_TRANSPOSE_PERM,), "permutes the axes"),
    (("reshape", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RESHAPE_Y),
        (_RESHAPE_TARGET_SHAPE,), "the same elements under another shape"),
    (("slice", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _SLICE_Y),
        (_SLICE_STARTS, _SLICE_ENDS, _SLICE_AXES, _SLICE_STEPS),
        "a regular part along the named axes"),
    (("concat", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_CONCAT_X, _CONCAT_Y),
        (_CONCAT_AXIS,), "joins tensors along an axis"),
    (("split", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _SPLIT_Y),
        (_CONCAT_AXIS, _SPLIT_SPLIT_SIZES), "cuts a tensor into parts along an axis"),
    (("pad", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _PAD_Y),
        (_PAD_PADS, _PAD_MODE, _PAD_CONSTANT_VALUE), "surrounds a tensor with more elements"),
    (("gather", "view", "supported", "stable", ("keeps_quant",)),
        ("CSTL", ("CSTL", "VPU", "DMA"), ("async", "sync")),
        (("view",), (), (("input", ("X",)), ("output", ("Y",))), (), ()),
        (_GATHER_X, _GATHER_INDICES, _GATHER_Y), (_CONCAT_AXIS,),
        "picks slices of X by index along an axis"),
    (("reduce_sum", "reduction", "future", "future", ()), ("VPU", ("VPU",), ("async", "sync")),
        ((), (), (), (), ("X", "Y")), (_RELU_X, _REDUCE_SUM_Y),
        (_REDUCE_SUM_AXES, _REDUCE_SUM_KEEPDIMS), "the sum over the axes"),
    (("reduce_max", "reduction", "future", "future", ()), ("VPU", ("VPU",), ("async", "sync")),
        ((), (), (), (), ("X", "Y")), (_RELU_X, _REDUCE_SUM_Y),
        (_REDUCE_SUM_AXES, _REDUCE_SUM_KEEPDIMS), "the largest element over the axes"),
    (("reduce_min", "reduction", "future", "future", ()), ("VPU", ("VPU",), ("async", "sync")),
        ((), (), (), (), ("X", "Y")), (_RELU_X, _REDUCE_SUM_Y),
        (_REDUCE_SUM_AXES, _REDUCE_SUM_KEEPDIMS), "the smallest element over the axes"),
    (("argmax", "reduction", "future", "future", ()), ("VPU", ("VPU",), ("async", "sync")),
        ((), (), (), (), ()), (_RELU_X, _ARGMAX_Y), (_ARGMAX_AXIS, _ARGMAX_KEEPDIMS),
        "the index of the largest element along the axis, the first on ties"),
    (("argmin", "reduction", "future", "future", ()), ("VPU", ("VPU",), ("async", "sync")),
        ((), (), (), (), ()), (_RELU_X, _ARGMAX_Y), (_ARGMAX_AXIS, _ARGMAX_KEEPDIMS),
        "the index of the smallest element along the axis, the first on ties"),
    (("layernorm", "normalization", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("norm",), (), (("input", ("X", "scale", "bias")), ("output", ("Y",))), (), ()),
        (_RELU_X, _LAYERNORM_SCALE, _LAYERNORM_BIAS, _RELU_Y),
        (_LAYERNORM_AXIS, _LAYERNORM_EPSILON),
        "subtracts the mean and divides by the deviation along the axis, then scales and shifts"),
    (("rmsnorm", "normalization", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("norm",), (), (("input", ("X", "scale")), ("output", ("Y",))), (), ()),
        (_RELU_X, _LAYERNORM_SCALE, _RELU_Y), (_LAYERNORM_AXIS, _LAYERNORM_EPSILON),
        "divides by the root mean square along the axis, then scales"),
    (("softmax", "softmax", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("softmax",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_CONCAT_AXIS,), "exponentials along the axis, divided by their sum"),
    (("log_softmax", "softmax", "supported", "stable", ("in_place", "integers_need_quant")),
        ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("softmax",), (), (("input", ("X",)), ("output", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_CONCAT_AXIS,), "the logarithm of softmax"),
    (("cast", "conversion", "partial", "stable", ()), ("CSTL", ("CSTL", "VPU"), ("async", "sync")),
        (("cast",), (), (("src", ("X",)), ("dst", ("Y",))), (), ()), (_RELU_X, _RELU_Y),
        (_CAST_ROUNDING, _CAST_SATURATE), "converts every element to another type"),
    (("quantize", "conversion", "partial", "stable", ()), ("VPU", ("VPU",), ("async", "sync")),
        (("quantize",), (), (("src", ("X",)), ("dst", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "floats to integers, by the quant of Y"),
    (("dequantize", "conversion", "partial", "stable", ()), ("VPU", ("VPU",), ("async", "sync")),
        (("dequantize",), (), (("src", ("X",)), ("dst", ("Y",))), (), ()), (_RELU_X, _RELU_Y), (),
        "integers to floats, by the quant of X"),
    (("compute", "generic", "escape_hatch", "stable", ("open_attributes",)),
        ("VPU", ("VPU",), ("async", "sync")), ((), (), (), (), ()), (_COMPUTE_X, _COMPUTE_Y),
        (_COMPUTE_OP,), "runs an operation that has no opcode, by name"),
)
