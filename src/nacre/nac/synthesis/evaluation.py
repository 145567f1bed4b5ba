"""What a search asks of a network: how well it does after short training, how long it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.nac.build import build
from nacre.nac.run.model import NacModel
from nacre.nac.synthesis.derivation import Derivation, write_module
from nacre.nac.synthesis.examples import Examples
from nacre.nac.synthesis.search import Score
from nacre.nac.synthesis.short_training import Course, TrainingOutcome, train
from nacre.nac.synthesis.synthesise import Cycles


@dataclass
class Evaluator:
    """Trains and times networks; each once, whoever asks.

    One that does not fit the device is not trained.
    """

    examples: Examples
    cycles: Cycles
    course: Course = Course()  # noqa: RUF009 - frozen
    trained: dict[Derivation, TrainingOutcome] = field(default_factory=dict)
    _scores: dict[Derivation, Score | None] = field(default_factory=dict)

    def __call__(self, derivation: Derivation) -> Score | None:
        """The share of errors on what was not trained on, and cycles; None: it does not fit."""
        if derivation not in self._scores:
            self._scores[derivation] = self._score(derivation)
        return self._scores[derivation]

    def trained_model(self, derivation: Derivation) -> NacModel:
        """A network that was evaluated, with the weights that came of its training."""
        weights = self.trained[derivation].weights
        return build(write_module(derivation, self.course.seed, weights=weights))

    def _score(self, derivation: Derivation) -> Score | None:
        cycles = self.cycles(build(write_module(derivation, self.course.seed)))
        if cycles is None:
            return None
        self.trained[derivation] = train(derivation, self.examples, self.course)
        return Score(1.0 - self.trained[derivation].accuracy, cycles)
