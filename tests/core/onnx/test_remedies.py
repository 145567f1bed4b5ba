"""Every finding says how to mend it, has the code that it should, and no words of Python."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx
from tests.core.onnx.backend import cases
from tests.core.onnx.single import single

F32 = np.float32
LEAKS = re.compile(
    r"Error\b|could not be|not in list|NoneType|cannot reshape|<class|array\(|dtype|'int'|unpack"
    r"|float(16|32|64)|\bu?int(8|16|32|64)\b|division by zero|invalid literal|\(\d+,\)|object"
    r"|tensor<"
)


def _found(raw: bytes, **given: Any) -> Sequence[Diagnostic]:  # noqa: ANN401
    with pytest.raises(InputError) as caught:
        from_onnx(raw, **given)
    for found in caught.value.diagnostics:
        assert found.help, found.message
    return caught.value.diagnostics


def _one(raw: bytes, **given: Any) -> Diagnostic:  # noqa: ANN401
    (found,) = _found(raw, **given)
    return found


def _model(nodes: list[Any], outputs: list[Any] | None = None, **given: Any) -> bytes:  # noqa: ANN401
    """Over x[2, 3]."""
    inputs = given.pop("inputs", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])])
    made = outputs or [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "g", inputs, made, **given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    raw: bytes = model.SerializeToString()
    return raw


def _node(op: str, *inputs: str, **given: Any) -> Any:  # noqa: ANN401
    return helper.make_node(op, inputs or ["x"], ["y"], "the_node", **given)


# Codes


@pytest.mark.parametrize(
    ("op", "shapes", "given"),
    [
        ("Add", [(2, 3), (4,)], {}),
        ("Where", [(2,), (3,), (4,)], {}),
        ("MatMul", [(2, 3), (2, 3)], {}),
        ("Gemm", [(2, 3), (4, 5)], {}),
        ("Concat", [(2, 3), (2,)], {"axis": 0}),
        ("Conv", [(1, 3, 4), (2, 2, 3)], {}),
        ("Transpose", [(2, 3)], {"perm": [0, 0]}),
        ("DepthToSpace", [(1, 3, 2, 2)], {"blocksize": 2}),
        ("Det", [(3,)], {}),
        ("Split", [()], {"num_outputs": 1}),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_shapes_that_do_not_fit_break_a_rule_of_onnx(
    op: str, shapes: list[tuple[int, ...]], given: dict[str, Any], is_known: bool
) -> None:
    """Computed at import or not: the code and the words are the same."""
    kinds = [bool if op == "Where" and i == 0 else F32 for i in range(len(shapes))]
    arrays = [np.ones(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    constants = {f"x{i}": array for i, array in enumerate(arrays)} if is_known else {}
    found = _one(single(op, arrays, 18, name="the_node", **given), constants=constants)
    assert found.code == "ONX04"
    assert found.message.startswith(f"`{op}` `the_node` of (")
    assert not LEAKS.search(found.message)


@pytest.mark.parametrize(
    ("op", "dtypes", "told"),
    [
        ("Add", ["f4", "i8"], "operands 0 and 1 are of `f32` and `i64`, expected one type"),
        ("Sin", ["i4"], "operand 0 is of `i32`, expected bf16, f16, f32, f64"),
        ("Gather", ["f4", "f4"], "operand 1 is of `f32`, expected i32, i64"),
        ("And", ["f4", "f4"], "operand 0 is of `f32`, expected bool"),
    ],
)
def test_types_that_onnx_does_not_allow(op: str, dtypes: list[str], told: str) -> None:
    opset = 18 if op == "Gather" else 22
    found = _one(single(op, [np.ones(2, dtype) for dtype in dtypes], opset))
    assert found.code == "ONX04"
    assert told in found.message


def test_types_are_spelled_as_in_core_ir() -> None:
    x, k = np.ones((2, 3), F32), np.ones(1, np.int64)
    constants = {"x1": k}
    found = _one(single("NonMaxSuppression", [x, k], 11), constants=constants)
    assert "(f32[2, 3], i64[1])" in found.message


def test_an_operation_of_a_later_opset() -> None:
    found = _one(single("Gelu", [np.ones(2, F32)], 13))
    assert (found.code, "from 20 on" in found.message) == ("ONX04", True)
    assert found.help == "convert the model: `onnx.version_converter.convert_version(model, 20)`"


# What contradicts itself


def test_outputs_that_are_declared_of_another_type() -> None:
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [2, 3])
    found = _one(_model([_node("Relu")], [output]))
    assert found.code == "ONX04"
    assert found.message == "output `y` is declared as INT64, its node makes f32[2, 3]"


@pytest.mark.parametrize("dims", [[2, 4], [6], ["n"], []])
def test_outputs_that_are_declared_with_another_shape(dims: list[Any]) -> None:
    """Onnxruntime runs such models, and there are some: a warning."""
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)
    odd: list[Diagnostic] = []
    module = from_onnx(_model([_node("Relu")], [output]), warn=odd.append)
    assert module.output_types[0].shape == (2, 3)
    assert [(found.code, found.severity) for found in odd] == [("ONX08", "warning")]
    shown = "[" + ", ".join(map(str, dims)) + "]"
    assert odd[0].message == f"output `y` is declared with the shape {shown}, it has [2, 3]"
    assert odd[0].help


@pytest.mark.parametrize("dims", [None, [2, 3], ["n", 3], [2, "m"]])
def test_outputs_that_leave_their_shape_open(dims: list[Any] | None) -> None:
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)
    assert len(from_onnx(_model([_node("Relu")], [output]))) == 2


def test_initialisers_of_the_same_name() -> None:
    tensors = [numpy_helper.from_array(np.full(3, i, F32), "c") for i in range(2)]
    found = _one(_model([_node("Add", "x", "c")], initializer=tensors))
    assert (found.code, found.message) == ("ONX04", "initialiser `c` is defined twice")


def _conv(**given: Any) -> Diagnostic:  # noqa: ANN401
    arrays = [np.ones((1, 1, 5, 5), F32), np.ones((1, 1, 3, 3), F32)]
    return _one(single("Conv", arrays, 18, name="the_node", **given))


def test_windows_that_contradict_themselves() -> None:
    kernel = _conv(kernel_shape=[2, 3])
    assert "`Conv` `the_node`" in kernel.message
    assert "`kernel_shape` is [2, 3], the weights have [3, 3]" in kernel.message
    pads = _conv(auto_pad="SAME_UPPER", pads=[1, 1, 1, 1])
    assert "`auto_pad` is SAME_UPPER and `pads` is [1, 1, 1, 1]" in pads.message
    assert "`auto_pad` is `SAME`, expected one of NOTSET" in _conv(auto_pad="SAME").message
    assert "`strides` is [1], expected 2 entries" in _conv(strides=[1]).message
    assert "`dilations` is [0, 1], expected at least 1" in _conv(dilations=[0, 1]).message
    assert {kernel.code, pads.code} == {"ONX04"}


def test_pads_of_zero_beside_automatic_ones_say_nothing() -> None:
    arrays = [np.ones((1, 1, 5, 5), F32), np.ones((1, 1, 3, 3), F32)]
    raw = single("Conv", arrays, 18, auto_pad="SAME_UPPER", pads=[0] * 4)
    assert from_onnx(raw).output_types[0].shape == (1, 1, 5, 5)


# Shapes and values that are given


@pytest.mark.parametrize(
    "shape", ["1x3", 2.5, (1.0, 3), ("n", 3), None, {1: 2}, (True, 3), b"ab", 3]
)
def test_what_is_no_shape(shape: object) -> None:
    raw = _model([_node("Relu")])
    found = _one(raw, shapes={"x": shape})
    assert found.code == "ONX06"
    assert "input `x` was given" in found.message


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], np.array([2, 3]), (np.int32(2), 3)])
def test_what_is_a_shape(shape: Any) -> None:  # noqa: ANN401
    assert from_onnx(_model([_node("Relu")]), {"x": shape}).input_types["x"].shape == (2, 3)


def _scaled(dims: list[int] | None, kind: int = TensorProto.FLOAT) -> bytes:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("c", kind, dims),
    ]
    nodes = [helper.make_node("Cast", ["c"], ["f"], to=1), _node("Mul", "x", "f")]
    return _model(nodes, inputs=inputs)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(3, TensorProto.FLOAT), (3.0, TensorProto.FLOAT), (3, TensorProto.INT64),
     (np.array(3, F32), TensorProto.FLOAT), (np.float32(3), TensorProto.FLOAT),
     (3, TensorProto.UINT8)],
)  # fmt: skip
def test_an_input_is_bound_to_a_number(value: Any, kind: int) -> None:  # noqa: ANN401
    module = from_onnx(_scaled([], kind), constants={"c": value})
    assert list(module.input_types) == ["x"]
    (y,) = evaluate(module, {"x": np.ones((2, 3), F32)})
    assert y.tolist() == [[3.0] * 3] * 2


def test_a_number_fills_axes_of_size_1() -> None:
    module = from_onnx(_scaled([1, 1]), constants={"c": 3})
    (y,) = evaluate(module, {"x": np.ones((2, 3), F32)})
    assert y.tolist() == [[3.0] * 3] * 2


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (2.5, "was given f64[], the model says i64[]"),
        (np.ones((), np.int32), "was given i32[], the model says i64[]"),
        ([[1], [2, 3]], "expected numbers"),
        (object(), "expected numbers"),
        (1 << 70, "expected numbers"),
        (np.ones(2, np.int64), "was given the shape [2], the model says []"),
    ],
)
def test_values_that_do_not_fit(value: Any, told: str) -> None:  # noqa: ANN401
    found = _one(_scaled([], TensorProto.INT64), constants={"c": value})
    assert found.code == "ONX06"
    assert told in found.message


def test_one_number_for_many_elements() -> None:
    found = _one(_scaled([2, 3]), constants={"c": 3})
    assert found.code == "ONX06"
    assert "input `c` was given one number" in found.message


def test_a_value_stands_in_the_place_of_a_default() -> None:
    held = [numpy_helper.from_array(np.array(1, F32), "c")]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("c", TensorProto.FLOAT, []),
    ]
    raw = _model([_node("Mul", "x", "c")], inputs=inputs, initializer=held)
    for constants, factor in (({}, 1.0), ({"c": 3}, 3.0)):
        (y,) = evaluate(from_onnx(raw, constants=constants), {"x": np.ones((2, 3), F32)})
        assert y.tolist() == [[factor] * 3] * 2
    assert "`c` has a value already" in _one(raw, shapes={"c": ()}).message


# Mutations


def _mutated(model: Any, rng: random.Random) -> None:  # noqa: ANN401
    """Another attribute, shape, type, operand or opset: mostly wrong."""
    node = rng.choice(model.graph.node)
    kind = rng.choice(["attribute", "attribute", "shape", "shape", "type", "operand", "opset"])
    if kind == "attribute" and node.attribute:
        _mutate_attribute(rng.choice(node.attribute), rng)
    elif kind == "shape" and model.graph.input:
        shape = rng.choice(model.graph.input).type.tensor_type.shape
        dims = [dim.dim_value for dim in shape.dim]
        choices = ([*dims, 2], dims[1:], dims[:-1], [rng.choice([1, 3, 1 << 40]) for _ in dims])
        del shape.dim[:]
        for size in rng.choice(choices):
            shape.dim.add().dim_value = size
    elif kind == "type" and model.graph.input:
        found = rng.choice(model.graph.input).type.tensor_type
        found.elem_type = rng.choice([1, 2, 3, 6, 7, 9, 10, 11, 13, 16, 8, 99])
    elif kind == "operand" and node.input:
        at = rng.randrange(len(node.input))
        node.input[at] = rng.choice(["", "nowhere", rng.choice(list(node.input))])
    elif kind == "opset":
        model.opset_import[0].version = rng.randint(1, 30)


def _mutate_attribute(attribute: Any, rng: random.Random) -> None:  # noqa: ANN401
    numbers = [0, 1, -1, 2, 5, 1 << 31, -(1 << 40)]
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(numbers)
    elif attribute.type == onnx.AttributeProto.INTS:
        made = [rng.choice(numbers) for _ in range(rng.randint(0, 5))]
        del attribute.ints[:]
        attribute.ints.extend(made)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = rng.choice([b"", b"foo", b"linear", b"\xff\x1b[31m", b"ij,jk->ik"])


@pytest.mark.heavy("it may be the first that reads all cases of the suite")
@pytest.mark.sampled(3, together=True)
@pytest.mark.parametrize("seed", range(8))
def test_models_that_were_tampered_with(seed: int) -> None:
    """Of the cases of the suite; some inputs are bound, so that nodes are computed at import."""
    rng = random.Random(seed)
    small = [case for case in cases() if len(case.model.graph.node) <= 4 and case.sets]
    for case in rng.sample(small, 60):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        _mutated(model, rng)
        names = [value.name for value in model.graph.input]
        arrays = {n: a for n, a in zip(names, case.sets[0][0], strict=False)
                  if isinstance(a, np.ndarray) and rng.random() < 0.4}  # fmt: skip
        try:
            from_onnx(model.SerializeToString(), constants=arrays)
        except InputError as error:
            for found in error.diagnostics:
                assert found.help, found.message
                assert found.message.isprintable()
                assert not LEAKS.search(found.message), found.message


def test_weights_beside_the_model_say_what_to_do(tmp_path: Path) -> None:
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="missing.bin")
    raw = _model([_node("Add", "x", "c")], initializer=[tensor])
    path = tmp_path / "m.onnx"
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        from_onnx(path)
    (found,) = caught.value.diagnostics
    assert found.code == "ONX05"
    assert "beside the model" in (found.help or "")
    assert "give the path" in (_one(raw).help or "")
