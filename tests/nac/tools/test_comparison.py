"""A file beside the model that it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.nac.tools.comparison import compare
from tests.cli.runner import invoke
from tests.nac.files import FOLDER

Capsys = pytest.CaptureFixture[str]
RNG = np.random.default_rng(1)
WEIGHT = RNG.standard_normal((4, 8)).astype(np.float32)
X = RNG.standard_normal((2, 8)).astype(np.float32)


def module(name: str = "x", weight: np.ndarray = WEIGHT) -> core.Module:
    text = f"""
%0 = Input () {{name="{name}"}} : tensor<f32[2, 8]>
%1 = ConstTensor () {{data={weight.tolist()}, dtype=f32, shape=[4, 8]}} : tensor<f32[4, 8]>
%2 = Linear (%0, %1) : tensor<f32[2, 4]>
%3 = Relu (%2) : tensor<f32[2, 4]>
%4 = ArgMax (%2) {{axis=1, keepdims=false}} : tensor<i64[2]>
outputs: %3, %4
"""
    return core.parse(text)


@pytest.mark.parametrize(
    "quant", ["none", "fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
def test_a_file_is_close_to_its_model(quant: str) -> None:
    first, second = compare(nac.build(module(), quant), module(), {"x": X})
    assert first.is_close
    assert second.is_close
    assert first.measure == ("error" if quant in ("none", "fp16") else "SQNR")
    assert second.measure == "agreement"
    exact = compare(nac.build(module(), quant), module(), {"x": X}, tolerance=0.0)[0]
    assert exact.is_close == (quant == "none")


@pytest.mark.parametrize("quant", ["none", "fp16", "int8_channel"])
@pytest.mark.parametrize("factor", [1.5, -1.0, 1e38])
def test_another_model_is_not_close(quant: str, factor: float) -> None:
    other = (WEIGHT[::-1] * np.float32(factor)).astype(np.float32)  # of the largest: infinities
    rows = compare(nac.build(module(weight=WEIGHT), quant), module(weight=other), {"x": X})
    assert not rows[0].is_close
    rows = compare(nac.build(module(weight=other)), module(), {"x": X})
    assert not rows[0].is_close


def test_the_largest_difference_is_what_numpy_says() -> None:
    model = nac.build(module(), "int8_tensor")
    (first, _) = compare(model, module(), {"x": X})
    wanted, got = np.maximum(X @ WEIGHT.T, 0), model.run({"x": X})[0]
    assert first.max_difference == pytest.approx(np.abs(wanted - got).max(), rel=1e-3)
    ratio = 10 * np.log10((wanted**2).sum() / ((wanted - got).astype(np.float64) ** 2).sum())
    assert first.value == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [(np.zeros((2, 8)), "is 0.0 everywhere"), (X * 1e38, "is not finite")],
)
def test_an_output_that_says_nothing_is_never_close(inputs: np.ndarray, said: str) -> None:
    rows = compare(nac.build(module()), module(), {"x": inputs.astype(np.float32)})
    assert not rows[0].is_close
    assert said in str(rows[0])


def test_inputs_by_another_name_are_paired_in_order() -> None:
    rows = compare(nac.build(module("other")), module(), {"x": X})
    assert rows[0].is_close
    small = core.parse('%0 = Input () {name="y"} : tensor<f32[3]>\noutputs: %0\n')
    with pytest.raises(InputError, match="of other types"):
        compare(nac.build(module("other")), small, {"y": np.ones(3, np.float32)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    core.save(module(), "m.core")
    nac.save(nac.build(module(), "int8_channel"), Path("m.nac"))
    np.save("x.npy", X)
    np.save("zero.npy", np.zeros_like(X))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("m.nac m.core", 0, "random inputs, seed 0\n"),
        ("m.nac m.nac", 0, "SQNR inf dB"),
        ("m.nac m.core --seed 7", 0, "random inputs, seed 7\n"),
        ("m.nac m.core --input x=x.npy", 0, "the inputs given\n"),
        ("m.nac m.core --input x=zero.npy", 1, "NOT CLOSE: 0"),
        ("m.nac m.core --tolerance 1e-9", 1, "at most 1.00e-09"),
        ("m.nac m.core --input y=x.npy", 1, "no input `y`"),
        ("m.nac nothing.core", 2, "does not exist"),
        ("m.nac m.core --tolerance -1", 2, "no number of 0 or more"),
    ],
)
def test_the_command(arguments: str, status: int, said: str, capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "compare", *arguments.split())
    assert outcome.status == status, outcome.text
    assert said in outcome.text


@pytest.mark.usefixtures("folder")
def test_the_command_as_json(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "compare", "m.nac", "m.nac", "--format", "json")
    told = json.loads(outcome.out)
    assert told["close"] is True
    assert [row["value"] for row in told["outputs"]] == ["inf", 1.0]


def test_a_file_of_the_reference_compiler_has_no_types(capsys: Capsys) -> None:
    path = FOLDER / "mlp.INT8_CHANNEL.v16.nac"
    other = FOLDER / "mlp.none.v16.nac"
    assert invoke(capsys, "nac", "compare", path, other).status == 1
    given = ("--shape", "input=4x64")
    assert invoke(capsys, "nac", "compare", path, other, *given).status == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("operation", "status", "said"), [("Relu", 0, "close\n"), ("Reul", 1, "operation is not known")]
)
def test_open_sizes_of_the_model_are_those_of_the_file(
    operation: str, status: int, said: str, capsys: Capsys
) -> None:
    """What is wrong with the model under them is told, not that sizes were open."""
    onnx = pytest.importorskip("onnx")
    types = [onnx.helper.make_tensor_value_info(n, 1, ["batch", 8]) for n in ("x", "y")]
    node = onnx.helper.make_node(operation, ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "open", types[:1], types[1:])
    onnx.save(onnx.helper.make_model(graph), "open.onnx")
    small = core.parse(
        '%0 = Input () {name="x"} : tensor<f32[4,8]>\n%1 = Relu (%0) {} : tensor<f32[4,8]>\n'
        "outputs: %1\n"
    )
    nac.save(nac.build(small), Path("small.nac"))
    outcome = invoke(capsys, "nac", "compare", "small.nac", "open.onnx")
    assert outcome.status == status, outcome.text
    assert said in outcome.text
    assert "expected sizes" not in outcome.text
