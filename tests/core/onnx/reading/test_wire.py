"""Files that are read in pieces say what protobuf reads from them whole."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx
from nacre.core.onnx.reading.files import parse_model, read_model, tensor_array
from nacre.core.onnx.reading.wire import DetachedBytes, IrregularError, merge_model
from nacre.core.values import Array
from tests.core.onnx.small_models import convolutional, transformer

SIZE = 600  # elements: more bytes than are worth an array of their own
TYPES = ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32",
         "UINT32", "INT64", "UINT64", "BOOL", "INT4", "FLOAT8E4M3FN", "COMPLEX64"]  # fmt: skip


def _model(initialisers: list[Any], constants: list[Any] | None = None) -> bytes:
    nodes = [
        helper.make_node("Constant", [], [f"c{place}"], value=tensor, name=f"constant {place}")
        for place, tensor in enumerate(constants or [])
    ]
    nodes.append(helper.make_node("Identity", ["x"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIZE]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], initialisers, doc_string="d" * 2000)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made: bytes = model.SerializeToString()
    return made


def _pieces(raw: bytes) -> tuple[Any, dict[bytes, DetachedBytes]]:
    model = onnx.ModelProto()
    return model, merge_model(model, io.BytesIO(raw), len(raw))


def _tensors(model: Any) -> list[Any]:  # noqa: ANN401 - onnx.ModelProto
    graph = model.graph
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    return [*graph.initializer, *(a.t for a in attributes if a.HasField("t"))]


def _put_back(model: Any, held: dict[bytes, DetachedBytes]) -> int:  # noqa: ANN401 - onnx.ModelProto
    apart = [(t, held[t.raw_data]) for t in _tensors(model) if t.raw_data in held]
    for tensor, one in apart:
        one.restore(tensor)
    return len(apart)


def _elements(name: str, *, is_raw: bool) -> Any:  # noqa: ANN401 - onnx.TensorProto
    random_ = np.random.default_rng(5)
    tensor = TensorProto(name=f"w {name} {is_raw}", data_type=TensorProto.DataType.Value(name))
    tensor.dims.extend([2, SIZE // 2])
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if is_raw:
        array = random_.integers(0, 2, (2, SIZE // 2)).astype(dtype)
        return numpy_helper.from_array(array, tensor.name)
    values = random_.integers(0, 2, SIZE).tolist()
    return helper.make_tensor(tensor.name, tensor.data_type, [2, SIZE // 2], values)


@pytest.mark.parametrize("is_raw", [True, False])
@pytest.mark.parametrize("name", TYPES)
def test_elements_of_every_type(name: str, is_raw: bool) -> None:
    tensor = _elements(name, is_raw=is_raw)
    wanted = numpy_helper.to_array(tensor)
    model, held = _pieces(_model([tensor], [tensor]))
    for found in _tensors(model):
        array = tensor_array(found, None, "m", held)
        assert array.dtype == wanted.dtype
        assert np.array_equal(array, wanted)


@pytest.mark.parametrize("make", [convolutional, transformer])
def test_a_model_is_what_protobuf_reads(make: Any) -> None:  # noqa: ANN401
    raw = make().SerializeToString()
    model, held = _pieces(raw)
    assert _put_back(model, held) == len(held)
    assert model == onnx.ModelProto.FromString(raw)


def test_protobuf_is_given_no_weights() -> None:
    array = np.arange(1 << 20, dtype=np.float32)
    plain = helper.make_tensor("list", TensorProto.FLOAT, array.shape, array)
    raw = _model([numpy_helper.from_array(array, "raw"), plain], [plain])
    model, held = _pieces(raw)
    assert len(held) == 3
    assert model.ByteSize() < 1 << 13 < len(raw) >> 10
    for tensor in _tensors(model):
        found = tensor_array(tensor, None, "m", held)
        assert np.shares_memory(found, held[tensor.raw_data].raw)
        assert not found.flags.writeable


def _bent(kind: str) -> Any:  # noqa: ANN401 - onnx.TensorProto
    tensor = numpy_helper.from_array(np.arange(SIZE, dtype=np.float32), "w")
    match kind:
        case "too few":
            tensor.dims[0] += 1
        case "negative":
            tensor.dims.extend([-1, -1])
        case "of another type":
            tensor.data_type = TensorProto.INT8
        case "of no type":
            tensor.data_type = 77
        case "in a list of another type":
            tensor.ClearField("raw_data")
            tensor.float_data.extend(range(SIZE))
            tensor.data_type = TensorProto.INT32
        case "twice":
            tensor.double_data.extend(range(SIZE))
        case "a segment":
            tensor.segment.begin = 0
        case "beside the model":
            tensor.data_location = TensorProto.EXTERNAL
    return tensor


@pytest.mark.parametrize(
    "kind", ["too few", "negative", "of another type", "of no type", "in a list of another type",
             "twice", "a segment", "beside the model"],
)  # fmt: skip
def test_what_is_odd_is_judged_as_it_stands(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the file goes through protobuf whole: the same array, or the same findings."""
    raw = _model([_bent(kind)])
    found = _outcome(raw)
    monkeypatch.setattr("nacre.core.onnx.reading.files.merge_model", _refuse)
    assert found == _outcome(raw)


