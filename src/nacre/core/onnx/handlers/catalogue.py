"""Every handler of a node: importing the modules registers theirs."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.core.onnx.handlers import (
    activations,
    attention,
    deform,
    elementwise,
    linear,
    losses,
    normalization,
    parts,
    pooling,
    quantized,
    quantized_products,
    reductions,
    refusals,
    resize,
    sampling,
    shapes,
    signals,
    windows,
)
from nacre.core.onnx.handlers.table import Handler, registered_handlers
from nacre.core.onnx.microsoft import attention as microsoft_attention
from nacre.core.onnx.microsoft import grouped_attention, reals
from nacre.core.onnx.microsoft import quantized as microsoft_quantized
from nacre.core.onnx.recurrent import layers
from nacre.core.onnx.recurrent import quantized as recurrent_quantized

MODULES = (
    activations,
    attention,
    deform,
    elementwise,
    linear,
    losses,
    normalization,
    parts,
    pooling,
    quantized,
    quantized_products,
    reductions,
    refusals,
    resize,
    sampling,
    shapes,
    signals,
    windows,
    grouped_attention,
    layers,
    microsoft_attention,
    microsoft_quantized,
    reals,
    recurrent_quantized,
)


def handlers() -> Mapping[str, Handler]:
    """Every handler by its operation."""
    return registered_handlers()
