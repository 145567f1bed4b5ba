"""`nacre debug BUNDLE`: layers, nodes, and the model's own names for inputs and outputs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nacre
from nacre.cli.debug.bundle_names import BundleNames
from nacre.cli.debug.completion import completions
from nacre.cli.debug.model_values import parse_value
from nacre.compile.bundle.manifest import Manifest, Port
from tests.cli.runner import Outcome, invoke

Capsys = pytest.CaptureFixture[str]
IMAGE, LOGITS = "pixel.values", "the logits"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network whose names are no words of NEM, compiled at f16 and i8, and what it makes."""
    place = tmp_path_factory.mktemp("bundles")
    random = np.random.default_rng(3)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((random.normal(size=shape) / 4).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", [IMAGE, "w1"], ["a"], "/stem/conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "/stem/relu"),
        helper.make_node("GlobalAveragePool", ["b"], ["c"], "/pool"),
        helper.make_node("Flatten", ["c"], ["d"], "/flat"),
        helper.make_node("Gemm", ["d", "w2"], [LOGITS], "/head/fc"),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info(IMAGE, TensorProto.FLOAT, [1, 4, 12, 12])],
        [helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, [1, 6])],
        [weights("w1", 16, 4, 3, 3), weights("w2", 16, 6)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(place / "net.onnx"))
    x = random.normal(size=(1, 4, 12, 12)).astype(np.float32)
    np.save(place / "x.npy", x)
    for precision in ("f16", "i8"):
        data = {IMAGE: x[None]} if precision == "i8" else None
        bundle = nacre.compile(place / "net.onnx", "npm4k", precision, calibration=data)
        bundle.save(place / precision)
        np.save(place / f"{precision}.npy", bundle.run({IMAGE: x})[LOGITS])
    return place


def debugged(capsys: Capsys, folder: Path, bundle: str, *commands: str) -> Outcome:
    given = [part for command in commands for part in ("--command", command)]
    x = ("--input", f"{IMAGE}={folder}/x.npy")
    return invoke(capsys, "debug", folder / bundle, *x, "--batch", *given)


@pytest.mark.parametrize("bundle", ["f16", "i8"])
def test_layers_have_states_and_nodes(capsys: Capsys, folder: Path, bundle: str) -> None:
    done = debugged(capsys, folder, bundle, "layers", "break layer /head/fc", "c", "layers")
    assert done.status == 0
    before, after = done.out.split("break layer /head/fc")
    rows = {line.split()[0]: line for line in before.splitlines() if " of " in line}
    assert any("/stem/conv" in row and f"{16 * 4 * 9 * 144:,}" in row for row in rows.values())
    assert all(re.search(r"-\s+0 of \d+", row) for row in rows.values())
    states = [line.split()[1] for line in after.splitlines() if re.search(r"\d of \d", line)]
    assert states[-1] == "-"
    assert states[0] == "done"
    assert "node /head/fc)" in after


@pytest.mark.parametrize("name", ["/pool", "avgpool"])
def test_a_break_needs_no_word_where_the_name_is_no_task(
    capsys: Capsys, folder: Path, name: str
) -> None:
    bundle = nacre.Bundle.load(folder / "f16")
    layer = next(one for one in bundle.manifest.layers if "/pool" in one.nodes)
    target = "/pool" if name == "/pool" else layer.name
    done = debugged(capsys, folder, "f16", f"break {target}", "c", "back", "c", "c", "stops")
    assert done.status == 0
    assert done.out.count(f"next is {layer.tasks[0]}") == 2  # gone back, it stops there again
    assert "finished after" in done.out


def test_a_layer_of_many_steps_pauses_once(capsys: Capsys, folder: Path) -> None:
    bundle = nacre.Bundle.load(folder / "f16")
    layer = next(one for one in bundle.manifest.layers if "/stem/relu" in one.nodes)
    done = debugged(capsys, folder, "f16", "b layer /stem/relu", "c", "restart", "c", "c")
    assert done.out.count(f"(layer {layer.name}, node") >= 2
    assert done.out.count("breakpoint 1: /stem/relu, in layer") == 3  # set, met, and met anew
    assert "finished after" in done.out


@pytest.mark.parametrize("bundle", ["f16", "i8"])
def test_inputs_and_outputs_come_in_the_models_types(
    capsys: Capsys, folder: Path, bundle: str
) -> None:
    outputs = folder / f"{bundle}.npy"
    done = debugged(
        capsys, folder, bundle, f"print {LOGITS}", f"print {IMAGE}[0, 1, 2, 3:5]", "run",
        f"print {LOGITS}", f"compare {LOGITS}={outputs} within 0", f"stats {LOGITS}[0]",
        f"compare {IMAGE} {folder}/x.npy within 0.1", f"who {LOGITS}", f"print/x {LOGITS}",
    )  # fmt: skip
    assert done.status == 0
    assert "nothing has written it yet" in done.out
    assert f"{LOGITS}: f32 1x6 in " in done.out
    assert "all 6 elements are equal" in done.out
    found = nacre.Bundle.load(folder / bundle).manifest.inputs[0]
    x = np.load(folder / "x.npy")
    expected = np.array2string(found.real(found.to_memory(x))[0, 1, 2, 3:5])
    assert expected in done.out
    assert np.array2string(np.load(outputs)) in done.out


