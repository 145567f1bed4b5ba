"""Write networks of torchvision, timm and transformers as NAC files: a corpus to look at together.

usage: python -m tools.network_corpus FOLDER [--package NAME ...] [--most N] [--seconds S]

Weights are drawn, and stored with 8 bits: what is looked at are the programs. What is there already
is not written again, so that a run can be cut short and gone on with. Then `nacre nac genome FOLDER
--html tree.html` shows all of them as a tree, `nacre nac grammar FOLDER` what they are made of.

It needs torch, and those packages of which networks are wanted.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from nacre import nac
from nacre.base.diagnostics import InputError

TORCHVISION = """
densenet121 efficientnet_b0 efficientnet_b1 efficientnet_b2 googlenet mnasnet0_5 mnasnet0_75
mnasnet1_0 mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf
regnet_x_800mf regnet_x_1_6gf regnet_y_400mf regnet_y_800mf regnet_y_1_6gf resnet18 resnet34
resnet50 resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
squeezenet1_0 squeezenet1_1 convnext_tiny swin_t efficientnet_v2_s
"""
TIMM = """
test_byobnet test_convnext test_convnext2 test_convnext3 test_efficientnet test_efficientnet_gn
test_efficientnet_ln test_nfnet test_resnet test_vit test_vit2 test_vit3 test_vit4 test_mambaout
test_coatnet test_maxvit resnet10t resnet14t resnet18d seresnet18 skresnet18 legacy_seresnet18
resnest14d mobilenetv1_100 mobilenetv2_050 mobilenetv2_100 mobilenetv2_140 mobilenetv3_small_050
mobilenetv3_small_075 mobilenetv3_small_100 mobilenetv3_large_100 mobilenetv4_conv_small
efficientnet_b0 efficientnet_lite0 efficientnet_lite1 tf_efficientnetv2_b0 mixnet_s mixnet_m
fbnetc_100 fbnetv3_b spnasnet_100 mnasnet_small semnasnet_075 tinynet_a tinynet_b tinynet_c
tinynet_d tinynet_e hardcorenas_a lcnet_050 lcnet_075 lcnet_100 ghostnet_100 ghostnetv2_100
repvgg_a0 mobileone_s0 rexnet_100 dla46_c dla46x_c dla60x_c regnetx_002 regnetx_004 regnetx_006
regnety_002 regnety_004 regnety_006 convnext_atto convnext_femto convnext_pico convnextv2_atto
convnextv2_femto
vit_tiny_patch16_224 deit_tiny_patch16_224 deit_tiny_distilled_patch16_224 pit_ti_224 pit_xs_224
levit_128s levit_128 xcit_nano_12_p16_224 poolformer_s12 poolformerv2_s12 edgenext_xx_small
edgenext_x_small mobilevit_xxs mobilevit_xs mobilevitv2_050 mobilevitv2_075 efficientformer_l1
efficientformerv2_s0 fastvit_t8 repvit_m0_9 gernet_s hrnet_w18_small resmlp_12_224 mixer_s32_224
starnet_s1 starnet_s2 inception_next_atto efficientvit_b0 efficientvit_m0 tiny_vit_5m_224
ese_vovnet19b_slim_dw crossvit_tiny_240 visformer_tiny swiftformer_xs shvit_s1 caformer_s18
"""
# Classes of transformers, their configurations, and numbers that make them small.
_TEXT = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 200,
         "intermediate_size": 128}  # fmt: skip
_IMAGE = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 64,
          "intermediate_size": 128, "patch_size": 16}  # fmt: skip
TRANSFORMERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("BertModel", "BertConfig", _TEXT),
    ("RobertaModel", "RobertaConfig", _TEXT),
    ("ElectraModel", "ElectraConfig", {**_TEXT, "embedding_size": 64}),
    ("DistilBertModel", "DistilBertConfig", {"dim": 64, "n_layers": 3, "n_heads": 4,
                                             "hidden_dim": 128, "vocab_size": 200}),
    ("AlbertModel", "AlbertConfig", {**_TEXT, "embedding_size": 32}),
    ("ViTModel", "ViTConfig", _IMAGE),
    ("DeiTModel", "DeiTConfig", _IMAGE),
    ("Dinov2Model", "Dinov2Config", _IMAGE),
    ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [16, 32, 48, 64]}),
    ("ResNetModel", "ResNetConfig", {"hidden_sizes": [32, 64, 96, 128]}),
    ("MobileNetV2Model", "MobileNetV2Config", {}),
    ("RegNetModel", "RegNetConfig", {}),
    ("SegformerModel", "SegformerConfig", {}),
    ("PoolFormerModel", "PoolFormerConfig", {}),
)  # fmt: skip

Made = tuple[Any, tuple[Any, ...]]  # a network, and what it is called with
Network = tuple[str, Callable[[], Made]]  # what it is called, how it is made


# Compiled operations of torchvision may be of another build, and the package does not load without
# their names, nor does what imports it; networks that classify need none of them.
_STAND_INS = torch.library.Library("torchvision", "FRAGMENT")


def declare_operations() -> None:
    """The names without which torchvision does not load."""
    for name in ("nms", "qnms"):
        _STAND_INS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def torchvision_networks() -> Iterator[Network]:
    models = importlib.import_module("torchvision.models")
    for name in TORCHVISION.split():
        yield f"torchvision-{name}", partial(_torchvision_network, models, name)


def _torchvision_network(models: Any, name: str) -> Made:  # noqa: ANN401
    return models.get_model(name, weights=None), _image(96)


def timm_networks() -> Iterator[Network]:
    timm = importlib.import_module("timm")
    for name in TIMM.split():
        yield f"timm-{name}", partial(_timm_network, timm, name)


def _timm_network(timm: Any, name: str) -> Made:  # noqa: ANN401
    made = timm.create_model(name, pretrained=False)
    size = made.default_cfg["input_size"]
    is_fixed = made.default_cfg.get("fixed_input_size", False)
    return made, (torch.zeros(1, *size) if is_fixed else torch.zeros(1, 3, 128, 128),)


def transformers_networks() -> Iterator[Network]:
    package = importlib.import_module("transformers")
    for model, config, given in TRANSFORMERS:
        name = f"transformers-{model.removesuffix('Model').lower()}"
        yield name, partial(_transformer, package, model, config, given)


def _transformer(
    package: Any,  # noqa: ANN401
    model: str,
    config: str,
    given: dict[str, Any],
) -> Made:
    made = getattr(package, model)(getattr(package, config)(**given, return_dict=False))
    is_text = "vocab_size" in given
    inputs = (torch.ones(1, 12, dtype=torch.long),) if is_text else _image(64)
    return made, inputs


def _image(side: int) -> tuple[Any, ...]:
    return (torch.zeros(1, 3, side, side),)


PACKAGES = {
    "torchvision": torchvision_networks,
    "timm": timm_networks,
    "transformers": transformers_networks,
}


def write_corpus(
    folder: Path, packages: Sequence[str], most: int | None, seconds: float | None
) -> int:
    """Write what is not there yet; how many files the folder has then."""
    folder.mkdir(parents=True, exist_ok=True)
    start = monotonic()
    for package in packages:
        for name, make in _networks(package):
            path = folder / f"{name}.nac"
            if path.exists():
                continue
            written = len(list(folder.glob("*.nac")))
            if (most is not None and written >= most) or (seconds or 1e9) < monotonic() - start:
                return written
            _write(path, make)
    return len(list(folder.glob("*.nac")))


def _networks(package: str) -> Iterator[Network]:
    """The networks of a package; none, with a word about it, where it cannot be imported."""
    try:
        yield from PACKAGES[package]()
    except ImportError as error:
        print(f"{package}: {error}", flush=True)


def _write(path: Path, make: Callable[[], Made]) -> None:
    start = monotonic()
    try:
        model, inputs = make()
        nac.save(nac.build(model.eval(), "int8_tensor", example_args=inputs), path)
    except InputError as error:
        print(f"{path.stem}: {error.diagnostics[0].message}", flush=True)
    except Exception as error:  # whatever a package or torch.export has against it
        print(f"{path.stem}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    else:
        print(f"{path.stem}: {monotonic() - start:.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", choices=PACKAGES, nargs="*", default=list(PACKAGES))
    parser.add_argument("--most", type=int, help="stop when there are so many files")
    parser.add_argument("--seconds", type=float, help="begin no other network after so long")
    given = parser.parse_args(arguments)
    torch.manual_seed(0)
    try:
        declare_operations()
    except RuntimeError as error:
        print(f"torchvision brings its operations: {error}")
    print(f"{write_corpus(given.folder, given.package, given.most, given.seconds)} networks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
