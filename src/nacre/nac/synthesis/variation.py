"""Variation: children of networks, by transplant of stages from one into another and by changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import structs

from nacre.nac.synthesis.blocks import BLOCKS
from nacre.nac.synthesis.budgets import scale_widths, shrink
from nacre.nac.synthesis.derivation import Derivation, Stage
from nacre.nac.synthesis.grammar import NETWORK, Grammar
from nacre.nac.synthesis.sampling import draw_stage, rebuild, round_width
from nacre.nac.synthesis.synthesise import Request

_FACTORS = (0.5, 0.75, 1.25, 1.5, 2.0)
_ALL_FACTORS = (32, 48, 56, 72, 80, 96)  # of 64
_ANY_BLOCK = 0.5  # of insertions
_MOST_REPEAT, _MOST_STAGES = 16, 24

Mutation = Callable[[Grammar, np.random.Generator, Derivation], "Derivation | None"]


def transplant(
    grammar: Grammar, random: np.random.Generator, host: Derivation, donor: Derivation
) -> Derivation | None:
    """Some stages of the host replaced by some of the donor that have the same joints at both ends.

    None where no such stages are found.
    """
    start, end = _segment(random, len(host.stages))
    joints, others = host.joints(), donor.joints()
    pairs = [
        (first, last)
        for first in range(len(donor.stages))
        for last in range(first + 1, len(donor.stages) + 1)
        if others[first] == joints[start]
        and (others[last] == joints[end] or end == len(host.stages))
        and (start > 0 or _may_begin(grammar, donor.stages[first].block))
    ]
    if not pairs:
        return None
    first, last = pairs[int(random.integers(len(pairs)))]
    stages = (*host.stages[:start], *donor.stages[first:last], *host.stages[end:])
    return host.with_stages(stages[:_MOST_STAGES])


def _segment(random: np.random.Generator, count: int) -> tuple[int, int]:
    start = int(random.integers(count))
    return start, int(random.integers(start + 1, count + 1))


def _may_begin(grammar: Grammar, block: str) -> bool:
    return any(choice == block for choice, _ in grammar.choices[NETWORK])


def mutate(grammar: Grammar, random: np.random.Generator, one: Derivation) -> Derivation | None:
    """A network with one thing changed; None where the change that was drawn cannot be."""
    change = MUTATIONS[int(random.integers(len(MUTATIONS)))]
    return change(grammar, random, one)


def settle(child: Derivation | None, request: Request) -> Derivation | None:
    """A child whose stages fit behind each other and that meets its budgets."""
    rebuilt = None if child is None else rebuild(child)
    return None if rebuilt is None else shrink(rebuilt, request.limits.bounded)


def _replaced(one: Derivation, at: int, *stages: Stage) -> Derivation:
    return one.with_stages((*one.stages[:at], *stages, *one.stages[at + 1 :]))


def _pick(random: np.random.Generator, places: Sequence[int]) -> int | None:
    return places[int(random.integers(len(places)))] if places else None


def _change_width(
    grammar: Grammar, random: np.random.Generator, one: Derivation
) -> Derivation | None:
    at = _pick(random, [i for i, stage in enumerate(one.stages) if stage.kind.sets_width])
    if at is None:
        return None
    stage, factor = one.stages[at], _FACTORS[int(random.integers(len(_FACTORS)))]
    return _replaced(one, at, structs.replace(stage, width=round_width(stage.width * factor)))


def _change_all_widths(
    grammar: Grammar, random: np.random.Generator, one: Derivation
) -> Derivation | None:
    return scale_widths(one, _ALL_FACTORS[int(random.integers(len(_ALL_FACTORS)))])


def _change_repeat(
    grammar: Grammar, random: np.random.Generator, one: Derivation
) -> Derivation | None:
    at = _pick(random, [i for i, stage in enumerate(one.stages) if stage.kind.may_repeat])
    if at is None:
        return None
    stage, step = one.stages[at], int(random.choice([-1, 1]))
    repeat = min(_MOST_REPEAT, max(1, stage.repeat + step))
    return _replaced(one, at, structs.replace(stage, repeat=repeat))


def _change_setting(
    grammar: Grammar, random: np.random.Generator, one: Derivation
) -> Derivation | None:
    """A setting as another block of any kind has it: activations and norms are the same words."""
    at = _pick(random, [i for i, stage in enumerate(one.stages) if stage.kind.settings])
    if at is None:
        return None
    stage = one.stages[at]
    name = stage.kind.settings[int(random.integers(len(stage.kind.settings)))]
    places = [f"{block}.{name}" for block in BLOCKS if f"{block}.{name}" in grammar.choices]
    known = sorted({choice for place in places for choice, _ in grammar.choices[place]})
    others = [choice for choice in known if choice != getattr(stage.settings, name)]
    if not others:
        return None
    chosen = others[int(random.integers(len(others)))]
    settings = structs.replace(stage.settings, **{name: chosen})
    return _replaced(one, at, structs.replace(stage, settings=settings))


def _insert(grammar: Grammar, random: np.random.Generator, one: Derivation) -> Derivation | None:
    """A stage more: what the grammar has seen there, or any of its blocks: rare ones come, too."""
    at = int(random.integers(1, len(one.stages) + 1))
    before = one.with_stages(one.stages[:at])
    fitting = [block for block in grammar.blocks if before.joints()[-1] in BLOCKS[block].takes]
    chosen = fitting[int(random.integers(len(fitting)))] if random.random() < _ANY_BLOCK else None
    stage = draw_stage(grammar, random, before, chosen)
    if stage is None or len(one.stages) >= _MOST_STAGES:
        return None
    return one.with_stages((*one.stages[:at], stage, *one.stages[at:]))


def _remove(grammar: Grammar, random: np.random.Generator, one: Derivation) -> Derivation | None:
    if len(one.stages) < 2:
        return None
    at = int(random.integers(1, len(one.stages)))
    return one.with_stages((*one.stages[:at], *one.stages[at + 1 :]))


def _regrow(grammar: Grammar, random: np.random.Generator, one: Derivation) -> Derivation | None:
    """The stages from some place on are drawn anew."""
    made = one.with_stages(one.stages[: int(random.integers(1, len(one.stages) + 1))])
    for _ in range(int(random.integers(1, 4))):
        stage = draw_stage(grammar, random, made)
        if stage is None:
            break
        made = made.with_stages((*made.stages, stage))
    return made


MUTATIONS: tuple[Mutation, ...] = (
    _change_width, _change_width, _change_all_widths, _change_repeat, _change_setting,
    _change_setting, _insert, _remove, _regrow,
)  # fmt: skip
