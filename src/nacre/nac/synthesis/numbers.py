"""Numbers of networks chosen by optuna: widths and repetitions, where the blocks stay.

Networks with the same blocks in the same order are one study of two aims. It needs the extra
`search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import optuna
from msgspec import structs

from nacre.nac.synthesis.derivation import Derivation, Stage
from nacre.nac.synthesis.sampling import LEAST_WIDTH, round_width
from nacre.nac.synthesis.search import Score

_MOST_REPEAT = 8
_SPAN = 4  # widths from a quarter to four times those of the first network with its blocks


@dataclass
class OptunaTuner:
    """Proposes numbers by a tree of Parzen estimators, a study for each row of blocks."""

    seed: int = 0
    _studies: dict[tuple[str, ...], _Study] = field(default_factory=dict)

    def propose(self, one: Derivation) -> Derivation | None:
        """The same blocks with other widths and repetitions."""
        study = self._study(one)
        trial = study.study.ask(dict(study.spans))
        made = _with_numbers(one, trial.params)
        study.asked[made] = trial
        return made

    def report(self, one: Derivation, score: Score) -> None:
        """What a network was found to do, whoever proposed it."""
        study = self._study(one)
        trial = study.asked.pop(one, None)
        if trial is not None:
            study.study.tell(trial, list(score.point))
            return
        numbers = _numbers(one)
        if all(study.spans[name]._contains(number) for name, number in numbers.items()):
            known = optuna.trial.create_trial(
                params=numbers, distributions=dict(study.spans), values=list(score.point)
            )
            study.study.add_trial(known)

    def _study(self, one: Derivation) -> _Study:
        blocks = tuple(stage.block for stage in one.stages)
        if blocks not in self._studies:
            self._studies[blocks] = _Study(_spans(one), self.seed + len(self._studies))
        return self._studies[blocks]


class _Study:
    """A study, what its numbers may be, and what was asked and not yet answered."""

    def __init__(self, spans: Mapping[str, Any], seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4)
        self.study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        self.spans = spans
        self.asked: dict[Derivation, Any] = {}


def _spans(one: Derivation) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, number in _numbers(one).items():
        if name.startswith("width"):
            low, high = max(LEAST_WIDTH, round_width(number / _SPAN)), round_width(number * _SPAN)
            made[name] = optuna.distributions.IntDistribution(low, high, step=4)
        else:
            most = max(_MOST_REPEAT, number)
            made[name] = optuna.distributions.IntDistribution(1, most)
    return made


def _numbers(one: Derivation) -> dict[str, int]:
    """The numbers of a network by name."""
    made = {}
    for at, stage in enumerate(one.stages):
        if stage.kind.sets_width:
            made[f"width{at}"] = stage.width
        if stage.kind.may_repeat:
            made[f"repeat{at}"] = stage.repeat
    return made


def _with_numbers(one: Derivation, numbers: Mapping[str, int]) -> Derivation:
    return one.with_stages(tuple(_renumbered(s, at, numbers) for at, s in enumerate(one.stages)))


def _renumbered(stage: Stage, at: int, numbers: Mapping[str, int]) -> Stage:
    return structs.replace(
        stage,
        width=numbers.get(f"width{at}", stage.width),
        repeat=numbers.get(f"repeat{at}", stage.repeat),
    )
