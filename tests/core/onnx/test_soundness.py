"""Models that break ONNX's own rules are refused, not guessed at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx

onnx = pytest.importorskip("onnx")


def model(*nodes: Any, opset: int | None = 18, **given: Any) -> Any:  # noqa: ANN401
    """A model over x[2, 3] that gives y."""
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", 1, [2, 3])
    y = helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph(list(nodes), "g", [x], given.pop("outputs", [y]), **given)
    version = 18 if opset is None else opset
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    if opset is None:
        del made.opset_import[:]
    return made


def codes(made: Any) -> list[str]:  # noqa: ANN401
    with pytest.raises(InputError) as caught:
        from_onnx(made.SerializeToString())
    return [d.code for d in caught.value.diagnostics]


def node(op: str, *inputs: str, **attributes: Any) -> Any:  # noqa: ANN401
    return onnx.helper.make_node(op, inputs or ["x"], ["y"], **attributes)


@pytest.mark.parametrize("order", [[0, 0], [1, 1], [0, 5], [-1, 0], [0]])
def test_an_order_of_axes_that_is_none(order: list[int]) -> None:
    assert codes(model(node("Transpose", perm=order))) == ["ONX04"]


@pytest.mark.parametrize("opset", [0, 999, None])
def test_opsets_that_do_not_exist(opset: int | None) -> None:
    assert codes(model(node("Relu"), opset=opset)) == ["ONX04"]


def test_a_form_before_the_oldest_opset_is_refused() -> None:
    assert codes(model(node("Concat", "x", "x"), opset=3)) == ["ONX04"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: node("Softmax", nonsense=3),
        lambda: node("Relu", "x", "x", "x"),
        lambda: node("Softmax", axis=0.7),
        lambda: node("LeakyRelu", alpha="0.5"),
        lambda: node("LeakyRelu", alpha=1),
    ],
)
def test_nodes_that_break_their_schema(wrong: Any) -> None:  # noqa: ANN401
    assert codes(model(wrong())) == ["ONX04"]


def test_a_model_without_outputs() -> None:
    assert codes(model(node("Relu"), outputs=[])) == ["ONX04"]


def external(folder: Path, dtype: int, raw: bytes, **entries: str) -> Path:
    """A model with its weights w[2, 3] in a file."""
    (folder / "w.bin").write_bytes(raw)
    tensor = onnx.TensorProto(name="w", data_type=dtype, dims=[2, 3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    cast = onnx.helper.make_node("Cast", ["w"], ["f"], to=1)
    add = onnx.helper.make_node("Add", ["x", "f"], ["y"])
    made = model(cast, add, opset=21, initializer=[tensor])
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


WEIGHTS = np.arange(6, dtype=np.float32).tobytes()


@pytest.mark.parametrize("length", ["8", "2400", "-1", "many"])
def test_a_length_that_is_not_that_of_the_tensor(tmp_path: Path, length: str) -> None:
    path = external(tmp_path, 1, WEIGHTS, length=length)
    with pytest.raises(InputError) as caught:
        from_onnx(path)
    assert {d.code for d in caught.value.diagnostics} <= {"ONX04", "ONX05"}


@pytest.mark.parametrize("location", ["w\0bin", "w" * 300, "", "../w.bin", "."])
def test_files_that_cannot_be(tmp_path: Path, location: str) -> None:
    path = external(tmp_path, 1, WEIGHTS, location=location)
    with pytest.raises(InputError) as caught:
        from_onnx(path)
    assert [d.code for d in caught.value.diagnostics] == ["ONX05"]


def test_elements_of_four_bits_beside_the_model(tmp_path: Path) -> None:
    path = external(tmp_path, onnx.TensorProto.INT4, bytes([0x21, 0x43, 0xF5]), offset="0")
    (y,) = evaluate(from_onnx(path), {"x": np.zeros((2, 3), np.float32)})
    assert y.tolist() == [[1, 2, 3], [4, 5, -1]]
