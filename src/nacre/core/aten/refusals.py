"""Operations that cannot have a form, and what would do in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.aten.remedies import EVAL, OTHERWISE

_RANDOM = ("it draws random numbers, which Core IR lacks", "pass the numbers as an input")
_ITEM = (
    "an element becomes a number of the program, on which shapes or paths may depend",
    "keep it a tensor: `index_copy_`, `index_select` and `torch.where` take tensors",
)
CHECKED = (
    "it is a check of elements (an assert): it stops the model where one is not as expected",
    "check inputs before the model",
)
_COUNTED = (
    "the shape of the result depends on elements",
    "keep the shape and mask what does not count: `torch.where`, or `torch.nonzero_static`",
)
_CHOSEN = (
    "how many places are chosen depends on elements",
    "choose a known number of them; `repeat_interleave` takes `output_size=`",
)
LOOP = (
    "a loop whose length is not known",
    "unroll it, or run the body once for each call with its state as buffers",
)
TRAINING = ("it normalises by this batch and keeps statistics, as in training", EVAL)
_BITS = ("it looks at the bits of floats, which Core IR does not", OTHERWISE)

# By overload: why, and the rewrite.
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("rand.default", "randn.default", "rand_like.default", "randn_like.default",
             "randint.default", "randint.low", "randperm.default", "bernoulli.default",
             "bernoulli.p", "multinomial.default", "normal.Tensor_Tensor", "uniform.default",
             "exponential.default", "normal_functional.default", "rrelu_with_noise.default",
             "rrelu_with_noise_functional.default"), _RANDOM),
        **dict.fromkeys(
            ("item.default", "_local_scalar_dense.default"), _ITEM),
        **dict.fromkeys(
            ("nonzero.default", "nonzero_numpy.default", "masked_select.default",
             "_unique2.default", "unique_dim.default", "unique_consecutive.default",
             "argwhere.default"), _COUNTED),
        "bincount.default": (
            "the shape of the result depends on elements",
            "count up to a known number: `(x[:, None] == torch.arange(n)).sum(0)`"),
        "repeat_interleave.Tensor": (
            "how long the result is depends on elements", "say it: `output_size=`"),
        "embedding_renorm.default": (
            "it makes rows of the table shorter as they are looked up",
            "do it once before: `torch.renorm(weight, 2, 0, max_norm)`, and leave `max_norm` out"),
        "fractional_max_pool2d.default": ("its windows are drawn at random", "use `max_pool2d`"),
        "fractional_max_pool3d.default": ("its windows are drawn at random", "use `max_pool3d`"),
        **dict.fromkeys(
            ("_native_batch_norm_legit.no_stats", "_batch_norm_with_update_functional.default"),
            TRAINING),
        "_assert_async.msg": CHECKED, "_assert_async.default": CHECKED,
        **dict.fromkeys(
            ("as_strided.default", "as_strided_scatter.default"),
            ("it goes by distances in memory, of a tensor that has gaps there",
             "call `.contiguous()` before")),
        "resize_.default": ("it changes the size of a tensor in place",
                            "take a slice, or join the tensor with zeros by `torch.cat`"),
        "view.dtype": _BITS, "frexp.Tensor": _BITS, "nextafter.default": _BITS,
        "gcd.default": LOOP, "lcm.default": LOOP,
        "with_effects": ("it does something beside its result, such as to check or to print",
                         "leave it out of the model"),
    }
)  # fmt: skip

COMPLEX = (
    "it works on complex numbers, which Core IR lacks",
    "keep real and imaginary parts apart; a transform of a fixed length is a product with the"
    " matrices of its cosines and sines",
)
_MATRICES = (
    "it takes a matrix apart, by steps that depend on elements",
    "compute it before the model, and keep the result as a buffer",
)
_GRADIENT = ("it computes a gradient", f"export the model for inference: {EVAL}")
_EXPERTS = (
    "how many rows each expert gets depends on elements",
    'for models of `transformers` call `model.set_experts_implementation("batched_mm")` before',
)
_SPECIAL = ("no operation of Core IR computes this function to full precision", OTHERWISE)

# Families of calls, by a part of the name.
_FAMILIES: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = tuple(
    (re.compile(pattern), answer)
    for pattern, answer in (
        (r"_backward\b", _GRADIENT),
        (r"grouped_mm", _EXPERTS),
        (r"^_?fft_|^_?stft|^istft|complex|^polar\.|^angle\.|^_conj|^real\.|^imag\.", COMPLEX),
        (r"^_?linalg_(?!vector_norm)|cholesky|^lu_|^ormqr|^geqrf|^triangular_solve", _MATRICES),
        (r"^special_|gamma\.|^i0|^igamma|^polygamma|^mvlgamma|^bessel", _SPECIAL),
        (r"random|dropout|normal\.|geometric\.|cauchy|log_normal", _RANDOM),
        (r"^_ctc_loss|_loss\b|_loss2d|_loss_forward", (
            "it is a loss, which inference does not need", "leave the loss out of `forward`")),
        (r"sparse|^_to_dense|csr|coo", (
            "it works on sparse tensors, which Core IR lacks", "use `.to_dense()` before")),
        (r"^quantize|^dequantize|quantized", (
            "it works on tensors with a scale of their own, which Core IR lacks",
            "export it from PT2E, in f32, or as ONNX with QuantizeLinear and DequantizeLinear")),
    )
)  # fmt: skip


def explain_open_shape(key: str) -> tuple[str, str]:
    """Why a call whose result has no known shape has no form, and what would do."""
    return REFUSED.get(key, _COUNTED) if key != "index_select.default" else _CHOSEN


def explain_refusal(key: str) -> tuple[str, str]:
    """Why a call has no form that nothing takes, and what would do."""
    refusal = REFUSED.get(key)
    if refusal is not None:
        return refusal
    for pattern, answer in _FAMILIES:
        if pattern.search(key):
            return answer
    if "." in key and key.count(".") > 1:
        return f"it belongs to `{key.split('.')[0]}`, not to ATen", OTHERWISE
    return "the operation is not known", OTHERWISE
