"""Derivation: stages drawn from a grammar, each repaired to stand where it is put.

A block is only drawn where its joint fits; a window that is larger than its image gets smaller, and
a stride that would leave nothing becomes 1. What cannot be repaired is not put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from nacre.nac.synthesis.blocks import BLOCKS, CLASSIFIER, JOINTS, Settings
from nacre.nac.synthesis.derivation import Derivation, Stage, fits, shape_behind
from nacre.nac.synthesis.grammar import NETWORK, Choice, Grammar

LEAST_WIDTH = 4
_WIDTH_STEP = 4
MOST_WIDTH = 8192
_FIRST_WIDTH = 16  # where the grammar knows none
_MOST_STAGES, _MOST_BLOCKS = 64, 128


def round_width(width: float) -> int:
    """A width that devices like, and that heads divide."""
    return min(MOST_WIDTH, max(LEAST_WIDTH, _WIDTH_STEP * round(width / _WIDTH_STEP)))


def derive(
    grammar: Grammar, random: np.random.Generator, shape: tuple[int, ...], classes: int
) -> Derivation | None:
    """A network of the grammar, of whatever size; None where none of its blocks can stand."""
    made = Derivation(shape, classes, ())
    wanted = grammar.draw(f"{NETWORK}.stages", random) or 4
    for _ in range(min(int(wanted), _MOST_STAGES)):
        left = _MOST_BLOCKS - sum(stage.repeat for stage in made.stages)
        after = draw_stage(grammar, random, made) if left > 0 else None
        if after is None:
            break
        after = structs.replace(after, repeat=min(after.repeat, left))
        made = made.with_stages((*made.stages, after))
    return made if made.stages else None


def draw_stage(
    grammar: Grammar, random: np.random.Generator, before: Derivation, block: Choice | None = None
) -> Stage | None:
    """A stage to stand behind others, or one of a block; None for the end."""
    tried: set[Choice] = set()
    options = _options(grammar, before) if block is None else [block]
    place = f"after {before.stages[-1].block}" if before.stages else NETWORK
    while len(tried) < len(options):
        left = [option for option in options if option not in tried]
        chosen = block or grammar.draw(place, random, left) or left[int(random.integers(len(left)))]
        if chosen == CLASSIFIER:
            return None
        stage = repair(before, _drawn(grammar, random, str(chosen), before))
        if stage is not None:
            return stage
        tried.add(chosen)
    return None


def _options(grammar: Grammar, before: Derivation) -> Sequence[Choice]:
    """What may stand behind stages: what the grammar has seen there, else any of its blocks."""
    joint = before.joints()[-1]
    place = f"after {before.stages[-1].block}" if before.stages else NETWORK
    seen = [choice for choice, _ in grammar.choices.get(place, [])]
    fitting = [c for c in seen if c == CLASSIFIER or joint in BLOCKS[str(c)].takes]
    if before.stages:
        return fitting or [CLASSIFIER]
    return [c for c in fitting if c != CLASSIFIER] or [
        block for block in grammar.blocks if joint in BLOCKS[block].takes
    ]


def _drawn(grammar: Grammar, random: np.random.Generator, block: str, before: Derivation) -> Stage:
    kind = BLOCKS[block]
    settings = draw_settings(grammar, random, block)
    repeat = grammar.draw(f"{block}.repeat", random) or 1
    return Stage(
        block,
        _drawn_width(grammar, random, block, before) if kind.sets_width else 1,
        int(repeat) if kind.may_repeat else 1,
        settings,
    )


def draw_settings(grammar: Grammar, random: np.random.Generator, block: str) -> Settings:
    """Settings of a block, each by itself."""
    found: dict[str, Any] = {}
    for name in BLOCKS[block].settings:
        choice = grammar.draw(f"{block}.{name}", random)
        if choice is not None:
            found[name] = choice
    return Settings(**found)


def _drawn_width(
    grammar: Grammar, random: np.random.Generator, block: str, before: Derivation
) -> int:
    if not any(stage.kind.sets_width for stage in before.stages):
        return round_width(float(grammar.draw(f"{NETWORK}.width", random) or _FIRST_WIDTH))
    shape = shape_behind(before)
    width = shape[1] if len(shape) == 4 else shape[-1]
    return round_width(float(grammar.draw(f"{block}.growth", random) or 1.0) * width)


def repair(before: Derivation, stage: Stage) -> Stage | None:
    """The stage, or one with smaller windows that fits behind others; None where none does."""
    for settings in _smaller(stage, shape_behind(before)):
        candidate = structs.replace(stage, settings=stage.kind.relevant(settings))
        if fits(before.with_stages((*before.stages, candidate))):
            return candidate
    return None


def _smaller(stage: Stage, shape: tuple[int, ...]) -> Iterator[Settings]:
    """Settings from those that are wanted to the least."""
    settings = stage.settings
    yield settings
    if len(shape) != 4:
        return
    size = min(shape[2:])
    if stage.block == "PatchEmbed":
        fitting = [k for k in range(1, size + 1) if size % k == 0 and k <= settings.kernel]
        yield structs.replace(settings, kernel=max(fitting))
        return
    odd = max(1, (min(settings.kernel, size) - 1) | 1)
    yield structs.replace(settings, kernel=odd if odd <= size else max(1, odd - 2))
    yield structs.replace(settings, kernel=odd if odd <= size else max(1, odd - 2), stride=1)
    yield structs.replace(settings, kernel=1, stride=1)


def rebuild(derivation: Derivation) -> Derivation | None:
    """Stages one by one, each repaired behind those before it; None where nothing is left."""
    made = derivation.with_stages(())
    for stage in derivation.stages:
        if JOINTS[len(shape_behind(made))] not in stage.kind.takes:
            continue
        after = repair(made, stage)
        if after is not None:
            made = made.with_stages((*made.stages, after))
    return made if made.stages else None
