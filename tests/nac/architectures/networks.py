"""Architectures of torchvision, timm and diffusers with random weights: one of each family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

torch = pytest.importorskip("torch")

Loose = Any
SMALL, WHOLE = 96, 224  # sides of pictures


@dataclass(frozen=True)
class Network:
    """How a network is made, and the shapes of what it takes."""

    package: str
    name: str
    shapes: tuple[tuple[int, ...], ...]
    given: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Loose:
        """The network, ready for inference; the test is skipped where its package is absent."""
        return MAKERS[self.package](self.name, self.given)

    def inputs(self) -> tuple[Loose, ...]:
        """Random inputs; what has no axis is a moment of a diffusion."""
        return tuple(torch.randn(*shape) if shape else torch.tensor(7) for shape in self.shapes)


def _of_timm(name: str, given: Mapping[str, Any]) -> Loose:
    return pytest.importorskip("timm").create_model(name, **given)


def _of_torchvision(name: str, given: Mapping[str, Any]) -> Loose:
    models = pytest.importorskip("torchvision.models")
    return models.get_model(name, weights=None, **given)


def _of_diffusers(name: str, given: Mapping[str, Any]) -> Loose:
    return getattr(pytest.importorskip("diffusers"), name)(**given)


MAKERS: Mapping[str, Callable[[str, Mapping[str, Any]], Loose]] = {
    "timm": _of_timm, "torchvision": _of_torchvision, "diffusers": _of_diffusers,
}  # fmt: skip


def _pictures(package: str, side: int, names: str, **given: object) -> list[Network]:
    return [Network(package, name, ((1, 3, side, side),), given) for name in names.split()]


TIMM = [
    *_pictures("timm", SMALL, """
        test_byobnet test_convnext cpubone_nano cs3darknet_focus_s cspnext_tiny densenet121 dla46x_c
        dpn48b edgenext_xx_small test_efficientnet efficientvit_b0 fasternet_t0 ghostnet_050
        hardcorenas_b hgnetv2_b0 iformer_t inception_next_atto lcnetv2_small test_mambaout
        poolformerv2_s12 mobilenetv3_small_050 mobilevit_xxs test_nfnet pvt_v2_b0 regnetx_002
        repghostnet_050 repvit_m1 resnest14d test_resnet resnetv2_18 rexnet_100 legacy_seresnet18
        shvit_s1 skresnet18 starnet_s050 tiny_vit_5m_224 ese_vovnet19b_slim_dw"""),
    *_pictures("timm", 160, "test_coatnet test_vit test_vit_relpos"),
    *_pictures("timm", WHOLE, """
        convit_tiny deit_tiny_patch16_224 efficientformer_l1 gmlp_ti16_224 levit_128s pit_ti_224
        swiftformer_xs visformer_tiny vit_tiny_r_s16_p8_224 xcit_nano_12_p8_224"""),
]  # fmt: skip

TORCHVISION = [
    *_pictures("torchvision", SMALL, """
        resnet18 resnext50_32x4d mobilenet_v2 mobilenet_v3_small shufflenet_v2_x0_5 mnasnet0_5
        squeezenet1_1 efficientnet_b0 regnet_y_400mf densenet121 convnext_tiny swin_t alexnet"""),
    *_pictures("torchvision", SMALL, "googlenet inception_v3", init_weights=False,
               transform_input=False, aux_logits=False),
    *_pictures("torchvision", SMALL, "lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large",
               weights_backbone=None),
    *(Network("torchvision", name, ((1, 3, 4, 32, 32),)) for name in ("r3d_18", "mc3_18")),
]  # fmt: skip

_BLOCKS = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
_UNET = {
    **_BLOCKS, "sample_size": 16, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 8,
}  # fmt: skip
_CROSS = {
    **_BLOCKS, "sample_size": 16, "cross_attention_dim": 24, "attention_head_dim": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}  # fmt: skip
_CODER = {
    **_BLOCKS, "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2, "latent_channels": 4,
}  # fmt: skip
PICTURE, LATENT, MOMENT = (1, 3, 16, 16), (1, 4, 8, 8), ()
DIFFUSERS = [
    Network("diffusers", "UNet2DModel", (PICTURE, MOMENT), _UNET),
    Network("diffusers", "UNet2DConditionModel", ((1, 4, 16, 16), MOMENT, (1, 5, 24)), _CROSS),
    Network("diffusers", "AutoencoderKL", (PICTURE,), _CODER),
    Network("diffusers", "VQModel", (PICTURE,), {**_CODER, "num_vq_embeddings": 32}),
    Network("diffusers", "AutoencoderTiny", (PICTURE,), {
        "encoder_block_out_channels": (16, 16), "decoder_block_out_channels": (16, 16),
        "num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}),
    Network("diffusers", "UNet1DModel", ((1, 4, 64), (1,)), {
        "in_channels": 4, "out_channels": 4, "block_out_channels": (32, 32, 64),
        "use_timestep_embedding": False, "extra_in_channels": 64}),
    Network("diffusers", "SD3Transformer2DModel", (LATENT, (1, 5, 24), (1, 16), (1,)), {
        "sample_size": 8, "patch_size": 2, "in_channels": 4, "num_layers": 1,
        "attention_head_dim": 16, "num_attention_heads": 2, "joint_attention_dim": 24,
        "caption_projection_dim": 32, "pooled_projection_dim": 16, "out_channels": 4}),
]  # fmt: skip
NETWORKS = [*TIMM, *TORCHVISION, *DIFFUSERS]
