"""What is refused and with which words; what is computed at import, and what is left alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.coverage import coverage
from nacre.core.onnx.importer import from_onnx
from nacre.core.onnx.interface import input_types, type_only_inputs
from tests.core.onnx.single import Array, by_nacre, by_runtime, single

F32 = np.float32


def _told(raw: bytes, inputs: list[Array | None], bound: tuple[int, ...] = ()) -> str:
    with pytest.raises(InputError) as caught:
        by_nacre(raw, inputs, bound)
    (found,) = caught.value.diagnostics
    return f"{found.message}; {found.help}" if found.help else found.message


@pytest.mark.parametrize(
    ("op", "inputs", "given_", "told"),
    [
        ("Bernoulli", [np.ones(2, F32)], {}, "random numbers, which Core IR lacks; make the"),
        ("RandomNormalLike", [np.ones(2, F32)], {}, "it draws random numbers"),
        ("NonZero", [np.ones(2, F32)], {}, "depends on elements that are computed when the model"),
        ("Unique", [np.ones(2, F32)], {}, "bind the inputs that it is computed from"),
        ("Compress", [np.ones(2, F32), np.ones(2, bool)], {}, "depends on elements"),
        ("Range", [np.ones((), F32)] * 3, {}, "depends on elements"),
        ("SequenceConstruct", [np.ones(2, F32)], {}, "Core IR has tensors only"),
        ("BitCast", [np.ones(2, F32)], {"to": 6}, "it reads bits as another type"),
        ("Kast", [np.ones(2, F32)], {}, "the operation is not known; did you mean"),
    ],
)
def test_refusals_name_the_node_and_the_reason(
    op: str, inputs: list[Array | None], given_: dict[str, Any], told: str
) -> None:
    message = _told(single(op, inputs, 26, name="the_node", **given_), inputs)
    assert f"`{op}` `the_node` of (" in message
    assert "opset 26: " in message
    assert told in message


def test_all_nodes_are_reported_at_once() -> None:
    nodes = [helper.make_node(op, ["x"], [op]) for op in ("Bernoulli", "NonZero", "Relu")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
    outputs = [helper.make_empty_tensor_value_info("Relu")]
    raw = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs)).SerializeToString()
    with pytest.raises(InputError) as caught:
        from_onnx(raw)
    assert [d.message.split("`")[1] for d in caught.value.diagnostics] == ["Bernoulli", "NonZero"]


@pytest.mark.parametrize(
    ("opset", "inputs", "is_refused"),
    [
        (13, [np.ones(3, F32), np.array(0.5, F32), np.array(True)], True),
        (13, [np.ones(3, F32), None, np.array(True)], True),
        (13, [np.ones(3, F32), np.array(0.0, F32), np.array(True)], False),
        (13, [np.ones(3, F32), np.array(0.5, F32), np.array(False)], False),
        (13, [np.ones(3, F32)], False),
        (10, [np.ones(3, F32)], False),
    ],
)
def test_a_dropout_that_drops_is_refused(
    opset: int, inputs: list[Array | None], is_refused: bool
) -> None:
    raw = single("Dropout", inputs, opset, 2)
    if is_refused:
        message = _told(raw, inputs, (1, 2))
        assert "`training_mode` is on" in message
        assert "export the model for inference" in message
    else:
        y, mask = by_nacre(raw, inputs, (1, 2))
        assert y.tolist() == [1, 1, 1]
        assert mask.tolist() == [opset >= 12] * 3


def test_element_types_are_named() -> None:
    x = np.ones(2, F32)
    raw = single("Cast", [x], 25, to=TensorProto.FLOAT8E4M3FNUZ)
    assert "Core IR lacks the element type FLOAT8E4M3FNUZ" in _told(raw, [x])
    whole = np.ones(2, np.uint64)
    assert "input `x0`: Core IR lacks the element type UINT64" in _told(
        single("Neg", [whole], 13), [whole]
    )


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "given_", "told"),
    [
        ("Squeeze", 13, [np.ones((1, 2), F32), np.array([7])], {}, "`axes` is [7]"),
        ("Unsqueeze", 13, [np.ones(2, F32), np.array([0, 0])], {}, "`axes` is [0, 0]"),
        ("ReduceSum", 13, [np.ones((1, 2), F32), np.array([-3])], {}, "`axes` is [-3]"),
        ("ReduceMax", 13, [np.ones((1, 2), F32)], {"axes": [0, 0]}, "`axes` is [0, 0]"),
        ("Slice", 13, [np.ones(2, F32), *[np.array([0])] * 2, np.array([2])], {}, "`axes` is"),
        ("Pad", 13, [np.ones(2, F32), np.array([1])], {}, "`pads` is [1], expected two for"),
        ("Split", 13, [np.ones(4, F32), np.array([1, 2])], {}, "`split` is [1, 2], the axis has"),
        ("Split", 18, [np.ones(4, F32)], {"num_outputs": 1 << 40}, "`num_outputs` is"),
    ],
)
def test_axes_and_sizes_that_do_not_fit(
    op: str, opset: int, inputs: list[Array | None], given_: dict[str, Any], told: str
) -> None:
    raw = single(op, inputs, opset, 2 if op == "Split" else 1, **given_)
    assert told in _told(raw, inputs, (1, 2, 3))


# Sizes


def _graph(*nodes: Any, like: list[Any] | None) -> Any:  # noqa: ANN401
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("like", TensorProto.INT64, like),
    ]
    outputs = [helper.make_empty_tensor_value_info("y")]
    return helper.make_graph(list(nodes), "g", inputs, outputs)


@pytest.mark.parametrize("like", [["n"], [], None, ["n", 3, 0]])
def test_the_pattern_of_a_type_needs_no_shape(like: list[Any] | None) -> None:
    graph = _graph(helper.make_node("CastLike", ["x", "like"], ["y"]), like=like)
    assert type_only_inputs(graph) == {"like"}
    types, problems = input_types(graph.input, {}, "m", type_only_inputs(graph))
    assert not problems
    assert types["like"].dtype == "i64"
    assert types["like"].shape == tuple(d if isinstance(d, int) and d else 1 for d in like or [])


def test_other_uses_need_a_shape() -> None:
    branch = helper.make_graph(
        [helper.make_node("Neg", ["like"], ["z"])], "b", [],
        [helper.make_empty_tensor_value_info("z")],
    )  # fmt: skip
    graphs = [
        _graph(helper.make_node("CastLike", ["like", "x"], ["y"]), like=["n"]),
        _graph(helper.make_node("Shape", ["like"], ["y"]), like=["n"]),
        _graph(
            helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch),
            like=["n"],
        ),
    ]
    for graph in graphs:
        assert "like" not in type_only_inputs(graph)


def test_an_input_without_elements_is_refused() -> None:
    raw = single("Neg", [np.zeros((0, 2), F32)], 13)
    with pytest.raises(InputError, match="without elements"):
        from_onnx(raw, {"x0": (0, 2)})


def _over(dims: list[Any]) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", inputs, outputs)
    raw: bytes = helper.make_model(graph).SerializeToString()
    return raw


@pytest.mark.parametrize(
    ("dims", "code", "shown"),
    [([1, 2, 0, 4], "ONX01", "[1, 2, 0, 4], without elements"),
     ([0, "n"], "ONX01", "[0, n], without elements"),
     ([-1, 3], "ONX02", "[?, 3], expected sizes")],
)  # fmt: skip
def test_a_size_of_0_is_no_open_size(dims: list[Any], code: str, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        from_onnx(_over(dims))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (code, f"input `x` has the shape {shown}")
    letters = "NCHW" if len(dims) == 4 else "AB"
    sizes = [str(d) if isinstance(d, int) and d > 0 else letters[i] for i, d in enumerate(dims)]
    assert f'`shapes={{"x": ({", ".join(sizes)})}}`; ' in (found.help or "")


@pytest.mark.parametrize(
    ("dims", "help_"),
    [([1, 3, None, None], '`shapes={"x": (1, 3, H, W)}`; letters stand for sizes: put a number'
      " in their place"),
     (["batch", 3, "side", "side"], '`shapes={"x": (N, 3, H, H)}`; letters stand for sizes'
      " (N is `batch`, H is `side`): put a number in their place"),
     (["n", 3], '`shapes={"x": (A, 3)}`; the letter stands for a size (A is `n`): put a number'
      " in its place"),
     (None, '`shapes={"x": (A, B, C)}`, a number for each axis that the input has')],
)  # fmt: skip
def test_a_shape_to_fill_in_has_letters_for_open_sizes(dims: list[Any], help_: str) -> None:
    with pytest.raises(InputError) as caught:
        from_onnx(_over(dims))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("ONX02", help_)


@pytest.mark.parametrize(
    ("shape", "told"),
    [((1, 3, 64, 64), "the model itself fixes these sizes: leave the shape out, or open them"),
     ((1, 3), "give as many sizes as the input has axes, 4"),
     ((10, 3, -1, 32), "give sizes above 0")],
)  # fmt: skip
def test_a_shape_that_the_model_does_not_have_names_a_remedy(
    shape: tuple[int, ...], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        from_onnx(_over([10, 3, 32, 32]), {"x": shape})
    (found,) = caught.value.diagnostics
    assert found.code == "ONX06"
    assert "the model says [10, 3, 32, 32]" in found.message
    assert (found.help or "").startswith(told)


def test_a_report_says_which_inputs_have_no_form(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_over([0, 3]))
    with pytest.raises(InputError, match="without elements"):
        coverage(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((0, 5, 0), "its `delta` is 0"),
        ((0.0, 5.0, -0.0), "its `delta` is 0"),
        ((0.0, np.nan, 1.0), "its `limit` is NaN"),
        ((np.nan, 5.0, 1.0), "its `start` is NaN"),
        ((np.inf, np.inf, 1.0), "which is no range"),
        (([], 5, 1), "do not fit each other"),
    ],
)
def test_a_range_that_is_none_is_unsound(numbers: tuple[Any, ...], told: str) -> None:
    kind = np.float32 if any(isinstance(n, float) for n in numbers) else np.int64
    inputs: list[Array | None] = [np.array(number, kind) for number in numbers]
    with pytest.raises(InputError) as caught:
        by_nacre(single("Range", inputs, 13), inputs, (0, 1, 2))
    (found,) = caught.value.diagnostics
    assert (found.code, told in found.message) == ("ONX04", True)


@pytest.mark.parametrize("size", [-1, 0, "n", 4])
def test_an_open_dimension_may_be_written_in_several_ways(size: int | str) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, 3])]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", inputs, outputs)
    raw = helper.make_model(graph).SerializeToString()
    assert from_onnx(raw, {"x": (4, 3)}).input_types["x"].shape == (4, 3)
    with pytest.raises(InputError, match="the model says"):
        from_onnx(raw, {"x": (4, 5)})


# What is computed at import


def test_known_operands_are_computed_at_import() -> None:
    x = np.array([0.0, 3.0, 0.0, 4.0], F32)
    assert by_nacre(single("NonZero", [x], 13), [x], (0,))[0].tolist() == [[1, 3]]


_LARGE = [
    ("ConstantOfShape", 13, [np.array([1 << 40])], {}),
    ("Range", 13, [np.array(0), np.array(1 << 40), np.array(1)], {}),
    ("Range", 13, [np.array(0.0), np.array(1e30), np.array(1e-9)], {}),
    ("MatMul", 13, [np.ones((1 << 14, 1), F32), np.ones((1, 1 << 14), F32)], {}),
    ("Add", 13, [np.ones((1 << 14, 1), F32), np.ones((1, 1 << 14), F32)], {}),
    ("Expand", 13, [np.ones(1, F32), np.array([1 << 40])], {}),
    ("Tile", 13, [np.ones(1, F32), np.array([1 << 40])], {}),
    ("Pad", 13, [np.ones(1, F32), np.array([1 << 40, 0])], {}),
    ("OneHot", 13, [np.array([1]), np.array(1 << 40), np.ones(2, F32)], {}),
    ("HannWindow", 17, [np.array(1 << 40)], {}),
    ("DFT", 17, [np.ones((1, 2, 1), F32), np.array(1 << 40)], {}),
    ("STFT", 17, [np.ones((1, 8192, 1), F32), np.array(1), None, np.array(4096)], {}),
    ("Einsum", 13, [np.ones(1 << 11, F32)] * 3, {"equation": "i,j,k->ijk"}),
    ("Resize", 18, [np.ones((2, 2), F32), None, None, np.array([1 << 31] * 2)], {}),
    ("CenterCropPad", 18, [np.ones(2, F32), np.array([1 << 40])], {}),
    ("AffineGrid", 20, [np.ones((1, 2, 3), F32), np.array([1, 1, 1 << 20, 1 << 20])], {}),
    ("MaxUnpool", 11, [np.ones((1, 1, 2), F32), np.zeros((1, 1, 2), int)],
     {"kernel_shape": [1 << 40]}),
    ("RoiAlign", 16, [np.ones((1, 1, 4, 4), F32), np.array([[0, 0, 1e9, 1e9]], F32),
                      np.array([0])], {}),
    ("TfIdfVectorizer", 9, [np.ones(9, np.int64)],
     {"max_gram_length": 9, "max_skip_count": 1 << 40, "min_gram_length": 1, "mode": "TF",
      "ngram_counts": [0], "ngram_indexes": [0], "pool_int64s": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "opset", "inputs", "given_"), _LARGE)
def test_nothing_large_is_made_at_import(
    op: str, opset: int, inputs: list[Array | None], given_: dict[str, Any]
) -> None:
    """The module says it in few words, or the node is refused; either is quick."""
    constants = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    count = 0
    with suppress(InputError):
        count = len(from_onnx(single(op, inputs, opset, **given_), constants=constants))
    assert count < 20


def test_a_large_constant_is_one_value_stretched() -> None:
    raw = single("ConstantOfShape", [np.array([1 << 11, 1 << 11])], 13)
    (found,) = by_nacre(raw, [np.array([1 << 11, 1 << 11])], (0,))
    assert found.shape == (1 << 11, 1 << 11)
    assert not found.any()


# Operations of old


def test_a_slope_for_each_channel_before_opset_7() -> None:
    x, slope = np.array([[[-1.0, 2.0], [-3.0, -4.0]]], F32), np.array([0.5, 2.0], F32)
    (found,) = by_nacre(single("PRelu", [x, slope], 6), [x, slope])
    assert found.tolist() == [[[-0.5, 2.0], [-6.0, -8.0]]]


def test_an_axis_of_the_second_operand_before_opset_7() -> None:
    x, y = np.zeros((2, 3, 2), F32), np.array([1, 2, 3], F32)
    (found,) = by_nacre(single("Add", [x, y], 6, broadcast=1, axis=1), [x, y])
    assert found[0].tolist() == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("wanted", [[10, 8], [7, 7], [9, 6]])
@pytest.mark.parametrize("auto", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_the_size_of_a_transposed_convolution(wanted: list[int], auto: str) -> None:
    rng = np.random.default_rng(1)
    inputs: list[Array | None] = [
        rng.standard_normal((1, 1, 3, 3)).astype(F32), rng.standard_normal((1, 2, 3, 3)).astype(F32)
    ]  # fmt: skip
    raw = single("ConvTranspose", inputs, 11, strides=[3, 2], output_shape=wanted, auto_pad=auto)
    (found,) = by_nacre(raw, inputs)
    assert found.shape == (1, 2, *wanted)
    np.testing.assert_allclose(found, by_runtime(raw, inputs)[0], 1e-4, 1e-4)


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
def test_a_kernel_that_the_stride_skips_still_gives_the_size_times_the_stride(auto: str) -> None:
    """As ONNX says; onnxruntime gives 17."""
    inputs: list[Array | None] = [np.ones((1, 1, 6), F32), np.ones((1, 1, 2), F32)]
    raw = single("ConvTranspose", inputs, 11, strides=[3], auto_pad=auto)
    assert by_nacre(raw, inputs)[0].shape == (1, 1, 18)
    assert by_runtime(raw, inputs)[0].shape == (1, 1, 17)


def test_a_size_far_beyond_the_windows_is_refused() -> None:
    inputs: list[Array | None] = [np.ones((1, 1, 3), F32), np.ones((1, 1, 2), F32)]
    raw = single("ConvTranspose", inputs, 11, output_shape=[9])
    assert "`output_padding` has 5" in _told(raw, inputs)


def test_a_module_of_many_constants_runs() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ReduceProd", ["s"], ["n"], keepdims=0),
        helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["x", "f"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b"])]
    outputs = [helper.make_empty_tensor_value_info("y")]
    raw = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs)).SerializeToString()
    (found,) = evaluate(from_onnx(raw, {"x": (2, 3)}), {"x": np.full((2, 3), 12, F32)})
    assert found.tolist() == [[2.0] * 3] * 2
