"""How transfers ask memories for data: the length of their requests, and who goes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.nem.model.program import Task
from nacre.tcb.figures import Figures
from nacre.tcb.image import STREAM, Block, Item, Operand, Repeat, Stream

_REQUESTING = ("DMA", "sDMA")

REQUEST_REASONS = {
    "longest": "requests of the longest kind",
    "short": "no run of bytes is longer",
    "critical": "on the longest path of its body, before other transfers",
    "later": "others can wait less",
    "alike": "all transfers are alike",
    "one class": "there is one class of priority",
}


class RequestChoice(Struct, frozen=True):
    """What the blocks of a transfer ask for; `burst` 0 is the memory's own."""

    position: int
    burst: int
    burst_reason: str
    priority: int
    priority_reason: str


def choose_requests(
    tasks: Sequence[Task], streams: Iterable[Stream], figures: Figures
) -> tuple[RequestChoice, ...]:
    """The requests of every transfer, in the order of the program; none on ideal hardware."""
    longest, classes = figures.count("dma.burst"), figures.count("arbitration.classes")
    if not longest and classes < 2:
        return ()
    blocks: dict[int, list[Block]] = {}  # of a position: of the parts of a loop
    for block in (b for s in streams for b, _ in s.blocks() if b.kind == "task"):
        blocks.setdefault(block.position, []).append(block)
    moving = {at: found for at, found in blocks.items() if _requests(found[0])}
    critical = _critical(tasks, blocks) & moving.keys() if classes > 1 else set()
    if len(critical) == len(moving):
        critical, usual = set(), "alike"
    else:
        usual = "later"
    made = []
    for position, found in sorted(moving.items()):
        burst = _burst(found, longest, figures.count("dma.align")) if longest else 0
        is_first = position in critical
        reason = "critical" if is_first else usual if classes > 1 else "one class"
        priority = classes - 1 if is_first else 0
        made.append(
            RequestChoice(position, burst, "short" if burst else "longest", priority, reason)
        )
    return tuple(made)


def _requests(block: Block) -> bool:
    return any(use.unit in _REQUESTING for use in block.units)


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


def _critical(tasks: Sequence[Task], blocks: Mapping[int, Sequence[Block]]) -> set[int]:
    """Tasks on the longest path of their body, by what they wait for and how long they take."""
    cycles = {
        task.position: max((block.cycles for block in blocks.get(task.position, ())), default=0)
        for task in tasks
    }
    bodies = {task.position: task.loops[-1].position if task.loops else -1 for task in tasks}
    start: dict[int, int] = {}
    rest = dict(cycles)  # from the start of a task to the end of all that follows from it
    for task in tasks:
        at = task.position
        inside = [dep for dep in task.deps if dep in start and bodies[dep] == bodies[at]]
        start[at] = max((start[dep] + cycles[dep] for dep in inside), default=0)
    for task in reversed(tasks):
        at = task.position
        for dep in task.deps:
            if dep in rest and bodies[dep] == bodies[at]:
                rest[dep] = max(rest[dep], cycles[dep] + rest[at])
    most: dict[int, int] = {}
    for at, begun in start.items():
        most[bodies[at]] = max(most.get(bodies[at], 0), begun + rest[at])
    return {at for at, begun in start.items() if begun + rest[at] == most[bodies[at]]}


def set_requests(
    streams: tuple[Stream, ...], choices: Sequence[RequestChoice]
) -> tuple[Stream, ...]:
    """Streams whose transfers ask as was chosen."""
    changed = {c.position: c for c in choices if c.burst or c.priority}
    if not changed:
        return streams
    return tuple(Stream(s.engine, _set_items(s.items, changed)) for s in streams)


def _set_items(items: tuple[Item, ...], changed: Mapping[int, RequestChoice]) -> tuple[Item, ...]:
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=_set_items(item.items, changed)))
        elif item.kind == "task" and item.position in changed:
            choice = changed[item.position]
            made.append(replace(item, burst=choice.burst, priority=choice.priority))
        else:
            made.append(item)
    return tuple(made)
