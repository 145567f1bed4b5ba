"""Buffers that a module changes: state that sessions keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify

torch = pytest.importorskip("torch")

Loose = Any


class Cached(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Attention over all tokens so far, one token a call, written by one of three ways."""

    def __init__(self, way: str, capacity: int = 4) -> None:
        super().__init__()
        self.way = way
        self.query = torch.nn.Linear(6, 6)
        self.register_buffer("keys", torch.zeros(1, 2, capacity, 3))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Loose, position: Loose) -> Loose:
        row = x.view(1, 1, 2, 3).transpose(1, 2)
        if self.way == "index_copy_":
            self.keys.index_copy_(2, position, row)
        elif self.way == "setitem":
            self.keys[:, :, position] = row
        else:
            at = torch.arange(self.keys.shape[2])[:, None] == position
            self.keys.copy_(torch.where(at, row, self.keys))
        self.seen += 1
        query = self.query(x).view(1, 1, 2, 3).transpose(1, 2)
        mask = torch.arange(self.keys.shape[2]) <= position
        made = torch.nn.functional.scaled_dot_product_attention(
            query, self.keys, self.keys, mask[None, None, None]
        )
        return made.reshape(1, 6), self.seen * 1


@pytest.mark.parametrize("way", ["index_copy_", "setitem", "copy_"])
def test_a_cache_of_fixed_capacity(way: str) -> None:
    torch.manual_seed(3)
    model = Cached(way).eval()
    module = from_torch(model, (torch.zeros(1, 6), torch.tensor([0])))
    assert verify(module, profile="nacre-1") == []
    assert [(s.name, module.by_id[s.output].type.shape) for s in module.states] == [
        ("keys", (1, 2, 4, 3)),
        ("seen", ()),
    ]
    session = module.session()
    for step in range(4):
        x = torch.randn(1, 6)
        found = session.run({"x": x.numpy(), "position": np.array([step])})
        with torch.no_grad():
            expected, count = model(x, torch.tensor([step]))
        np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-5, atol=1e-6)
        assert found[1] == count == step + 1
        np.testing.assert_allclose(session.state["keys"], model.keys.numpy(), rtol=1e-6)
    session.reset()
    assert not session.state["keys"].any()


def test_a_cache_is_written_by_rows() -> None:
    module = from_torch(Cached("index_copy_"), (torch.zeros(1, 6), torch.tensor([0])))
    assert sum(op.opcode == "ScatterRows" for op in module) == 1
    assert not any(op.opcode.startswith("ScatterN") for op in module)


def test_the_state_starts_as_the_buffer_is_at_import() -> None:
    model = Cached("index_copy_")
    inputs = (torch.ones(1, 6), torch.tensor([2]))
    with torch.no_grad():
        model(*inputs)
    module = from_torch(model, inputs)
    start = model.keys.clone()
    with torch.no_grad():
        model(*inputs)
    np.testing.assert_array_equal(module.session().state["keys"], start.numpy())
    again = parse(print_module(module))
    assert evaluate(again, {"x": np.ones((1, 6), "f"), "position": np.array([2])})[1] == 2


def test_a_part_of_a_buffer_at_a_known_place() -> None:
    class Ring(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", torch.zeros(4, 2))

        def forward(self, x: Loose) -> Loose:
            self.last[1:] = self.last[:-1].clone()
            self.last[0] = x
            return self.last.sum(0)

    model = Ring()
    session = from_torch(model, (torch.zeros(2),)).session()
    for step in range(6):
        x = torch.tensor([step, 1.0])
        np.testing.assert_allclose(session.run({"x": x.numpy()})[0], model(x).numpy())


def test_a_buffer_under_the_name_of_an_input() -> None:
    class Named(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("x", torch.zeros(2))

        def forward(self, x: Loose) -> Loose:
            self.x.add_(x)
            return self.x * 2

    module = from_torch(Named(), (torch.ones(2),))
    assert sorted(module.input_types) == ["b_x", "x"]
    session = module.session()
    ones = np.ones(2, np.float32)
    assert [session.run({"x": ones})[0].tolist() for _ in range(2)] == [[2, 2], [4, 4]]


def test_a_buffer_with_two_names_beside_tied_weights() -> None:
    class Twice(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("total", torch.zeros(2))
            self.register_buffer("same", self.total)

        def forward(self, x: Loose) -> Loose:
            self.total.add_(self.b(self.a(x)))
            return self.same + 1

    model = Twice()
    module = from_torch(model, (torch.ones(2),))
    assert [s.name for s in module.states] == ["total"]
    session = module.session()
    for _ in range(3):
        with torch.no_grad():
            expected = model(torch.ones(2)).numpy()
        found = session.run({"x": np.ones(2, np.float32)})[0]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
