"""Where models come from, and what is said of one that loses too much in 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import nacre
from nacre.cli.main import main
from nacre.compile.bundle.bundle import Bundle

torch = pytest.importorskip("torch")


def test_a_program_of_torch_export_is_taken() -> None:
    """What `torch.export` makes needs no example arguments beside it."""
    network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    x = torch.linspace(-1, 1, 16).reshape(2, 8)
    bundle = nacre.compile(torch.export.export(network, (x,)), "npm4k")
    (name,) = bundle.source.input_types
    (found,) = bundle.run({name: x.numpy()}).values()
    np.testing.assert_allclose(found, network(x).detach().numpy(), atol=2e-3)


class _Ranges(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Numbers of very different sizes in one tensor, of which the small ones count."""

    def forward(self, x: Any) -> Any:  # noqa: ANN401 - torch's own types
        y = x.sigmoid()
        both = torch.cat([y[..., :4] * 3200, y[..., 4:]], -1)
        return both[..., 4:5] * both[..., 5:]


def test_an_output_that_is_too_far_off_is_named() -> None:
    """The plan is made, and a note says which output has how many dB."""
    random = np.random.default_rng(0)
    samples = random.standard_normal((4, 1, 50, 9)).astype(np.float32)
    module = nacre.core.from_torch(_Ranges(), (torch.from_numpy(samples[0]),))
    (name,) = module.input_types
    bundle = nacre.compile(module, "npm4k", "i8", calibration={name: samples})
    weak = min(bundle.validate({name: samples[0]}).sqnr_by_output.values()) < 15
    assert weak == any("less than 15" in note for note in bundle.manifest.notes)


def test_an_input_is_bound_on_the_command_line(tmp_path: Path) -> None:
    """`--constant` of `compile` and `estimate`: the input is part of the model then."""
    onnx = pytest.importorskip("onnx")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    values = [helper.make_tensor_value_info(n, f32, [2, 3]) for n in ("x", "y")]
    count = helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [1])
    nodes = [
        helper.make_node("Cast", ["k"], ["f"], to=f32),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [values[0], count], [values[1]])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    out = tmp_path / "plan"
    given = [str(path), "--device", "npm4k", "--constant", "k=3"]
    assert CliRunner().invoke(main, ["compile", *given, "-o", str(out)]).exit_code == 0
    assert list(Bundle.load(out).source.input_types) == ["x"]
    assert CliRunner().invoke(main, ["estimate", *given]).exit_code == 0
