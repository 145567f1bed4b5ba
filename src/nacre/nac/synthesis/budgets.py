"""Budgets: widths, repetitions and stages are solved for, so that a network stays within limits.

Parameters and products grow with every width, so the largest factor that fits is found by
bisection. Where the least widths are too large, blocks no longer repeat, then stages go.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from msgspec import Struct, structs

from nacre.nac.synthesis.blocks import BLOCKS, JOINTS, Settings
from nacre.nac.synthesis.derivation import Counts, Derivation, Stage, count, fits
from nacre.nac.synthesis.grammar import NETWORK, Grammar
from nacre.nac.synthesis.sampling import LEAST_WIDTH, rebuild, repair, round_width

_STEPS = 64  # of a factor: widths times n / 64
_MOST_FACTOR = 16 * _STEPS
_MOST_PARAMETERS, _MOST_MACS = 50_000_000, 50_000_000_000  # where no budget is given
_MOST_SETTINGS = 512  # combinations that are tried for the smallest network


class Limits(Struct, frozen=True):
    """What a network may have at most; None is no limit."""

    parameters: int | None = None
    macs: int | None = None

    def excess(self, counts: Counts) -> float:
        """How many times as much as allowed, of that of which there is most."""
        parts = [0.0]
        if self.parameters is not None:
            parts.append(counts.parameters / max(self.parameters, 1e-9))
        if self.macs is not None:
            parts.append(counts.macs / max(self.macs, 1e-9))
        return max(parts)

    def allow(self, derivation: Derivation) -> bool:
        """Whether a network stays within them."""
        return self.excess(count(derivation)) <= 1.0

    @property
    def bounded(self) -> Limits:
        """The same, and what nobody limits held to a size that a machine can have."""
        return Limits(self.parameters or _MOST_PARAMETERS, self.macs or _MOST_MACS)

    def part(self, share: float) -> Limits:
        """A share of them."""
        return Limits(
            None if self.parameters is None else max(1, int(self.parameters * share)),
            None if self.macs is None else max(1, int(self.macs * share)),
        )


def shrink(derivation: Derivation, limits: Limits) -> Derivation | None:
    """The network, or the largest of its form within limits; None where there is none."""
    for form in _forms(derivation, limits):
        if limits.allow(form):
            return form
        if limits.allow(scale_widths(form, 1)):
            return _widest(form, limits, _STEPS)
    return None


def grow(derivation: Derivation, limits: Limits) -> Derivation:
    """Wider, as far as limits allow; as it is where there are none."""
    if limits == Limits():
        return derivation
    return _widest(derivation, limits.bounded, _MOST_FACTOR)


def _widest(derivation: Derivation, limits: Limits, most: int) -> Derivation:
    """With the largest factor that fits; the least one is known to."""
    least = 1
    if limits.allow(derivation):
        least = _STEPS
    while least < most:
        middle = (least + most + 1) // 2
        if limits.allow(scale_widths(derivation, middle)):
            least = middle
        else:
            most = middle - 1
    return scale_widths(derivation, least)


def scale_widths(derivation: Derivation, factor: int) -> Derivation:
    """All widths times a number of 64ths."""
    if factor == _STEPS:
        return derivation
    return derivation.with_stages(
        tuple(
            structs.replace(stage, width=round_width(stage.width * factor / _STEPS))
            if stage.kind.sets_width
            else stage
            for stage in derivation.stages
        )
    )


def _forms(derivation: Derivation, limits: Limits) -> Iterator[Derivation]:
    """A network, then with fewer repetitions, then with fewer stages."""
    yield derivation
    while any(stage.repeat > 1 for stage in derivation.stages):
        derivation = derivation.with_stages(
            tuple(structs.replace(stage, repeat=(stage.repeat + 1) // 2 if stage.repeat > 2 else 1)
                  for stage in derivation.stages)
        )  # fmt: skip
        yield derivation
    while len(derivation.stages) > 1:
        # The first stays: a grammar says with what a network begins.
        cut = (without(derivation, at) for at in range(1, len(derivation.stages)))
        shorter = [made for made in cut if made is not None]
        if not shorter:
            return
        derivation = min(shorter, key=lambda d: limits.excess(count(scale_widths(d, 1))))
        yield derivation


def without(derivation: Derivation, at: int) -> Derivation | None:
    """A network without one of its stages; None where others cannot stand without it."""
    stages = derivation.stages[:at] + derivation.stages[at + 1 :]
    made = rebuild(derivation.with_stages(stages))
    return made if made is not None and len(made.stages) == len(stages) else None


def smallest(
    grammar: Grammar, shape: tuple[int, ...], classes: int, limits: Limits
) -> Derivation | None:
    """The network that asks for least of what is limited: one block, as narrow as it can be."""
    start = Derivation(shape, classes, ())
    joint = JOINTS[len(shape)]
    known = [str(choice) for choice, _ in grammar.choices[NETWORK]]
    blocks = [b for b in known if b in BLOCKS and joint in BLOCKS[b].takes]
    blocks = blocks or [b for b in grammar.blocks if joint in BLOCKS[b].takes]
    candidates = []
    for block in blocks:
        for settings in islice(_all_settings(grammar, block), _MOST_SETTINGS):
            stage = repair(start, Stage(block, LEAST_WIDTH, 1, settings))
            if stage is not None:
                candidates.append(start.with_stages((stage,)))
    counted = Limits(1, 1) if limits == Limits() else limits
    found = [one for one in candidates if fits(one)]
    return min(found, key=lambda one: (counted.excess(count(one)), one.stages), default=None)


def _all_settings(grammar: Grammar, block: str) -> Iterator[Settings]:
    names = BLOCKS[block].settings
    rows = [[choice for choice, _ in grammar.choices.get(f"{block}.{name}", [])] for name in names]
    known: dict[str, list[Any]] = {n: list(r) for n, r in zip(names, rows, strict=True) if r}
    for chosen in product(*known.values()):
        yield Settings(**dict(zip(known, chosen, strict=True)))
