"""Products before a shuffle of pixels, where that leaves fewer elements to move."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.layout import layout
from nacre.compile.legalise import legalise
from nacre.core.builder import Builder
from nacre.core.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.models import inputs_of, values


def upsampled(channels: int) -> Module:
    """A transposed convolution, and a 1x1 behind it that leaves so many channels."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 6, 5, 4))
    weights = builder.constant(values((6, 8, 2, 2), 1, 0.4))
    y = builder.add("ConvTranspose", x, weights, strides=(2, 2))
    y = builder.add("ReluNan", y)
    after = builder.constant(values((channels, 8, 1, 1), 2, 0.4))
    return builder.module(builder.add("Conv", y, after))


@pytest.mark.parametrize("channels", [3, 8])
def test_a_product_that_leaves_fewer_channels_comes_before_the_shuffle(channels: int) -> None:
    module = upsampled(channels)
    legal = layout(legalise(module, "f32")).module
    opcodes = [op.opcode for op in legal.operations if op.opcode in ("Linear", "Transpose")]
    products = [at for at, opcode in enumerate(opcodes) if opcode == "Linear"]
    assert len(products) == 2
    between = opcodes[products[0] + 1 : products[1]]
    assert ("Transpose" in between) == (channels == 8)
    inputs = inputs_of(module)
    np.testing.assert_allclose(
        evaluate(legal, inputs)[0], evaluate(module, inputs)[0], rtol=1e-5, atol=1e-5
    )
