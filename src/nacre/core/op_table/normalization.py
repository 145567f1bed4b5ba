"""Operations of `nacre-1` that normalise. Channels are axis 1 where nothing else is said.

Scales and biases of `LayerNorm` and `RmsNorm` have the shape of the axes from `axis` on, all other
parameters one entry for each channel. `Lrn` looks at `(size - 1) / 2` channels before, rounded
down, and at the rest of `size` behind, as ONNX has it.
"""

from __future__ import annotations

from nacre.core.specs import optional, required, row

_AXIS = required("axis", "int")
_EPSILON = optional("epsilon", "float", 1e-5)

NORMALIZATION = (
    row("Softmax", "e^x over its sum along an axis", "input:float", _AXIS,
        aten="_softmax.default"),
    row("LogSoftmax", "the logarithm of Softmax", "input:float", _AXIS,
        aten="_log_softmax.default"),
    row("LayerNorm", "mean 0 and variance 1 over the axes from `axis` to the last",
        "input:float scale?:same bias?:same", _AXIS, _EPSILON, aten="native_layer_norm.default"),
    row("RmsNorm", "mean square 1 over the axes from `axis` to the last",
        "input:float scale?:same", _AXIS, _EPSILON, aten="rms_norm.default"),
    row("GroupNorm", "mean 0 and variance 1 over groups of channels",
        "input:float scale?:same bias?:same", required("groups", "int"), _EPSILON,
        aten="native_group_norm.default"),
    row("InstanceNorm", "mean 0 and variance 1 over each channel's plane",
        "input:float scale?:same bias?:same", _EPSILON, aten="instance_norm.default"),
    row("BatchNorm", "each channel by a mean and variance that are given",
        "input:float scale:same bias:same mean:same variance:same", _EPSILON,
        optional("axis", "int", 1), aten="_native_batch_norm_legit_no_training.default"),
    row("Lrn", "x over a power of the squares of neighbouring channels", "input:float",
        required("size", "int"), optional("alpha", "float", 1e-4),
        optional("beta", "float", 0.75), optional("bias", "float", 1.0),
        aten="mul.Tensor avg_pool3d.default mul.Scalar add.Scalar pow.Tensor_Scalar div.Tensor"),
)  # fmt: skip
