"""Products before a shuffle of pixels, and channels in the order that it wants."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.stage import legalise
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
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


SPLIT = {
    "pixels": ((32, 2, 2), (0, 1, 4, 2, 5, 3)),
    "rows": ((16, 2, 4), (0, 1, 4, 2, 3, 5)),
    "swapped": ((8, 16), (0, 1, 2, 4, 3)),
}


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("name", SPLIT)
def test_channels_are_computed_in_the_order_that_follows(name: str, window: int) -> None:
    """No transposition of channels is left, only of whole runs of them."""
    parts, order = SPLIT[name]
    builder = Builder()
    x = builder.input("x", "f32", (1, 6, 5, 4))
    weights = builder.constant(values((window, window, 4, 128), 1, 0.4))
    bias = builder.constant(values((128,), 2))
    around = (window // 2,) * 4
    y = builder.add("Conv", x, weights, bias, layout="NHWC", pads=around)
    y = builder.add("Reshape", y, new_shape=(1, 6, 5, *parts))
    module = builder.module(builder.add("Transpose", y, permutation=order))
    legal = layout(legalise(module, "f32")).module
    moved = [op for op in legal.operations if op.opcode == "Transpose"]
    orders = [op.attributes["permutation"] for op in moved]
    assert all([axis for axis in one if axis > 2] == sorted(one)[3:] for one in orders)
    inputs = inputs_of(module)
    np.testing.assert_allclose(
        evaluate(legal, inputs)[0], evaluate(module, inputs)[0], rtol=1e-5, atol=1e-5
    )
