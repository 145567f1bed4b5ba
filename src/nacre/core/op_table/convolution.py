"""Operations of `nacre-1` over windows of one to three axes.

`layout` says where channels stand, whatever the number of axes: NCHW first, with weights
[Cout, Cin / groups, window..], NHWC last, with weights [window.., Cin / groups, Cout]. Weights of
`ConvTranspose` are [Cin, Cout / groups, window..] or [window.., Cout / groups, Cin]. An empty list
of strides, pads or dilations stands for ones, zeros and ones. Pads are all beginnings, then all
ends. With `ceil` a window may hang over the end of the padding, but a last one that starts behind
the input is dropped; what hangs over never counts as an element.
"""

from __future__ import annotations

from nacre.core.specs import optional, required, row

_LAYOUT = optional("layout", "word", "NCHW", "NCHW", "NHWC")
_STRIDES = optional("strides", "ints", ())
_PADS = optional("pads", "ints", ())
_DILATIONS = optional("dilations", "ints", ())
_GROUPS = optional("groups", "int", 1)
_KERNEL = required("kernel", "ints")
_CEIL = optional("ceil", "bool", False)
_WINDOWS = (_LAYOUT, _STRIDES, _PADS, _DILATIONS)

CONVOLUTION = (
    row("Conv", "a convolution, plus a bias for each output channel",
        "input:number weight:same bias?:same", *_WINDOWS, _GROUPS, aten="convolution.default"),
    row("ConvTranspose", "what a convolution's gradient by its input computes",
        "input:number weight:same bias?:same", *_WINDOWS, _GROUPS,
        optional("output_padding", "ints", ()), aten="convolution.default"),
    row("MaxPool", "the largest element of each window; padding takes no part", "input:number",
        _KERNEL, *_WINDOWS, _CEIL,
        aten="max_pool2d_with_indices.default"),
    row("AvgPool", "the mean of each window; padding counts as elements if `count_pad` says so",
        "input:float", _KERNEL, *_WINDOWS, _CEIL, optional("count_pad", "bool", False),
        aten="avg_pool2d.default"),
    row("LpPool", "the p-norm of each window", "input:float", _KERNEL, *_WINDOWS, _CEIL,
        optional("p", "int", 2),
        aten="pow.Tensor_Scalar avg_pool2d.default mul.Scalar pow.Tensor_Scalar"),
)  # fmt: skip
