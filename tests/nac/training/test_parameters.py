"""What is a parameter: PyTorch's optimiser changes it, and nothing else that a file stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import NacFile
from nacre.nac.program.lower import lower
from nacre.nac.program.trainable import TRAINING
from nacre.nac.training.trainer import Trainer
from tests.nac.training.torch_steps import follow, onnx_file, require_same

torch: Any = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.heavy("PyTorch exports a network"),
    pytest.mark.filterwarnings("ignore"),  # PyTorch's exporters have much to say
]

CLASSES = torch.tensor([0, 2, 1, 1])


class Buffered(torch.nn.Module):  # type: ignore[misc]
    """Everything that is stored and not learned."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)
        self.bn.running_mean.normal_()
        self.bn.running_var.uniform_(0.5, 2)
        self.gru = torch.nn.GRU(16, 5, batch_first=True)
        self.last = torch.nn.Linear(5, 3)
        self.register_buffer("kept", torch.rand(16))
        self.register_buffer("unsaved", torch.rand(16), persistent=False)
        self.frozen = torch.nn.Parameter(torch.rand(16), requires_grad=False)

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        hidden = torch.relu(self.bn(self.conv(x))).flatten(2) * self.kept
        hidden = hidden + self.unsaved + self.frozen * torch.tensor([1.0, 2.0]).repeat(8)
        return self.last(self.gru(hidden)[0][:, -1])


BUFFERED = {
    "conv.weight", "conv.bias", "bn.weight", "bn.bias", "gru.weight_ih_l0", "gru.weight_hh_l0",
    "gru.bias_ih_l0", "gru.bias_hh_l0", "last.weight", "last.bias",
}  # fmt: skip
IMAGES = torch.randn(4, 1, 6, 6, generator=torch.Generator().manual_seed(2))


def test_buffers_statistics_and_literals_stay() -> None:
    network = Buffered().eval()
    model = nac.build(network, example_args=(IMAGES,))
    before = {name: array.copy() for name, array in Trainer(model).weights.items()}
    trainer = follow(network, model, (IMAGES,), CLASSES)
    require_same(network, trainer)
    assert set(trainer.parameters) == BUFFERED
    assert {"kept", "unsaved", "frozen", "bn.running_mean", "bn.running_var"} <= set(
        trainer.weights
    )
    for name in set(before) - BUFFERED:
        np.testing.assert_array_equal(trainer.weights[name], before[name])


def test_the_record_goes_with_the_file(tmp_path: Path) -> None:
    network = Buffered().eval()
    program = torch.export.export(network, (IMAGES,))
    torch.export.save(program, str(tmp_path / "network.pt2"))
    model = nac.build(tmp_path / "network.pt2")
    path = tmp_path / "network.nac"
    nac.save(model, path)
    again = nac.build(path)
    assert to_bytes(again.file) == to_bytes(model.file)
    quantised, _ = nac.quantise(model, "fp16")
    trained = Trainer(nac.load(path))
    trained.step({"x": IMAGES.numpy()}, [CLASSES.numpy()], 0.1)
    for one in (model, nac.load(path), again, quantised, trained.model(), nac.build(path, "fp16")):
        assert set(Trainer(one).parameters) == BUFFERED


def without_record(model: nac.NacModel) -> nac.NacModel:
    """A file as it was written before there was a record."""
    file = model.file
    kept = tuple(r for r in file.resources if r.name != TRAINING)
    return nac.load(to_bytes(NacFile(file.header, {**file.sections, "RSRC": kept}, file.gaps)))


def test_an_older_file_goes_by_how_constants_are_used() -> None:
    model = without_record(nac.build(Buffered().eval(), example_args=(IMAGES,)))
    trainer = Trainer(model)
    # What is multiplied or added under a name may be learned: nobody can tell.
    assert set(trainer.parameters) == BUFFERED | {"kept", "unsaved", "frozen"}
    assert set(Trainer(nac.build(model)).parameters) == set(trainer.parameters)


def test_what_is_named_is_trained_whatever_it_is() -> None:
    trainer = Trainer(nac.build(Buffered().eval(), example_args=(IMAGES,)))
    before = dict(trainer.weights), trainer.parameters
    trainer.step({"x": IMAGES.numpy()}, [CLASSES.numpy()], 0.1, parameters=["kept"])
    changed = {n for n, array in trainer.weights.items() if (array != before[0].get(n)).any()}
    assert changed <= {"kept"} | (set(trainer.weights) - set(before[0]))
    assert before[1] == trainer.parameters


def test_a_record_that_is_malformed() -> None:
    from nacre.nac.format.values import Resource

    file = nac.build(torch.nn.Linear(2, 2), example_args=(torch.ones(1, 2),)).file
    broken = tuple(
        Resource(r.name, b'{"fixed": 3}' if r.name == TRAINING else r.data) for r in file.resources
    )
    with pytest.raises(InputError, match=r"NAC43.*nacre.training.json is malformed"):
        nac.load(to_bytes(NacFile(file.header, {**file.sections, "RSRC": broken}, file.gaps)))


