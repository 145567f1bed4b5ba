"""The rewrites for inference in their order."""

from __future__ import annotations

from nacre.core.canonical import canonicalise
from nacre.core.module import Module
from nacre.core.passes.runner import OnPass, Pass, run_passes
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.inexact import scales, transposes
from nacre.core.rewrite.recover.activations import ACTIVATIONS
from nacre.core.rewrite.recover.attention import ATTENTION
from nacre.core.rewrite.recover.norms import NORMS, SCALES_AND_BIASES
from nacre.core.rewrite.recover.reductions import REDUCTIONS
from nacre.core.rewrite.site import merge_rules


def recover_activations(module: Module) -> Module:
    """Put one operation in the place of those that spell out an activation.

    - 1 / (1 + Exp(-x)) to `Sigmoid`, Log(1 + Exp(x)) to `Softplus`
    - x * Sigmoid(x), x / (1 + Exp(-x)) to `Silu`
    - x * HardSigmoid(x) of slope 1 / 6, x * Clip(x + 3, 0, 6) / 6 to `HardSwish`
    - x / 2 * (1 + Erf(x / sqrt(2))) to `Gelu`, and so its approximation by `Tanh`
    - x where it is above 0, else 0, to `Relu`
    """
    return apply_once(module, ACTIVATIONS)


def recover_norms(module: Module) -> Module:
    """Put one operation in the place of those that spell out a norm, a mean or a softmax.

    - (x - Mean(x)) / sqrt(Mean(square) + epsilon) to `LayerNorm`, however it is multiplied out
    - x / sqrt(Mean(x * x) + epsilon) to `RmsNorm`
    - Sum(x) / count to `Mean`, Exp(x) / Sum(Exp(x)) to `Softmax`
    - a constant that a norm is multiplied by, or that is added to it, to its scale and bias
    """
    return apply_once(apply_once(module, merge_rules(REDUCTIONS, NORMS)), SCALES_AND_BIASES)


def recover_attention(module: Module) -> Module:
    """Put `Attention` in the place of the products and the softmax that spell it out.

    - MatMul(Softmax(MatMul(q, Transpose(k)) * scale + mask), v)
    """
    return apply_once(module, ATTENTION)


def fold_scales(module: Module) -> Module:
    """Move what happens to single channels into the weights before it.

    - `BatchNorm` after `Conv`, `ConvTranspose`, `Linear`, `MatMul`
    - a product times, over, plus or minus a constant a channel
    - `Pad` with zeros before `Conv` to its pads
    """
    patterns = {"BatchNorm": [scales.batch_norm], "BinOp": [scales.scale], "Conv": [scales.pad]}
    return apply_once(module, patterns)


def sink_transposes(module: Module) -> Module:
    """Move transpositions down until they meet, and drop those that do nothing.

    - an elementwise operation, `Concat`, `Pad`, `Slice`, `Resize`, `Softmax`, `BatchNorm` or a
      reduction of transposed tensors to the transposition of its result
    - two `Transpose`s to one or none; one that moves axes of size 1 only to `Reshape`
    """
    return apply_once(apply_once(module, transposes.SINKING), transposes.IDLE)


def channels_last(module: Module) -> Module:
    """Give convolutions and poolings their channels last, and cancel what that transposes.

    - `Conv`, `ConvTranspose` and poolings in NCHW to NHWC between two transpositions
    """
    return sink_transposes(apply_once(module, transposes.LAST))


INFERENCE: tuple[Pass, ...] = (
    Pass("recover-activations", recover_activations),
    Pass("recover-norms", recover_norms),
    Pass("recover-attention", recover_attention),
    Pass("fold-scales", fold_scales),
    Pass("sink-transposes", sink_transposes),
)


def optimise(module: Module, *, until: str | None = None, on_pass: OnPass | None = None) -> Module:
    """A module with nearly the same values in fewer operations, in canonical form.

    The last bits of floats may differ: scales move into weights.
    """
    made = run_passes(canonicalise(module), INFERENCE, until=until, on_pass=on_pass)
    return canonicalise(made)
