"""ONNX files: read with care, weights beside them mapped, never followed out of the folder."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound, refusal
from nacre.core.onnx.reading.texts import has_wrong_text
from nacre.core.onnx.reading.wire import DetachedBytes, IrregularError, merge_model
from nacre.core.rules.onnx import ONX03, ONX05, ONX07
from nacre.core.values import Array

try:
    import onnx as _onnx
except ImportError:  # an extra
    onnx: Any = None
else:
    onnx = _onnx

STATE = "nacre.state"  # the property of a model that lists what it keeps between runs
# Element types of which two share a byte.
_PACKED = frozenset({"int4", "uint4", "float4_e2m1fn"})
NONE_HELD: Mapping[bytes, DetachedBytes] = MappingProxyType({})
_AGAIN = "get the file again: it may have been cut short, or be of another format"
_BESIDE = "keep the weights in a file of their own: `onnx.save(..., save_as_external_data=True)`"
_COPY = "put the file with the weights beside the model, as it was when the model was saved"
_TYPED = "give the tensor a `data_type` of `onnx.TensorProto`; a newer `onnx` may know more of them"
_FEW_BYTES = 1 << 10
_MOST_BYTES = 1 << 31  # protobuf has no larger messages


def require_onnx() -> None:
    """Raise InputError where the package is missing."""
    if onnx is None:
        help_ = 'pip install "nacre[onnx]"'
        raise refusal(ONX07, "onnx", "ONNX models need the package `onnx`", help_)


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model, and the bytes of tensors that were read apart, by what stands for them."""

    proto: Any  # onnx.ModelProto
    detached: Mapping[bytes, DetachedBytes]


def read_model(path: Path) -> OnnxModel:
    """The model of a file, its external weights not yet read."""
    require_onnx()
    name = str(path)
    try:
        with path.open("rb") as file:
            return _parse(file if file.seekable() else io.BytesIO(file.read()), name)
    except OSError as error:
        message = f"cannot read the file: {error.strerror}"
        raise refusal(ONX03, name, message, "check its name and its permissions") from None


def parse_model(raw: bytes, name: str) -> OnnxModel:
    """The model in some bytes."""
    require_onnx()
    return _parse(io.BytesIO(raw), name)


def _parse(file: BinaryIO, name: str) -> OnnxModel:
    size = file.seek(0, io.SEEK_END)
    if size > _MOST_BYTES:
        message = f"the file has {size:,} bytes; no ONNX model is as large"
        raise refusal(ONX03, name, message, _BESIDE)
    try:
        read = _merge(file, size)
    except OSError:
        raise
    except Exception:  # protobuf's own kinds of error differ between its versions
        message = f"this is no ONNX model: its {size:,} bytes are no message of protobuf"
        raise refusal(ONX03, name, message, _AGAIN) from None
    if not read.proto.graph.node and not read.proto.graph.output:
        raise refusal(ONX03, name, "this is no ONNX model: it has no graph", _AGAIN)
    if has_wrong_text(read.proto):
        raise refusal(ONX03, name, "this is no ONNX model: a name in it is no text", _AGAIN)
    return read


def _merge(file: BinaryIO, size: int) -> OnnxModel:
    model = onnx.ModelProto()
    try:
        return OnnxModel(model, merge_model(model, file, size))
    except IrregularError:
        file.seek(0)
        return OnnxModel(onnx.ModelProto.FromString(file.read()), {})


def tensor_array(
    tensor: Any,  # noqa: ANN401 - onnx.TensorProto
    folder: Path | None,
    name: str,
    detached: Mapping[bytes, DetachedBytes] = NONE_HELD,
) -> Array:
    """The elements of a TensorProto; held ones are not copied, external ones are mapped."""
    apart = detached.get(tensor.raw_data) if detached else None
    if apart is not None:
        elements = apart.elements(tensor)
        if elements is not None:
            return elements
        apart.restore(tensor)
    if any(dim < 0 for dim in tensor.dims):
        raise Unsound(f"tensor {backquote(tensor.name)} has a negative dimension")
    _require_element_type(tensor)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _read_external(tensor, folder, name)
    try:
        array: Array = onnx.numpy_helper.to_array(tensor)
    except Exception:  # of NumPy or onnx
        shape = list(tensor.dims)[:8]
        message = f"tensor {backquote(tensor.name)} does not hold the elements of its shape {shape}"
        raise Unsound(message) from None
    return _copy_if_small(array)


