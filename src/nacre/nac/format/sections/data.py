"""DATA: names of parameters, names of inputs, and the weights where they lie in this file."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nacre.base.elements import GRAPH_TYPES
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import numbers, pack, text
from nacre.nac.format.positions import Position
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Bytes, Data, NameEntry, Tensor
from nacre.nac.rules.container import NAC04
from nacre.nac.rules.program import NAC36, NAC37
from nacre.nac.spec.elements import DTYPES, MOST_AXES, QUANTIZATIONS, Quantization

_TAG = "DATA"
_RECORD_BYTES = 14  # of a tensor, without metadata and data


def read(cursor: Cursor, reading: ReadContext) -> Data:
    """The blocks."""
    parameters = _names(cursor, reading, "parameter")
    inputs = _names(cursor, reading, "input")
    return Data(parameters, inputs, _tensors(cursor, reading) if reading.header.is_internal else ())


def _names(cursor: Cursor, reading: ReadContext, what: str) -> tuple[NameEntry, ...]:
    offsets: list[int] = []

    def record() -> NameEntry:
        offsets.append(cursor.at)
        id_, length = cursor.u16(f"the id of a {what}"), cursor.u16("the length of a name")
        return NameEntry(id_, cursor.text(length, f"the name of {what} {id_}"))

    entries = cursor.records(4, f"names of {what}s", record)
    reading.record_offsets[f"{_TAG} {what}"] = tuple(offsets)
    reading.report_repeated((n.id for n in entries), tuple(offsets), _TAG, what)
    reading.report_repeated((n.text for n in entries), tuple(offsets), _TAG, f"the name of {what}")
    return entries


def _tensors(cursor: Cursor, reading: ReadContext) -> tuple[Tensor, ...]:
    offsets: list[int] = []
    ids: list[int] = []

    def record() -> Tensor | None:
        offsets.append(cursor.at)
        id_ = cursor.u16("the parameter of a tensor")
        ids.append(id_)
        meta_length, length = cursor.u32("a length"), cursor.u64("a length")
        start = cursor.at
        meta = cursor.take(meta_length, f"the metadata of tensor {id_}")
        data = cursor.take(length, f"the data of tensor {id_}")
        return _tensor(reading, id_, meta, data, start)

    tensors = cursor.records(_RECORD_BYTES, "tensors", record)
    kept = [(t, o) for t, o in zip(tensors, offsets, strict=True) if t is not None]
    if len(kept) < len(tensors):
        reading.lost.add(f"{_TAG} tensor")
    reading.record_offsets[f"{_TAG} tensor"] = tuple(offset for _, offset in kept)
    reading.report_repeated(ids, tuple(offsets), _TAG, "the tensor of parameter")
    return tuple(tensor for tensor, _ in kept)


def _tensor(
    reading: ReadContext, id_: int, meta: memoryview, data: memoryview, start: int
) -> Tensor | None:
    """A tensor; None where its metadata cannot be read, which is reported."""
    place = Position(start, _TAG)
    cursor = Cursor(meta, _TAG)
    try:
        tensor = _read_described(cursor, id_, data, place)
    except Broken as problem:
        rule = NAC37 if problem.rule is NAC04 else problem.rule
        reading.report(rule, place, f"tensor {id_}: {problem.message}")
        return None
    if cursor.remaining:
        message = f"tensor {id_} has {len(meta):,} bytes of metadata, its fields take {cursor.at:,}"
        reading.report(NAC37, place, message)
        return None
    needed = stored_bytes(tensor)
    if needed != len(data):
        type_ = f"{DTYPES[tensor.dtype]}[{', '.join(map(str, tensor.shape))}]"
        message = f"tensor {id_} has {len(data):,} bytes, {type_} needs {needed:,}"
        reading.report(NAC37, place, message)
        return None
    return tensor


def stored_bytes(tensor: Tensor) -> int:
    """The bytes that a shape and an element type need."""
    return prod(tensor.shape) * GRAPH_TYPES[DTYPES[tensor.dtype]].bits // 8


def _read_described(cursor: Cursor, id_: int, data: memoryview, place: Position) -> Tensor:
    dtype, rank = cursor.u8("the element type"), cursor.u8("the rank")
    shape = cursor.u32s(rank, "the shape")
    quant = cursor.u8("the quantisation")
    if dtype not in DTYPES:
        raise Broken(NAC36, place, f"element type {dtype}, expected 0 to {max(DTYPES)}")
    layout = QUANTIZATIONS.get(quant)
    if layout is None:
        raise Broken(NAC36, place, f"quantisation {quant}, expected 0 to {max(QUANTIZATIONS)}")
    _require_axes(rank, place)
    if layout.has_scale:
        return Tensor(id_, dtype, shape, data, quant, cursor.take(4, "the scale"))
    if layout.has_axis:
        axis = cursor.u8("the axis")
        scales = _scales(cursor, layout)
        return Tensor(id_, dtype, shape, data, quant, scales, axis)
    if layout.has_blocks:
        block, true_rank = cursor.u16("the size of a block"), cursor.u8("the rank")
        _require_axes(true_rank, place)
        true_shape = cursor.u32s(true_rank, "the original shape")
        scales = _scales(cursor, layout)
        return Tensor(id_, dtype, shape, data, quant, scales, 0, block, true_shape)
    return Tensor(id_, dtype, shape, data, quant)


def _scales(cursor: Cursor, layout: Quantization) -> memoryview:
    count = cursor.u32("the number of scales")
    return cursor.take(layout.scale_bytes * count, "the scales")


def _require_axes(rank: int, place: Position) -> None:
    if rank > MOST_AXES:
        raise Broken(NAC36, place, f"a shape of {rank} axes, at most {MOST_AXES}")


def write(data: Data, is_internal: bool) -> Iterator[Bytes]:
    """The bytes behind the tag, in parts: the weights are not copied."""
    for names, what in ((data.parameters, "parameter id"), (data.inputs, "instruction")):
        yield pack("I", "length", len(names))
        for named in names:
            yield pack("H", what, named.id)
            yield text(named.text, "H", "the name of a parameter or input")
    if not is_internal:
        return
    yield pack("I", "length", len(data.tensors))
    for tensor in data.tensors:
        meta = metadata(tensor)
        yield pack("H", "parameter id", tensor.id)
        yield pack("IQ", "length", len(meta), len(tensor.data))
        yield meta
        yield tensor.data


def metadata(tensor: Tensor) -> bytes:
    """The metadata of a tensor."""
    layout = QUANTIZATIONS[tensor.quant]
    parts = [
        pack("BB", "dimension", tensor.dtype, len(tensor.shape)),
        numbers("I", "dimension", tensor.shape),
        pack("B", "length", tensor.quant),
    ]
    if layout.has_axis:
        parts.append(pack("BI", "length", tensor.axis, len(tensor.scales) // layout.scale_bytes))
    if layout.has_blocks:
        parts.append(pack("HB", "dimension", tensor.block, len(tensor.true_shape)))
        parts.append(numbers("I", "dimension", tensor.true_shape))
        parts.append(pack("I", "length", len(tensor.scales) // layout.scale_bytes))
    parts.append(bytes(tensor.scales))
    return b"".join(parts)


CODECS.register("DATA")(SectionCodec(read))
