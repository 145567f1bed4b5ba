"""Short training: how well a network does after a few steps, which says how well it may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import cos, pi

import numpy as np
from msgspec import Struct

from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import TensorType
from nacre.core.values import Array
from nacre.nac.program.trainable import fixed_constants
from nacre.nac.synthesis.derivation import Derivation, write_module
from nacre.nac.synthesis.examples import Examples
from nacre.nac.synthesis.layers import INPUT
from nacre.nac.training.module import open_parameters, training_module
from nacre.nac.training.optimisers import Adam, Moments

_ADAM = Adam(betas=(0.9, 0.99))  # squares of a few steps
_LONGEST = 1.0  # gradients above are scaled down to this length


class Course(Struct, frozen=True):
    """How long and how fast: steps, examples a step, and the rate that falls to nothing."""

    steps: int = 60
    batch: int = 64
    rate: float = 0.01
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """What came of it: the share of right answers on what was not trained on, losses, weights."""

    accuracy: float
    losses: tuple[float, ...]
    weights: Mapping[str, Array]


def train(derivation: Derivation, examples: Examples, course: Course) -> TrainingOutcome:
    """A network trained from drawn weights; the same course gives the same result."""
    inputs, labels = examples.train
    batch = min(course.batch, len(labels))
    module = write_module(derivation, course.seed, batch)
    fixed = fixed_constants(module)
    names = [n for value, (n,) in module.parameter_names.items() if value not in fixed]
    opened, (target,) = training_module(
        module, "cross_entropy", [TensorType("i64", (batch,))], names
    )
    session = CoreSession(opened.module)
    weights = dict(opened.weights)
    descent = _Descent(course)
    losses = []
    for chosen in _batches(len(labels), batch, course):
        given = {opened.inputs[name]: array for name, array in weights.items()}
        given |= {INPUT: inputs[chosen], target: labels[chosen]}
        loss, *gradients = session.run(given)
        losses.append(float(loss))
        if not np.isfinite(losses[-1]):
            break
        weights |= descent.step(weights, dict(zip(names, gradients, strict=True)))
    return TrainingOutcome(_accuracy(derivation, examples, batch, weights), tuple(losses), weights)


def _batches(count: int, batch: int, course: Course) -> Iterator[Array]:
    """Examples of each step: all of them in some order, then again in another."""
    random = np.random.default_rng((course.seed, 1))
    left: Array = np.zeros(0, np.int64)
    for _ in range(course.steps):
        if len(left) < batch:
            left = random.permutation(count)
        yield left[:batch]
        left = left[batch:]


def _accuracy(
    derivation: Derivation, examples: Examples, batch: int, weights: Mapping[str, Array]
) -> float:
    inputs, labels = examples.test
    opened = open_parameters(write_module(derivation, 0, batch))
    session = CoreSession(opened.module)
    given = {opened.inputs[name]: array for name, array in weights.items()}
    right = 0
    for start in range(0, len(labels), batch):
        part = inputs[start : start + batch]
        filled = np.concatenate([part, np.zeros((batch - len(part), *part.shape[1:]), part.dtype)])
        (scores,) = session.run({**given, INPUT: filled})
        found = np.argmax(scores[: len(part)], axis=1)
        right += int((found == labels[start : start + batch]).sum())
    return right / len(labels)


@dataclass
class _Descent:
    """Adam with a rate that falls and gradients that are not too long."""

    course: Course
    count: int = 0
    _moments: dict[str, Moments | None] = field(default_factory=dict)

    def step(
        self, weights: Mapping[str, Array], gradients: Mapping[str, Array]
    ) -> dict[str, Array]:
        """The weights after a step."""
        self.count += 1
        rate = self.course.rate * (1 + cos(pi * self.count / self.course.steps)) / 2
        shorter = _shortening(list(gradients.values()))
        made = {}
        for name, gradient in gradients.items():
            small = gradient * np.float32(shorter)
            made[name], self._moments[name] = _ADAM.update(
                weights[name], small, rate, self._moments.get(name)
            )
        return made


def _shortening(gradients: Sequence[Array]) -> float:
    length = float(np.sqrt(sum(float(np.vdot(one, one)) for one in gradients)))
    return min(1.0, _LONGEST / length) if length > 0 else 1.0
