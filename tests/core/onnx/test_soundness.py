"""Models that break ONNX's own rules are refused, not guessed at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
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


def test_text_beside_the_model_is_not_mapped(tmp_path: Path) -> None:
    """The bytes would be read as addresses."""
    path = external(tmp_path, onnx.TensorProto.STRING, b"A" * 48)
    with pytest.raises(InputError, match="holds text, which no file beside a model can hold"):
        from_onnx(path)


@pytest.mark.parametrize("kind", [0, 77])
def test_an_element_type_that_is_none_is_named(tmp_path: Path, kind: int) -> None:
    told = f"tensor `w` has the element type {kind}, which is none of ONNX: expected 1 to "
    held = onnx.TensorProto(name="w", data_type=kind, dims=[2, 3], raw_data=WEIGHTS)
    inside = model(node("Add", "x", "w"), initializer=[held]).SerializeToString()
    for source in (inside, external(tmp_path, kind, WEIGHTS)):
        with pytest.raises(InputError) as caught:
            from_onnx(source)
        (found,) = caught.value.diagnostics
        assert (found.code, told in found.message) == ("ONX04", True)


# Indices that are known


def _indexed(op: str, dims: list[int], indices: Any, **given: Any) -> Any:  # noqa: ANN401
    """A model that reads x by known indices, or writes updates of a shape there."""
    helper, shape = onnx.helper, given.pop("updates", None)
    inputs = [helper.make_tensor_value_info("x", 1, dims)]
    if shape is not None:
        inputs.append(helper.make_tensor_value_info("u", 1, shape))
    held = onnx.numpy_helper.from_array(np.array(indices, np.int64), "i")
    names = ["x", "i", *(["u"] if shape is not None else [])]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([node(op, *names, **given)], "g", inputs, outputs, [held])
    version = 10 if op == "Scatter" else 18
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


OUTSIDE = [
    ("Gather", [2, 3], [0, 3, 4], {"axis": 1}, (3, 1, 3)),
    ("Gather", [2, 3], [-4], {"axis": -1}, (-4, 1, 3)),
    ("Gather", [2, 3], 2, {}, (2, 0, 2)),
    ("GatherElements", [2, 3], [[0, 1, -3]], {}, (-3, 0, 2)),
    ("GatherElements", [2, 3], [[0, 1], [2, 3]], {"axis": 1}, (3, 1, 3)),
    ("GatherND", [2, 3], [[1, 2], [0, 3]], {}, (3, 1, 3)),
    ("GatherND", [2, 3, 4], [[1], [3]], {"batch_dims": 1}, (3, 1, 3)),
    ("GatherND", [2, 3, 4], [[2, 1], [-1, -5]], {"batch_dims": 1}, (-5, 2, 4)),
    ("ScatterND", [4, 4], [[-5]], {"updates": [1, 4]}, (-5, 0, 4)),
    ("ScatterND", [4, 3], [[3, 3]], {"updates": [1]}, (3, 1, 3)),
    ("ScatterElements", [2, 3], [[0, 3]], {"updates": [1, 2], "axis": 1}, (3, 1, 3)),
    ("Scatter", [2, 3], [[2, 0]], {"updates": [1, 2]}, (2, 0, 2)),
]


@pytest.mark.parametrize(("op", "dims", "indices", "given", "wrong"), OUTSIDE)
def test_known_indices_outside_of_their_axis(
    op: str, dims: list[int], indices: object, given: dict[str, Any], wrong: tuple[int, int, int]
) -> None:
    index, axis, size = wrong
    told = f"the index {index} is outside of axis {axis}, which has the size {size}"
    made = _indexed(op, dims, indices, **given)
    bound = {i.name: np.ones([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
             for i in made.graph.input}  # fmt: skip
    for constants in ({}, bound):  # the reference implementation would wrap some of them
        with pytest.raises(InputError) as caught:
            from_onnx(made.SerializeToString(), constants=constants)
        (found,) = caught.value.diagnostics
        assert (found.code, told in found.message) == ("ONX04", True)


INSIDE = [
    ("Gather", [2, 3], [-3, 2], {"axis": 1}),
    ("GatherElements", [2, 3], [[-2, 1, 0]], {}),
    ("GatherND", [2, 3], [[-2, -3], [1, 2]], {}),
    ("GatherND", [2, 3, 4], [[2, 3], [-3, -4]], {"batch_dims": 1}),
    ("ScatterND", [2, 9], [[-2], [1]], {"updates": [2, 9]}),
    ("ScatterElements", [2, 9], [[-9, 8]], {"updates": [1, 2], "axis": 1}),
]


@pytest.mark.parametrize(("op", "dims", "indices", "given"), INSIDE)
def test_known_indices_may_count_from_behind(
    op: str, dims: list[int], indices: object, given: dict[str, Any]
) -> None:
    from_onnx(_indexed(op, dims, indices, **given).SerializeToString())


def test_no_indices_are_none_outside() -> None:
    raw = _indexed("Gather", [2, 3], np.zeros((0,))).SerializeToString()
    with pytest.raises(InputError, match="has no elements"):
        from_onnx(raw)  # for that reason alone


# Messages say what the model says


def _cut(*lists: list[int]) -> Any:  # noqa: ANN401
    """A Slice of x by starts, ends, axes and steps."""
    held = [onnx.numpy_helper.from_array(np.array(n), f"n{i}") for i, n in enumerate(lists)]
    return model(node("Slice", "x", *(tensor.name for tensor in held)), initializer=held)


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        (([0, 0], [1, 1], [0, 1], [1, 0]), "`steps` is 0 at place 1"),
        (([0, 0], [1]), "`starts` has 2, `ends` has 1, expected as many of each"),
        (([0], [1], [0, 1]), "`starts` has 1, `ends` has 1, `axes` has 2, expected as many"),
        (([0], [1], [0], [1, 1]), "`axes` has 1, `steps` has 2, expected as many of each"),
    ],
)
def test_a_part_that_is_none_says_why(lists: tuple[list[int], ...], told: str) -> None:
    made = _cut(*lists).SerializeToString()
    for constants in ({}, {"x": np.ones((2, 3), np.float32)}):
        with pytest.raises(InputError) as caught:
            from_onnx(made, constants=constants)
        (found,) = caught.value.diagnostics
        assert (found.code, told in found.message) == ("ONX04", True)


@pytest.mark.parametrize("axis", [-3, 3])
def test_an_axis_is_named_as_the_model_has_it(axis: int) -> None:
    with pytest.raises(InputError, match=f"`axis` is {axis}, expected -2 to 2"):
        from_onnx(model(node("Flatten", axis=axis)).SerializeToString())
