"""Small images by hand: a machine of one engine, and blocks that move or count."""

from __future__ import annotations

from nacre.base.terms import Term
from nacre.tcb.image import (
    DEVICE,
    Block,
    Image,
    Item,
    Machine,
    Operand,
    Origin,
    Placement,
    Port,
    Stream,
    Tag,
    UnitUse,
    Wait,
)

SIZE = 1024
Figures = dict[str, int | str]


def machine(
    figures: Figures | None = None, *, engines: int = 1, tokens: int | None = None, units: int = 1
) -> Machine:
    """An engine has one unit of each kind, or `units` of them."""
    names = ("NMU", "CSTL", "DMA")
    return Machine(
        "hand",
        "",
        "hand" if figures else "ideal",
        "",
        engines,
        tuple((name, units) for name in names),
        (("sDMA", 1),),
        (("DDR", SIZE), ("L2", SIZE), ("L1", SIZE)),
        tokens,
        figures=tuple((figures or {}).items()),
    )


def image(*streams: Stream, on: Machine | None = None, origins: tuple[Origin, ...] = ()) -> Image:
    """An image with a buffer in each memory, as large as it."""
    made = machine() if on is None else on
    memories = ["DDR", "L2", *(f"L1[{k}]" for k in range(made.engines))]
    places = tuple(Placement(name.lower(), name, 0, SIZE) for name in memories)
    ports = (Port("in", "input", "DDR", 0, SIZE // 2), Port("out", "output", "DDR", 512, 512))
    return Image("hand", made, places, ports, streams, origins=origins, source="hand.nem")


def stream(*items: Item, engine: int = 0) -> Stream:
    """What one sequencer hands out."""
    return Stream(engine, items)


def at(memory: str, address: Term, size: int, elem: str = "i8") -> Operand:
    """So many elements side by side."""
    return Operand(memory, address, elem, (size,))


def tag(index: Term, engine: int = DEVICE) -> Tag:
    """A tag of the device."""
    return Tag(engine, index)


def after(index: Term, value: Term = 1) -> Wait:
    """A wait for a tag of the device."""
    return Wait(tag(index), value)


def copy(
    position: int,
    source: Operand,
    target: Operand,
    *waits: Wait,
    signal: Tag | None = None,
    cycles: int = 10,
    unit: str = "DMA",
    latency: int = 0,
    priority: int = 0,
    engine: Term | None = None,
) -> Block:
    """A block that moves elements on a DMA."""
    return Block(
        "task",
        position,
        "transfer",
        inputs=(source,),
        outputs=(target,),
        units=(UnitUse(unit, latency, cycles - latency),),
        waits=waits,
        signal=signal,
        priority=priority,
        engine=engine,
    )


def compute(
    position: int,
    op: str,
    inputs: tuple[Operand, ...],
    output: Operand,
    *waits: Wait,
    signal: Tag | None = None,
    cycles: int = 10,
    latency: int = 0,
    unit: str = "CSTL",
    is_chained: bool = False,
) -> Block:
    """A block that computes on a CSTL."""
    use = UnitUse(unit, latency, cycles - latency)
    return Block("task", position, op, (), False, inputs, (output,), (use,),
                 waits=waits, signal=signal, is_chained=is_chained)  # fmt: skip
