"""Schemas of the calls of ATen that have a handler.

A schema is written `self:T dim:i=0 dtype:d? | layout:k?`: names, kinds, defaults. Kinds: `T` a
tensor, `T*` tensors, `T?*` tensors or nothing, `i` an integer, `f` a float, `n` a number, `b` a
truth value, `s` a string, `d` an element type, `I` integers, `F` floats, `k` a word that says how a
tensor is stored. A `?` makes an argument one that may be null. Behind the bar stand arguments that
say nothing about values: they are read and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec

# Names by schema.
_TABLE: Mapping[str, str] = {
    "self:T output_size:I":
        "_adaptive_avg_pool2d.default _adaptive_avg_pool3d.default adaptive_avg_pool1d.default "
        "adaptive_avg_pool2d.default adaptive_avg_pool3d.default "
        "adaptive_max_pool1d.default adaptive_max_pool2d.default adaptive_max_pool3d.default",
    "input:T weight:T? bias:T? running_mean:T? running_var:T? momentum:f eps:f":
        "_batch_norm_no_update.default",
    "input:T normalized_shape:I weight:T? eps:f?": "_fused_rms_norm.default rms_norm.default",
    "self:T dim:i half_to_float:b": "_log_softmax.default _softmax.default",
    "input:T weight:T? bias:T? running_mean:T running_var:T training:b momentum:f eps:f":
        "_native_batch_norm_legit.default _native_batch_norm_legit_functional.default",
    "input:T weight:T? bias:T? running_mean:T running_var:T momentum:f eps:f":
        "_native_batch_norm_legit_no_training.default",
    "self:T weight:T": "_prelu_kernel.default prelu.default",
    "query:T key:T value:T attn_bias:T? compute_log_sumexp:b dropout_p:f=0.0 "
    "is_causal:b=false scale:f?": "_scaled_dot_product_efficient_attention.default",
    "query:T key:T value:T dropout_p:f=0.0 is_causal:b=false attn_mask:T? scale:f?":
        "_scaled_dot_product_flash_attention_for_cpu.default",
    "self:T dtype:d? | layout:k? device:k? pin_memory:b? non_blocking:b memory_format:k?":
        "_to_copy.default",
    "self:T indices:T?*": "_unsafe_index.Tensor index.Tensor",
    "self:T indices:T?* values:T accumulate:b=false":
        "_unsafe_index_put.default index_put.default",
    "self:T size:I": "_unsafe_view.default view.default",
    "self:T output_size:I align_corners:b scales_h:f? scales_w:f?":
        "_upsample_bicubic2d_aa.default _upsample_bilinear2d_aa.default "
        "upsample_bicubic2d.default upsample_bilinear2d.default",
    "input:T output_size:I? align_corners:b scale_factors:F?":
        "_upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa.vec upsample_bicubic2d.vec "
        "upsample_bilinear2d.vec upsample_linear1d.vec upsample_trilinear3d.vec",
    "self:T output_size:I scales:f?":
        "_upsample_nearest_exact1d.default upsample_nearest1d.default",
    "input:T output_size:I? scale_factors:F?":
        "_upsample_nearest_exact1d.vec _upsample_nearest_exact2d.vec "
        "_upsample_nearest_exact3d.vec upsample_nearest1d.vec upsample_nearest2d.vec "
        "upsample_nearest3d.vec",
    "self:T output_size:I scales_h:f? scales_w:f?":
        "_upsample_nearest_exact2d.default upsample_nearest2d.default",
    "self:T output_size:I scales_d:f? scales_h:f? scales_w:f?":
        "_upsample_nearest_exact3d.default upsample_nearest3d.default",
    "self:T":
        "abs.default acos.default acosh.default alias.default all.default any.default "
        "asin.default asinh.default atan.default atanh.default bitwise_not.default ceil.default "
        "cos.default cosh.default detach.default erf.default erfc.default exp.default "
        "exp2.default expm1.default floor.default hardsigmoid.default hardswish.default "
        "isfinite.default isinf.default isnan.default lift_fresh_copy.default log.default "
        "log10.default log1p.default log2.default logical_not.default max.default min.default "
        "mish.default neg.default numel.default reciprocal.default relu.default relu6.default "
        "round.default rsqrt.default selu.default sigmoid.default sign.default silu.default "
        "sin.default sinh.default sqrt.default square.default squeeze.default t.default "
        "tan.default tanh.default trunc.default "
        "log_sigmoid.default mT.default numpy_T.default",
    "self:T other:n alpha:n=1": "add.Scalar rsub.Scalar sub.Scalar",
    "self:T other:T alpha:n=1": "add.Tensor rsub.Tensor sub.Tensor",
    "self:T tensor1:T tensor2:T value:n=1": "addcdiv.default addcmul.default",
    "self:T mat1:T mat2:T beta:n=1 alpha:n=1": "addmm.default",
    "self:T mat:T vec:T beta:n=1 alpha:n=1": "addmv.default",
    "self:T dim:i keepdim:b=false": "all.dim any.dim max.dim min.dim",
    "self:T dim:I? keepdim:b=false": "all.dims any.dims",
    "input:T p:f train:b": "alpha_dropout.default dropout.default feature_dropout.default",
    "self:T dim:I=[] keepdim:b=false": "amax.default amin.default",
    "end:n dtype:d? | layout:k? device:k? pin_memory:b?": "arange.default",
    "start:n end:n dtype:d? | layout:k? device:k? pin_memory:b?": "arange.start",
    "start:n end:n step:n=1 dtype:d? | layout:k? device:k? pin_memory:b?": "arange.start_step",
    "self:T dim:i? keepdim:b=false": "argmax.default argmin.default",
    "self:T other:T":
        " bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_or.Tensor "
        "bitwise_right_shift.Tensor bitwise_xor.Tensor div.Tensor eq.Tensor expand_as.default "
        "floor_divide.default fmax.default fmin.default fmod.Tensor ge.Tensor gt.Tensor "
        "le.Tensor logical_and.default logical_or.default logical_xor.default lt.Tensor "
        "matmul.default max.other maximum.default min.other minimum.default mul.Tensor "
        "ne.Tensor remainder.Tensor reshape_as.default true_divide.Tensor type_as.default "
        "view_as.default "
        "__and__.Tensor __or__.Tensor __xor__.Tensor __lshift__.Tensor __rshift__.Tensor",
    "self:T kernel_size:I stride:I=[] padding:I=[0] ceil_mode:b=false count_include_pad:b=true":
        "avg_pool1d.default",
    "self:T kernel_size:I stride:I=[] padding:I=[0,0] ceil_mode:b=false "
    "count_include_pad:b=true divisor_override:i?": "avg_pool2d.default",
    "self:T kernel_size:I stride:I=[] padding:I=[0,0,0] ceil_mode:b=false "
    "count_include_pad:b=true divisor_override:i?": "avg_pool3d.default",
    "self:T batch1:T batch2:T beta:n=1 alpha:n=1": "baddbmm.default",
    "input:T weight:T? bias:T? running_mean:T? running_var:T? training:b momentum:f "
    "eps:f cudnn_enabled:b": "batch_norm.default",
    "self:T other:n":
        "bitwise_and.Scalar bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar "
        "bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar div.Scalar eq.Scalar fmod.Scalar "
        "ge.Scalar gt.Scalar le.Scalar lt.Scalar mul.Scalar ne.Scalar remainder.Scalar "
        "__and__.Scalar __or__.Scalar __xor__.Scalar __lshift__.Scalar __rshift__.Scalar",
    "self:T mat2:T": "bmm.default mm.default",
    "tensors:T* dim:i=0": "cat.default stack.default",
    "self:T alpha:n=1.0": "celu.default",
    "self:T chunks:i dim:i=0": "chunk.default",
    "self:T min:T? max:T?": "clamp.Tensor",
    "self:T min:n? max:n?": "clamp.default clip.default",
    "self:T max:n": "clamp_max.default",
    "self:T min:n": "clamp_min.default",
    "self:T | memory_format:k?": "clone.default contiguous.default",
    "self:T pad:I value:n=0": "constant_pad_nd.default",
    "input:T weight:T bias:T? stride:I=[1] padding:I=[0] dilation:I=[1] groups:i=1":
        "conv1d.default",
    'input:T weight:T bias:T? stride:I=[1] padding:s="valid" dilation:I=[1] groups:i=1':
        "conv1d.padding",
    "input:T weight:T bias:T? stride:I=[1,1] padding:I=[0,0] dilation:I=[1,1] groups:i=1":
        "conv2d.default",
    'input:T weight:T bias:T? stride:I=[1,1] padding:s="valid" dilation:I=[1,1] groups:i=1':
        "conv2d.padding",
    "input:T weight:T bias:T? stride:I=[1,1,1] padding:I=[0,0,0] dilation:I=[1,1,1] groups:i=1":
        "conv3d.default",
    'input:T weight:T bias:T? stride:I=[1,1,1] padding:s="valid" dilation:I=[1,1,1] groups:i=1':
        "conv3d.padding",
    "input:T weight:T bias:T? stride:I=[1] padding:I=[0] output_padding:I=[0] groups:i=1 "
    "dilation:I=[1]": "conv_transpose1d.default",
    "input:T weight:T bias:T? stride:I=[1,1] padding:I=[0,0] output_padding:I=[0,0] "
    "groups:i=1 dilation:I=[1,1]": "conv_transpose2d.input",
    "input:T weight:T bias:T? stride:I=[1,1,1] padding:I=[0,0,0] output_padding:I=[0,0,0] "
    "groups:i=1 dilation:I=[1,1,1]": "conv_transpose3d.input",
    "input:T weight:T bias:T? stride:I padding:I dilation:I transposed:b output_padding:I "
    "groups:i": "convolution.default",
    "self:T src:T | non_blocking:b": "copy.default",
    "self:T dim:i dtype:d?": "cumprod.default cumsum.default log_softmax.int softmax.int",
    "self:T other:n rounding_mode:s?": "div.Scalar_mode",
    "self:T other:T rounding_mode:s?": "div.Tensor_mode",
    "self:T tensor:T": "dot.default",
    "equation:s tensors:T* path:I?": "einsum.default",
    "self:T alpha:n=1 scale:n=1 input_scale:n=1": "elu.default",
    "weight:T indices:T padding_idx:i=-1 scale_grad_by_freq:b=false sparse:b=false":
        "embedding.default",
    "size:I dtype:d? | layout:k? device:k? pin_memory:b? memory_format:k?": "empty.memory_format",
    "self:T dtype:d? | layout:k? device:k? pin_memory:b? memory_format:k?":
        "empty_like.default ones_like.default zeros_like.default",
    "self:T size:I implicit:b=false": "expand.default",
    "n:i dtype:d? | layout:k? device:k? pin_memory:b?": "eye.default",
    "n:i m:i dtype:d? | layout:k? device:k? pin_memory:b?": "eye.m",
    "self:T value:n": "fill.Scalar",
    "self:T value:T": "fill.Tensor",
    "self:T start_dim:i=0 end_dim:i=-1": "flatten.using_ints",
    "self:T dims:I": "flip.default permute.default tile.default",
    "size:I fill_value:n dtype:d? | layout:k? device:k? pin_memory:b?": "full.default",
    "self:T fill_value:n dtype:d? | layout:k? device:k? pin_memory:b? memory_format:k?":
        "full_like.default",
    "self:T dim:i index:T sparse_grad:b=false": "gather.default",
    'self:T approximate:s="none"': "gelu.default",
    "self:T dim:i=-1": "glu.default",
    "input:T num_groups:i weight:T? bias:T? eps:f=1e-05 cudnn_enabled:b=true":
        "group_norm.default",
    "self:T min_val:n=-1 max_val:n=1": "hardtanh.default",
    "self:T dim:i index:T source:T alpha:n=1": "index_add.default",
    "self:T dim:i index:T source:T": "index_copy.default",
    "self:T dim:i index:T": "index_select.default",
    "input:T weight:T? bias:T? running_mean:T? running_var:T? use_input_stats:b "
    "momentum:f eps:f cudnn_enabled:b": "instance_norm.default",
    "input:T normalized_shape:I weight:T? bias:T? eps:f=1e-05 cudnn_enable:b=true":
        "layer_norm.default",
    "self:T negative_slope:n=0.01": "leaky_relu.default",
    "self:T end:T weight:n": "lerp.Scalar",
    "self:T ord:n=2 dim:I? keepdim:b=false dtype:d?": "linalg_vector_norm.default",
    "input:T weight:T bias:T?": "linear.default",
    "start:n end:n steps:i dtype:d? | layout:k? device:k? pin_memory:b?": "linspace.default",
    "self:T dim:I keepdim:b=false": "logsumexp.default",
    "self:T mask:T value:n": "masked_fill.Scalar",
    "self:T mask:T value:T": "masked_fill.Tensor",
    "self:T kernel_size:I stride:I=[] padding:I=[0] dilation:I=[1] ceil_mode:b=false":
        "max_pool1d.default",
    "self:T kernel_size:I stride:I=[] padding:I=[0,0] dilation:I=[1,1] ceil_mode:b=false":
        "max_pool2d.default max_pool2d_with_indices.default",
    "self:T kernel_size:I stride:I=[] padding:I=[0,0,0] dilation:I=[1,1,1] ceil_mode:b=false":
        "max_pool3d.default max_pool3d_with_indices.default",
    "self:T dtype:d?": "mean.default prod.default sum.default",
    "self:T dim:I? keepdim:b=false dtype:d?": "mean.dim sum.dim_IntList",
    "self:T source:i destination:i": "movedim.int",
    "self:T vec:T": "mv.default",
    "self:T nan:f? posinf:f? neginf:f?": "nan_to_num.default",
    "self:T dim:i start:i length:i": "narrow.default",
    "input:T weight:T? bias:T? running_mean:T? running_var:T? training:b momentum:f eps:f":
        "native_batch_norm.default",
    "input:T p:f train:b?": "native_dropout.default",
    "input:T weight:T? bias:T? N:i C:i HxW:i group:i eps:f": "native_group_norm.default",
    "input:T normalized_shape:I weight:T? bias:T? eps:f": "native_layer_norm.default",
    "self:T size:I dtype:d? | layout:k? device:k? pin_memory:b?":
        "new_empty.default new_ones.default new_zeros.default",
    "self:T size:I fill_value:n dtype:d? | layout:k? device:k? pin_memory:b?": "new_full.default",
    "self:T num_classes:i=-1": "one_hot.default",
    "size:I dtype:d? | layout:k? device:k? pin_memory:b?": "ones.default zeros.default",
    "self:T vec2:T": "outer.default",
    'self:T pad:I mode:s="constant" value:f?': "pad.default",
    "self:T upscale_factor:i": "pixel_shuffle.default",
    "self:T downscale_factor:i": "pixel_unshuffle.default",
    "self:n exponent:T": "pow.Scalar",
    "self:n other:T":
        "bitwise_and.Scalar_Tensor bitwise_left_shift.Scalar_Tensor bitwise_or.Scalar_Tensor "
        "bitwise_right_shift.Scalar_Tensor bitwise_xor.Scalar_Tensor remainder.Scalar_Tensor",
    "self:T exponent:n": "pow.Tensor_Scalar",
    "self:T exponent:T": "pow.Tensor_Tensor",
    "self:T dim:i keepdim:b=false dtype:d?": "prod.dim_int",
    "self:T padding:I":
        "reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default "
        "replication_pad1d.default replication_pad2d.default replication_pad3d.default",
    "self:T repeats:I": "repeat.default",
    "self:T shape:I": "reshape.default",
    "self:T shifts:I dims:I=[]": "roll.default",
    "s:n dtype:d? | layout:k? device:k? pin_memory:b?": "scalar_tensor.default",
    "query:T key:T value:T attn_mask:T? dropout_p:f=0.0 is_causal:b=false scale:f? "
    "enable_gqa:b=false": "scaled_dot_product_attention.default",
    "self:T dim:i index:T src:T reduce:s": "scatter.reduce",
    "self:T dim:i index:T src:T": "scatter.src scatter_add.default",
    "self:T dim:i index:T value:n": "scatter.value",
    "self:T dim:i index:T value:n reduce:s": "scatter.value_reduce",
    "self:T dim:i index:T src:T reduce:s include_self:b=true": "scatter_reduce.two",
    "self:T dim:i index:i": "select.int",
    "self:T src:T dim:i index:i": "select_scatter.default",
    "self:T dim:i=0 start:i? end:i? step:i=1": "slice.Tensor",
    "self:T src:T dim:i=0 start:i? end:i? step:i=1": "slice_scatter.default",
    "self:T beta:n=1 threshold:n=20": "softplus.default",
    "self:T dim:i=-1 descending:b=false": "sort.default",
    "self:T stable:b? dim:i=-1 descending:b=false": "sort.stable",
    "self:T split_size:i dim:i=0": "split.Tensor",
    "self:T split_sizes:I dim:i=0": "split_with_sizes.default",
    "self:T dim:i": "squeeze.dim sym_size.int unsqueeze.default",
    "self:T dim:I": "squeeze.dims",
    "self:T dim:I? correction:n? keepdim:b=false":
        "std.correction var.correction var_mean.correction",
    "self:T dim:I? unbiased:b=true keepdim:b=false": "std.dim var.dim",
    "self:T axis0:i axis1:i": "swapaxes.default",
    "self:T dim0:i dim1:i": "swapdims.default transpose.int",
    "self:T threshold:n value:n": "threshold.default",
    "self:T dtype:d | non_blocking:b copy:b memory_format:k?": "to.dtype",
    "self:T k:i dim:i=-1 largest:b=true sorted:b=true": "topk.default",
    "self:T diagonal:i=0": "tril.default triu.default",
    "self:T dim:i=0": "unbind.int",
    "self:T dim:i sizes:I": "unflatten.int",
    "self:T output_size:I align_corners:b scales:f?": "upsample_linear1d.default",
    "self:T output_size:I align_corners:b scales_d:f? scales_h:f? scales_w:f?":
        "upsample_trilinear3d.default",
    "condition:T self:n other:n": "where.Scalar",
    "condition:T self:T other:n": "where.ScalarOther",
    "condition:T self:n other:T": "where.ScalarSelf",
    "condition:T self:T other:T": "where.self",
    "self:T split_size:I dim:i=0":
        "split.sizes",
    "self:T repeats:i dim:i? output_size:i?":
        "repeat_interleave.self_int",
    "a:T size:I? stride:I? dtype:d? | device:k? layout:k?":
        "_assert_tensor_metadata.default",
    "self:T unbiased:b=true":
        "std.default var.default",
    "self:T mat2:T scales:T": "_weight_int8pack_mm.default",
    "input:T scale:f zero_point:i quant_min:i quant_max:i dtype:d":
        "quantized_decomposed.quantize_per_tensor.default",
    "input:T scale:T zero_point:T quant_min:i quant_max:i dtype:d":
        "quantized_decomposed.quantize_per_tensor.tensor",
    "input:T scale:f zero_point:i quant_min:i quant_max:i dtype:d out_dtype:d?":
        "quantized_decomposed.dequantize_per_tensor.default",
    "input:T scale:T zero_point:T quant_min:i quant_max:i dtype:d out_dtype:d?":
        "quantized_decomposed.dequantize_per_tensor.tensor",
    "input:T scales:T zero_points:T axis:i quant_min:i quant_max:i dtype:d":
        "quantized_decomposed.quantize_per_channel.default",
    "input:T scales:T zero_points:T? axis:i quant_min:i quant_max:i dtype:d out_dtype:d?":
        "quantized_decomposed.dequantize_per_channel.default",
    "input:T scales:T zero_points:T? quant_min:i quant_max:i dtype:d group_size:i output_dtype:d":
        "quantized_decomposed.dequantize_per_channel_group.default",
}  # fmt: skip


class Parameter(msgspec.Struct, frozen=True, gc=False):
    """An argument of a schema."""

    name: str
    kind: str  # the letter
    is_list: bool = False  # of tensors, or of what else stands alone in an instruction
    is_optional: bool = False  # it may be null
    has_default: bool = False
    default: Any = None
    is_storage: bool = False  # it says nothing about values


class Schema(msgspec.Struct, frozen=True):
    """The arguments of a call, in order."""

    call: str
    parameters: tuple[Parameter, ...]

    @property
    def written(self) -> tuple[Parameter, ...]:
        """The arguments that are written."""
        return tuple(p for p in self.parameters if not p.is_storage)


def parse(call: str, text: str) -> Schema:
    """A schema from its notation."""
    before, _, behind = text.partition("|")
    found = [_parameter(word, False) for word in before.split()]
    return Schema(call, (*found, *(_parameter(word, True) for word in behind.split())))


def _parameter(word: str, is_storage: bool) -> Parameter:
    name, _, rest = word.partition(":")
    kind, has_default, default = rest.partition("=")
    is_optional = "?" in kind
    value = msgspec.json.decode(default) if has_default else None
    return Parameter(
        name,
        kind[0],
        "*" in kind,
        is_optional,
        bool(has_default) or is_storage or (is_optional and "*" not in kind) or kind == "a*",
        tuple(value) if isinstance(value, list) else value,
        is_storage,
    )


@cache
def schemas() -> Mapping[str, Schema]:
    """Every schema by its call, `name.overload`."""
    found: dict[str, Schema] = {}
    for text, calls in _TABLE.items():
        for call in calls.split():
            found[call] = parse(call, text)
    return MappingProxyType(found)
