"""What a grammar derives: the stages of a network, which are written as a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct, structs

from nacre.core.module import Module
from nacre.core.values import Array
from nacre.nac.synthesis.blocks import (
    BLOCKS,
    JOINTS,
    BlockKind,
    Joint,
    Settings,
    write_classifier,
)
from nacre.nac.synthesis.layers import Layers, Shape, Unfit, Value


class Stage(Struct, frozen=True, order=True):
    """A block that stands a few times in a row; the stride is that of the first."""

    block: str
    width: int
    repeat: int = 1
    settings: Settings = Settings()

    @property
    def kind(self) -> BlockKind:
        """What kind of block it is."""
        return BLOCKS[self.block]


class Derivation(Struct, frozen=True):
    """A network: what it takes, its stages, and of how many classes it gives scores."""

    input: Shape
    classes: int
    stages: tuple[Stage, ...]

    def with_stages(self, stages: tuple[Stage, ...]) -> Derivation:
        """The same with other stages."""
        return structs.replace(self, stages=stages)

    def joints(self) -> tuple[Joint, ...]:
        """What lies before each stage, and behind the last."""
        made = [JOINTS[len(self.input)]]
        for stage in self.stages:
            made.append(stage.kind.joint_behind(made[-1]))
        return tuple(made)

    @property
    def text(self) -> str:
        """`ConvBlock 16 k5 s2, BasicBlock 32 x2, Classifier`: widths, windows, strides."""
        return ", ".join([*map(_stage_text, self.stages), "Classifier"])


class Counts(Struct, frozen=True):
    """What a network takes: elements of its parameters, and products of a run."""

    parameters: int
    macs: int


def _stage_text(stage: Stage) -> str:
    parts = [stage.block]
    if stage.kind.sets_width:
        parts.append(str(stage.width))
    if "kernel" in stage.kind.settings and stage.settings.kernel != Settings().kernel:
        parts.append(f"k{stage.settings.kernel}")
    if "stride" in stage.kind.settings and stage.settings.stride > 1:
        parts.append(f"s{stage.settings.stride}")
    if stage.repeat > 1:
        parts.append(f"x{stage.repeat}")
    return " ".join(parts)


@lru_cache(maxsize=4096)
def count(derivation: Derivation) -> Counts:
    """Parameters and products; Unfit where a stage does not fit."""
    made = Layers()
    _write(made, derivation, derivation.input)
    return Counts(made.parameters, made.macs)


@lru_cache(maxsize=1024)
def shape_behind(derivation: Derivation) -> Shape:
    """What the last stage gives to the classifier; Unfit where a stage does not fit."""
    return _write_stages(Layers(), derivation, derivation.input).shape


def fits(derivation: Derivation) -> bool:
    """Whether every stage can stand where it does."""
    try:
        count(derivation)
    except Unfit:
        return False
    return True


def write_module(
    derivation: Derivation,
    seed: int,
    batch: int | None = None,
    weights: Mapping[str, Array] | None = None,
) -> Module:
    """The network with weights drawn from a seed; `batch` examples at once, the same weights.

    `weights` by name take the place of those that are drawn.
    """
    made = Layers(np.random.default_rng(seed), weights or {})
    shape = derivation.input if batch is None else (batch, *derivation.input[1:])
    return made.module(_write(made, derivation, shape))


def _write(made: Layers, derivation: Derivation, shape: Shape) -> Value:
    x = _write_stages(made, derivation, shape)
    made.prefix = "classifier."
    return write_classifier(made, x, derivation.classes)


def _write_stages(made: Layers, derivation: Derivation, shape: Shape) -> Value:
    x = made.input(shape)
    for number, stage in enumerate(derivation.stages):
        if JOINTS[len(x.shape)] not in stage.kind.takes:
            raise Unfit(f"{stage.block} takes no {JOINTS[len(x.shape)]}")
        for at, settings in enumerate(_settings(stage)):
            made.prefix = f"stage{number}.{at}."
            x = stage.kind.write(made, x, stage.width, settings)
            if min(x.shape) < 1:
                raise Unfit(f"{stage.block} leaves nothing of an image")
    return x


def _settings(stage: Stage) -> Iterator[Settings]:
    """Of each block: strides are for the first alone."""
    settings = stage.kind.relevant(stage.settings)
    yield settings
    for _ in range(stage.repeat - 1):
        yield structs.replace(settings, stride=1)
