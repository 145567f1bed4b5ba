"""The fields of blocks and of all that an image has beside them, each declared once.

The assembler's text, the bytes of a file, differences and the tables of docs/tcb-format.md follow
from the rows here. A new field is one in image.py and one row, which has to have a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from nacre.base.compression_forms import CompressionForm
from nacre.tcb.image import (
    Block,
    BlockKind,
    Constant,
    Image,
    Machine,
    Operand,
    Origin,
    Placement,
    Port,
    PortKind,
    Quant,
    Repeat,
    Stream,
    Tag,
    TagSet,
    UnitUse,
    Wait,
)

# What a value is, which says how it is written: one codec each in text/values.py and binary/.
Kind = Literal[
    "flag",  # the keyword alone, where it holds
    "integer",
    "hexadecimal",  # an integer that is an address
    "size",  # bytes
    "word",  # one of a few
    "name",  # any text; without quotes where it is a word
    "text",
    "digest",  # a text, mostly a hash
    "memory",  # `DDR`, `L1[0]`
    "engine",  # `e0`, or `d` of the device
    "integers",
    "positions",  # of statements further up
    "numbers",
    "term",  # an integer over counters
    "address",  # a term that is an address
    "count",  # a term that a tag counts up to
    "attributes",  # names with values of any kind
    "counts",  # names with integers
    "figures",  # names with integers and texts
    "data",  # bytes
    "record",
]
BLOCK_KINDS: Final[tuple[BlockKind, ...]] = get_args(BlockKind)
# What a reader must know to understand a file. Places in this list are never used again.
PERIODS: Final = "periods"  # no field: how counts are written in files where they are many
FEATURES: Final = ("compression", "chains", "host_values", PERIODS)
REQUIRED: Final = ...
FieldValue = Any  # as its kind says
_TASKS: Final[tuple[BlockKind, ...]] = ("task",)
_STEPS: Final[tuple[BlockKind, ...]] = ("task", "wait")


class Field(Struct, frozen=True):
    """One field: what it is called in text, how it is written, and what it means."""

    name: str  # in image.py
    kind: Kind
    meaning: str
    keyword: str = ""  # that stands before it in text; none: its place says what it is
    default: FieldValue = REQUIRED  # where it is left out in text
    of: type[object] | None = None  # of a record: which
    is_many: bool = False
    is_optional: bool = False  # None is a value; of many records: of each
    is_unshared: bool = (
        False  # in bytes, kept for each record and not in the form that several share
    )
    words: tuple[str, ...] = ()
    blocks: tuple[BlockKind, ...] = BLOCK_KINDS  # which of them have it
    feature: str = ""  # of a file that has it; without that feature it has no place there


class Record(Struct, frozen=True):
    """A value of image.py: its fields in the order of text and of bytes."""

    of: type[Any]
    meaning: str
    fields: tuple[Field, ...]
    statement: str = ""  # the word that begins it, where it stands for itself in text

    @property
    def shared_fields(self) -> tuple[Field, ...]:
        """The fields that records share in bytes."""
        return tuple(field for field in self.fields if not field.is_unshared)

    @property
    def unshared_fields(self) -> tuple[Field, ...]:
        """The fields that each record has for itself."""
        return tuple(field for field in self.fields if field.is_unshared)


_TAG = Record(
    Tag, "a counter: `e0.t5` of an engine, `d.t7` of the device",
    (
        Field("engine", "engine", "whose counter it is", is_unshared=True),
        Field("index", "term", "which of its counters", ".t", is_unshared=True),
    ),
)  # fmt: skip
_WAIT = Record(
    Wait, "a condition: the counter has reached a value",
    (
        Field("tag", "record", "the counter", of=Tag, is_unshared=True),
        Field("value", "count", "what it has to reach", ">=", is_unshared=True),
    ),
)  # fmt: skip
_TAG_SET = Record(
    TagSet, "counters side by side that are raised to a value; none goes down",
    (
        Field("tag", "record", "the first of them", of=Tag, is_unshared=True),
        Field("value", "count", "what they are raised to", "=", is_unshared=True),
        Field("count", "integer", "how many there are", "count", 1, is_unshared=True),
    ),
)  # fmt: skip
_QUANT = Record(
    Quant, "real = scale * (stored - zero point)",
    (
        Field("scales", "numbers", "one, or one for each part of an axis"),
        Field("zero_points", "integers", "as many", "zero"),
        Field("axis", "integer", "the axis that has parts", "axis", None, is_optional=True),
        Field("group_size", "integer", "elements of the axis in a part", "group", 1),
    ),
)  # fmt: skip
_COMPRESSION = Record(
    CompressionForm, "how elements are compressed where they lie",
    (
        Field("name", "word", "the form", words=("palette", "sparse")),
        Field("bits", "integer", "of a place in a palette", "bits", 0),
        Field("tables", "integer", "of palettes", "tables", 1),
    ),
)  # fmt: skip
_OPERAND = Record(
    Operand, "elements in a memory",
    (
        Field("memory", "memory", "where they lie, or `stream`"),
        Field("address", "address", "of the first byte", ":", is_unshared=True),
        Field("elem", "name", "element type"),
        Field("dims", "integers", "sizes of the dimensions"),
        Field("strides", "integers", "in elements; else dense", "strides", None, is_optional=True),
        Field("quant", "record", "scales", "quant", None, of=Quant, is_optional=True),
        Field("compression", "record", "of the elements as they lie there", "packed", None,
              of=CompressionForm, is_optional=True, feature="compression"),
        Field("compressed_bytes", "integer", "that compressed elements take", "bytes", None,
              is_optional=True, feature="compression"),
    ),
)  # fmt: skip
_UNIT_USE = Record(
    UnitUse, "a unit that a task occupies",
    (
        Field("unit", "name", "its type"),
        Field("latency", "integer", "cycles before the first result"),
        Field("work", "integer", "cycles at work", "+"),
        Field("instance", "term", "which one; else any", "instance", None, is_optional=True),
        Field("part", "name", "of a unit with parts", "part", None, is_optional=True),
    ),
)  # fmt: skip
BLOCK: Final = Record(
    Block, "a task, a `wait` of the program, or a join",
    (
        Field("kind", "word", "what it is", words=BLOCK_KINDS),
        Field("position", "integer", "of its statement in the program", "@", is_unshared=True),
        Field("op", "name", "a primitive, `transfer` or `store`", default="", blocks=_TASKS),
        Field("attributes", "attributes", "of the operation", default=(), blocks=_TASKS),
        Field("is_ordered", "flag", "floats are added up in a fixed order", "ordered", False,
              blocks=_TASKS),
        Field("inputs", "record", "operands that are read; `_`: left out", "in", (), of=Operand,
              is_many=True, is_optional=True, is_unshared=True, blocks=_TASKS),
        Field("outputs", "record", "operands that are written", "out", (), of=Operand,
              is_many=True, is_unshared=True, blocks=_TASKS),
        Field("units", "record", "units that are occupied together", "on", (), of=UnitUse,
              is_many=True, blocks=_TASKS),
        Field("shared", "integer", "cycles of the bandwidth that all share", "shared", 0,
              blocks=_TASKS),
        Field("engine", "term", "in the device's stream; else engines in turn", "engine", None,
              is_optional=True, is_unshared=True, blocks=_STEPS),
        Field("format", "name", "what the store path makes of the elements", "format", "raw",
              blocks=_TASKS),
        Field("burst", "integer", "bytes of one request; 0: the memory's own", "burst", 0,
              blocks=_TASKS),
        Field("priority", "integer", "class of arbitration", "priority", 0, blocks=_TASKS),
        Field("is_chained", "flag", "the first output streams into the next block", "chained",
              False, blocks=_TASKS, feature="chains"),
        Field("waits", "record", "what has to hold before", "wait", (), of=Wait,
              is_many=True, is_unshared=True),
        Field("signal", "record", "the counter that gets one more at the end", "signal", None,
              of=Tag, is_optional=True, is_unshared=True),
        Field("sets", "record", "counters that are raised at the end", "set", (), of=TagSet,
              is_many=True, is_unshared=True, blocks=("join",)),
        Field("has_token", "flag", "it takes a token of its engine until all have named it",
              "token", False, blocks=_STEPS),
        Field("names", "positions", "positions of the tasks whose tokens it names", "names", (),
              is_unshared=True, blocks=_STEPS),
    ),
)  # fmt: skip
_REPEAT = Record(
    Repeat, "items that are repeated; they stand behind it in braces",
    (
        Field("position", "integer", "of the loop in the program", "@", is_unshared=True),
        Field("count", "term", "how often", "count", is_unshared=True),
        Field("start", "integer", "where the counter begins", "start", 0, is_unshared=True),
    ),
    "repeat",
)  # fmt: skip
_STREAM = Record(
    Stream, "what one sequencer hands out; its items stand behind it in braces",
    (Field("engine", "engine", "whose it is", is_unshared=True),),
    "stream",
)  # fmt: skip
_IMAGE = Record(
    Image, "the program that was bound",
    (
        Field("entry", "name", "its name", is_unshared=True),
        Field("source", "text", "its file", "source", "", is_unshared=True),
    ),
    "image",
)  # fmt: skip
_MACHINE = Record(
    Machine, "what it was bound to",
    (
        Field("device", "name", "the device", is_unshared=True),
        Field("device_hash", "digest", "of its description", "hash", is_unshared=True),
        Field("uarch", "name", "its microarchitecture", "uarch", is_unshared=True),
        Field("uarch_hash", "digest", "of that description", "uarch_hash", is_unshared=True),
        Field("engines", "integer", "how many", "engines", is_unshared=True),
        Field("units", "counts", "instances of an engine, by type", "units", is_unshared=True),
        Field("device_units", "counts", "of the device", "device_units", is_unshared=True),
        Field("memories", "counts", "bytes; of `L1`: an engine's", "memories", is_unshared=True),
        Field("token_limit", "integer", "of an engine; else unlimited", "tokens", None,
              is_optional=True, is_unshared=True),
        Field("tags", "integer", "of an engine; else unlimited", "tags", None,
              is_optional=True, is_unshared=True),
        Field("device_tags", "integer", "of the device; else unlimited", "device_tags", None,
              is_optional=True, is_unshared=True),
        Field("figures", "figures", "that differ from the default", "figures", (),
              is_unshared=True),
    ),
    "machine",
)  # fmt: skip
_PLACEMENT = Record(
    Placement, "where a buffer of the program lies",
    (
        Field("buffer", "name", "its name", is_unshared=True),
        Field("memory", "memory", "where it lies", is_unshared=True),
        Field("address", "hexadecimal", "of its first byte", ":", is_unshared=True),
        Field("size", "size", "bytes", "size", is_unshared=True),
    ),
    "place",
)  # fmt: skip
_PORT = Record(
    Port, "what the host fills before a run, or reads after it",
    (
        Field("kind", "word", "what it is", words=get_args(PortKind), is_unshared=True),
        Field("name", "name", "its name", is_unshared=True),
        Field("memory", "memory", "where it lies", is_unshared=True),
        Field("address", "hexadecimal", "of its first byte", ":", is_unshared=True),
        Field("size", "size", "bytes", "size", is_unshared=True),
        Field("elem", "name", "element type, where known", "elem", None,
              is_optional=True, is_unshared=True),
        Field("dims", "integers", "sizes of the dimensions, where known", "dims", None,
              is_optional=True, is_unshared=True),
        Field("host_elem", "name", "element type of the host's values, where they are others",
              "host", None, is_optional=True, is_unshared=True, feature="host_values"),
        Field("scales", "numbers", "one, where they are quantised", "scale", (), is_unshared=True,
              feature="host_values"),
        Field("zero_points", "integers", "as many", "zero", (), is_unshared=True,
              feature="host_values"),
    ),
    "port",
)  # fmt: skip
_CONSTANT = Record(
    Constant, "bytes that lie in a memory before a run",
    (
        Field("memory", "memory", "where they lie", is_unshared=True),
        Field("address", "hexadecimal", "of the first byte", ":", is_unshared=True),
        Field("data", "data", "the bytes, as base64 or by their hash", "data", is_unshared=True),
    ),
    "constant",
)  # fmt: skip
_ORIGIN = Record(
    Origin, "where the blocks of a position come from",
    (
        Field("position", "integer", "the position", "@", is_unshared=True),
        Field("name", "name", "of the statement", is_unshared=True),
        Field("line", "integer", "of the statement", "line", is_unshared=True),
        Field("layer", "text", "that it is part of", "layer", None,
              is_optional=True, is_unshared=True),
    ),
    "origin",
)  # fmt: skip

_ROWS = (
    _TAG, _WAIT, _TAG_SET, _QUANT, _COMPRESSION, _OPERAND, _UNIT_USE, BLOCK, _REPEAT, _STREAM,
    _IMAGE, _MACHINE, _PLACEMENT, _PORT, _CONSTANT, _ORIGIN,
)  # fmt: skip
RECORDS: Final[Mapping[type[Any], Record]] = MappingProxyType({row.of: row for row in _ROWS})


def field_of(record: type[object], name: str) -> Field:
    """The row of a field."""
    return next(field for field in RECORDS[record].fields if field.name == name)
