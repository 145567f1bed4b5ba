"""The words of patterns: what operations are called, whatever the format or the framework says.

An operation may have several words: a sigmoid is a `gate` and an `act`. The first one is its own;
those of convolutions are made more precise by their weights, see `graph.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MOVE = "move"  # the elements stay as they are, or a part of them

# The words, and the genes that have them.
_ROWS: tuple[tuple[str, str], ...] = (
    ("conv project", "conv1d conv2d conv3d convolution _convolution core.Conv core.Conv2d"),
    ("deconv", "conv_transpose1d conv_transpose2d conv_transpose3d core.ConvTranspose"),
    ("linear project", "linear addmm core.Linear"),
    ("matmul", "matmul mm bmm baddbmm core.MatMul core.Dot core.Einsum einsum"),
    ("norm", "batch_norm _native_batch_norm_legit_no_training _native_batch_norm_legit "
             "native_batch_norm cudnn_batch_norm layer_norm native_layer_norm group_norm "
             "native_group_norm instance_norm rms_norm _fused_rms_norm local_response_norm "
             "core.BatchNorm core.LayerNorm core.GroupNorm core.InstanceNorm core.RmsNorm "
             "core.Lrn"),
    ("act", "relu relu_ relu6 hardtanh hardtanh_ clamp clamp_min clip gelu silu silu_ hardswish "
            "hardswish_ leaky_relu leaky_relu_ elu elu_ selu celu mish prelu _prelu_kernel "
            "core.Relu core.ReluNan core.Gelu core.Silu core.HardSwish core.LeakyRelu core.Elu "
            "core.Selu core.PRelu core.Clip"),
    ("gate act", "sigmoid sigmoid_ hardsigmoid core.HardSigmoid core.Sigmoid"),
    ("tanh act", "tanh core.Tanh"),
    ("softplus act", "softplus core.Softplus"),
    ("erf", "erf core.Erf"),
    ("softmax", "softmax _softmax _safe_softmax log_softmax _log_softmax core.Softmax "
                "core.LogSoftmax"),
    ("attention", "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu "
                  "_scaled_dot_product_efficient_attention core.Attention"),
    ("mean", "mean adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d "
             "adaptive_avg_pool3d core.Mean"),
    ("pool", "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices avg_pool1d avg_pool2d "
             "avg_pool3d adaptive_max_pool2d core.MaxPool core.AvgPool core.LpPool"),
    ("add", "add add_ core.Add"),
    ("sub", "sub rsub core.Sub"),
    ("mul", "mul mul_ core.Mul"),
    ("div", "div core.Div"),
    ("square", "square pow core.Pow"),
    ("rsqrt", "rsqrt core.Rsqrt"),
    ("concat", "cat concat concatenate stack core.Concat"),
    ("embed", "embedding core.Gather"),
    ("resize", "upsample_nearest2d upsample_bilinear2d interpolate core.Resize"),
    (MOVE, "view reshape _unsafe_view _reshape_copy transpose permute t expand contiguous clone "
           "unsqueeze squeeze to _to_copy type_as slice select split split_with_sizes chunk unbind "
           "getitem flatten unflatten dropout alias view_as_real view_as_complex detach "
           "lift_fresh_copy expand_as repeat narrow "
           "nac.pass nac.transpose core.Reshape core.Transpose core.Broadcast core.Cast "
           "core.ExpandDims core.Squeeze core.Slice core.Index core.DynamicSlice"),
)  # fmt: skip


def _words() -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    for words, genes in _ROWS:
        for gene in genes.split():
            if gene in made:
                raise ValueError(f"two rows have the operation `{gene}`")
            made[gene] = tuple(words.split())
    return made


WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(_words())

# Operations of which the order of operands does not matter to what a network is.
COMMUTATIVE = frozenset({"add", "mul", "concat"})

# With one operand that a run computes, these scale or shift it, or apply a weight.
BY_CONSTANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mul": ("scale",),
        "div": ("scale",),
        "add": ("shift",),
        "sub": ("shift",),
        "matmul": ("linear", "project"),
    }
)

# What convolutions are called once their weights and strides are known.
KINDS_OF_CONVOLUTION = ("depthwise", "pointwise", "patch", "spatial")
KNOWN_WORDS = frozenset(
    {word for words in WORDS.values() for word in words}
    | {word for words in BY_CONSTANTS.values() for word in words}
    | set(KINDS_OF_CONVOLUTION)
)
