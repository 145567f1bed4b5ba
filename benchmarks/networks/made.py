"""Networks that the compiler's benchmark makes itself: random weights, sizes that are in use."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from benchmarks.networks.libraries import load_transformers

Feeds = Mapping[str, Any]
Made = tuple[Any, Feeds]

# Size of the picture, channels in and out, window, stride, groups.
SINGLE_CONVOLUTIONS: Mapping[str, tuple[int, int, int, int, int, int]] = {
    "conv7/2-224x3-64": (224, 3, 64, 7, 2, 1),
    "conv3-112x32-64": (112, 32, 64, 3, 1, 1),
    "conv3-56x64-64": (56, 64, 64, 3, 1, 1),
    "conv3-28x128-128": (28, 128, 128, 3, 1, 1),
    "conv3-14x256-256": (14, 256, 256, 3, 1, 1),
    "conv3-7x512-512": (7, 512, 512, 3, 1, 1),
    "conv1-56x64-256": (56, 64, 256, 1, 1, 1),
    "conv1-56x256-64": (56, 256, 64, 1, 1, 1),
    "conv1-14x1024-256": (14, 1024, 256, 1, 1, 1),
    "conv1-7x512-2048": (7, 512, 2048, 1, 1, 1),
    "depthwise3-112x32": (112, 32, 32, 3, 1, 32),
    "depthwise3/2-56x144": (56, 144, 144, 3, 2, 144),
}


def single_convolution(name: str) -> Made:
    """One convolution with channels first, as models have them."""
    from nacre import core

    size, inputs, outputs, window, stride, groups = SINGLE_CONVOLUTIONS[name]
    random = np.random.default_rng(0)
    builder = core.Builder("nacre-1")
    value = builder.input("x", "f32", (1, inputs, size, size))
    shape = (outputs, inputs // groups, window, window)
    spread = prod(shape[1:]) ** -0.5
    weights = builder.constant((random.standard_normal(shape) * spread).astype(np.float32))
    made = builder.add(
        "Conv", value, weights, strides=(stride, stride), pads=(window // 2,) * 4,
        dilations=(1, 1), groups=groups,
    )  # fmt: skip
    return builder.module(made), {"x": random.standard_normal((1, inputs, size, size), np.float32)}


def wide() -> Made:
    """Eight pictures through six 3x3 convolutions of 256 channels: MACs are what counts."""
    from nacre import core

    random = np.random.default_rng(0)
    builder = core.Builder("nacre-1")
    value = builder.input("x", "f32", (8, 32, 32, 256))
    for _ in range(6):
        weights = random.standard_normal((3, 3, 256, 256)).astype(np.float32) / 48
        filters = builder.constant(weights)
        made = builder.add("Conv2d", value, filters, strides=(1, 1), padding="Same")
        value = builder.add("Relu", made)
    return builder.module(value), {"x": random.standard_normal((8, 32, 32, 256), np.float32)}


def resnet() -> Made:
    """ResNet-50 as transformers configures it."""
    transformers = load_transformers()
    return _classifier(transformers.ResNetForImageClassification, transformers.ResNetConfig())


def vit() -> Made:
    """A ViT of 12 layers, 192 wide, with 197 tokens (ViT-Tiny)."""
    transformers = load_transformers()
    config = transformers.ViTConfig(
        hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000,
        attn_implementation="eager",
    )  # fmt: skip
    return _classifier(transformers.ViTForImageClassification, config)


def _classifier(kind: Any, config: Any) -> Made:  # noqa: ANN401 - a class of transformers
    import torch

    from nacre.core.torch.importer import from_torch

    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = kind(config)

        def forward(self, pixels: Any) -> Any:  # noqa: ANN401 - torch's own types
            return self.network(pixels).logits

    torch.manual_seed(0)
    network = Logits().eval()
    picture = torch.randn(1, 3, 224, 224)
    module = from_torch(network, (picture,))
    return module, {name: picture.numpy() for name in module.input_types}
