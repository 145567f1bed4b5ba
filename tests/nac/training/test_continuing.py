"""Training that is stored and continued, beside one that is not interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.nac.training.optimisers import Optimiser
from tests.nac.training.test_trainer import CLASSES, X, perceptron

OPTIMISERS: dict[str, Optimiser] = {
    "sgd": nac.SGD(),
    "momentum": nac.SGD(momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": nac.Adam(),
    "adamw": nac.AdamW(weight_decay=0.1),
}


def losses(trainer: nac.Trainer, count: int) -> list[float]:
    return [trainer.step({"x": X}, [CLASSES], 0.05) for _ in range(count)]


def stored(trainer: nac.Trainer, folder: Path, optimiser: Optimiser) -> nac.Trainer:
    """The same training out of its files."""
    nac.save(trainer.model(), folder / "half.nac")
    state: Any = trainer.optimiser_state
    np.savez(folder / "half.npz", **state)
    again = nac.Trainer(nac.load(folder / "half.nac"), optimiser)
    with np.load(folder / "half.npz", allow_pickle=False) as arrays:
        again.optimiser_state = arrays
    return again


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_losses_are_those_without_an_interruption(name: str, before: int, tmp_path: Path) -> None:
    optimiser = OPTIMISERS[name]
    whole = nac.Trainer(perceptron(), optimiser)
    expected = losses(whole, 10)
    trainer = nac.Trainer(perceptron(), optimiser)
    found = losses(trainer, before)
    again = stored(trainer, tmp_path, optimiser)
    assert found + losses(again, 10 - before) == expected
    for parameter, weight in whole.weights.items():
        np.testing.assert_array_equal(again.weights[parameter], weight)


def test_without_what_was_remembered_losses_are_others() -> None:
    trainer = nac.Trainer(perceptron(), "adam")
    losses(trainer, 5)
    again = nac.Trainer(trainer.model(), "adam")
    assert losses(again, 3) != losses(trainer, 3)


def test_a_state_is_of_that_time() -> None:
    trainer = nac.Trainer(perceptron(), "adam")
    losses(trainer, 2)
    state = trainer.optimiser_state
    before = {name: array.copy() for name, array in state.items()}
    losses(trainer, 2)
    for name, array in before.items():
        np.testing.assert_array_equal(state[name], array)


def _changed(state: dict[str, Any], kind: str, change: Any) -> dict[str, Any]:  # noqa: ANN401
    key = next(name for name in state if name.startswith(f"{kind}/"))
    return {**state, key: change(state[key])}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: [1], "is a list, expected arrays by name"),
        (lambda s: {**s, "velocity/one": np.zeros(3)}, "does not remember"),
        (lambda s: {**s, "mean/nobody": np.zeros(3)}, "of a parameter `nobody`"),
        (lambda s: {**s, "mean": np.zeros(3)}, "of a parameter"),
        (lambda s: {k: v for k, v in s.items() if "square/" not in k}, "lacks `square/"),
        (lambda s: {k: v for k, v in s.items() if "steps/" not in k}, "lacks `steps/"),
        (lambda s: _changed(s, "mean", lambda a: a[..., :1]), "expected float32"),
        (lambda s: _changed(s, "mean", lambda a: a.astype(np.float64)), "is float64"),
        (lambda s: _changed(s, "mean", lambda a: a + np.nan), "not finite"),
        (lambda s: _changed(s, "square", lambda a: a - 1), "below 0"),
        (lambda s: _changed(s, "steps", lambda a: a * 0), "whole number from 1 on"),
        (lambda s: _changed(s, "steps", lambda a: a * 1.5), "whole number from 1 on"),
        (lambda s: _changed(s, "steps", lambda a: "3"), "whole number from 1 on"),
    ],
)
def test_a_state_of_something_else_is_refused(change: Any, words: str) -> None:  # noqa: ANN401
    trainer = nac.Trainer(perceptron(), "adam")
    losses(trainer, 1)
    before = trainer.optimiser_state
    with pytest.raises(InputError, match="NAC55") as refused:
        trainer.optimiser_state = change(dict(before))
    assert words in str(refused.value)
    assert trainer.optimiser_state.keys() == before.keys(), "a refusal changes nothing"


def test_a_state_of_another_optimiser_is_refused() -> None:
    trainer = nac.Trainer(perceptron(), "adam")
    losses(trainer, 1)
    for other, expected in ((nac.SGD(), "expected none"), (nac.SGD(momentum=0.9), "mean/NAME")):
        again = nac.Trainer(perceptron(), other)
        with pytest.raises(InputError, match="NAC55") as refused:
            again.optimiser_state = trainer.optimiser_state
        assert expected in str(refused.value)