def test_a_difference_counts_in_the_models_own_type(capsys: Capsys, folder: Path) -> None:
    np.save(folder / "other.npy", np.load(folder / "i8.npy") + np.float32(0.5))
    compared = f"compare {LOGITS}={folder}/other.npy within 0.01"
    done = debugged(capsys, folder, "i8", "run", compared)
    assert done.status == 1
    assert "6 of 6 elements differ" in done.out
    assert "the largest error is 0.5" in done.out


def test_an_input_is_set_by_its_name(capsys: Capsys, folder: Path) -> None:
    np.save(folder / "zeros.npy", np.zeros((1, 4, 12, 12), np.float32))
    np.save(folder / "small.npy", np.zeros((1, 4), np.float32))
    done = debugged(
        capsys, folder, "i8", f"set {IMAGE}={folder}/zeros.npy", f"stats {IMAGE}",
        f"set {IMAGE}={folder}/small.npy",
    )  # fmt: skip
    assert done.status == 1
    assert "min 0, max 0" in done.out
    assert "has the shape [1, 4], `pixel.values` [1, 4, 12, 12]" in done.out


def test_values_of_layers_are_those_of_the_model(capsys: Capsys, folder: Path) -> None:
    import onnxruntime

    x = np.load(folder / "x.npy")
    model = onnx.load(str(folder / "net.onnx"))
    model.graph.output.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    _, relu = session.run(None, {IMAGE: x})
    np.save(folder / "relu.npy", np.transpose(relu, (0, 2, 3, 1)))  # channels last in the plan
    done = debugged(
        capsys, folder, "f16", "print layer /stem/relu", "break layer /pool", "c",
        f"compare layer /stem/relu={folder}/relu.npy within 0.02",
    )  # fmt: skip
    assert done.status == 0
    assert "nothing has written it yet" in done.out
    assert "within the tolerance" in done.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("break layer /stem/conf", "did you mean `/stem/conv`"),
        ("layers nothing", "no layer and no node `nothing`"),
        ("print layer nothing", "no layer and no node `nothing`"),
        ("break layer /pool if i == 1", "a condition goes with"),
        (f"print {LOGITS}[0, 99]", "lies outside of the shape [1, 6]"),
        (f"print {LOGITS}[a]", "selects nothing"),
        (f"compare {LOGITS}=missing.npy", "missing.npy"),
        (f"compare {LOGITS}", "is to be compared with FILE.npy"),
    ],
)
def test_mistakes_are_said(capsys: Capsys, folder: Path, command: str, said: str) -> None:
    done = debugged(capsys, folder, "f16", command)
    assert done.status == 1
    assert said in done.out


def test_a_program_alone_has_no_layers(capsys: Capsys, folder: Path) -> None:
    program = folder / "f16" / "model.nem"
    for command in ("layers", "break layer conv_1"):
        done = invoke(capsys, "debug", program, "--batch", "--command", command)
        assert "a program has no layers" in done.out


def test_names_are_completed(folder: Path) -> None:
    bundle = nacre.Bundle.load(folder / "f16")
    names = BundleNames(bundle.manifest)
    session = bundle.start({IMAGE: np.load(folder / "x.npy")}, ordered=False)
    assert completions("break layer /st", "/st", session, names) == ["/stem/conv", "/stem/relu"]
    assert completions("print pix", "pix", session, names)[0] == IMAGE
    assert completions("layers /st", "/st", session) == []


def test_the_longest_name_counts() -> None:
    ports = tuple(Port(name, f"b{i}", "f32", "f32", (2,)) for i, name in enumerate(["x", "x y"]))
    manifest = Manifest(
        nacre="", device="", precision="f16", ddr_bytes=1, weights=None, inputs=ports, outputs=(),
        states=(), notes=(), l2_peak=0, l2_bound=0, layers=(),
    )  # fmt: skip
    names = BundleNames(manifest)
    found = [parse_value(names, text) for text in ("x y[0]", "x [1]", "x=f.npy", "xy", "x + 1")]
    assert [one and (one.name, one.index, one.rest) for one in found] == [
        ("x y", "[0]", ""), ("x", "[1]", ""), ("x", "", "=f.npy"), None, ("x", "", "+ 1"),
    ]  # fmt: skip
