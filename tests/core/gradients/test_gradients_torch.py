"""Gradients against `torch.autograd`, at ordinary points and where functions have kinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.gradients.grad import grad
from tests.core.gradients.gradient_cases import CASES, Array, Case, op

torch = pytest.importorskip("torch")

Loose = Any
COMPARED = [case for case in CASES if case.torch is not None]


def autograd(call: Loose, arrays: list[Array], weighted: bool) -> list[Array]:
    inputs = [torch.tensor(array, requires_grad=True) for array in arrays]
    y = call(torch, *inputs)
    if weighted:
        y = y * torch.tensor(Case.weights(tuple(y.shape)))
    found = torch.autograd.grad(y.sum(), inputs, allow_unused=True)
    return [
        np.zeros(x.shape) if g is None else g.numpy() for g, x in zip(found, inputs, strict=True)
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_a_gradient_is_that_of_torch(case: Case, weighted: bool) -> None:
    inputs = case.values()
    expected = autograd(case.torch, list(inputs.values()), weighted)
    found = evaluate(grad(case.module(weighted), case.names), inputs)[1:]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_most_operations_are_compared() -> None:
    keys = {case.key for case in CASES}
    alone = keys - {case.key for case in COMPARED}
    # PyTorch has no such operation, or counts neighbours otherwise.
    assert alone == {
        ("Conv2d", ""), ("LpPool", ""), ("OneHot", ""), ("Pad", ""), ("Reduce", "Prod"),
        ("ScatterNd", ""), ("ScatterRows", ""), ("DynamicUpdate", ""),
    }  # fmt: skip


KINKS = [-4.0, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 4.0]


def _at_kinks(name: str, build: Loose, call: Loose) -> Loose:
    return pytest.param(build, call, id=name)


@pytest.mark.parametrize(
    ("build", "call"),
    [
        _at_kinks("Relu", op("Relu"), lambda t, x: t.relu(x)),
        _at_kinks("ReluNan", op("ReluNan"), lambda t, x: t.relu(x)),
        _at_kinks("Abs", op("Unary", op="Abs"), lambda t, x: t.abs(x)),
        _at_kinks("Clip", op("Clip", min=-1.0, max=1.0), lambda t, x: t.clamp(x, -1.0, 1.0)),
        _at_kinks(
            "LeakyRelu", op("LeakyRelu"), lambda t, x: t.nn.functional.leaky_relu(x, 0.01)
        ),
        _at_kinks("Elu", op("Elu", alpha=0.7), lambda t, x: t.nn.functional.elu(x, 0.7)),
        _at_kinks("Selu", op("Selu"), lambda t, x: t.nn.functional.selu(x)),
        _at_kinks(
            "HardSigmoid",
            op("HardSigmoid", alpha=1 / 6),
            lambda t, x: t.nn.functional.hardsigmoid(x),
        ),
        _at_kinks("HardSwish", op("HardSwish"), lambda t, x: t.nn.functional.hardswish(x)),
        _at_kinks("Sign", op("Unary", op="Sign"), lambda t, x: t.sign(x)),
        _at_kinks("Softsign", op("Unary", op="Softsign"), lambda t, x: t.nn.functional.softsign(x)),
        _at_kinks(
            "L2",
            lambda b, x: b.add("Reduce", b.add("BinOp", x, b.add("ConstF64", value=0.0), op="Mul"),
                               op="L2", axes=()),
            lambda t, x: t.linalg.vector_norm(x * 0.0),
        ),
    ],
)  # fmt: skip
def test_subgradients_are_those_of_torch(build: Loose, call: Loose) -> None:
    builder = Builder()
    module = builder.module(build(builder, builder.input("x", "f64", (len(KINKS),))))
    (found,) = evaluate(grad(module, ["x"]), {"x": np.array(KINKS)})[1:]
    # PyTorch has a third and a sixth in f32.
    np.testing.assert_allclose(found, autograd(call, [np.array(KINKS)], False)[0], rtol=1e-7)


@pytest.mark.parametrize("word", ["Min", "Max", "Pow"])
def test_ties_and_zeros_of_two_operands_are_those_of_torch(word: str) -> None:
    a, b = (m.ravel() for m in np.meshgrid([-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0]))
    if word == "Pow":
        a = np.abs(a)
    builder = Builder()
    x, y = (builder.input(name, "f64", a.shape) for name in "xy")
    module = builder.module(builder.add("BinOp", x, y, op=word))
    found = evaluate(grad(module, ["x", "y"]), {"x": a, "y": b})[1:]
    call = {"Min": torch.minimum, "Max": torch.maximum, "Pow": torch.pow}[word]
    expected = autograd(lambda t, p, q: call(p, q), [a, b], False)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("word", ["Max", "Min", "Prod", "L1", "SumSquare"])
def test_reductions_with_ties_and_zeros_are_those_of_torch(word: str) -> None:
    x = np.array([[1.0, 3.0, 3.0], [0.0, -2.0, 0.0], [0.0, 2.0, 2.0], [-1.0, -1.0, -1.0]])
    builder = Builder()
    value = builder.input("x", "f64", x.shape)
    module = builder.module(builder.add("Reduce", value, op=word, axes=(1,)))
    (found,) = evaluate(grad(module, ["x"]), {"x": x})[1:]
    calls = {
        "Max": lambda t, v: t.amax(v, 1),
        "Min": lambda t, v: t.amin(v, 1),
        "Prod": lambda t, v: t.prod(v, 1),
        "L1": lambda t, v: v.abs().sum(1),
        "SumSquare": lambda t, v: (v * v).sum(1),
    }
    np.testing.assert_allclose(found, autograd(calls[word], [x], False)[0], rtol=1e-12)


def test_running_products_with_zeros_are_those_of_torch() -> None:
    x = np.array([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 2.0, 1.0], [2.0, 3.0, 0.0, 0.0]])
    builder = Builder()
    value = builder.input("x", "f64", x.shape)
    module = builder.module(builder.add("CumProd", value, axis=1))
    (found,) = evaluate(grad(module, ["x"]), {"x": x})[1:]
    expected = autograd(lambda t, v: t.cumprod(v, 1), [x], False)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_first_of_several_largest_in_a_window_has_it_all_as_in_torch() -> None:
    x = np.array([[[1.0, 1.0, 0.0, 1.0, 1.0, 1.0]]])
    builder = Builder()
    value = builder.input("x", "f64", x.shape)
    module = builder.module(builder.add("MaxPool", value, kernel=(3,), pads=(1, 1)))
    (found,) = evaluate(grad(module, ["x"]), {"x": x})[1:]
    expected = autograd(lambda t, v: t.nn.functional.max_pool1d(v, 3, 1, 1), [x], False)[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_narrow_floats_have_gradients_of_their_own_type(dtype: str) -> None:
    known = {"f32": (torch.float32, 1e-6), "f16": (torch.float16, 1e-2), "bf16": (None, 6e-2)}
    kind, tolerance = known[dtype]
    builder = Builder()
    x, w = builder.input("x", dtype, (2, 3)), builder.input("w", dtype, (4, 3))
    y = builder.add("Softmax", builder.add("Linear", x, w), axis=1)
    y = builder.add("BinOp", y, builder.add("Gelu", builder.add("Linear", x, w)), op="Mul")
    module = builder.module(y)
    random = np.random.default_rng(0)
    element = builder.type_of(x).element.dtype
    arrays = [random.uniform(-1, 1, shape).astype(element) for shape in ((2, 3), (4, 3))]
    found = evaluate(grad(module, ["x", "w"]), dict(zip("xw", arrays, strict=True)))[1:]
    assert [array.dtype for array in found] == [element] * 2

    def call(t: Loose, a: Loose, b: Loose) -> Loose:
        line = a @ b.T
        return t.softmax(line, 1) * t.nn.functional.gelu(line)

    exact = autograd(call, [array.astype(np.float64) for array in arrays], False)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one.astype(np.float64), other, rtol=tolerance, atol=tolerance)
    assert kind is None or str(np.dtype(element)) in str(kind)
