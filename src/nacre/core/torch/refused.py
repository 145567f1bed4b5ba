"""Operations that cannot have a form, and what would do in their place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_RANDOM = ("it draws random numbers, which Core IR lacks", "pass the numbers as an input")
_ITEM = (
    "an element becomes a number of the program, on which shapes or paths may depend",
    "keep it a tensor: `index_copy_`, `index_select` and `torch.where` take tensors",
)
_COUNTED = (
    "the shape of the result depends on elements",
    "keep the shape and mask what does not count: `torch.where`",
)
_BRANCH = ("a branch is chosen when the model runs", "compute both and use `torch.where`")

# By overload: why, and the rewrite.
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("rand.default", "randn.default", "rand_like.default", "randn_like.default",
             "randint.default", "randint.low", "randperm.default", "bernoulli.default",
             "bernoulli.p", "multinomial.default", "normal.Tensor_Tensor", "uniform.default",
             "exponential.default", "normal_functional.default"), _RANDOM),
        **dict.fromkeys(
            ("item.default", "_local_scalar_dense.default"), _ITEM),
        **dict.fromkeys(
            ("nonzero.default", "nonzero_numpy.default", "masked_select.default",
             "_unique2.default", "unique_dim.default", "bincount.default",
             "repeat_interleave.Tensor", "argwhere.default"), _COUNTED),
        "cond": _BRANCH,
        "while_loop": ("a loop whose length is not known",
                       "unroll it, or run the body once for each call with its state as buffers"),
        "_assert_async.msg": ("it stops the model where an element is not as expected",
                              "check inputs before the model"),
    }
)  # fmt: skip
