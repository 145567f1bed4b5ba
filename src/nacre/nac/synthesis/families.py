"""Families of networks that people know, as derivations: a corpus that needs no files.

They have the blocks, the order and the proportions of the networks after which they are called, for
an input and in widths of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from nacre.nac.build import build
from nacre.nac.run.model import NacModel
from nacre.nac.synthesis.blocks import Settings
from nacre.nac.synthesis.derivation import Derivation, Stage, write_module
from nacre.nac.synthesis.learning import Corpus, corpus_of
from nacre.nac.synthesis.sampling import rebuild, round_width

_CLASSES = 10
_SHAPE = (1, 3, 32, 32)


@dataclass(frozen=True)
class Family:
    """A family: its name, widths and depths of its members, and how one is written."""

    name: str
    depths: tuple[tuple[int, ...], ...]

    def members(self, widths: Sequence[int]) -> Iterator[tuple[str, tuple[Stage, ...]]]:
        """The stages of each member, by name."""
        for depths, width in product(self.depths, widths):
            name = f"{self.name}-{'.'.join(map(str, depths))}-w{width}"
            yield name, tuple(_WRITERS[self.name](depths, width))


Stages = Iterator[Stage]


def _stage(block: str, width: float, repeat: int = 1, **given: object) -> Stage:
    return Stage(block, round_width(width), repeat, Settings(**given))  # type: ignore[arg-type]


def _vgg(depths: Sequence[int], width: int) -> Stages:
    for at, repeat in enumerate(depths):
        yield _stage("ConvBlock", width * 2**at, repeat)
        yield _stage("Pool", width, kernel=2, stride=2)
    yield _stage("Flatten", width)
    yield _stage("LinearBlock", 8 * width, 2)


def _resnet(depths: Sequence[int], width: int, block: str = "BasicBlock", **given: float) -> Stages:
    yield _stage("ConvBlock", width, norm="batch", kernel=7, stride=2)
    yield _stage("Pool", width, kernel=3, stride=2)
    wide = 4 if block == "Bottleneck" else 1
    for at, repeat in enumerate(depths):
        stride = 1 if at == 0 else 2
        yield _stage(block, wide * width * 2**at, repeat, norm="batch", stride=stride, **given)


def _resnet_wide(depths: Sequence[int], width: int) -> Stages:
    yield from _resnet(depths, width, "Bottleneck", ratio=0.25)


def _mobilenet1(depths: Sequence[int], width: int) -> Stages:
    yield _stage("ConvBlock", width, norm="batch", stride=2)
    for at, repeat in enumerate(depths):
        stride = 1 if at == 0 else 2
        wide = width * 2 ** (at + 1)
        yield _stage("DepthwiseSeparable", wide, repeat, norm="batch", stride=stride)


def _mobilenet2(depths: Sequence[int], width: int) -> Stages:
    yield _stage("ConvBlock", width, norm="batch", stride=2, act="relu6")
    for at, repeat in enumerate(depths):
        ratio, stride = (1.0, 1) if at == 0 else (6.0, 2)
        yield _stage("InvertedResidual", width * 1.5**at, repeat, norm="batch", act="relu6",
                     ratio=ratio, stride=stride)  # fmt: skip
    yield _stage("ConvBlock", width * 1.5 ** (len(depths) + 1), norm="batch", kernel=1, act="relu6")


def _efficientnet(depths: Sequence[int], width: int) -> Stages:
    yield _stage("ConvBlock", width, norm="batch", stride=2, act="silu")
    for at, repeat in enumerate(depths):
        ratio, stride = (1.0, 1) if at == 0 else (6.0, 2 if at % 2 else 1)
        yield _stage("MBConv", width * 1.5**at, repeat, norm="batch", act="silu", ratio=ratio,
                     stride=stride, kernel=5 if at % 3 == 2 else 3)  # fmt: skip
    yield _stage("ConvBlock", width * 1.5 ** (len(depths) + 1), norm="batch", kernel=1, act="silu")


def _squeezenet(depths: Sequence[int], width: int) -> Stages:
    yield _stage("ConvBlock", width, stride=2)
    for at, repeat in enumerate(depths):
        yield _stage("Pool", width, kernel=3, stride=2)
        yield _stage("Fire", width * (2 + at), repeat, ratio=0.125)


def _densenet(depths: Sequence[int], width: int) -> Stages:
    yield _stage("ConvBlock", 2 * width, norm="batch", stride=2)
    for at, repeat in enumerate(depths):
        yield _stage("DenseLayer", width, repeat, norm="batch")
        if at + 1 < len(depths):
            yield _stage("ConvBlock", width * (1 + at + repeat / 2), norm="batch", kernel=1)
            yield _stage("Pool", width, kernel=2, stride=2, pool="mean")


def _convnext(depths: Sequence[int], width: int) -> Stages:
    for at, repeat in enumerate(depths):
        if at == 0:
            yield _stage("PatchEmbed", width, kernel=4)
        else:
            yield _stage("Norm", width, norm="layer")
            yield _stage("Conv", width * 2**at, kernel=2, stride=2)
        yield _stage("ConvNeXtBlock", width, repeat, kernel=7, norm="layer", ratio=4.0, act="gelu")


def _vit(depths: Sequence[int], width: int, act: str = "gelu", **given: object) -> Stages:
    yield _stage("PatchEmbed", width, kernel=4)
    yield _stage("Tokens", width)
    yield _stage("Position", width)
    given = {"norm": "layer", "ratio": 4.0, **given}
    yield _stage("TransformerLayer", width, depths[0], act=act, heads=max(1, width // 8), **given)
    yield _stage("Norm", width, norm=given["norm"])


def _gated_vit(depths: Sequence[int], width: int) -> Stages:
    yield from _vit(depths, width, "silu", norm="rms", ratio=3.0, is_gated=True)


_WRITERS = {
    "vgg": _vgg, "resnet": _resnet, "bottleneck-resnet": _resnet_wide, "mobilenet1": _mobilenet1,
    "mobilenet2": _mobilenet2, "efficientnet": _efficientnet, "squeezenet": _squeezenet,
    "densenet": _densenet, "convnext": _convnext, "vit": _vit, "gated-vit": _gated_vit,
}  # fmt: skip

FAMILIES = (
    Family("vgg", ((1, 1, 2), (2, 2, 2), (1, 2))),
    Family("resnet", ((1, 1, 1), (2, 2, 2), (2, 2, 2, 2), (3, 4, 6, 3))),
    Family("bottleneck-resnet", ((1, 1, 1), (2, 3, 2), (3, 4, 6, 3))),
    Family("mobilenet1", ((1, 2, 2), (1, 2, 6, 2))),
    Family("mobilenet2", ((1, 2, 2), (1, 2, 3, 3), (1, 2, 3, 4))),
    Family("efficientnet", ((1, 2, 2), (1, 2, 2, 2), (1, 2, 2, 3, 3))),
    Family("squeezenet", ((2,), (2, 2), (2, 2, 4))),
    Family("densenet", ((2, 4), (3, 6), (2, 4, 4))),
    Family("convnext", ((1, 1), (2, 2), (3, 3, 9))),
    Family("vit", ((2,), (4,), (6,), (12,))),
    Family("gated-vit", ((2,), (4,), (8,))),
)


def family_networks(
    widths: Sequence[int] = (8, 16, 32),
    shape: tuple[int, ...] = _SHAPE,
    classes: int = _CLASSES,
    depths: int | None = None,
) -> dict[str, Derivation]:
    """Every member of every family, for an input, by name; the first `depths` of each family."""
    made: dict[str, Derivation] = {}
    for family in FAMILIES:
        shallow = replace(family, depths=family.depths[:depths])
        for name, stages in shallow.members(widths):
            repaired = rebuild(Derivation(shape, classes, stages))
            if repaired is not None:
                made[name] = repaired
    return made


def family_models(networks: Mapping[str, Derivation]) -> Iterator[tuple[str, NacModel]]:
    """Members of families as models, with weights that are drawn."""
    for name, derivation in networks.items():
        yield name, build(write_module(derivation, 0))


@lru_cache(maxsize=1)
def families_corpus() -> Corpus:
    """What all families teach: read from their programs, as that of any file."""
    models = dict(family_models(family_networks((8,), depths=2)))
    return corpus_of(list(models.values()), list(models))
