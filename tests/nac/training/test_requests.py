"""What steps of training are asked for: weights without axes, targets, rates, axes of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.program.lower import lower

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def scaled() -> nac.NacModel:
    """`x * t` with a parameter `t` that has no axes."""
    made = Builder()
    x = made.input("x", "f32", X.shape)
    factor = made.constant(np.array(0.5, np.float32))
    return nac.load(to_bytes(lower(made.module(made.add("BinOp", x, factor, op="Mul")))))


def scores(shape: tuple[int, ...]) -> nac.NacModel:
    """A model whose output is its input plus a parameter."""
    made = Builder()
    x = made.input("x", "f32", shape)
    weight = made.constant(np.ones(shape, np.float32))
    return nac.load(to_bytes(lower(made.module(made.add("BinOp", x, weight, op="Add")))))


def refused(model: nac.NacModel, inputs: Any, target: Any, rate: Any = 0.1, **given: Any) -> Any:  # noqa: ANN401
    """The one finding of a step that is refused."""
    trainer = nac.Trainer(model)
    names = list(trainer.weights)
    with pytest.raises(InputError) as raised:
        trainer.step({"x": inputs}, [target], rate, parameters=names, **given)
    (finding,) = raised.value.diagnostics
    assert finding.code == "NAC55"
    return finding


def test_a_parameter_without_axes_stays_an_array() -> None:
    trainer = nac.Trainer(scaled())
    (name,) = trainer.weights
    target = np.zeros_like(X)
    expected = 0.5
    for _ in range(3):
        loss = trainer.step({"x": X}, [target], 0.1, loss="mse", parameters=[name])
        assert loss == pytest.approx(float(np.mean((X * expected) ** 2)), rel=1e-5)
        expected -= 0.1 * 2 * expected * float(np.mean(X**2))
    weight = trainer.weights[name]
    assert isinstance(weight, np.ndarray)
    assert (weight.shape, weight.dtype.name) == ((), "float32")
    assert float(weight) == pytest.approx(expected, rel=1e-5)
    model = trainer.model()
    assert [tensor.shape for tensor in model.file.data.tensors] == [()]
    np.testing.assert_allclose(model.run({"x": X})[0], X * np.float32(expected), rtol=1e-5)


def test_weights_are_there_from_the_start() -> None:
    trainer = nac.Trainer(scaled())
    (name,) = trainer.weights
    trainer.weights[name] = np.array(2, np.float32)
    np.testing.assert_array_equal(trainer.run({"x": X})[0], X * 2)
    np.testing.assert_array_equal(trainer.model().run({"x": X})[0], X * 2)
    other = nac.Trainer(scaled())
    other.weights |= trainer.weights
    np.testing.assert_array_equal(other.run({"x": X})[0], X * 2)


@pytest.mark.parametrize("rate", [-1, -1e-3, float("-inf"), np.float32(-0.5)])
def test_a_rate_below_zero(rate: float) -> None:
    assert "the rate is" in refused(scaled(), X, np.zeros_like(X), rate, loss="mse").message


@pytest.mark.parametrize(
    ("loss", "target", "words", "remedy"),
    [
        ("cross_entropy", np.ones(4, bool), "expected numbers of classes", "np.int64"),
        ("mse", np.ones((4, 3), bool), "expected floats", "np.float32"),
    ],
)
def test_booleans_are_no_targets(loss: str, target: Any, words: str, remedy: str) -> None:  # noqa: ANN401
    finding = refused(scaled(), X, target, loss=loss)
    assert finding.message == f"target 0 has booleans, {words}"
    assert remedy in finding.help


@pytest.mark.parametrize(
    ("loss", "wrong", "words"),
    [
        ("mse", float("nan"), "has nan, expected finite numbers"),
        ("l1", float("inf"), "has inf, expected finite numbers"),
        ("mse", 1e300, "has 1e+300, expected finite numbers"),
        ("bce_with_logits", 2.0, "has 2, expected floats from 0 to 1"),
        ("bce_with_logits", -0.1, "has -0.1, expected floats from 0 to 1"),
        ("bce_with_logits", float("nan"), "has nan, expected floats from 0 to 1"),
    ],
)
def test_targets_that_would_spoil_every_weight(loss: str, wrong: float, words: str) -> None:
    target = np.zeros(X.shape)
    target[1, 2] = wrong
    assert refused(scaled(), X, target, loss=loss).message == f"target 0 {words}"


def test_numbers_that_no_float_has() -> None:
    target = np.zeros_like(X)
    assert "the rate is" in refused(scaled(), X, target, 10**400, loss="mse").message
    smoothing = refused(scaled(), X, np.zeros(4, int), label_smoothing=10**400)
    assert "expected a number from 0 to 1" in smoothing.message
    with pytest.raises(InputError, match=r"NAC55(.|\n)*`momentum` is 1000"):
        nac.Trainer(scaled(), nac.SGD(momentum=10**400))


def test_classes_on_axis_1_are_told_apart() -> None:
    shape = (2, 10, 4, 3)
    target = np.full((2, 4, 3), 9)  # a class that the last axis does not have
    finding = refused(scores(shape), np.zeros(shape, np.float32), target)
    assert "expected tensor<i64[2, 10, 4]>" in finding.message
    assert "`scores.permute(0, 2, 3, 1)`" in finding.help
    shape = (2, 4, 3, 10)
    assert nac.Trainer(scores(shape)).step(
        {"x": np.zeros(shape, np.float32)}, [target], 0.1, parameters=["c1"]
    ) == pytest.approx(np.log(10), rel=1e-5)


@pytest.mark.parametrize("target", [(2, 5), (4,), (2, 10, 4)])
def test_other_targets_are_not_said_to_be_transposed(target: tuple[int, ...]) -> None:
    shape = (2, 10, 4)
    finding = refused(scores(shape), np.zeros(shape, np.float32), np.zeros(target, np.int64))
    assert finding.help is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_step_that_would_make_weights_nan_changes_nothing(wrong: float) -> None:
    trainer = nac.Trainer(scaled(), "adam")
    (name,) = trainer.weights
    inputs = X.copy()
    inputs[1, 2] = wrong
    with pytest.raises(InputError) as raised:
        trainer.step({"x": inputs}, [np.zeros_like(X)], 0.1, loss="mse", parameters=[name])
    (finding,) = raised.value.diagnostics
    assert finding.code == "NAC55"
    assert f"the gradient of `{name}` is NaN or infinite" in finding.message
    assert float(trainer.weights[name]) == 0.5
    trainer.step({"x": X}, [np.zeros_like(X)], 0.1, loss="mse", parameters=[name])
    assert float(trainer.weights[name]) == pytest.approx(0.4, rel=1e-4)  # Adam's first step
