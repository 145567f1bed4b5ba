"""Uses of every call that the runtime knows, with arguments as PyTorch takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nacre.core.values import Array

Case = tuple[str, tuple[Any, ...]]

_RANDOM = np.random.default_rng(7)


def f(*shape: int) -> Array:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def pos(*shape: int) -> Array:
    return _RANDOM.uniform(0.1, 2, shape).astype(np.float32)


def unit(*shape: int) -> Array:
    return _RANDOM.uniform(-0.9, 0.9, shape).astype(np.float32)


def i(*shape: int, low: int = -9, high: int = 9) -> Array:
    return _RANDOM.integers(low, high, shape).astype(np.int64)


def b(*shape: int) -> Array:
    return _RANDOM.integers(0, 2, shape).astype(bool)


_FLOATS = (
    "abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp",
    "exp2", "expm1", "floor", "hardsigmoid", "hardswish", "isfinite", "isinf", "isnan", "mish",
    "neg", "relu", "relu6", "round", "selu", "sigmoid", "sign", "silu", "sin", "sinh", "square",
    "tan", "tanh", "trunc", "alias", "detach", "lift_fresh_copy", "squeeze", "t", "max", "min",
    "any", "all",
)  # fmt: skip
_POSITIVE = ("log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt")
_BINARY = ("add", "sub", "mul", "div", "rsub", "eq", "ne", "lt", "le", "gt", "ge", "remainder",
           "fmod")  # fmt: skip
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _unary() -> Iterator[Case]:
    for name in _FLOATS:
        yield f"{name}.default", (unit(3, 4),)
    for name in _POSITIVE:
        yield f"{name}.default", (pos(3, 4),)
    yield "acosh.default", (pos(4) + 1,)
    yield "exp.default", (i(4, high=3),)
    yield "abs.default", (i(4),)
    yield "neg.default", (i(4),)
    yield "floor.default", (i(4),)
    yield "isnan.default", (i(4),)
    yield "bitwise_not.default", (i(4),)
    yield "bitwise_not.default", (b(4),)
    yield "logical_not.default", (i(4),)
    yield "max.default", (i(3, 4),)


def _binary() -> Iterator[Case]:
    for name in _BINARY:
        yield f"{name}.Tensor", (f(3, 4), pos(4))
        yield f"{name}.Scalar", (f(3, 4), 1.5)
        yield f"{name}.Tensor", (i(3, 4), pos(3, 1))
        yield f"{name}.Tensor", (i(3, 4), i(4, low=1))
        yield f"{name}.Scalar", (i(3, 4), 3)
    for name in ("add", "mul", "eq"):
        yield f"{name}.Tensor", (b(3, 4), b(4))
        yield f"{name}.Tensor", (f(3, 4), np.array(2.5))
        yield f"{name}.Tensor", (i(3, 4), np.array(2.5, np.float32))
        yield f"{name}.Tensor", (f(3).astype(np.float16), f(3))
    yield "add.Tensor", (f(3), f(3), 2)
    yield "sub.Scalar", (f(3), 2, 3)
    yield "rsub.Scalar", (f(3), 2, 3)
    for name in _BITWISE:
        yield f"{name}.Tensor", (i(4), i(4))
        yield f"{name}.Scalar", (i(4), 5)
        python = name.replace("bitwise", "_") + "__"
        yield f"{python}.Tensor", (b(4), b(4))
        yield f"{python}.Scalar", (i(4), 5)
        yield f"{name}.Scalar_Tensor", (5, i(4))
    yield "remainder.Scalar_Tensor", (7, i(4, low=1))
    yield "remainder.Scalar_Tensor", (2.5, pos(4))
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        yield f"{name}.Tensor", (i(4, low=0), i(4, low=0, high=5))
        yield f"{name}.Tensor_Scalar", (i(4, low=0), 2)
        yield f"{name}.Scalar_Tensor", (9, i(4, low=0, high=5))
    for name in ("__lshift__", "__rshift__"):
        yield f"{name}.Tensor", (i(4, low=0), i(4, low=0, high=5))
        yield f"{name}.Scalar", (i(4, low=0), 2)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield f"{name}.default", (i(5, low=0, high=2), b(5))
    for name in ("maximum", "minimum", "fmax", "fmin"):
        yield f"{name}.default", (np.array([1, np.nan, 3], np.float32), f(3))
    yield "max.other", (i(4), i(4))
    yield "min.other", (f(4), f(4))
    for mode in (None, "floor", "trunc"):
        yield "div.Tensor_mode", (f(6), pos(6), mode)
        yield "div.Scalar_mode", (f(6), -1.5, mode)
    yield "div.Tensor_mode", (i(6), i(6, low=1), "floor")
    close = np.array([1, -1, 0.3, 6, -0.0, 2], np.float32)  # quotients near to whole numbers
    yield "div.Tensor_mode", (close, np.array([0.1, 0.1, 0.1, -0.6, 2, 0], np.float32), "floor")
    yield "true_divide.Tensor", (i(6), i(6, low=1))
    yield "floor_divide.default", (i(6), i(6, low=1))
    for exponent in (2, 1, 0.5, -0.5, -1, 3, 2.5):
        yield "pow.Tensor_Scalar", (pos(5), exponent)
    yield "pow.Tensor_Scalar", (i(5), 3)
    yield "pow.Scalar", (2.0, f(5))
    yield "pow.Tensor_Tensor", (pos(5), f(5))
    yield "addcmul.default", (f(3), f(3), f(3), 0.5)
    yield "addcdiv.default", (f(3), f(3), pos(3), 2)
    yield "lerp.Scalar", (f(3), f(3), 0.3)
    yield "lerp.Scalar", (f(3), f(3), 0.7)


def _choices() -> Iterator[Case]:
    yield "where.self", (b(3, 4), f(3, 4), f(4))
    yield "where.self", (b(3, 4), i(3, 4), f(4))
    yield "where.ScalarOther", (b(3), f(3), 0.5)
    yield "where.ScalarSelf", (b(3), 0.5, f(3))
    yield "where.Scalar", (b(3), 1.5, 2.5)
    yield "masked_fill.Scalar", (f(3, 4), b(4), -1e9)
    yield "masked_fill.Tensor", (f(3, 4), b(4), np.array(2.0, np.float32))
    yield "clamp.default", (f(6), -0.5, 0.5)
    yield "clamp.default", (f(6), None, 0.5)
    yield "clamp.default", (i(6), -2, 3)
    yield "clamp.Tensor", (f(6), f(6) - 1, f(6) + 1)
    yield "clip.default", (f(6), -0.5, None)
    yield "clamp_min.default", (f(6), 0.1)
    yield "clamp_max.default", (f(6), 0.1)
    yield "hardtanh.default", (f(6), -0.3, 0.3)
    yield "threshold.default", (f(6), 0.1, 7.0)
    yield "threshold.default", (np.array([np.nan, 1, -1], np.float32), 0.1, 7.0)
    yield "nan_to_num.default", (np.array([1, np.nan, np.inf, -np.inf], np.float32), 5.0)
    yield "copy.default", (f(3, 4), i(4))
    yield "fill.Scalar", (i(3), 4)
    yield "fill.Tensor", (f(3), np.array(2.0, np.float32))
    yield "type_as.default", (f(4) * 9, i(1))
    for name in ("dropout", "feature_dropout", "alpha_dropout"):
        yield f"{name}.default", (f(3), 0.5, False)
    yield "native_dropout.default", (f(3), 0.5, False)
    yield "clone.default", (f(3),)
    yield "contiguous.default", (f(3),)


def _activations() -> Iterator[Case]:
    yield "gelu.default", (f(9), "none")
    yield "leaky_relu.default", (f(9), 0.2)
    yield "elu.default", (f(9), 1.5)
    yield "elu.default", (f(9), 1.5, 1.2, 0.7)
    yield "celu.default", (f(9), 1.5)
    yield "softplus.default", (f(9) * 9,)
    yield "softplus.default", (f(9) * 9, 2.0, 3.0)
    yield "prelu.default", (f(2, 3, 4), f(3))
    yield "_prelu_kernel.default", (f(2, 3, 4), f(3, 1))
    yield "glu.default", (f(3, 8), -1)
    yield "log_sigmoid.default", (f(9),)


def _shapes() -> Iterator[Case]:
    for name in ("view", "_unsafe_view", "reshape"):
        yield f"{name}.default", (f(3, 4), [2, -1])
    yield "view_as.default", (f(3, 4), f(2, 6))
    yield "reshape_as.default", (f(3, 4), f(2, 6))
    yield "flatten.using_ints", (f(2, 3, 4), 1, -1)
    yield "unflatten.int", (f(2, 12), 1, [3, -1])
    yield "unsqueeze.default", (f(3, 4), -1)
    yield "unsqueeze.default", (np.array(2.0, np.float32), 0)
    yield "squeeze.default", (f(1, 3, 1),)
    yield "squeeze.dim", (f(1, 3, 1), 0)
    yield "squeeze.dim", (f(1, 3, 1), 1)
    yield "squeeze.dims", (f(1, 3, 1), [0, 2])
    yield "permute.default", (f(2, 3, 4), [2, 0, -2])
    yield "transpose.int", (f(2, 3, 4), 0, -1)
    yield "numpy_T.default", (f(2, 3),)
    yield "mT.default", (f(2, 3, 4),)
    yield "split.sizes", (f(5, 3), [2, 3], 0)
    yield "repeat_interleave.self_int", (f(2, 3), 2, 1)
    yield "repeat_interleave.self_int", (f(2, 3), 2)
    yield "swapaxes.default", (f(2, 3, 4), 0, 1)
    yield "swapdims.default", (f(2, 3, 4), 0, 1)
    yield "movedim.int", (f(2, 3, 4), 0, 2)
    yield "expand.default", (f(3, 1), [2, -1, 4])
    yield "expand_as.default", (f(3, 1), f(3, 4))
    yield "repeat.default", (f(2, 3), [2, 1, 2])
    yield "tile.default", (f(2, 3), [2])
    yield "cat.default", ([f(2, 3), f(2, 2)], 1)
    yield "cat.default", ([i(2, 3), f(1, 3)],)
    yield "stack.default", ([f(2, 3), f(2, 3)], -1)
    yield "split.Tensor", (f(5, 3), 2, 0)
    yield "split_with_sizes.default", (f(5, 3), [2, 3], 0)
    yield "chunk.default", (f(7, 3), 3, 0)
    yield "unbind.int", (f(3, 2), 0)
    yield "slice.Tensor", (f(5, 6), 1, 1, -1, 2)
    yield "slice.Tensor", (f(5, 6), 0, 0, 9223372036854775807)
    yield "narrow.default", (f(5, 6), 1, 2, 3)
    yield "select.int", (f(5, 6), 1, -2)
    yield "flip.default", (f(5, 6), [0, -1])
    yield "roll.default", (f(5, 6), [2, -1], [0, 1])
    yield "roll.default", (f(5, 6), [2])
    yield "constant_pad_nd.default", (f(2, 3), [1, 2, 0, 1], 3.0)
    yield "pad.default", (f(1, 3, 4), [1, 2], "reflect")
    for rank in (1, 2, 3):
        dims = (1, 2, *[4] * rank)
        yield f"reflection_pad{rank}d.default", (f(*dims), [1, 2] * rank)
        yield f"replication_pad{rank}d.default", (f(*dims), [1, 2] * rank)
    yield "pixel_shuffle.default", (f(2, 8, 3, 3), 2)
    yield "pixel_unshuffle.default", (f(2, 2, 6, 6), 2)
    yield "tril.default", (f(4, 5), 1)
    yield "triu.default", (f(4, 5), -1)
    yield "sym_size.int", (f(4, 5), -1)
    yield "numel.default", (f(4, 5),)


def _indexing() -> Iterator[Case]:
    yield "embedding.default", (f(9, 4), i(2, 3, low=0))
    yield "index_select.default", (f(5, 6), 1, i(3, low=0, high=6))
    yield "gather.default", (f(5, 6), 1, i(4, 2, low=0, high=6))
    yield "index.Tensor", (f(5, 6), [None, i(3, low=0, high=6)])
    yield "index.Tensor", (f(5, 6), [i(3, low=0, high=5), i(2, 1, low=0, high=6)])
    yield "index.Tensor", (f(4, 5, 6), [i(3, low=0, high=4), None, i(3, low=0, high=6)])
    yield "index.Tensor", (f(4, 5, 6), [None, i(3, low=0, high=4), i(3, low=0, high=5)])
    yield "index.Tensor", (f(4, 5), [np.array([True, False, True, True])])
    yield "_unsafe_index.Tensor", (f(5, 6), [i(3, low=0, high=5)])
    yield "one_hot.default", (i(5, low=0, high=4), 6)
    yield "one_hot.default", (i(5, low=0, high=4),)
    yield "slice_scatter.default", (f(5, 6), f(2, 6), 0, 1, 3)
    yield "slice_scatter.default", (f(5, 6), f(5, 3), 1, 0, 6, 2)
    yield "select_scatter.default", (f(5, 6), f(6), 0, 2)
    yield "index_copy.default", (f(5, 6), 1, np.array([0, 3]), f(5, 2))
    yield "index_put.default", (f(5, 6), [np.array([0, 3])], f(2, 6))
    yield "index_put.default", (f(5, 6), [None, np.array([0, 3])], f(5, 2), True)
    yield "index_put.default", (f(5, 6), [np.array([0, 3]), np.array([1, 1])], f(2))
    yield "_unsafe_index_put.default", (f(5, 6), [np.array([0, 3])], f(2, 6))
    yield "index_put.default", (f(5, 6), [b(5, 6)], f(1))
    yield "index_put.default", (f(5, 6), [b(5)], f(6), True)
    yield "index_put.default", (f(5, 6), [None, b(6)], np.array(2.0, np.float32))
    yield "index_put.default", (f(4, 6), [np.array([True, False, True, True])], f(3, 6))
    yield "index_add.default", (f(5, 6), 0, np.array([0, 3, 0]), f(3, 6), 2)
    at = i(3, 2, low=0, high=5)
    unique = np.array([[0, 1], [2, 3], [4, 0]])
    yield "scatter.src", (f(5, 6), 0, unique, f(3, 2))
    yield "scatter.value", (f(5, 6), 0, unique, 2.0)
    yield "scatter_add.default", (f(5, 6), 0, at, f(3, 2))
    yield "scatter.reduce", (f(5, 6), 0, at, f(3, 2), "add")
    yield "scatter.value_reduce", (f(5, 6), 0, unique, 2.0, "multiply")
    yield "scatter_reduce.two", (f(5, 6), 0, at, f(3, 2), "amax")


def _linear() -> Iterator[Case]:
    yield "linear.default", (f(2, 3, 4), f(5, 4), f(5))
    yield "linear.default", (f(4), f(5, 4))
    yield "matmul.default", (f(2, 3, 4), f(4, 5))
    yield "matmul.default", (f(4), f(2, 4, 5))
    yield "matmul.default", (f(2, 3, 4), f(4))
    yield "matmul.default", (f(4), f(4))
    yield "mm.default", (f(3, 4), f(4, 5))
    yield "bmm.default", (f(2, 3, 4), f(2, 4, 5))
    yield "mv.default", (f(3, 4), f(4))
    yield "dot.default", (f(4), f(4))
    yield "outer.default", (f(3), f(4))
    yield "addmm.default", (f(5), f(3, 4), f(4, 5), 0.5, 2)
    yield "baddbmm.default", (f(2, 3, 5), f(2, 3, 4), f(2, 4, 5))
    yield "addmv.default", (f(3), f(3, 4), f(4))
    yield "einsum.default", ("bij,bjk->bik", [f(2, 3, 4), f(2, 4, 5)])
    q, k, v = f(2, 4, 5, 8), f(2, 4, 6, 8), f(2, 4, 6, 8)
    yield "scaled_dot_product_attention.default", (q, k, v)
    yield "scaled_dot_product_attention.default", (q, q, q, None, 0.0, True)
    yield "scaled_dot_product_attention.default", (q, k, v, f(5, 6), 0.0, False)
    flash = "_scaled_dot_product_flash_attention_for_cpu.default"
    yield flash, (q, k, v)


def _windows() -> Iterator[Case]:
    yield "conv1d.default", (f(2, 4, 9), f(6, 2, 3), f(6), [2], [1], [2], 2)
    yield "conv2d.default", (f(2, 3, 9, 8), f(6, 3, 3, 2), f(6), [2, 1], [1, 0], [1, 2])
    yield "conv2d.default", (f(3, 9, 8), f(6, 3, 3, 2))
    yield "conv3d.default", (f(1, 2, 5, 5, 5), f(3, 2, 2, 2, 2), None, [1, 2, 1])
    for rank in (1, 2, 3):
        dims = [5] * rank
        yield (
            f"conv{rank}d.padding",
            (f(1, 2, *dims), f(3, 2, *[3] * rank), None, [1] * rank, "same"),
        )
        shape = (f(1, 4, *dims), f(4, 3, *[3] * rank), f(3), [2] * rank, [1] * rank, [1] * rank)
        overload = "default" if rank == 1 else "input"
        yield f"conv_transpose{rank}d.{overload}", shape
    given = (f(2, 3, 9, 8), f(6, 3, 3, 3), f(6), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    yield "convolution.default", given
    back = (f(2, 6, 4, 4), f(6, 3, 3, 3), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1)
    yield "convolution.default", back
    for rank in (1, 2, 3):
        x = f(2, 3, *[8] * rank)
        yield f"max_pool{rank}d.default", (x, [3] * rank, [2] * rank, [1] * rank)
        yield f"avg_pool{rank}d.default", (x, [3] * rank, [2] * rank, [1] * rank, True, False)
        yield f"adaptive_avg_pool{rank}d.default", (x, [3] * rank)
        yield f"adaptive_max_pool{rank}d.default", (x, [4] * rank)
    yield "max_pool2d.default", (f(3, 8, 8), [2, 2])
    yield "avg_pool2d.default", (f(2, 3, 8, 8), [3, 3], [2, 2], [1, 1], False, True, 5)
    yield "avg_pool2d.default", (f(2, 3, 8, 7), [3, 2], [2, 2], [1, 0], True, True, 5)
    yield "max_pool2d_with_indices.default", (f(2, 3, 8, 8), [2, 2])
    yield "max_pool3d_with_indices.default", (f(1, 2, 4, 4, 4), [2, 2, 2])
    yield "_adaptive_avg_pool2d.default", (f(2, 3, 8, 8), [1, 1])
    yield "_adaptive_avg_pool3d.default", (f(2, 3, 4, 4, 4), [2, 2, 2])
    yield "adaptive_avg_pool2d.default", (f(2, 3, 8, 8), [4, 2])


def _resizing() -> Iterator[Case]:
    for rank in (1, 2, 3):
        x = f(1, 2, *[4] * rank)
        for name in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
            yield f"{name}.vec", (x, None, [2.0] * rank)
            yield f"{name}.default", (x, [7] * rank)
    for name, rank in (("upsample_linear1d", 1), ("upsample_bilinear2d", 2),
                       ("upsample_trilinear3d", 3), ("upsample_bicubic2d", 2),
                       ("_upsample_bilinear2d_aa", 2), ("_upsample_bicubic2d_aa", 2)):  # fmt: skip
        x = f(1, 2, *[4] * rank)
        yield f"{name}.vec", (x, [7] * rank, False, None)
        yield f"{name}.default", (x, [7] * rank, False)
    yield "upsample_bilinear2d.default", (f(1, 2, 4, 4), [7, 6], True)


def _normalization() -> Iterator[Case]:
    for name in ("softmax", "log_softmax"):
        yield f"{name}.int", (f(3, 4), -1)
        yield f"_{name}.default", (f(3, 4), 0, False)
    yield "layer_norm.default", (f(2, 3, 4), [4], f(4), f(4), 1e-5)
    yield "native_layer_norm.default", (f(2, 3, 4), [3, 4], None, None, 1e-5)
    yield "rms_norm.default", (f(2, 3, 4), [4], f(4))
    yield "group_norm.default", (f(2, 6, 4, 3), 3, f(6), f(6))
    yield "native_group_norm.default", (f(2, 6, 4, 3), f(6), f(6), 2, 6, 12, 2, 1e-5)
    yield "instance_norm.default", (f(2, 3, 4, 4), f(3), f(3), None, None, True, 0.1, 1e-5, False)
    stats = (f(2, 3, 4, 4), f(3), f(3), f(3), pos(3))
    yield "batch_norm.default", (*stats, False, 0.1, 1e-5, False)
    yield "native_batch_norm.default", (*stats, False, 0.1, 1e-5)
    yield "_native_batch_norm_legit.default", (*stats, False, 0.1, 1e-5)
    yield "_native_batch_norm_legit_functional.default", (*stats, False, 0.1, 1e-5)
    yield "_native_batch_norm_legit_no_training.default", (*stats, 0.1, 1e-5)
    yield "_batch_norm_no_update.default", (*stats, 0.1, 1e-5)


def _reductions() -> Iterator[Case]:
    for name in ("sum.default", "mean.default", "prod.default", "argmax.default", "argmin.default"):
        yield name, (f(3, 4),)
    for name in (
        "sum.dim_IntList",
        "mean.dim",
        "amax.default",
        "amin.default",
        "logsumexp.default",
    ):
        yield name, (f(2, 3, 4), [0, -1], True)
    yield "sum.default", (b(3, 4),)
    yield "sum.dim_IntList", (i(3, 4).astype(np.int32), [0])
    yield "sum.dim_IntList", (f(3, 4), None)
    yield "prod.dim_int", (f(3, 4), 1, True)
    for name in ("any", "all"):
        yield f"{name}.dim", (b(3, 4), 1)
        yield f"{name}.dims", (f(3, 4), [0, 1], True)
    yield "max.dim", (f(3, 4), 1)
    yield "min.dim", (f(3, 4), 0, True)
    yield "argmax.default", (f(3, 4), 1, True)
    yield "cumsum.default", (i(3, 4).astype(np.int32), 1)
    yield "cumprod.default", (f(3, 4), 0)
    yield "linalg_vector_norm.default", (f(3, 4), 2, [1])
    yield "linalg_vector_norm.default", (f(3, 4), 3, None, True)
    yield "var.default", (f(3, 4),)
    yield "std.default", (f(3, 4), False)
    yield "var.dim", (f(3, 4), [1])
    yield "std.dim", (f(3, 4), [0], False, True)
    yield "topk.default", (f(3, 9), 4)
    yield "sort.default", (f(3, 9), 1, True)
    yield "sort.stable", (i(3, 9), True, 1, False)


def _creation() -> Iterator[Case]:
    for name in ("zeros", "ones"):
        yield f"{name}.default", ([2, 3],)
    for name in ("zeros_like", "ones_like"):
        yield f"{name}.default", (i(2, 3),)
    for name in ("new_zeros", "new_ones"):
        yield f"{name}.default", (i(2), [3, 4])
    yield "full.default", ([2, 3], 7)
    yield "full.default", ([2, 3], 7.5)
    yield "full_like.default", (f(2, 3), 7)
    yield "new_full.default", (f(2), [3], 7)
    yield "scalar_tensor.default", (3.5,)
    yield "arange.default", (5,)
    yield "arange.default", (2.5,)
    yield "arange.start", (2, 7)
    yield "arange.start_step", (1, 9, 3)
    yield "arange.start_step", (0.5, 3.0, 0.25)
    yield "linspace.default", (0.0, 1.0, 7)
    yield "eye.default", (3,)
    yield "eye.m", (3, 4)


def _few_axes() -> Iterator[Case]:
    """As few axes as a call takes, and one more than it needs."""
    yield "pixel_shuffle.default", (f(8, 3, 3), 2)
    yield "pixel_unshuffle.default", (f(2, 2, 2, 4, 4), 2)
    yield "linear.default", (f(2, 3, 4), f(4))
    yield "linear.default", (f(4), f(4))


CASES: tuple[Case, ...] = tuple(
    case
    for family in (_unary, _binary, _choices, _activations, _shapes, _indexing, _linear, _windows,
                   _resizing, _normalization, _reductions, _creation, _few_axes)
    for case in family()
)  # fmt: skip
# Those whose arguments are keywords in PyTorch: `dtype`, a correction.
KEYWORD_CASES: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("_to_copy.default", (f(3) * 9,), {"dtype": "int32"}),
    ("to.dtype", (i(3), "bool"), {}),
    ("zeros.default", ([2],), {"dtype": "int64"}),
    ("full.default", ([2], 3), {"dtype": "bool"}),
    ("arange.default", (5,), {"dtype": "float32"}),
    ("sum.dim_IntList", (i(3, 4), [0]), {"dtype": "float32"}),
    ("softmax.int", (f(3, 4).astype(np.float16), 1), {"dtype": "float32"}),
    ("cumsum.default", (i(3, 4), 1), {"dtype": "float32"}),
    ("var.correction", (f(3, 4), [1]), {"correction": 0}),
    ("std.correction", (f(3, 4), [1]), {"correction": 1, "keepdim": True}),
    ("var_mean.correction", (f(3, 4), None), {"correction": 1}),
    ("gelu.default", (f(9),), {"approximate": "tanh"}),
    ("add.Tensor", (f(3), f(3)), {"alpha": 3}),
    (
        "scaled_dot_product_attention.default",
        (f(1, 4, 5, 8), f(1, 2, 6, 8), f(1, 2, 6, 8)),
        {"scale": 0.3, "enable_gqa": True},
    ),
    ("_fused_rms_norm.default", (f(2, 4), [4], f(4), 1e-6), {}),
)
# What PyTorch has behind an export: tests/core/torch/test_quantised_exports.py.
EXPORTED = frozenset(
    {
        "_weight_int8pack_mm.default",
        *(f"quantized_decomposed.{name}" for name in (
            "quantize_per_tensor.default", "quantize_per_tensor.tensor",
            "dequantize_per_tensor.default", "dequantize_per_tensor.tensor",
            "quantize_per_channel.default", "dequantize_per_channel.default",
            "dequantize_per_channel_group.default")),
    }
)  # fmt: skip
# Nothing that PyTorch computes could be compared: memory that nothing fills, other machines.
WITHOUT_ORACLE = EXPORTED | {
    "empty.memory_format", "empty_like.default", "new_empty.default",
    "_scaled_dot_product_efficient_attention.default", "_assert_tensor_metadata.default",
}  # fmt: skip
