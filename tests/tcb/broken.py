"""For every code of the format something that breaks that promise, and no other."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec.structs

from nacre.base.binary.cursor import ByteWriter
from nacre.base.compression_forms import CompressionForm
from nacre.base.terms import LoopVariable, Operation, operation
from nacre.tcb.binary.container import HEADER, MAGIC, STREAMS, checksum, write_file
from nacre.tcb.binary.encoding import encode, features_of, sections_of
from nacre.tcb.block_table import FEATURES
from nacre.tcb.image import (
    STREAM,
    Block,
    Constant,
    Image,
    Item,
    Operand,
    Origin,
    Placement,
    Port,
    Quant,
    Repeat,
    Stream,
    Tag,
    TagSet,
    UnitUse,
    Wait,
    counter,
)
from tests.tcb.samples import TEXT, sample

Value = Any
X = Operand("DDR", 0, "i8", (64,))
COPY = Block("task", 1, "transfer", inputs=(X,), outputs=(X,))


def changed(value: Value, **fields: Value) -> Value:
    """A value with other fields."""
    return msgspec.structs.replace(value, **fields)


def with_items(*items: Item, engine: int = 0) -> Image:
    """The sample with one stream of these items."""
    image: Image = changed(sample(), streams=(Stream(engine, items),))
    return image


def copying(**fields: Value) -> Image:
    """A copy with other fields."""
    return with_items(changed(COPY, **fields))


def reading(**fields: Value) -> Image:
    """A copy whose input has other fields."""
    return copying(inputs=(changed(X, **fields),))


def counting(values: Iterable[int]) -> Image:
    """Blocks that wait for these values, a tag in turn."""
    waits = [Wait(Tag(0, at % 3), value) for at, value in enumerate(values)]
    return with_items(*(changed(COPY, position=at, waits=(w,)) for at, w in enumerate(waits)))


def in_machine(**fields: Value) -> Image:
    """The sample on another machine."""
    image = sample()
    made: Image = changed(image, machine=changed(image.machine, **fields))
    return made


def _deep() -> Image:
    item: Item = COPY
    for depth in range(80):
        item = Repeat(0 - depth, 2, (item,))
    return with_items(item)


C0, C1 = counter(0), counter(1)
FED = Operand(STREAM, 0, "f16", (64,))
_SLOT = operation("mod", C0, 2)
# Images, by what they break; the first word of each says which promise.
IMAGES: Mapping[str, tuple[Callable[[], Image], ...]] = {
    "TCB20": (
        lambda: changed(in_machine(engines=0), streams=(), placements=()),
        lambda: in_machine(token_limit=-2),
        lambda: in_machine(units=(("CSTL", 1), ("NMU", -1))),
        lambda: in_machine(figures=(("l1.bancs", 1),)),
        lambda: in_machine(figures=(("l1.ports", 0),)),
        lambda: in_machine(memories=(*sample().machine.memories, ("L2", 5))),
        lambda: in_machine(figures=(("l1.banks", 1), ("l1.banks", 2))),
    ),
    "TCB21": (
        lambda: reading(memory="L3"),
        lambda: reading(memory="L1[2]"),
        lambda: reading(memory="L1"),
        lambda: changed(sample(), ports=(Port("p", "input", "", 0, 1),)),
    ),
    "TCB22": (
        lambda: reading(address=(1 << 20) - 63),
        lambda: reading(address=-1),
        lambda: with_items(Repeat(0, 9, (changed(COPY, inputs=(changed(X, address=operation(
            "+", (1 << 20) - 64 * 9 + 1, operation("*", C0, 64))),)),))),
        lambda: reading(strides=(1 << 20,)),
        # Bounds by intervals would be wider than what happens, and this is one byte too far.
        lambda: with_items(Repeat(0, 3, (changed(COPY, inputs=(changed(X, address=operation(
            "+", operation("*", _SLOT, 64),
            operation("*", operation("/", C0, 2), (1 << 20) - 63))),)),))),
    ),
    "TCB23": (
        lambda: reading(elem="i9"),
        lambda: reading(dims=(0, 4)),
        lambda: reading(strides=(1, 1)),
        lambda: reading(strides=(-1,)),
        lambda: reading(quant=Quant((0.5, 0.5), (0, 0))),
        lambda: reading(quant=Quant((0.5,), (0,), 1)),
        lambda: reading(quant=Quant((0.0,), (0,))),
        lambda: reading(compression=CompressionForm("palette", 9, 1)),
        lambda: reading(compression=CompressionForm("palette", 4, 3)),
        lambda: reading(compression=CompressionForm("sparse", 0, 1), compressed_bytes=7),
        lambda: reading(compressed_bytes=7),
    ),
    "TCB24": (
        lambda: copying(signal=Tag(0, 32)),
        lambda: copying(signal=Tag(-1, 64)),
        lambda: copying(signal=Tag(1, 0)),
        lambda: copying(signal=Tag(2, 0)),
        lambda: copying(waits=(Wait(Tag(0, -1), 1),)),
        lambda: with_items(Block("join", 1, sets=(TagSet(Tag(0, 30), 3, 0),))),
        lambda: with_items(Block("join", 1, sets=(TagSet(Tag(0, 30), 0, 0),))),
    ),
    "TCB25": (
        lambda: copying(units=(UnitUse("NMX", 1, 1),)),
        lambda: copying(units=(UnitUse("DMA", 1, 1, 2),)),
        lambda: copying(units=(UnitUse("DMA", -1, 1),)),
    ),
    "TCB26": (lambda: copying(op="reul"),),
    "TCB27": (
        lambda: copying(signal=Tag(0, C0)),
        lambda: reading(address=C1),
        lambda: reading(address=operation("/", 1, 0)),
        lambda: with_items(Repeat(0, 3, (changed(COPY, waits=(Wait(
            Tag(0, 1), operation("mod", 1, operation("-", C0, 1))),)),))),
        lambda: with_items(Repeat(0, 3, (changed(COPY, waits=(Wait(
            Tag(0, 1), operation("*", C0, 1 << 62)),)),))),
        lambda: with_items(Repeat(0, 3, (changed(COPY, signal=Tag(0, LoopVariable("i", 0))),))),
        lambda: with_items(Repeat(0, 3, (changed(COPY, signal=Tag(0, Operation(
            "+", C0, operation("+", C0, 1)))),))),
        lambda: with_items(Repeat(0, C0, (COPY,))),
    ),
    "TCB28": (
        lambda: copying(outputs=(FED,)),
        lambda: copying(outputs=(FED,), is_chained=True),
        lambda: copying(inputs=(FED,)),
        lambda: copying(is_chained=True),
        lambda: with_items(
            changed(COPY, outputs=(FED,), is_chained=True),
            changed(COPY, inputs=(changed(FED, dims=(32,)),)),
        ),
    ),
    "TCB29": (
        lambda: changed(sample(), placements=(Placement("b", "L2", 262140, 8),)),
        lambda: changed(sample(), placements=(
            Placement("a", "L2", 0, 8), Placement("b", "L2", 7, 8))),
        lambda: changed(sample(), placements=(
            Placement("a", "L2", 0, 8), Placement("a", "L2", 8, 8))),
    ),
    "TCB30": (
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 1 << 20, 1),)),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 1),) * 2),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 8, "i8", (9,)),)),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 8, "i8"),)),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 8, "i5", (8,)),)),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 0, "i8", (0,)),)),
        lambda: changed(sample(), ports=(
            Port("p", "input", "DDR", 0, 8, "i8", (8,), "f5", (0.5,), (3,)),)),
        lambda: changed(sample(), ports=(Port("p", "input", "DDR", 0, 8, host_elem="f32"),)),
        lambda: changed(sample(), ports=(
            Port("p", "input", "DDR", 0, 8, "i8", (8,), "f32", (0.5,)),)),
        lambda: changed(sample(), ports=(
            Port("p", "input", "DDR", 0, 8, "i8", (8,), "f32", (0.0,), (3,)),)),
        lambda: changed(sample(), ports=(
            Port("p", "input", "DDR", 0, 8, "i8", (8,), "f32", (0.5,), (300,)),)),
    ),
    "TCB31": (
        lambda: changed(sample(), constants=(Constant("L2", 262144, b"a"),)),
        lambda: changed(sample(), constants=(
            Constant("L2", 0, b"ab"), Constant("L2", 1, b"ab"))),
    ),
    "TCB32": (
        lambda: with_items(changed(COPY, position=2), COPY),
        lambda: with_items(Repeat(1, 2, (COPY,))),
        # Blocks of a chain are in order among themselves, and its last behind what is before it.
        lambda: with_items(
            changed(COPY, position=3, outputs=(FED,), is_chained=True),
            changed(COPY, position=2, inputs=(FED,)),
        ),
        lambda: with_items(
            changed(COPY, position=4),
            changed(COPY, position=2, outputs=(FED,), is_chained=True),
            changed(COPY, position=3, inputs=(FED,)),
        ),
    ),
    "TCB33": (
        lambda: with_items(Block("join", 1, units=(UnitUse("DMA", 1, 1),))),
        lambda: with_items(Block("wait", 1, sets=(TagSet(Tag(0, 1), 1, 0),))),
        lambda: copying(op=""),
        lambda: copying(outputs=()),
        lambda: copying(burst=-1),
    ),
    "TCB34": (
        lambda: with_items(engine=2),
        lambda: changed(sample(), streams=(Stream(0, ()), Stream(0, ()))),
    ),
    "TCB35": (
        lambda: with_items(Repeat(0, -1, (COPY,))),
        lambda: with_items(Repeat(0, 1, (COPY,), -1)),
        lambda: with_items(Repeat(0, 5, (Repeat(1, operation("-", C0, 1), ()),))),
        _deep,
    ),
    "TCB36": (lambda: copying(attributes=(("a", float("nan")),)),),
    "TCB37": (lambda: changed(sample(), origins=(Origin(5, "a", 1), Origin(5, "b", 1))),),
    "TCB38": (
        lambda: copying(engine=0),
        lambda: with_items(changed(COPY, engine=2), engine=-1),
    ),
}  # fmt: skip


def sealed(data: bytes) -> bytes:
    """A file with the checksums that its head and its sections need, where they can be found."""
    try:
        return _seal(bytearray(data))
    except (IndexError, ValueError):
        return data


def _seal(data: bytearray) -> bytes:
    at = len(MAGIC)

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return value

    varint()
    bits = varint()
    for bit in range(bits.bit_length()):
        if bits >> bit & 1:
            at += varint()
    rows = []
    for _ in range(min(varint(), 10)):
        varint()
        size = varint()
        rows.append((at, size))
        at += 4
    start = at + 4
    for place, size in rows:
        data[place : place + 4] = checksum(bytes(data[start : start + size]))
        start += size
    data[at : at + 4] = zlib.crc32(bytes(data[:at])).to_bytes(4, "little")
    return bytes(data)


def file_with(**sections: bytes | None) -> bytes:
    """The file of the sample with other sections."""
    image = sample()
    tags = {"header": HEADER, "streams": STREAMS}
    found = dict(sections_of(image, features_of(image)))
    for name, content in sections.items():
        if content is None:
            del found[tags[name]]
        else:
            found[tags[name]] = content
    return write_file(found, features_of(image))


def _head(features: int, *names: str) -> bytes:
    out = ByteWriter()
    out.raw(MAGIC)
    out.varint(1)
    out.varint(features)
    for name in names:
        out.text(name)
    return out.content() + bytes(16)


def _section(*varints: int) -> bytes:
    """A section without texts and without a heap, with these counts, and no columns."""
    out = ByteWriter()
    out.varints((0, 0, *varints, 0))
    return out.content()


def _flipped(data: bytes, at: int) -> bytes:
    made = bytearray(data)
    made[at] ^= 1
    return bytes(made)


FILES: Mapping[str, tuple[Callable[[], bytes], ...]] = {
    "TCB10": (
        lambda: encode(sample())[:-1],
        lambda: encode(sample()) + b"\0",
        lambda: _flipped(encode(sample()), -1),
        lambda: _flipped(encode(sample()), 40),
    ),
    "TCB11": (
        lambda: b"\x89TCX" + bytes(20),
        lambda: MAGIC + b"\2" + encode(sample())[len(MAGIC) + 1 :],
    ),
    "TCB12": (
        lambda: _head(1 << len(FEATURES), "time-travel"),
        lambda: _head(1, "chains"),
    ),
    "TCB13": (
        lambda: file_with(header=None),
        lambda: write_file({HEADER: b"", 9: b""}, frozenset()),
    ),
    "TCB14": (
        lambda: (
            write_file(sections_of(sample(), frozenset(FEATURES)), frozenset(FEATURES))
            and file_with(streams=sections_of(sample(), features_of(sample()))[STREAMS] + b"\0")
        ),
        lambda: write_file(sections_of(with_items(COPY), frozenset(FEATURES)), frozenset(FEATURES)),
    ),
    "TCB15": (lambda: file_with(streams=_section(1 << 40, 0, 0, 0, 0, 0, 0, 0, 0, 0)),),
    "TCB16": (lambda: file_with(streams=_section(0, 0, 0, 0, 0, 0, 0, 0, 0, 9)),),
}

TEXTS: Mapping[str, tuple[str, ...]] = {
    "TCB01": (TEXT.replace("place X", "place ;X"),),
    "TCB02": (TEXT.replace("port input", "port inptu"), TEXT.replace("e0 {", "e {")),
    "TCB03": (TEXT.replace("size 8192", ""), TEXT.replace("size 8192", "size 1 size 2")),
    "TCB04": (TEXT.replace("size 8192", "size 0xfffffffffffffffff"),),
    "TCB05": (TEXT.replace("tcb 1", "tcb 2"),),
    "TCB06": (TEXT.replace("c0 + 1 signal", "1" + " + 1" * 500 + " signal"),),
    "TCB07": (TEXT.replace('"AAECAwQFBgc="', f'sha256 "{"0" * 64}"'),),
}