def test_onnx_goes_by_how_initialisers_are_used(tmp_path: Path) -> None:
    network = torch.nn.Sequential(
        # An exporter would make one of the convolution and a norm right behind it.
        torch.nn.Conv2d(1, 4, 3), torch.nn.PReLU(4), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
        torch.nn.Linear(64, 6), torch.nn.LayerNorm(6), torch.nn.Linear(6, 3),
    ).eval()  # fmt: skip
    # Statistics that are equal to weights: the exporter stores them once.
    model = nac.build(onnx_file(network, (IMAGES,), tmp_path))
    trainer = follow(network, model, (IMAGES,), CLASSES)
    sizes = sorted(trainer.weights[name].size for name in trainer.parameters)
    assert sizes == sorted(one.numel() for one in network.parameters())
    assert not [name for name in trainer.parameters if "running" in name]


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_recurrent_layers_of_onnx(kind: str, tmp_path: Path) -> None:
    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(4)
            self.layer = getattr(torch.nn, kind)(6, 5, batch_first=True)
            self.last = torch.nn.Linear(5, 3)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            return self.last(self.layer(x)[0][:, -1])

    x = torch.randn(4, 3, 6)
    network = Network().eval()
    follow(network, nac.build(onnx_file(network, (x,), tmp_path)), (x,), CLASSES)


def test_a_module_without_names_goes_by_use() -> None:
    made = Builder()
    x = made.input("x", "f32", (4, 3))
    scaled = made.add("BinOp", x, made.constant(np.array([1, 2, 3], np.float32)), op="Mul")
    weight = made.constant(np.ones((5, 3), np.float32))
    bias = made.constant(np.full(5, 0.5, np.float32))
    linear = made.add("Linear", scaled, weight, bias)
    statistics = [made.constant(np.full(5, n, np.float32)) for n in (1.5, 2.5, 3.5, 4.5)]
    normed = made.add("BatchNorm", linear, *statistics)
    trainer = Trainer(nac.load(to_bytes(lower(made.module(normed)))))
    shapes = {name: trainer.weights[name].flat[0] for name in trainer.parameters}
    assert sorted(shapes.values()) == [0.5, 1.0, 1.5, 2.5]


class Tied(torch.nn.Module):  # type: ignore[misc]
    """One table, looked up and multiplied with."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.e = torch.nn.Embedding(7, 5)
        self.l = torch.nn.Linear(5, 5)
        self.way = way

    def forward(self, places: Any) -> Any:  # noqa: ANN401
        hidden, table = torch.tanh(self.l(self.e(places))), self.e.weight
        return {
            "transposed": lambda: hidden @ table.T,
            "as weights": lambda: torch.nn.functional.linear(hidden, table),
            "copied": lambda: hidden @ table.t().contiguous(),
            "cut": lambda: hidden @ table[:6].T,
            "there and back": lambda: hidden @ table.reshape(-1)[:35].reshape(7, 5).T,
            "scaled": lambda: hidden @ (table * 0.5).T,
        }[self.way]()


TIES = ["transposed", "as weights", "copied", "cut", "there and back", "scaled"]
PLACES = torch.tensor([0, 3, 6, 2])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", TIES)
def test_a_tied_parameter_is_one(way: str) -> None:
    network = Tied(way).eval()
    trainer = follow(network, nac.build(network, example_args=(PLACES,)), (PLACES,), CLASSES)
    require_same(network, trainer)
    assert [tensor.shape for tensor in trainer.model().file.data.tensors].count((7, 5)) == 1


@pytest.mark.parametrize("way", TIES)
def test_a_tied_initialiser_is_one(way: str, tmp_path: Path) -> None:
    network = Tied(way).eval()
    model = nac.build(onnx_file(network, (PLACES,), tmp_path))
    trainer = follow(network, model, (PLACES,), CLASSES)
    assert sorted(trainer.weights[name].size for name in trainer.parameters) == [5, 25, 35]


@pytest.mark.parametrize("is_fixed", [False, True])
def test_parts_are_what_the_whole_is(is_fixed: bool) -> None:
    class Parts(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(6)
            self.w = torch.nn.Parameter(torch.randn(12, 6), requires_grad=not is_fixed)
            self.last = torch.nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            one, other = self.w.chunk(2)
            return self.last(torch.tanh(x @ one) * (x @ other.T))

    network, x = Parts().eval(), torch.randn(4, 6)
    trainer = follow(network, nac.build(network, example_args=(x,)), (x,), CLASSES)
    parts = [name for name in trainer.weights if name.startswith("w")]
    assert len(parts) == 2
    assert set(trainer.parameters) == {"last.weight", "last.bias"} | (
        set() if is_fixed else {*parts}
    )


class Repeated(torch.nn.Module):  # type: ignore[misc]
    """A token for every example, and rows of a table that are taken twice."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.token = torch.nn.Parameter(torch.randn(1, 1, 5))
        self.table = torch.nn.Parameter(torch.randn(3, 5))
        self.last = torch.nn.Linear(5, 3)
        self.way = way
        self.register_buffer("rows", torch.tensor([0, 1, 1, 2]))

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        ways = {"expand": lambda: self.token.expand(4, -1, -1),
                "repeat": lambda: self.token.repeat(4, 1, 1),
                "flip": lambda: self.token.flip(2) + self.token.expand(4, -1, -1)}  # fmt: skip
        rows = torch.cat([ways[self.way](), x], 1) + self.table[self.rows]
        return self.last(torch.tanh(rows)).mean(1)


@pytest.mark.parametrize("way", ["expand", "repeat", "flip"])
@pytest.mark.parametrize("source", ["torch", "onnx"])
def test_repeated_elements_change_together(way: str, source: str, tmp_path: Path) -> None:
    network, x = Repeated(way).eval(), torch.randn(4, 3, 5)
    path = onnx_file(network, (x,), tmp_path) if source == "onnx" else None
    model = nac.build(path) if path else nac.build(network, example_args=(x,))
    trainer = follow(network, model, (x,), CLASSES)
    require_same(network, trainer)
