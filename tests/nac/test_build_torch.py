"""Networks of PyTorch as files: whole models of `transformers`, tied weights, caches as state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.core.torch.importer import from_torch
from nacre.nac.program.lift import lift
from tests.core.models.minilm import minilm, sentence
from tests.core.models.test_real_models import path_of
from tests.nac.test_build import through_a_file

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.core.torch import test_models as models  # noqa: E402 - it needs both
from tests.core.torch import test_more_models as more_models  # noqa: E402

pytestmark = pytest.mark.full  # with packages that CI does without


Loose = Any


def prepared(make: Callable[[], Loose]) -> tuple[Loose, Loose]:
    torch.manual_seed(6)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    network, inputs = make()
    network.eval()
    models.lively(network)
    return network, inputs


def imported_through_a_file(network: Loose, inputs: Loose, path: Path) -> None:
    module = from_torch(network, inputs)
    feeds = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    through_a_file(module, feeds, path)


@pytest.mark.parametrize("make", models.MODELS, ids=lambda make: make.__name__)
def test_a_model_of_transformers(make: Callable[[], Loose], tmp_path: Path) -> None:
    imported_through_a_file(*prepared(make), tmp_path / "m.nac")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # those of transformers
@pytest.mark.parametrize("entry", more_models.MODELS, ids=lambda entry: entry.model)
def test_a_model_from_its_configuration(entry: more_models.Entry, tmp_path: Path) -> None:
    made = prepared(lambda: (more_models.Chosen(entry, more_models.made(entry)), entry.inputs()))
    imported_through_a_file(*made, tmp_path / "m.nac")


@pytest.mark.full
def test_minilm(tmp_path: Path) -> None:
    network = minilm(path_of("minilm"))
    words = tuple(torch.from_numpy(array) for array in sentence(32))
    imported_through_a_file(network, words, tmp_path / "m.nac")


def test_weights_have_their_names_and_tied_ones_are_stored_once(tmp_path: Path) -> None:
    network, inputs = prepared(models.gpt2)
    model = nac.build(network, example_args=inputs)
    names = [entry.text for entry in model.file.data.parameters]
    assert "model.transformer.wte.weight" in names
    assert "model.lm_head.weight" not in names
    ids = model.parameter_ids
    assert ids["model.lm_head.weight"] == ids["model.transformer.wte.weight"]
    given = model.surroundings.parameters
    loads = [given.of_load(index) for index in given.loaded]
    assert len(loads) == len(set(loads)), "each parameter is loaded once"
    arrays = [(t.dtype, t.shape, bytes(t.data)) for t in model.file.data.tensors]
    assert len(arrays) == len(set(arrays)), "equal ones are stored once"
    assert nac.to_bytes(nac.build(network, example_args=inputs).file) == nac.to_bytes(model.file)
    state = sum(p.numel() * p.element_size() for p in network.parameters())
    stored = sum(len(t.data) for t in model.file.data.tensors)
    assert stored <= state * 1.05


def test_an_exported_program_is_a_source(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    x = torch.randn(2, 4)
    torch.export.save(torch.export.export(network, (x,)), tmp_path / "m.pt2")
    made = [nac.build(tmp_path / "m.pt2"), nac.build(network, example_args=(x,))]
    assert nac.to_bytes(made[0].file) == nac.to_bytes(made[1].file)
    assert [entry.text for entry in made[0].file.data.parameters] == ["0.weight", "0.bias"]
    assert made[0].file.header.d_model == 4
    (found,) = made[0].run({made[0].inputs[0].name: x.numpy()})
    np.testing.assert_allclose(found, network(x).detach().numpy(), rtol=1e-5)


class Counter(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module that keeps a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.tensor([1.0, 2.0]))

    def forward(self, x: Loose) -> Loose:
        self.total.add_(x)
        return self.total * 2


def test_buffers_that_change_are_state(tmp_path: Path) -> None:
    model = nac.build(Counter(), example_args=(torch.ones(2),))
    nac.save(model, tmp_path / "m.nac")
    session = nac.load(tmp_path / "m.nac").session()
    name = model.inputs[0].name
    found = [session.run({name: np.ones(2, np.float32)})[0] for _ in range(3)]
    np.testing.assert_array_equal(found, [[4, 6], [6, 8], [8, 10]])
    assert lift(model).states[0].output != lift(model).outputs[0]