def _refuse(*_given: object) -> dict[bytes, DetachedBytes]:
    raise IrregularError


def _outcome(raw: bytes) -> list[str]:
    try:
        module = from_onnx(raw)
    except InputError as error:
        return [f"{found.code} {found.message} {found.help}" for found in error.diagnostics]
    return [str(module.input_types)]


def test_fields_that_are_merged_and_fields_that_win() -> None:
    """Lists of several fields are one list, of single values the last one counts."""
    half = np.arange(SIZE // 2, dtype=np.float32)
    lists = helper.make_tensor("a", TensorProto.FLOAT, [SIZE], [0.0] * SIZE)
    lists.ClearField("float_data")
    part = TensorProto(float_data=half).SerializeToString()
    tensor = lists.SerializeToString() + part + part
    raw = _nested(tensor)
    model, held = _pieces(raw)
    assert not held
    assert model == onnx.ModelProto.FromString(raw)
    first, last = (TensorProto(raw_data=bytes([n]) * 4 * SIZE).SerializeToString() for n in (1, 2))
    raw = _nested(TensorProto(data_type=1, dims=[SIZE]).SerializeToString() + first + last)
    model, held = _pieces(raw)
    (tensor,) = _tensors(model)
    expected = numpy_helper.to_array(onnx.ModelProto.FromString(raw).graph.initializer[0])
    assert np.array_equal(tensor_array(tensor, None, "m", held), expected)


def _nested(tensor: bytes) -> bytes:
    """A tensor as the initialiser of a second `graph`, which belongs to the first."""
    inner = bytes([5 << 3 | 2]) + _length(tensor) + tensor
    return _model([]) + bytes([7 << 3 | 2]) + _length(inner) + inner


def _length(data: bytes) -> bytes:
    return bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14])


def test_a_ticket_cannot_be_foreseen() -> None:
    """Twenty-four bytes of a tensor stay what they are, also those of a ticket of another go."""
    other = _pieces(_model([_elements("FLOAT", is_raw=True)]))[1]
    (ticket,) = other
    raw = _model(
        [
            numpy_helper.from_array(np.frombuffer(ticket, np.uint8), "forged"),
            _elements("FLOAT", is_raw=True),
        ]
    )
    model, held = _pieces(raw)
    found = tensor_array(model.graph.initializer[0], None, "m", held)
    assert found.tobytes() == ticket


def test_a_group_is_left_to_protobuf() -> None:
    """Fields of a kind that is out of use are skipped, as protobuf does."""
    group = bytes([100 << 3 & 0x7F | 3 | 0x80, 100 >> 4, 100 << 3 & 0x7F | 4 | 0x80, 100 >> 4])
    raw = _model([_elements("FLOAT", is_raw=True)]) + group
    assert onnx.ModelProto.FromString(raw).graph.node
    with pytest.raises(IrregularError):
        _pieces(raw)
    assert parse_model(raw, "m").detached == {}
    (made,) = evaluate(from_onnx(raw), {"x": np.ones(SIZE, np.float32)})
    assert made.tolist() == [1.0] * SIZE


def _whole(raw: bytes) -> Any:  # noqa: ANN401 - onnx.ModelProto
    try:
        return onnx.ModelProto.FromString(raw)
    except DecodeError:
        return None


def _again(raw: bytes) -> Any:  # noqa: ANN401 - onnx.ModelProto
    try:
        model, held = _pieces(raw)
    except IrregularError:
        return _whole(raw)
    except DecodeError:
        return None
    _put_back(model, held)
    return model


def test_cut_and_bent_files_are_what_protobuf_says() -> None:
    raw = _model([_elements("FLOAT", is_raw=True)], [_elements("FLOAT", is_raw=False)])
    # Inside the elements every byte is like the next.
    places = [p for p in range(len(raw)) if p % 97 == 0 or len(set(raw[p - 8 : p + 8])) > 4]
    dice = random.Random(3)
    for place in places:
        assert _again(raw[:place]) == _whole(raw[:place])
        bent = raw[:place] + bytes([dice.randrange(256)]) + raw[place + 1 :]
        assert _again(bent) == _whole(bent)


@given(st.binary(max_size=200))
def test_any_bytes_are_what_protobuf_says(raw: bytes) -> None:
    assert _again(raw) == _whole(raw)


def test_a_file_and_its_bytes_are_one(tmp_path: Path) -> None:
    raw = convolutional().SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(raw)
    read, parsed = read_model(path), parse_model(raw, "m")
    path.unlink()  # what was read stays
    assert _held_elements(read.detached) == _held_elements(parsed.detached)


def _held_elements(held: Any) -> list[bytes]:  # noqa: ANN401 - a mapping
    arrays: list[Array] = [one.raw for one in held.values()]
    return [array.tobytes() for array in arrays]
