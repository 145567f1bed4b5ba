"""Random images: sound ones, which break no promise of the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st

from nacre.base.compression_forms import CompressionForm
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.terms import Term, operation
from nacre.tcb.image import (
    DEVICE,
    Attribute,
    Block,
    Constant,
    Image,
    Item,
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
    counter,
)

ENGINES = 2
MEMORIES = {"DDR": 1 << 20, "L2": 1 << 16, "L1": 1 << 14}
UNITS = {"NMU": 2, "CSTL": 1}
DEVICE_UNITS = {"DMA": 2}
TAGS, DEVICE_TAGS = 64, 128
OPS = ("relu", "add", "gemm", "core.HardSigmoid", "transfer", "store")
MOST_REPEATS = 4  # iterations of a repeat
_LARGEST = 2048  # bytes of an operand, whatever its strides
_RING = 512  # bytes that an address moves

names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    st.sampled_from(["in", "wait", "mod", "_", "true", "stream", "a b", 'q"\\', "", "é", "l\n"]),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
memory_names = st.sampled_from(["DDR", "L2", "L1[0]", "L1[1]"])


def capacity(memory: str) -> int:
    """The bytes of a memory."""
    return MEMORIES[memory.partition("[")[0]]


@st.composite
def small_terms(draw: st.DrawFn, depth: int) -> Term:
    """A term between 0 and 511, over the counters of so many repeats."""
    plain = st.integers(0, 15)
    if depth == 0 or draw(st.booleans()):
        return draw(plain)
    found: Term = counter(draw(st.integers(0, depth - 1)))
    for _ in range(draw(st.integers(0, 2))):
        op = draw(st.sampled_from(["+", "*", "/", "mod"]))
        other: Term = draw(st.integers(1, 4))
        if op == "+" and draw(st.booleans()):
            other = counter(draw(st.integers(0, depth - 1)))
        is_left = op in ("+", "*") and draw(st.booleans())
        found = operation(op, other, found) if is_left else operation(op, found, other)
    return found


def tags(engine: int, depth: int) -> st.SearchStrategy[Tag]:
    """A counter that a stream may name."""
    own = st.builds(
        Tag, st.just(engine), _indices(TAGS if engine != DEVICE else DEVICE_TAGS, depth)
    )
    return st.one_of(own, st.builds(Tag, st.just(DEVICE), _indices(DEVICE_TAGS, depth)))


def _indices(most: int, depth: int) -> st.SearchStrategy[Term]:
    terms = small_terms(depth).map(lambda term: operation("mod", term, 8))
    return st.one_of(st.integers(0, most - 1), terms) if depth else st.integers(0, most - 1)


waits_of_value = st.integers(0, 1000)


def waits(engine: int, depth: int) -> st.SearchStrategy[Wait]:
    """A condition."""
    return st.builds(Wait, tags(engine, depth), st.one_of(waits_of_value, small_terms(depth)))


scales = st.floats(min_value=1e-6, max_value=1e6)


@st.composite
def quants(draw: st.DrawFn, dims: tuple[int, ...]) -> Quant | None:
    """Scales for elements of these dimensions, or none."""
    if not draw(st.booleans()) or not dims:
        return None
    if draw(st.booleans()):
        return Quant((draw(scales),), (draw(st.integers(-8, 7)),))
    axis = draw(st.integers(0, len(dims) - 1))
    count = dims[axis]
    return Quant(
        tuple(draw(st.lists(scales, min_size=count, max_size=count))),
        tuple(draw(st.lists(st.integers(-8, 7), min_size=count, max_size=count))),
        axis,
    )


@st.composite
def operands(draw: st.DrawFn, depth: int) -> Operand:
    """Elements that lie inside a memory in every iteration."""
    memory = draw(memory_names)
    elem = draw(st.sampled_from(sorted(ELEMENT_TYPES)))
    dims = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    count = 1
    for dim in dims:
        count *= dim
    strides, compression = None, None
    if draw(st.integers(0, 3)) == 0:
        strides = tuple(draw(st.permutations(_dense(dims))))
    elif draw(st.integers(0, 5)) == 0:
        compression = draw(
            st.sampled_from([CompressionForm("sparse"), CompressionForm("palette", 2, 1)])
        )
    start = draw(st.integers(0, capacity(memory) - _LARGEST - _RING))
    address: Term = start
    if depth and draw(st.booleans()):
        ring = operation("mod", draw(small_terms(depth)), 8)
        address = operation("+", start, operation("*", ring, 64))
    return Operand(memory, address, elem, dims, strides, draw(quants(dims)), compression)


def _dense(dims: tuple[int, ...]) -> list[int]:
    strides = [1]
    for dim in reversed(dims[1:]):
        strides.insert(0, strides[0] * dim)
    return strides


unit_uses = st.one_of(
    st.builds(
        UnitUse,
        st.sampled_from(sorted(UNITS)),
        st.integers(0, 99),
        st.integers(0, 9999),
        st.one_of(st.none(), st.just(0)),
        st.sampled_from([None, "CSTLA", "CSTLB"]),
    ),
    st.builds(UnitUse, st.just("DMA"), st.integers(0, 99), st.integers(0, 9999)),
)

attribute_values: st.SearchStrategy[Attribute] = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    texts,
    st.lists(st.integers(-9, 9), max_size=3).map(tuple),
)
attributes = st.lists(
    st.tuples(names, attribute_values), max_size=3, unique_by=lambda pair: pair[0]
).map(tuple)


@st.composite
def tasks(draw: st.DrawFn, engine: int, depth: int, position: int) -> Block:
    """A task; what it computes need not fit its operands."""
    own_units = (
        st.just(())
        if engine == DEVICE and draw(st.booleans())
        else st.lists(unit_uses, max_size=2, unique_by=lambda use: use.unit).map(tuple)
    )
    return Block(
        "task",
        position,
        draw(st.sampled_from(OPS)),
        draw(attributes),
        draw(st.booleans()),
        tuple(draw(st.lists(st.one_of(st.none(), operands(depth)), max_size=3))),
        tuple(draw(st.lists(operands(depth), min_size=1, max_size=2))),
        draw(own_units),
        draw(st.integers(0, 100)),
        draw(st.one_of(st.none(), st.integers(0, ENGINES - 1))) if engine == DEVICE else None,
        draw(st.sampled_from(["raw", "i8", "f16"])),
        draw(st.sampled_from([0, 64, 256])),
        draw(st.integers(0, 3)),
        tuple(draw(st.lists(waits(engine, depth), max_size=2))),
        draw(st.one_of(st.none(), tags(engine, depth))),
        has_token=draw(st.booleans()),
        names=tuple(draw(st.lists(st.integers(0, 9), max_size=2))),
    )


@st.composite
def joins(draw: st.DrawFn, engine: int, depth: int, position: int) -> Block:
    """A join."""
    sets = st.builds(
        TagSet,
        st.builds(Tag, st.just(DEVICE), st.integers(0, 9)),
        st.integers(1, 9),
        waits_of_value,
    )
    return Block(
        "join",
        position,
        waits=tuple(draw(st.lists(waits(engine, depth), max_size=2))),
        signal=draw(st.one_of(st.none(), tags(engine, depth))),
        sets=tuple(draw(st.lists(sets, max_size=2))),
    )


@st.composite
def items_of(draw: st.DrawFn, engine: int, depth: int, start: int) -> tuple[tuple[Item, ...], int]:
    """Items in a row, and a position behind them."""
    found: list[Item] = []
    position = start
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["task", "task", "join", "wait", "repeat"]))
        if kind == "repeat" and depth < 3:
            inner, end = draw(items_of(engine, depth + 1, position + 1))
            count = draw(st.integers(0, MOST_REPEATS))
            found.append(Repeat(position, count, inner, draw(st.integers(0, 2))))
            position = end + 1
            continue
        if kind == "task":
            found.append(draw(tasks(engine, depth, position)))
        elif kind == "join":
            found.append(draw(joins(engine, depth, position)))
        else:
            found.append(
                Block(
                    "wait", position, waits=tuple(draw(st.lists(waits(engine, depth), max_size=2)))
                )
            )
        position += draw(st.integers(1, 3))
    return tuple(found), position


@st.composite
def streams(draw: st.DrawFn) -> tuple[Stream, ...]:
    """Streams of some engines, and of the device."""
    engines = draw(st.sampled_from([(), (0,), (0, 1), (DEVICE,), (0, DEVICE), (0, 1, DEVICE)]))
    return tuple(Stream(engine, draw(items_of(engine, 0, 0))[0]) for engine in engines)


machines = st.builds(
    Machine,
    names.filter(bool),
    texts,
    names,
    texts,
    st.just(ENGINES),
    st.just(tuple(UNITS.items())),
    st.just(tuple(DEVICE_UNITS.items())),
    st.just(tuple(MEMORIES.items())),
    st.one_of(st.none(), st.integers(1, 64)),
    st.just(TAGS),
    st.one_of(st.none(), st.just(DEVICE_TAGS)),
    st.lists(
        st.sampled_from(
            [
                ("l1.banks", 16),
                ("dma.burst", 256),
                ("arbitration.rule", "round_robin"),
                ("store.formats", "raw i8"),
                ("chain.depth", 3),
            ]
        ),
        max_size=3,
        unique_by=lambda pair: pair[0],
    ).map(tuple),
)


@st.composite
def ports(draw: st.DrawFn) -> tuple[Port, ...]:
    """Ports behind each other in DDR."""
    found = []
    for at, name in enumerate(draw(st.lists(names, max_size=3, unique=True))):
        kind: PortKind = draw(st.sampled_from(get_args(PortKind)))
        if draw(st.booleans()):
            found.append(Port(name, kind, "DDR", 256 * at, 24, "f32", (2, 3)))
        elif draw(st.booleans()):
            host = (("f32", (0.25,), (draw(st.integers(-128, 127)),)) if draw(st.booleans())
                    else ("i64", (), ()))  # fmt: skip
            found.append(Port(name, kind, "DDR", 256 * at, 6, "i8", (2, 3), *host))
        else:
            found.append(Port(name, kind, "DDR", 256 * at, draw(st.integers(0, 256))))
    return tuple(found)


def _origins(positions: Sequence[int]) -> st.SearchStrategy[tuple[Origin, ...]]:
    made = [
        st.builds(Origin, st.just(at), names, st.integers(1, 999), st.one_of(st.none(), texts))
        for at in positions
    ]
    return st.tuples(*made)


@st.composite
def images(draw: st.DrawFn) -> Image:
    """A whole image."""
    placements = tuple(
        Placement(name, "DDR", 4096 * at, draw(st.integers(0, 4096)))
        for at, name in enumerate(draw(st.lists(names, max_size=3, unique=True)))
    )
    constants = tuple(
        Constant("DDR", 512 * at, data)
        for at, data in enumerate(draw(st.lists(st.binary(max_size=100), max_size=2)))
    )
    positions = sorted(draw(st.sets(st.integers(0, 12), max_size=3)))
    return Image(
        draw(names),
        draw(machines),
        placements,
        draw(ports()),
        draw(streams()),
        constants,
        draw(_origins(positions)),
        draw(texts),
    )
