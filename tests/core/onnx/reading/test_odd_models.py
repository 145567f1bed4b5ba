"""Models that are odd but legal, against onnxruntime; and what is said of those that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx

Array = np.ndarray[Any, Any]
_SEEDS = st.integers(0, 2**32 - 1)
_X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
node = helper.make_node


def _held(array: Any, name: str) -> Any:  # noqa: ANN401
    return numpy_helper.from_array(np.asarray(array), name)


def _graph(
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[int, Any]],
    outputs: Mapping[str, int],
    held: Sequence[Any] = (),
    sparse: Sequence[Any] = (),
) -> Any:  # noqa: ANN401
    given_ = [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in inputs.items()]
    made = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items()]
    return helper.make_graph(nodes, "g", given_, made, held, sparse_initializer=sparse)


def _model(graph: Any, opset: int = 17, **more: Any) -> bytes:  # noqa: ANN401
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, **more)
    raw: bytes = model.SerializeToString()
    return raw


def _expect_same(raw: bytes, feeds: Mapping[str, Array]) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(feeds))
    for own, other in zip(evaluate(from_onnx(raw), feeds), wanted, strict=True):
        assert (own.dtype, own.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)


def _refused(raw: bytes) -> tuple[str, str, str]:
    with pytest.raises(InputError) as found:
        from_onnx(raw)
    first = found.value.diagnostics[0]
    return first.code, first.message, str(first.help)


# Sparse tensors


def _sparse(values: Array, places: Array, dims: Sequence[int], name: str = "w") -> Any:  # noqa: ANN401
    return helper.make_sparse_tensor(_held(values, name), _held(places, "places"), list(dims))


def _with_sparse(sparse: Any) -> bytes:  # noqa: ANN401
    x = {"x": (TensorProto.FLOAT, [2, 3])}
    graph = _graph([node("Add", ["x", "w"], ["y"])], x, {"y": 1}, sparse=[sparse])
    return _model(graph)


@given(_SEEDS, st.booleans(), st.integers(0, 6))
def test_sparse_initialisers_are_filled_up(seed: int, by_rows: bool, count: int) -> None:
    random = np.random.default_rng(seed)
    places = np.sort(random.choice(6, count, replace=False)).astype(np.int64)
    values = random.normal(size=count).astype(np.float32)
    whole = np.zeros(6, np.float32)
    whole[places] = values
    told = np.stack(np.unravel_index(places, (2, 3)), axis=1) if by_rows else places
    raw = _with_sparse(_sparse(values, told.astype(np.int64), (2, 3)))
    (found,) = evaluate(from_onnx(raw), {"x": _X})
    assert np.array_equal(found, _X + whole.reshape(2, 3))


def test_a_sparse_constant_is_filled_up() -> None:
    sparse = _sparse(np.array([1.5, -2], np.float32), np.array([1, 5]), (2, 3))
    nodes = [node("Constant", [], ["w"], sparse_value=sparse), node("Mul", ["x", "w"], ["y"])]
    _expect_same(_model(_graph(nodes, {"x": (1, [2, 3])}, {"y": 1})), {"x": _X})


@pytest.mark.parametrize(
    ("places", "dims", "told"),
    [
        ([1, 6], (2, 3), "a place of the sparse tensor `w` is outside of it"),
        ([-1, 2], (2, 3), "a place of the sparse tensor `w` is outside of it"),
        ([[0, 0], [1, 3]], (2, 3), "a place of the sparse tensor `w` is outside of it"),
        ([[0], [1]], (2, 3), "have 1 indices each, it has 2 axes"),
        ([[[0]], [[1]]], (2, 3), "expected int64[n]"),
        ([1], (2, 3), "expected one value for each place"),
        ([1, 2], (2, -3), "has a negative dimension"),
    ],
)
def test_places_that_are_none(places: Any, dims: tuple[int, ...], told: str) -> None:  # noqa: ANN401
    sparse = _sparse(np.ones(2, np.float32), np.array(places, np.int64), dims)
    code, message, _ = _refused(_with_sparse(sparse))
    assert (code, told in message) == ("ONX04", True)


def test_a_sparse_tensor_may_not_be_as_large_as_it_likes() -> None:
    sparse = _sparse(np.ones(1, np.float32), np.array([1]), (1 << 20, 1 << 20))
    code, message, _ = _refused(_with_sparse(sparse))
    assert (code, "expected 268,435,456 at most" in message) == ("ONX01", True)


def test_a_sparse_initialiser_and_a_dense_one_of_the_same_name() -> None:
    sparse = _sparse(np.ones(1, np.float32), np.array([1]), (2, 3))
    x = {"x": (TensorProto.FLOAT, [2, 3])}
    held = [_held(np.ones(3, np.float32), "w")]
    graph = _graph([node("Add", ["x", "w"], ["y"])], x, {"y": 1}, held, [sparse])
    assert "initialiser `w` is defined twice" in _refused(_model(graph))[1]


# Shapes that follow from what is known


@given(_SEEDS, st.sampled_from([None, 0, 1, -1]), st.integers(1, 7))
def test_a_condition_that_is_known_compresses(seed: int, axis: int | None, length: int) -> None:
    condition = np.random.default_rng(seed).random(length) < 0.6
    size = 6 if axis is None else _X.shape[axis]
    condition[0] = True
    kept: dict[str, Any] = {} if axis is None else {"axis": axis}
    graph = _graph([node("Compress", ["x", "c"], ["y"], **kept)], {"x": (1, [2, 3])}, {"y": 1},
                   [_held(condition, "c")])  # fmt: skip
    (found,) = evaluate(from_onnx(_model(graph)), {"x": _X})
    assert np.array_equal(found, np.compress(condition[:size], _X, axis))


def test_a_condition_that_never_holds_leaves_nothing() -> None:
    graph = _graph([node("Compress", ["x", "c"], ["y"])], {"x": (1, [2, 3])}, {"y": 1},
                   [_held(np.zeros(6, bool), "c")])  # fmt: skip
    code, message, _ = _refused(_model(graph))
    assert (code, "no empty tensors" in message) == ("ONX01", True)


# Names


def test_a_node_before_the_one_that_it_uses_is_told_about_the_order() -> None:
    nodes = [node("Neg", ["a"], ["y"]), node("Relu", ["x"], ["a"])]
    code, message, help_ = _refused(_model(_graph(nodes, {"x": (1, [2, 3])}, {"y": 1})))
    assert (code, "uses `a`, which nothing before it defines" in message) == ("ONX04", True)
    assert "must stand in the order" in help_


def test_an_input_without_a_name() -> None:
    graph = _graph([node("Relu", ["x"], ["y"])], {"x": (1, [2]), "": (1, [2])}, {"y": 1})
    assert _refused(_model(graph))[0] == "ONX04"


@pytest.mark.parametrize("dims", [[2, 3], [7]])
def test_two_inputs_of_one_name(dims: list[int]) -> None:
    graph = _graph([node("Relu", ["x"], ["y"])], {"x": (1, [2, 3])}, {"y": 1})
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    code, message, _ = _refused(_model(graph))
    assert (code, message) == ("ONX04", "input `x` is defined twice")


def test_two_inputs_of_one_name_in_a_loop() -> None:
    state = {"i": (7, []), "go": (9, []), "a": (1, [2, 3])}
    body = _graph([node("Identity", ["go"], ["on"]), node("Neg", ["a"], ["more"])], state,
                  {"on": 9, "more": 1})  # fmt: skip
    body.input[2].name = "go"
    held = [_held(np.array(2), "n")]
    loop = node("Loop", ["n", "", "x"], ["y"], body=body)
    code, message, _ = _refused(_model(_graph([loop], {"x": (1, [2, 3])}, {"y": 1}, held)))
    assert (code, "a graph has two inputs `go`" in message) == ("ONX04", True)


def test_the_same_names_in_several_graphs() -> None:
    """Branches name their tensors alike, as nodes of both are called twice."""
    f = {"r": TensorProto.FLOAT}
    then = _graph([node("Neg", ["x"], ["t"]), node("Exp", ["t"], ["r"])], {}, f)
    other = _graph([node("Abs", ["x"], ["t"]), node("Sqrt", ["t"], ["r"])], {}, f)
    nodes = [
        node("If", ["c"], ["a"], then_branch=then, else_branch=other),
        node("If", ["d"], ["b"], then_branch=then, else_branch=other),
        node("Add", ["a", "b"], ["y"]),
    ]
    held = [_held(np.array(True), "c"), _held(np.array([False]), "d")]
    _expect_same(_model(_graph(nodes, {"x": (1, [2, 3])}, {"y": 1}, held)), {"x": _X})


def test_a_function_in_a_loop_in_a_branch() -> None:
    square = helper.make_function("own", "Square", ["a"], ["b"], [node("Mul", ["a", "a"], ["b"])],
                                  [helper.make_opsetid("", 17)])  # fmt: skip
    state = {"i": (7, []), "go": (9, []), "a": (1, [2, 3])}
    body = _graph(
        [
            node("Square", ["a"], ["q"], domain="own"),
            node("Mul", ["q", "half"], ["more"]),
            node("Identity", ["go"], ["on"]),
        ],
        state,
        {"on": 9, "more": 1},
    )
    then = _graph([node("Loop", ["n", "", "x"], ["r"], body=body)], {}, {"r": 1})
    other = _graph([node("Square", ["x"], ["r"], domain="own")], {}, {"r": 1})
    held = [_held(np.array(2), "n"), _held(np.array(True), "c"), _held(np.float32(0.5), "half")]
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    graph = _graph(nodes, {"x": (1, [2, 3])}, {"y": 1}, held)
    _expect_same(_model(graph, functions=[square]), {"x": _X})
