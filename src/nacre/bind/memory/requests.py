"""How transfers ask memories for data: the length of their requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.tcb.figures import Figures
from nacre.tcb.image import STREAM, Block, Item, Operand, Repeat, Stream
from nacre.tcb.machine.hardware import REQUESTING

REQUEST_REASONS = {
    "longest": "requests of the longest kind",
    "short": "no run of bytes is longer",
}


class RequestChoice(Struct, frozen=True):
    """What the blocks of a transfer ask for; `burst` 0 is the memory's own."""

    position: int
    burst: int
    reason: str


def choose_requests(streams: Iterable[Stream], figures: Figures) -> tuple[RequestChoice, ...]:
    """The requests of every transfer, in the order of the program; none on ideal hardware."""
    longest = figures.count("dma.burst")
    if not longest:
        return ()
    moving: dict[int, list[Block]] = {}  # by position: of the parts of a loop
    for block in (b for s in streams for b, _ in s.blocks() if b.kind == "task"):
        if _requests(block):
            moving.setdefault(block.position, []).append(block)
    made = []
    for position, found in sorted(moving.items()):
        burst = _burst(found, longest, figures.count("dma.align"))
        made.append(RequestChoice(position, burst, "short" if burst else "longest"))
    return tuple(made)


def _requests(block: Block) -> bool:
    return any(use.unit in REQUESTING for use in block.units)


def _burst(blocks: Sequence[Block], longest: int, align: int) -> int:
    """A length that no run of a transfer's bytes is cut by; 0: the longest there is."""
    operands = (o for block in blocks for o in (*block.inputs, *block.outputs) if o is not None)
    runs = (_padded_run(o, align) for o in operands if o.memory != STREAM)
    needed = max(runs, default=longest)
    return needed if needed < longest else 0


def _padded_run(operand: Operand, align: int) -> int:
    """The most that a run of an operand's bytes takes between multiples of the alignment."""
    length = _run_bytes(operand)
    is_aligned = isinstance(operand.address, int) and operand.address % align == 0
    if operand.strides is not None or not is_aligned:
        length += align - 1  # it may begin anywhere
    return -(-length // align) * align


def _run_bytes(operand: Operand) -> int:
    """The bytes of an operand that lie without a gap."""
    if operand.compressed_bytes is not None:
        return operand.compressed_bytes
    element = ELEMENT_TYPES.get(operand.elem, ELEMENT_TYPES["u8"])
    count = 1
    for at in reversed(range(len(operand.dims))):
        if operand.strides is not None and operand.strides[at] != count and operand.dims[at] > 1:
            break
        count *= operand.dims[at]
    return bytes_needed(count, element)


def set_requests(
    streams: tuple[Stream, ...], choices: Sequence[RequestChoice]
) -> tuple[Stream, ...]:
    """Streams whose transfers ask as was chosen."""
    bursts = {c.position: c.burst for c in choices if c.burst}
    if not bursts:
        return streams
    return tuple(Stream(s.engine, _set_items(s.items, bursts)) for s in streams)


def _set_items(items: tuple[Item, ...], bursts: Mapping[int, int]) -> tuple[Item, ...]:
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=_set_items(item.items, bursts)))
        elif item.kind == "task" and item.position in bursts:
            made.append(replace(item, burst=bursts[item.position]))
        else:
            made.append(item)
    return tuple(made)
