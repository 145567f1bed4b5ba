"""Models from strangers: cut short, with flipped bits, endless, vast. Findings, no tracebacks."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import InputError
from nacre.core.onnx.importer import from_onnx
from tests.core.onnx.small_models import convolutional, transformer

pytestmark = pytest.mark.sampled(2)  # together they take long

F32 = np.float32
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
Y = helper.make_empty_tensor_value_info("y")


def _raw(nodes: list[Any], inputs: list[Any] | None = None, **given: Any) -> bytes:  # noqa: ANN401
    functions = given.pop("functions", [])
    graph = helper.make_graph(nodes, "g", [X] if inputs is None else inputs, [Y], **given)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=functions)
    raw: bytes = model.SerializeToString()
    return raw


def _codes(raw: bytes | Path, **given: Any) -> list[str]:  # noqa: ANN401
    with pytest.raises(InputError) as caught:
        from_onnx(raw, **given)
    assert all(found.help for found in caught.value.diagnostics)
    return [found.code for found in caught.value.diagnostics]


def _small() -> bytes:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([1, -1]))),
        helper.make_node("Reshape", ["a", "s"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=-1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3, 3])]
    return _raw(
        nodes, inputs, initializer=[numpy_helper.from_array(np.ones((1, 1, 3, 3), F32), "w")]
    )


def test_cut_short_at_every_byte() -> None:
    raw = _small()
    assert len(from_onnx(raw)) > 3
    for end in range(len(raw)):
        with suppress(InputError):  # a message of protobuf may end early and still be whole
            from_onnx(raw[:end])


@pytest.mark.heavy("large on purpose")
def test_flipped_bits() -> None:
    raw, rng = _small(), random.Random(0)
    for _ in range(1500):
        made = bytearray(raw)
        for _ in range(rng.choice([1, 1, 2, 4])):
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
        with suppress(InputError):
            from_onnx(bytes(made))


@pytest.mark.parametrize("make", [convolutional, transformer])
def test_flipped_bits_of_networks(make: Any) -> None:  # noqa: ANN401
    raw, rng = make().SerializeToString(), random.Random(1)
    for _ in range(25):
        made = bytearray(raw)
        for _ in range(3):
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
        with suppress(InputError):
            from_onnx(bytes(made[: rng.choice([len(made), rng.randrange(len(made))])]))


@pytest.mark.parametrize("raw", [b"", b"\x00" * 64, b"\x80" * 4096, b"PK\x03\x04" * 9, b"<html>"])
def test_what_is_no_model(raw: bytes) -> None:
    assert _codes(raw) == ["ONX03"]


# Graphs without end


def test_nodes_that_use_each_other() -> None:
    nodes = [
        helper.make_node("Relu", ["b"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Add", ["a", "x"], ["y"]),
    ]
    assert _codes(_raw(nodes)) == ["ONX04"]
    assert _codes(_raw([helper.make_node("Relu", ["y"], ["y"])])) == ["ONX04"]


def test_functions_that_call_each_other() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for name, callee in (("A", "B"), ("B", "A")):
        nodes = [helper.make_node(callee, ["p"], ["q"], domain="own")]
        functions.append(helper.make_function("own", name, ["p"], ["q"], nodes, opsets))
    raw = _raw([helper.make_node("A", ["x"], ["y"], domain="own")], functions=functions)
    assert _codes(raw) == ["ONX04"]


def test_functions_that_all_call_all_are_told_of_soon() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    names = [f"F{i}" for i in range(150)]
    nodes = [helper.make_node(name, ["p"], ["q"], domain="own") for name in names]
    functions = [helper.make_function("own", n, ["p"], ["q"], nodes, opsets) for n in names]
    raw = _raw([helper.make_node("F0", ["x"], ["y"], domain="own")], functions=functions)
    start = monotonic()
    codes = _codes(raw)
    assert set(codes) == {"ONX04"}
    assert len(codes) <= 16
    assert monotonic() - start < 5


def test_functions_that_double() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(40):
        callee, domain = (f"F{level + 1}", "own") if level < 39 else ("Relu", "")
        nodes = [helper.make_node(callee, ["p"], ["m"], domain=domain),
                 helper.make_node(callee, ["m"], ["q"], domain=domain)]  # fmt: skip
        functions.append(helper.make_function("own", f"F{level}", ["p"], ["q"], nodes, opsets))
    raw = _raw([helper.make_node("F0", ["x"], ["y"], domain="own")], functions=functions)
    start = monotonic()
    with pytest.raises(InputError, match="inner nodes"):
        from_onnx(raw)
    assert monotonic() - start < 1


def test_branches_in_branches() -> None:
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "b", [],
                              [helper.make_empty_tensor_value_info("z")])  # fmt: skip
    for _ in range(60):
        node = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
        inner = helper.make_graph([node], "b", [], [helper.make_empty_tensor_value_info("z")])
        if inner.ByteSize() > 1 << 16:
            break
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    held = [numpy_helper.from_array(np.array(True), "c")]
    with suppress(InputError):
        from_onnx(_raw([node], initializer=held))


@pytest.mark.full
def test_long_chains_and_many_findings_take_time_in_proportion() -> None:
    count = 4000
    chain = [helper.make_node("Relu", [f"t{i}" if i else "x"], [f"t{i + 1}"]) for i in range(count)]
    end = helper.make_node("Relu", [f"t{count}"], ["y"])
    assert len(from_onnx(_raw([*chain, end]))) == count + 2
    lost = [helper.make_node("Relu", [f"u{i}"], [f"t{i}"]) for i in range(count)]
    assert _codes(_raw([*lost, helper.make_node("Relu", ["x"], ["y"])])) == ["ONX04"] * count
    odd = [helper.make_node(f"Odd{i}", ["x"], [f"t{i}"]) for i in range(count)]
    assert _codes(_raw([*odd, helper.make_node("Relu", ["x"], ["y"])])) == ["ONX01"] * count


# Sizes


@pytest.mark.parametrize("dims", [[1 << 62, 1 << 62], [(1 << 63) - 1], [1] * 100, [-1, 3], [0, 3]])
def test_inputs_of_vast_shapes(dims: list[int]) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    raw = _raw([helper.make_node("Relu", ["x"], ["y"])], inputs)
    with suppress(InputError):
        from_onnx(raw)


def test_initialisers_that_hold_less_than_they_say() -> None:
    for dims, raw in (([1 << 40], b""), ([1 << 62, 1 << 62], b"ab"), ([-3], b""), ([3], b"abc")):
        tensor = TensorProto(name="c", data_type=1, dims=dims, raw_data=raw)
        made = _raw([helper.make_node("Add", ["x", "c"], ["y"])], initializer=[tensor])
        assert _codes(made) == ["ONX04"]


def _known(op: str, *arrays: Any, **given: Any) -> bytes:  # noqa: ANN401
    names = [f"c{i}" for i in range(len(arrays))]
    held = [numpy_helper.from_array(a, n) for a, n in zip(arrays, names, strict=True)]
    nodes = [helper.make_node(op, names, ["y"], **given)]
    return _raw(nodes, [], initializer=held)


@pytest.mark.parametrize(
    ("op", "dims", "given"),
    [
        ("DepthToSpace", [(1, 4, 2, 2)], {"blocksize": 0}),
        ("SpaceToDepth", [(1, 4, 2, 2)], {"blocksize": 0}),
        ("Conv", [(1, 1, 4), (1, 1, 2)], {"strides": [0]}),
        ("Conv", [(1, 1, 4), (1, 1, 2)], {"strides": [1, 1, 1], "pads": [1]}),
        ("MaxPool", [(1, 1, 4)], {"kernel_shape": [2], "strides": [0]}),
        ("MaxPool", [(1, 1, 4)], {"kernel_shape": [2, 2]}),
        ("LayerNormalization", [(2, 3), (3,)], {"axis": (1 << 63) - 1}),
        ("Split", [(4,)], {"axis": -(1 << 63)}),
        ("Concat", [(4,), (4,)], {"axis": 1 << 40}),
        ("Gather", [(4,), (1,)], {"axis": 7}),
        ("Unsqueeze", [(2, 3), (1,)], {}),
        ("ConvTranspose", [(1, 1, 4), (1, 1, 2)], {"strides": [0], "output_shape": [4]}),
    ],
)
def test_known_operands_of_wrong_nodes_do_not_end_the_process(
    op: str, dims: list[tuple[int, ...]], given: dict[str, Any]
) -> None:
    """The inference of shapes of onnx divides by these numbers, and reads beyond its lists."""
    with pytest.raises(InputError):
        from_onnx(_known(op, *(np.ones(shape, F32) for shape in dims), **given))


def test_a_sampling_ratio_without_end() -> None:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4]),
        helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 4]),
        helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
    ]
    node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], sampling_ratio=1 << 40)
    assert _codes(_raw([node], inputs)) == ["ONX01"]


# Names and files


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\nb", "n" * 100_000, "`", "\ud7ff\u202e"])
def test_names_cannot_drive_the_terminal(name: str) -> None:
    raw = _raw([helper.make_node("NoSuch", ["x"], ["y"], name)])
    with pytest.raises(InputError) as caught:
        from_onnx(raw)
    (found,) = caught.value.diagnostics
    assert found.message.isprintable()
    assert len(found.message) < 500


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "link.bin", "folder", "ring", "w\0"],
)
def test_weights_never_come_from_outside_of_the_folder(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(b"\0" * 64)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "ring").symlink_to(folder / "ring")
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = folder / "m.onnx"
    path.write_bytes(_raw([helper.make_node("Add", ["x", "c"], ["y"])], initializer=[tensor]))
    assert _codes(path) == ["ONX05"]


@pytest.mark.parametrize(
    ("location", "told"),
    [("pipe", "is no regular file"), ("folder", "is no regular file"), ("none", "does not exist")],
)
def test_weights_lie_in_regular_files(location: str, told: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "m.onnx"
    path.write_bytes(_raw([helper.make_node("Add", ["x", "c"], ["y"])], initializer=[tensor]))
    with pytest.raises(InputError, match=f"lies in `{location}`, which {told}"):
        from_onnx(path)


def test_a_model_that_is_whole_is_read_after_all() -> None:
    assert isinstance(onnx.ModelProto.FromString(_small()), onnx.ModelProto)
    assert from_onnx(_small()).output_types[0].shape == (1, 9)
