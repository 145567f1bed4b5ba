"""What a program takes and gives: names, types, weights, sizes, the package itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from nacre.base.hints import at_terminal
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import TensorType
from nacre.core.torch import library
from nacre.core.torch.elements import array_of
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify
from tests.core.torch.programs import Function, findings, open_program

torch = pytest.importorskip("torch")

Loose = Any


def test_inputs_and_outputs_are_flattened_in_order() -> None:
    class Nested(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Loose, pair: Loose, *, scale: Loose) -> Loose:
            return {"sum": pair[0] + pair[1], "more": [x * scale, None, 7]}

    pair = (torch.ones(2), torch.ones(2, dtype=torch.int32))
    module = from_torch(Nested(), (torch.ones(3), pair), {"scale": torch.tensor(2.0)})
    names = {"x": "f32[3]", "pair_0": "f32[2]", "pair_1": "i32[2]", "scale": "f32[]"}
    assert {n: f"{t.dtype}{list(t.shape)}" for n, t in module.input_types.items()} == names
    arrays = {n: np.ones(t.shape, t.element.dtype) for n, t in module.input_types.items()}
    found = evaluate(module, {**arrays, "scale": np.float32(3)})
    assert [a.tolist() for a in found] == [[2.0, 2.0], [3.0, 3.0, 3.0], 7]


def test_progress_is_told_node_by_node() -> None:
    told: list[tuple[int, int]] = []
    network = Function(lambda x: torch.relu(x + 1) * 2)
    from_torch(network, (torch.ones(2),), progress=lambda done, total: told.append((done, total)))
    total = told[0][1]
    assert total > 3  # the input, the calls and the output
    assert told == [(done, total) for done in range(total)]


def test_places_of_known_elements_are_known() -> None:
    kept = torch.tensor([0, 3, 0, 5])
    module = from_torch(Function(lambda x: (x, torch.nonzero(kept))), (torch.ones(2),))
    assert evaluate(module, {"xs_0": np.ones(2, np.float32)})[1].tolist() == [[1], [3]]


def test_tied_weights_are_one_constant() -> None:
    class Tied(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(11, 4)
            self.head = torch.nn.Linear(4, 11, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i: Loose) -> Loose:
            return self.head(self.table(i))

    module = from_torch(Tied(), (torch.tensor([1, 2]),))
    assert [op.opcode for op in module] == ["Input", "ConstTensor", "Gather", "Linear"]


def test_constants_do_not_follow_the_weights() -> None:
    layer = torch.nn.Linear(2, 2, bias=False)
    module = from_torch(layer, (torch.ones(1, 2),))
    before = evaluate(module, {"input": np.ones((1, 2), np.float32)})[0].copy()
    with torch.no_grad():
        layer.weight.zero_()
    after = evaluate(module, {"input": np.ones((1, 2), np.float32)})[0]
    assert before.any()
    assert after.tolist() == before.tolist()


def test_shape_arithmetic_is_known() -> None:
    def function(x: Loose) -> Loose:
        places = torch.arange(x.shape[1]) * 2 + torch.full((x.shape[1],), 3)
        mask = torch.ones(x.shape[1], x.shape[1]).tril() > 0
        return x.view(x.shape[0], -1) + places, mask.sum()

    module = from_torch(Function(function), (torch.ones(2, 3),))
    assert [op.opcode for op in module if op.opcode != "ConstTensor"] == ["Input", "BinOp"]
    assert evaluate(module, {"xs_0": np.ones((2, 3), np.float32)})[1] == 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats(dtype: str) -> None:
    torch.manual_seed(1)
    layers = [torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 4)]
    model = torch.nn.Sequential(*layers).to(getattr(torch, dtype)).eval()
    x = torch.randn(3, 6).to(getattr(torch, dtype))
    module = from_torch(model, (x,))
    found = evaluate(module, {"input": array_of(x)})[0]
    with torch.no_grad():
        expected = array_of(model(x))
    assert found.dtype == expected.dtype
    nearness = {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=nearness, atol=nearness
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_integers(dtype: str) -> None:
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))

    def function(x: Loose) -> Loose:
        return x, x.flip(1), x == 1, x.sum(), x.to(torch.float32) * 2

    module = from_torch(Function(function), (x,))
    found = evaluate(module, {"xs_0": x.numpy()})
    for one, other in zip(found, function(x), strict=True):
        assert one.dtype == other.numpy().dtype
        np.testing.assert_array_equal(one, other.numpy())


def test_regions_without_gradients_and_autocast_are_seen_through() -> None:
    class Regions(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Loose) -> Loose:
            with torch.no_grad():
                y = x * 2
            with torch.autocast("cpu", enabled=False):
                z = y @ y.mT
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return z, y @ y.mT

    x = torch.randn(3, 4)
    module = from_torch(Regions(), (x,))
    assert verify(module, profile="nacre-1") == []
    assert [t.dtype for t in module.output_types] == ["f32", "bf16"]
    found = evaluate(module, {"x": x.numpy()})
    np.testing.assert_allclose(found[0], (4 * x @ x.mT).numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1].astype("f"), (4 * x @ x.mT).numpy(), rtol=0.05, atol=0.1)


@pytest.mark.heavy("PyTorch exports a network")
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_become_products(kind: str) -> None:
    torch.manual_seed(2)
    layer = getattr(torch.nn, kind)(4, 5, num_layers=2, bidirectional=True).eval()
    x = torch.randn(3, 2, 4)
    found = evaluate(from_torch(layer, (x,)), {"input": x.numpy()})
    with torch.no_grad():
        y, state = layer(x)
    expected = [y, *(state if isinstance(state, tuple) else [state])]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-5)


def test_open_sizes_are_given() -> None:
    module = from_torch(open_program(), shapes={"xs_0": (5, 4)})
    assert module.input_types["xs_0"] == TensorType("f32", (5, 4))
    x, y = np.random.default_rng(1).normal(size=(5, 4)).astype("f"), np.ones(2, np.float32)
    found = evaluate(module, {"xs_0": x, "xs_1": y})[0]
    expected = torch.softmax(torch.tensor(x) @ torch.tensor(x).mT, -1).numpy() + 2
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_open_sizes_that_nobody_gives() -> None:
    (only,) = findings(open_program())
    assert only[0] == "TCH02"
    assert "input `xs_0` has the shape [" in only[1]
    assert only[2] == 'shapes={"xs_0": (2, 4)}'
    with at_terminal():
        (only,) = findings(open_program())
    assert only[2] == "`--shape xs_0=2x4`"


def test_shapes_that_do_not_fit() -> None:
    found = findings(open_program(), shapes={"xs_0": (5, 3), "xs_9": (1,), "xs_1": (3,)})
    assert [f[0] for f in found] == ["TCH06"] * 3
    assert "was given the shape [5, 3], the program says" in found[0][1]
    assert found[1][1:] == ("the program has no input `xs_9`", "did you mean `xs_0`?")
    assert "[3], the program says [2]" in found[2][1]


def test_arguments_beside_a_program() -> None:
    ((code, message, help_),) = findings(open_program(), torch.ones(5, 4), torch.ones(2))
    assert (code, message) == ("TCH06", "example arguments were given, but a program has its own")
    assert help_ == "give sizes that it leaves open as `shapes`"


def test_weights_without_elements() -> None:
    with torch.device("meta"):
        layer = torch.nn.Linear(2, 2, bias=False)
    ((code, message, help_),) = findings(layer, torch.ones(1, 2, device="meta"))
    assert code == "TCH01"
    assert message.endswith("`weight` has no elements, only a shape")
    assert help_ == "load weights first"


def test_a_layer_with_turned_weights_is_linear() -> None:
    weight, bias = torch.randn(3, 5), torch.randn(5)
    module = from_torch(Function(lambda x: torch.addmm(bias, x, weight)), (torch.ones(2, 3),))
    assert module.by_id[module.outputs[0]].opcode == "Linear"
    found = evaluate(module, {"xs_0": np.ones((2, 3), np.float32)})[0]
    np.testing.assert_allclose(found, (weight.sum(0) + bias).expand(2, 5).numpy(), rtol=1e-5)


def test_the_package_is_loaded_late() -> None:
    code = "import sys, nacre.core, nacre.core.torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    library._library.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    (only,) = findings("model.pt2")
    assert only == (
        "TCH07", "bringing in PyTorch modules needs the package `torch`",
        'pip install "nacre[torch]"',
    )  # fmt: skip
