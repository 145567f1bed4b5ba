"""Steps of training, beside those that PyTorch takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.program.lower import lower
from nacre.nac.training.trainer import Trainer

RNG = np.random.default_rng(5)
X = RNG.normal(size=(16, 6)).astype(np.float32)
CLASSES = RNG.integers(0, 3, 16)
RATE = 0.1


def perceptron() -> nac.NacModel:
    """Two layers, made without PyTorch."""
    made = Builder()
    x = made.input("x", "f32", (16, 6))
    rng = np.random.default_rng(7)
    weights = {"one": (8, 6), "two": (3, 8)}
    hidden = x
    values = {}
    for name, shape in weights.items():
        values[name] = made.constant(rng.normal(size=shape).astype(np.float32) / 2)
        bias = made.constant(np.zeros(shape[0], np.float32))
        hidden = made.add("Linear", hidden, values[name], bias)
        hidden = made.add("Relu", hidden) if name == "one" else hidden
    module = made.module(hidden)
    return nac.load(to_bytes(lower(module)))


def naive_loss(scores: np.ndarray[Any, Any], classes: np.ndarray[Any, Any]) -> float:
    """The cross entropy by its definition, number by number."""
    total = 0.0
    for row, right in zip(scores.astype(np.float64), classes, strict=True):
        total -= float(np.log(np.exp(row[right]) / np.exp(row).sum()))
    return total / len(classes)


def test_a_step_gives_the_loss_before_it_and_the_loss_falls() -> None:
    trainer = Trainer(perceptron())
    losses = [trainer.step({"x": X}, [CLASSES], RATE)]
    assert losses[0] == pytest.approx(naive_loss(perceptron().run({"x": X})[0], CLASSES), rel=1e-5)
    for _ in range(60):
        losses.append(trainer.step({"x": X}, [CLASSES], RATE))
    assert losses[-1] < losses[0] / 2
    assert losses[-1] > naive_loss(trainer.run({"x": X})[0], CLASSES)


def test_a_gradient_is_the_slope_of_the_loss() -> None:
    trainer = Trainer(perceptron())
    trainer.run({"x": X})
    before = {name: array.copy() for name, array in trainer.weights.items()}
    trainer.step({"x": X}, [CLASSES], 1.0)
    for name, weight in before.items():
        moved = before[name] - trainer.weights[name]  # the gradient
        place = np.unravel_index(np.abs(moved).argmax(), moved.shape)
        ends = []
        for step in (-1e-2, 1e-2):
            probe = Trainer(perceptron())
            probe.run({"x": X})
            changed = weight.copy()
            changed[place] += step
            probe.weights[name] = changed
            ends.append(naive_loss(probe.run({"x": X})[0], CLASSES))
        assert (ends[1] - ends[0]) / 2e-2 == pytest.approx(float(moved[place]), rel=0.05)


def test_the_trained_model_is_a_file_like_any_other(tmp_path: Path) -> None:
    trainer = Trainer(perceptron())
    for _ in range(10):
        trainer.step({"x": X}, [CLASSES], RATE)
    path = tmp_path / "trained.nac"
    nac.save(trainer.model(), path)
    assert nac.verify(path) == []
    found = nac.load(path).session(optimise=False).run({"x": X})[0]
    np.testing.assert_allclose(found, trainer.run({"x": X})[0], rtol=1e-5, atol=1e-6)


def test_parameters_that_are_not_named_stay() -> None:
    trainer = Trainer(perceptron())
    trainer.run({"x": X})
    names = list(trainer.weights)
    before = {name: array.copy() for name, array in trainer.weights.items()}
    trainer.step({"x": X}, [CLASSES], RATE, parameters=names[2:])
    same = [bool((trainer.weights[name] == before[name]).all()) for name in names]
    assert same == [True, True, False, False]


def test_a_mean_squared_error() -> None:
    trainer = Trainer(perceptron())
    target = np.zeros((16, 3), np.float32)
    first = trainer.step({"x": X}, [target], RATE, loss="mse")
    assert first == pytest.approx(float((perceptron().run({"x": X})[0] ** 2).mean()), rel=1e-5)
    assert trainer.step({"x": X}, [target], RATE, loss="mse") < first


@pytest.mark.parametrize(
    "quant", ["fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
def test_a_quantised_model_is_trained_in_floats(quant: str) -> None:
    model, _ = nac.quantise(perceptron(), quant)
    trainer = Trainer(model)
    losses = [trainer.step({"x": X}, [CLASSES], RATE) for _ in range(20)]
    assert losses[-1] < losses[0]
    trained = trainer.model()
    assert trained.file.header.quant == 0
    found = trained.session(optimise=False).run({"x": X})[0]
    np.testing.assert_allclose(found, trainer.run({"x": X})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("targets", "given", "words"),
    [
        ([CLASSES[:4]], {}, "expected tensor<i64[16]>"),
        ([CLASSES, CLASSES], {}, "2 targets for 1 outputs"),
        ([CLASSES], {"loss": "mse"}, "expected the same type"),
        ([CLASSES], {"parameters": ["weight"]}, "there is no parameter `weight`"),
    ],
)
def test_what_cannot_be_trained(targets: Any, given: dict[str, Any], words: str) -> None:  # noqa: ANN401
    trainer = Trainer(perceptron())
    with pytest.raises(InputError) as refused:
        trainer.step({"x": X}, targets, RATE, **given)
    (finding,) = refused.value.diagnostics
    assert finding.code == "NAC55"
    assert words in finding.message


def test_a_model_without_parameters() -> None:
    made = Builder()
    x = made.input("x", "f32", (16, 3))
    model = nac.load(to_bytes(lower(made.module(made.add("Neg", x)))))
    with pytest.raises(InputError) as refused:
        Trainer(model).step({"x": X[:, :3]}, [CLASSES], RATE)
    assert [d.code for d in refused.value.diagnostics] == ["NAC55"]


@pytest.mark.heavy("PyTorch exports a network")
def test_steps_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(4 * 16, 10), torch.nn.LayerNorm(10),
        torch.nn.Linear(10, 5),
    )  # fmt: skip
    images = torch.randn(6, 1, 8, 8)
    classes = torch.tensor([0, 1, 2, 3, 4, 0])
    exported = torch.export.export(network, (images,))
    trainer = Trainer(nac.build(exported))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)
    (name,) = trainer.inputs
    for _ in range(5):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), classes)
        loss.backward()
        optimiser.step()
        ours = trainer.step({name: images.numpy()}, [classes.numpy()], 0.05)
        assert ours == pytest.approx(float(loss.detach()), rel=1e-4)
    for parameter, tensor in network.named_parameters():
        np.testing.assert_allclose(
            trainer.weights[parameter], tensor.detach().numpy(), rtol=2e-3, atol=2e-5
        )


@pytest.mark.parametrize("wrong", [-1, -100, 3])
def test_a_target_is_a_class_of_its_output(wrong: int) -> None:
    targets = np.where(np.arange(16) == 7, wrong, CLASSES)
    with pytest.raises(InputError, match=f"class {wrong}, expected 0 to 2") as caught:
        Trainer(perceptron()).step({"x": X}, [targets], RATE)
    assert [found.code for found in caught.value.diagnostics] == ["NAC55"]


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_rate_is_a_number(rate: float) -> None:
    trainer = Trainer(perceptron())
    with pytest.raises(InputError, match="expected a finite number") as caught:
        trainer.step({"x": X}, [CLASSES], rate)
    assert [found.code for found in caught.value.diagnostics] == ["NAC55"]
    assert trainer.step({"x": X}, [CLASSES], RATE) == pytest.approx(
        Trainer(perceptron()).step({"x": X}, [CLASSES], RATE)
    )


def test_a_rate_of_zero_changes_nothing() -> None:
    trainer = Trainer(perceptron())
    trainer.step({"x": X}, [CLASSES], 0.0)
    untouched = Trainer(perceptron())
    assert set(trainer.parameters) == set(untouched.parameters)
    for name, array in untouched.weights.items():
        np.testing.assert_array_equal(trainer.weights[name], array)


@pytest.mark.parametrize(
    ("odd", "code", "words"),
    [
        ({"rate": "0.1"}, "NAC55", "the rate is a str, expected a number"),
        ({"rate": None}, "NAC55", "the rate is a NoneType"),
        ({"rate": np.array([0.1, 0.2])}, "NAC55", "the rate is a ndarray"),
        ({"loss": "hinge"}, "NAC55", "there is no loss `hinge`, only cross_entropy, mse"),
        ({"parameters": "c1"}, "NAC55", "parameters are a str, expected a list of names"),
        ({"parameters": [3]}, "NAC55", "there is no parameter `3`"),
        ({"targets": [np.array(["a"] * 16)]}, "NAC55", "no array of numbers"),
        ({"targets": [[[1], [2, 3]]]}, "NAC55", "no array of numbers but of list"),
        ({"targets": {"y": CLASSES}}, "NAC55", "targets are a dict, expected a list"),
        ({"targets": [CLASSES[:0]]}, "NAC55", "has no elements"),
        ({"inputs": {"x": X[:2]}}, "NAC46", "shape [2, 6], expected [16, 6]"),
        ({"inputs": {"x": np.ones((16, 6), np.uint64)}}, "NAC46", "no element type"),
        ({"inputs": {}}, "NAC44", "input `x` is missing"),
        ({"inputs": X}, "NAC46", "expected arrays by name"),
    ],
)
def test_a_request_that_makes_no_sense(odd: dict[str, Any], code: str, words: str) -> None:
    given: dict[str, Any] = {"inputs": {"x": X}, "targets": [CLASSES], "rate": RATE, **odd}
    with pytest.raises(InputError) as refused:
        Trainer(perceptron()).step(**given)
    assert refused.value.diagnostics[0].code == code
    assert words in refused.value.diagnostics[0].message


def test_classes_of_any_integers_and_targets_of_any_floats() -> None:
    expected = Trainer(perceptron()).step({"x": X}, [CLASSES], RATE)
    for dtype in ("u1", "i4", "u8"):
        assert Trainer(perceptron()).step({"x": X}, [CLASSES.astype(dtype)], RATE) == expected
    wide = Trainer(perceptron()).step({"x": X}, [np.zeros((16, 3))], RATE, loss="mse")
    narrow = np.zeros((16, 3), np.float32)
    assert wide == Trainer(perceptron()).step({"x": X}, [narrow], RATE, loss="mse")


def test_weights_that_somebody_has_put_in_are_written() -> None:
    trainer = Trainer(perceptron())
    name = trainer.parameters[0]
    trainer.weights[name] = trainer.weights[name] * 2
    expected = trainer.run({"x": X})[0]
    assert not np.allclose(expected, perceptron().run({"x": X})[0])
    np.testing.assert_allclose(trainer.model().run({"x": X})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("c1", np.zeros((2, 2), np.float32), "is float32[2, 2], expected float32[8, 6]"),
        ("c1", 3, "is a int, expected float32[8, 6]"),
        ("other", np.zeros(2, np.float32), "there is no parameter `other`"),
    ],
)
def test_weights_that_do_not_fit(name: str, array: Any, words: str) -> None:  # noqa: ANN401
    trainer = Trainer(perceptron())
    assert "c1" in trainer.parameters
    trainer.weights[name] = array
    uses: list[Callable[[], object]] = [
        lambda: trainer.step({"x": X}, [CLASSES], RATE),
        lambda: trainer.run({"x": X}),
        trainer.model,
    ]
    for use in uses:
        with pytest.raises(InputError) as refused:
            use()
        assert words in refused.value.diagnostics[0].message


def test_training_goes_on_from_a_file_that_was_written_over(tmp_path: Path) -> None:
    path = tmp_path / "m.nac"
    nac.save(perceptron(), path)
    straight = Trainer(perceptron())
    for _ in range(3):
        resumed = Trainer(nac.load(path))
        loss = resumed.step({"x": X}, [CLASSES], RATE)
        assert loss == straight.step({"x": X}, [CLASSES], RATE)
        nac.save(resumed.model(), path)


@pytest.mark.parametrize("model", ["m.nac", None, 3])
def test_what_is_no_model(model: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match="NAC55"):
        Trainer(model)
