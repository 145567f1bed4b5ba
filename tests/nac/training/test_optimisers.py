"""Optimisers and losses beside PyTorch's, step for step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.training.losses import LOSSES
from nacre.nac.training.optimisers import OPTIMISERS, SGD, Adam, AdamW, Optimiser
from nacre.nac.training.trainer import Trainer

RNG = np.random.default_rng(11)
X = RNG.normal(size=(8, 5)).astype(np.float32)
CLASSES = RNG.integers(0, 4, 8)
FLOATS = RNG.normal(size=(8, 4)).astype(np.float32)
SHARES = RNG.integers(0, 2, (8, 4)).astype(np.float32)
STEPS = 12

# Ours, what PyTorch calls it, and its settings there.
CASES: dict[str, tuple[str | Optimiser, str, dict[str, Any]]] = {
    "sgd": ("sgd", "SGD", {}),
    "decay": (SGD(weight_decay=0.1), "SGD", {"weight_decay": 0.1}),
    "momentum": (SGD(momentum=0.9), "SGD", {"momentum": 0.9}),
    "dampening": (
        SGD(momentum=0.8, dampening=0.3), "SGD", {"momentum": 0.8, "dampening": 0.3},
    ),
    "nesterov": (
        SGD(momentum=0.9, nesterov=True, weight_decay=0.01), "SGD",
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": ("adam", "Adam", {}),
    "adam with settings": (
        Adam(betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1), "Adam",
        {"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1},
    ),
    "adamw": ("adamw", "AdamW", {}),
    "adamw with decay": (
        AdamW(weight_decay=0.5, betas=(0.8, 0.95)), "AdamW",
        {"weight_decay": 0.5, "betas": (0.8, 0.95)},
    ),
}  # fmt: skip
# The loss, its target, our option and that of PyTorch.
ASKED: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "cross_entropy": ("cross_entropy", CLASSES, {}),
    "cross_entropy, smoothed": ("cross_entropy", CLASSES, {"label_smoothing": 0.2}),
    "mse": ("mse", FLOATS, {}),
    "l1": ("l1", FLOATS, {}),
    "bce_with_logits": ("bce_with_logits", SHARES, {}),
}
THEIRS = {
    "cross_entropy": "cross_entropy", "mse": "mse_loss", "l1": "l1_loss",
    "bce_with_logits": "binary_cross_entropy_with_logits",
}  # fmt: skip


def _weights() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    shapes = {"one": (6, 5), "one_bias": (6,), "two": (4, 6), "two_bias": (4,)}
    return {name: rng.normal(size=shape).astype(np.float32) / 2 for name, shape in shapes.items()}


def model() -> nac.NacModel:
    made = Builder()
    hidden = made.input("x", "f32", (8, 5))
    constants = {name: made.constant(array) for name, array in _weights().items()}
    hidden = made.add("Linear", hidden, constants["one"], constants["one_bias"])
    hidden = made.add("Unary", hidden, op="Tanh")
    out = made.add("Linear", hidden, constants["two"], constants["two_bias"])
    return nac.build(made.module(out))


class Beside:
    """The same network and optimiser in PyTorch."""

    def __init__(self, optimiser: str, settings: dict[str, Any], rate: float) -> None:
        self.torch: Any = pytest.importorskip("torch")
        self.weights = [self.torch.tensor(one, requires_grad=True) for one in _weights().values()]
        self._optimiser = getattr(self.torch.optim, optimiser)(self.weights, lr=rate, **settings)

    def step(self, loss: str, target: Any, options: dict[str, Any]) -> float:  # noqa: ANN401
        functional = self.torch.nn.functional
        one, one_bias, two, two_bias = self.weights
        hidden = functional.linear(self.torch.tensor(X), one, one_bias).tanh()
        scores = functional.linear(hidden, two, two_bias)
        found = getattr(functional, THEIRS[loss])(scores, self.torch.tensor(target), **options)
        self._optimiser.zero_grad()
        found.backward()
        self._optimiser.step()
        return float(found.detach())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_every_optimiser_takes_the_steps_of_pytorch(case: str, loss: str) -> None:
    ours, name, settings = CASES[case]
    rate = 0.05 if name == "SGD" else 0.01
    _follow(Trainer(model(), ours), Beside(name, settings, rate), rate, *ASKED[loss])


@pytest.mark.parametrize("asked", ASKED)
def test_every_loss_is_that_of_pytorch(asked: str) -> None:
    _follow(Trainer(model(), "adam"), Beside("Adam", {}, 0.01), 0.01, *ASKED[asked])


def _follow(
    trainer: Trainer, beside: Beside, rate: float, loss: str, target: Any, options: dict[str, Any]  # noqa: ANN401
) -> None:  # fmt: skip
    for at in range(STEPS):
        theirs = beside.step(loss, target, options)
        ours = trainer.step({"x": X}, [target], rate, loss=loss, **options)
        assert ours == pytest.approx(theirs, rel=2e-5), f"step {at}"
        for found, expected in zip(trainer.weights.values(), beside.weights, strict=True):
            np.testing.assert_allclose(found, expected.detach().numpy(), rtol=2e-4, atol=2e-6)


def test_every_loss_and_optimiser_is_here() -> None:
    assert {loss for loss, _, _ in ASKED.values()} == set(LOSSES) == set(THEIRS)
    kinds = {
        type(one) if not isinstance(one, str) else OPTIMISERS[one] for one, _, _ in CASES.values()
    }
    assert kinds == set(OPTIMISERS.values())


@pytest.mark.parametrize("score", [-1000.0, -30.0, 0.0, 30.0, 1000.0])
def test_large_scores_have_a_finite_loss(score: float) -> None:
    """The definition has no place for e^1000; max(x, 0) - x t + log(1 + e^-|x|) has."""
    made = Builder()
    x = made.input("x", "f32", (1, 1))
    out = made.add("Linear", x, made.constant(np.full((1, 1), 2, np.float32)))
    trainer = Trainer(nac.build(made.module(out)))
    for truth in (0.0, 0.25, 1.0):
        expected = max(score, 0) - score * truth + float(np.log1p(np.exp(-abs(score))))
        given, target = np.full((1, 1), score / 2, np.float32), np.full((1, 1), truth, np.float32)
        found = trainer.step({"x": given}, [target], 0.0, loss="bce_with_logits")
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("optimiser", "words"),
    [
        ("lion", "there is no optimiser `lion`, only sgd, adam, adamw"),
        (3, "there is no optimiser in a int"),
        (SGD, "there is no optimiser in a "),
        (SGD(momentum=-0.1), "`momentum` is -0.1, expected numbers from 0 on"),
        (SGD(momentum=float("nan")), "`momentum` is nan"),
        (SGD(nesterov=True), "`nesterov` needs a momentum"),
        (SGD(nesterov=True, momentum=0.5, dampening=0.5), "and no dampening"),
        (Adam(betas=(0.9, 1.0)), "`betas` is (0.9, 1.0), expected numbers between 0 and 1"),
        (Adam(betas=(0.9,)), "`betas` is (0.9,), expected two numbers"),  # type: ignore[arg-type]
        (AdamW(weight_decay="a"), "`weight_decay` is 'a', expected numbers"),  # type: ignore[arg-type]
        (AdamW(eps=-1e-8), "`eps` is -1e-08"),
    ],
)
def test_optimisers_that_there_are_not(optimiser: Any, words: str) -> None:  # noqa: ANN401 - wrong
    with pytest.raises(InputError, match="NAC55") as caught:
        Trainer(model(), optimiser)
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_smoothing": -0.1}, "`label_smoothing` is -0.1, expected a number from 0 to 1"),
        ({"label_smoothing": 1.5}, "`label_smoothing` is 1.5"),
        ({"label_smoothing": float("nan")}, "`label_smoothing` is nan"),
        ({"label_smoothing": "a"}, "`label_smoothing` is a str"),
        ({"label_smoothing": True}, "`label_smoothing` is a bool"),
        ({"label_smoothing": 0.1, "loss": "l1"}, "l1 has no labels to smooth, only cross_entropy"),
    ],
)
def test_smoothing_that_makes_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match="NAC55") as caught:
        Trainer(model()).step({"x": X}, [CLASSES], 0.1, **options)
    assert words in caught.value.diagnostics[0].message


def test_what_is_remembered_is_of_each_parameter() -> None:
    """A step that leaves a parameter out leaves what is remembered of it alone, as PyTorch does."""
    torch: Any = pytest.importorskip("torch")
    trainer, beside = Trainer(model(), "adam"), Beside("Adam", {}, 0.01)
    names = list(trainer.weights)
    for chosen in (names, names[:2], names):
        kept = [name in chosen for name in names]
        for weight, is_trained in zip(beside.weights, kept, strict=True):
            weight.requires_grad_(is_trained)
            weight.grad = None
        beside.step("mse", FLOATS, {})
        trainer.step({"x": X}, [FLOATS], 0.01, loss="mse", parameters=chosen)
    for found, expected in zip(trainer.weights.values(), beside.weights, strict=True):
        np.testing.assert_allclose(
            found, torch.Tensor.numpy(expected.detach()), rtol=2e-4, atol=2e-6
        )