def _require_element_type(tensor: Any) -> None:  # noqa: ANN401 - onnx.TensorProto
    kind = tensor.data_type
    if kind and kind in onnx.TensorProto.DataType.values():
        return
    least, *_, most = sorted(filter(None, onnx.TensorProto.DataType.values()))
    message = f"tensor {backquote(tensor.name)} has the element type {kind}, which is none of ONNX"
    raise Unsound(f"{message}: expected {least} to {most}", _TYPED)


def _copy_if_small(array: Array) -> Array:
    """Few elements without the arrays that they were made through: models have many of these."""
    if array.base is None or array.nbytes > _FEW_BYTES:
        return array
    kept = array.copy()
    kept.flags.writeable = False
    return kept


def _read_external(tensor: Any, folder: Path | None, name: str) -> Array:  # noqa: ANN401
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _external_path(entries.get("location", ""), folder, name, tensor.name)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if dtype.hasobject:  # mapped, the bytes of a stranger's file would be taken for addresses
        message = (
            f"tensor {backquote(tensor.name)} holds text, which no file beside a model can hold"
        )
        raise Unsound(message, "keep text in the model itself, in `string_data`")
    shape = tuple(tensor.dims)
    offset = _number(entries.get("offset", "0"), tensor.name, "offset")
    is_packed = dtype.name in _PACKED
    needed = -(-math.prod(shape) // 2) if is_packed else math.prod(shape) * dtype.itemsize
    length = _number(entries.get("length", str(needed)), tensor.name, "length")
    size = path.stat().st_size
    if length != needed or offset + needed > size:
        message = f"tensor {backquote(tensor.name)} takes {needed} bytes from {offset} on"
        given = f"the model says {length} and {backquote(path.name)} has {size}"
        raise refusal(ONX05, name, f"{message}, but {given}", _COPY)
    if is_packed:
        return _unpack(tensor, path, offset, needed)
    if not needed:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def _unpack(tensor: Any, path: Path, offset: int, size: int) -> Array:  # noqa: ANN401
    """Elements of half a byte, read as if they stood in the model."""
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(size)
    inline = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    array: Array = onnx.numpy_helper.to_array(inline)
    return array


def _number(text: str, tensor: str, what: str) -> int:
    if not is_digits(text) or len(text) > 18:
        message = f"the {what} of tensor {backquote(tensor)} is {backquote(text)}, expected bytes"
        raise Unsound(message)
    return int(text)


def _external_path(location: str, folder: Path | None, name: str, tensor: str) -> Path:
    """A file of the model's folder."""
    if folder is None:
        message = f"tensor {backquote(tensor)} lies in a file, the model in none"
        raise refusal(ONX05, name, message, "give the path of the model, not its bytes")
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        is_file, is_there = path.is_file(), path.exists()
    except (ValueError, OSError, RuntimeError):  # a name that no file can have, a ring of links
        message = f"tensor {backquote(tensor)} lies in {backquote(location)}, which no file can be"
        raise refusal(ONX05, name, message, _COPY) from None
    where = f"tensor {backquote(tensor)} lies in {backquote(location)}"
    if not location or not path.is_relative_to(root) or path == root:
        raise refusal(ONX05, name, f"{where}, outside of the model's folder", _COPY)
    if not is_there:
        raise refusal(ONX05, name, f"{where}, which does not exist", _COPY)
    if not is_file:
        raise refusal(ONX05, name, f"{where}, which is no regular file", _COPY)
    return path
