"""Names of parameters: equal ones stay apart and are stored once, and all names are found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.onnx.importer import from_onnx
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.models import read_model
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.parameters import PARAMETERS
from nacre.nac.tools.extraction import weights
from nacre.nac.tools.opening import open_nac
from nacre.nac.tools.transplant import transplant
from tests.clock import in_time
from tests.nac.files import changed, small

torch = pytest.importorskip("torch")

Loose = Any
WIDTH, WORDS, PIXELS = 8, 11, 6


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A block as GPT-2 has it: weights of `matmul` lie transposed, and q, k, v in one."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.c_attn = torch.nn.Parameter(torch.randn(WIDTH, 3 * WIDTH) * 0.3)
        self.c_fc, self.c_proj = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Loose) -> Loose:
        q, k, v = (self.ln_1(x) @ self.c_attn).chunk(3, -1)
        x = x + torch.softmax(q @ k.transpose(-1, -2), -1) @ v
        return x + self.c_proj(torch.relu(self.c_fc(self.ln_2(x))))


class Language(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A GPT-2 in small: tied words, and norms that are all equal before training."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = torch.nn.Embedding(WORDS, WIDTH)
        self.h = torch.nn.ModuleList(Block() for _ in range(2))
        self.ln_f = torch.nn.LayerNorm(WIDTH)
        self.lm_head = torch.nn.Linear(WIDTH, WORDS, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, words: Loose) -> Loose:
        x = self.wte(words)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def language() -> tuple[Loose, Loose]:
    return Language(), torch.randint(0, WORDS, (1, 5))


def pictures() -> tuple[Loose, Loose]:
    nn = torch.nn
    layers = [nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
              nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
              nn.Linear(4 * (PIXELS - 2) ** 2, 5)]  # fmt: skip
    return nn.Sequential(*layers), torch.randn(1, 3, PIXELS, PIXELS)


class Shifted(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A norm as Gemma has it: its weight is counted from one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Loose) -> Loose:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * (1.0 + self.weight.float())


class Computed(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Weights that are computed with before anything else is: scaled, adapted, chosen from."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.first, self.last = Shifted(), Shifted()
        self.w = torch.nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.a = torch.nn.Parameter(torch.randn(WIDTH, 2))
        self.b = torch.nn.Parameter(torch.zeros(2, WIDTH))
        self.decay = torch.nn.Parameter(torch.zeros(WIDTH))
        self.register_buffer("shift", torch.zeros(WIDTH, dtype=torch.float64))
        self.register_buffer("speeds", torch.arange(4.0), persistent=False)

    def forward(self, words: Loose) -> Loose:
        angles = torch.outer(torch.arange(5.0), self.speeds)
        x = self.words(words) * 2.5 + torch.cat([angles.cos(), angles.sin()], -1)
        x = self.first(x) @ (self.w + self.a @ self.b * 0.5).t()
        x = x * -torch.exp(self.decay) - torch.where(self.w[0] > 0.7, self.w[0], self.w[1])
        x = self.last(x + (2 * self.shift).to(torch.float32))
        return x @ (self.words.weight * 3).t()


def computed() -> tuple[Loose, Loose]:
    return Computed(), torch.randint(0, WORDS, (1, 5))


def fresh(make: Loose, seed: int) -> tuple[Loose, Loose]:
    """A network as it is before training."""
    torch.manual_seed(seed)
    network, x = make()
    return network.eval(), x


def trained(make: Loose, seed: int) -> tuple[Loose, Loose]:
    """A network no two weights of which are equal."""
    network, x = fresh(make, seed)
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) * 0.5 + 0.5)
    return network, x


def expected_names(network: Loose) -> set[str]:
    """What a network computes with; steps of training are counted for nothing."""
    return {name for name in network.state_dict() if not name.endswith("num_batches_tracked")}


def build(network: Loose, x: Loose, folder: Path) -> nac.NacModel:
    nac.save(nac.build(network, example_args=(x,)), folder / "m.nac")
    assert nac.verify(folder / "m.nac") == []
    return nac.load(folder / "m.nac")


@pytest.mark.sampled(3)
@pytest.mark.heavy("PyTorch exports a network")
@pytest.mark.parametrize("prepared", [fresh, trained], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [language, pictures, computed], ids=lambda f: f.__name__)
def test_every_name_of_a_network_is_found(make: Loose, prepared: Loose, tmp_path: Path) -> None:
    network, x = prepared(make, 1)
    model = build(network, x, tmp_path)
    assert expected_names(network) <= set(model.parameter_ids)
    given = {name: t.numpy() for name, t in network.state_dict().items()}
    for name in expected_names(network):
        found = model.weights[model.parameter_ids[name]]
        assert sorted(found.ravel()) == sorted(given[name].ravel()), name
    arrays = [(t.shape, bytes(t.data)) for t in model.file.data.tensors]
    assert len(arrays) == len(set(arrays)), "equal ones are stored once"
    lifted = nac.lift(model)
    assert {n for names in lifted.parameter_names.values() for n in names} >= expected_names(
        network
    )
    assert nac.to_bytes(nac.build(lifted).file) == nac.to_bytes(model.file)


@pytest.mark.sampled(3)
@pytest.mark.heavy("PyTorch exports a network")
@pytest.mark.parametrize("make", [language, pictures, computed], ids=lambda f: f.__name__)
def test_a_transplant_into_a_fresh_network_is_the_donor(make: Loose, tmp_path: Path) -> None:
    network, x = trained(make, 1)
    donor, target = build(network, x, tmp_path), build(*fresh(make, 2), tmp_path)
    made, report = transplant(donor, target)
    assert report.skipped == ()
    nac.save(made, tmp_path / "made.nac")
    assert nac.verify(tmp_path / "made.nac") == []
    made = nac.load(tmp_path / "made.nac")
    feeds = {donor.inputs[0].name: x.numpy()}
    np.testing.assert_array_equal(made.run(feeds)[0], donor.run(feeds)[0])
    np.testing.assert_allclose(made.run(feeds)[0], network(x).detach().numpy(), rtol=1e-3)
    for name in expected_names(network):
        one, other = (m.weights[m.parameter_ids[name]] for m in (made, donor))
        np.testing.assert_array_equal(one, other)


@pytest.mark.heavy("PyTorch exports a network")
def test_what_becomes_equal_by_a_transplant_may_part_again(tmp_path: Path) -> None:
    network, x = trained(language, 1)
    donor, plain = build(network, x, tmp_path), build(*fresh(language, 2), tmp_path)
    back, report = transplant(plain, transplant(donor, plain)[0])
    assert report.skipped == ()
    feeds = {plain.inputs[0].name: x.numpy()}
    np.testing.assert_array_equal(back.run(feeds)[0], plain.run(feeds)[0])
    again, _ = transplant(donor, back)
    np.testing.assert_array_equal(again.run(feeds)[0], donor.run(feeds)[0])


def test_a_quantised_network_keeps_its_names() -> None:
    network, x = fresh(language, 1)
    model = nac.build(network, example_args=(x,), quant="INT8_CHANNEL")
    assert expected_names(network) <= set(model.parameter_ids)


def test_initialisers_of_onnx_keep_their_names(tmp_path: Path) -> None:
    ones, square = np.ones(4, np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)
    held = {"a.scale": ones, "b.scale": ones, "w": square}
    nodes = [helper.make_node("Mul", ["x", "a.scale"], ["p"]),
             helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]),
             helper.make_node("MatMul", ["p", "turned"], ["q"]),
             helper.make_node("Mul", ["q", "b.scale"], ["y"])]  # fmt: skip
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4]) for n in "xy"]
    initialisers = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], initialisers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
              tmp_path / "m.onnx")  # fmt: skip
    model = nac.build(tmp_path / "m.onnx")
    assert set(model.parameter_ids) == set(held)
    assert model.parameter_ids["a.scale"] == model.parameter_ids["b.scale"]


def test_weights_are_extracted_under_all_of_their_names(tmp_path: Path) -> None:
    network, x = fresh(language, 1)
    build(network, x, tmp_path)
    ((_, parts),) = weights(open_nac(tmp_path / "m.nac"))
    raw = b"".join(bytes(part) for part in parts)
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert expected_names(network) <= set(header)


def with_table(file: NacFile, text: bytes) -> bytes:
    return nac.to_bytes(changed(file, RSRC=(Resource(PARAMETERS, text),)))


def test_a_file_without_the_table_has_the_names_of_its_data(tmp_path: Path) -> None:
    network, x = fresh(language, 1)
    model = build(network, x, tmp_path)
    left = tuple(r for r in model.file.resources if r.name != PARAMETERS)
    assert len(left) < len(model.file.resources)
    raw = nac.to_bytes(changed(model.file, RSRC=left))
    assert nac.verify(raw) == []
    old = nac.load(raw)
    assert set(old.parameter_ids) == {named.text for named in model.file.data.parameters}
    feeds = {model.inputs[0].name: x.numpy()}
    np.testing.assert_array_equal(old.run(feeds)[0], model.run(feeds)[0])


# The small file loads `layer.weight` in instruction 1 and `layer.bias` in 2.
BAD_TABLES = {
    "no-json": b"{",
    "no-text": b"\xff\xfe",
    "nothing": b"",
    "a-list": b"[]",
    "null": b"null",
    "other-key": b'{"names": {}}',
    "loads-a-list": b'{"loads": ["a"]}',
    "loads-a-number": b'{"loads": {"1": 7}}',
    "instruction-a-word": b'{"loads": {"one": "a"}}',
    "no-load": b'{"loads": {"3": "a"}}',
    "no-instruction": b'{"loads": {"99": "a"}}',
    "negative": b'{"loads": {"-1": "a"}}',
    "huge-number": b'{"loads": {"' + b"9" * 5000 + b'": "a"}}',
    "no-name": b'{"loads": {"1": ""}}',
    "half-a-character": b'{"loads": {"1": "\\ud800"}}',
    "tied-text": b'{"tied": {"layer.weight": "a"}}',
    "tied-to-nothing": b'{"tied": {"nobody": ["a"]}}',
    "tied-to-another": b'{"tied": {"layer.weight": ["layer.bias"]}}',
    "tied-to-itself": b'{"tied": {"layer.weight": ["layer.weight"]}}',
    "tied-twice": b'{"tied": {"layer.weight": ["a", "a"]}}',
    "tied-without-name": b'{"tied": {"layer.weight": [""]}}',
    "deep": b'{"tied": ' + b"[" * 100_000,
    "many": json.dumps({"loads": {str(i): "a" for i in range(9, 200_000)}}).encode(),
}


@pytest.mark.parametrize("text", BAD_TABLES.values(), ids=BAD_TABLES)
@in_time(2.0)
def test_a_table_that_is_wrong_has_a_code(text: bytes, tmp_path: Path) -> None:
    raw = with_table(small(), text)
    found = nac.verify(raw)
    assert {d.code for d in found} == {"NAC43"}
    assert len(found) <= 20
    with pytest.raises(InputError) as refused:
        nac.load(raw)
    assert {d.code for d in refused.value.diagnostics} == {"NAC43"}
    (tmp_path / "m.nac").write_bytes(raw)
    assert open_nac(tmp_path / "m.nac").parameter_names.ids == {"layer.weight": 1, "layer.bias": 2}


@in_time(2.0)
def test_a_weight_of_very_many_names() -> None:
    names = [f"n{i}" for i in range(100_000)]
    model = nac.load(with_table(small(), json.dumps({"tied": {"layer.bias": names}}).encode()))
    assert model.surroundings.parameters.by_id[2] == ("layer.bias", *names)
    assert len(transplant(model, model)[1].copied) == 2


def test_many_names_of_a_large_weight_do_not_fill_a_disk(tmp_path: Path) -> None:
    made = Assembler()
    id_ = made.weight("w", np.zeros(1 << 18, np.float32))
    made.output(made.call("nac.add", made.input("x"), made.parameter(id_)))
    table = {"tied": {"w": [f"n{i}" for i in range(1000)]}}
    (tmp_path / "m.nac").write_bytes(with_table(made.file(), json.dumps(table).encode()))
    with pytest.raises(InputError, match="under all of their names"):
        list(weights(open_nac(tmp_path / "m.nac")))


def scaled_onnx(steps: int) -> onnx.ModelProto:
    """`x * (1 + w + 1 + ...)`: an initialiser and numbers, added before anything is known of x."""
    nodes = [helper.make_node("Add", ["w" if i == 0 else f"s{i}", "one"], [f"s{i + 1}"])
             for i in range(steps)]  # fmt: skip
    nodes.append(helper.make_node("Mul", ["x", f"s{steps}"], ["y"]))
    tensors = {"w": np.arange(WIDTH, dtype=np.float32), "one": np.ones((), np.float32)}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, WIDTH]) for n in "xy"]
    held = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_an_initialiser_that_numbers_are_added_to_keeps_its_name(tmp_path: Path) -> None:
    onnx.save(scaled_onnx(2), tmp_path / "m.onnx")
    model = nac.build(tmp_path / "m.onnx")
    assert {"w", "one"} <= set(model.parameter_ids)
    x = np.ones((2, WIDTH), np.float32)
    np.testing.assert_array_equal(model.run({"x": x})[0], x * (np.arange(WIDTH) + 2))
    plain = from_onnx(tmp_path / "m.onnx")
    assert [op.opcode for op in plain.operations] == ["Input", "ConstTensor", "BinOp"]
    assert nac.to_bytes(nac.build(nac.lift(model)).file) == nac.to_bytes(model.file)


def test_long_chains_on_a_parameter_are_no_recursion() -> None:
    module = from_onnx(scaled_onnx(500).SerializeToString(), keep_parameters=True)
    assert sum(op.opcode == "BinOp" for op in module.operations) == 501


def test_what_follows_from_weights_is_computed_once(tmp_path: Path) -> None:
    model = build(*trained(computed, 1), tmp_path)
    before = [op.opcode for op in nac.lift(model).operations]
    after = [op.opcode for op in read_model(tmp_path / "m.nac").operations]
    assert before.count("Exp") == 1
    assert "Exp" not in after
