"""What banks and requests cost, worked out before a run as columns over the rows of a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nacre.base.term_columns import Column
from nacre.tcb.figures import Figures
from nacre.tcb.image import STREAM, Machine, Operand
from nacre.tcb.machine.operands import layout_of
from nacre.tcb.machine.tree import PlacedBlock

# Banks are looked at as bits of an integer; more than so many in groups of neighbours.
MOST_BANKS = 62
_FEW = 16  # rows, of which it is not worth finding those that are alike
_LONGEST_ROUND = 1 << 62  # of all banks, in bytes: no address is beyond
REQUESTING = ("DMA", "sDMA")  # units that move data by requests


class BankKind(NamedTuple):
    """The banks of L1, or the slices of L2."""

    banks: int
    width: int  # bytes a cycle and port
    interleave: int
    ports: int


def bank_kinds(figures: Figures) -> tuple[BankKind, BankKind]:
    """Those of an engine's L1, and those of L2."""
    return (
        BankKind(*map(figures.count, ("l1.banks", "l1.bank_width", "l1.interleave", "l1.ports"))),
        BankKind(*map(figures.count, ("l2.slices", "l2.slice_width", "l2.interleave", "l2.ports"))),
    )


class BankUse(NamedTuple):
    """What a block uses of one memory, by row: its banks as bits, and cycles on each of them."""

    engine: int  # whose L1; 0 for L2
    banks: Column
    cycles: Column


def bank_use(placed: PlacedBlock, level: str, kind: BankKind) -> BankUse | None:
    """The banks of L1 or L2 that a block uses; None where it uses none, or nothing meets there."""
    operands = [o for o in (*placed.block.inputs, *placed.block.outputs) if _is_in(o, level)]
    if not kind.banks or not operands:
        return None
    rows = placed.grid.rows
    banks, size = np.zeros(rows, np.int64), 0
    for operand in operands:
        if operand is not None:
            span = _bytes_of(operand)
            size += span
            banks |= _banks(placed.grid.column(operand.address), span, kind)
    used = np.bitwise_count(banks).astype(np.int64)
    each = -(-size // np.maximum(used, 1))
    memory = next(o.memory for o in operands if o is not None)
    engine = int(memory[3:-1]) if memory.startswith("L1[") else 0
    return BankUse(engine, banks, -(-each // kind.width))


def _is_in(operand: Operand | None, level: str) -> bool:
    return operand is not None and operand.memory.startswith(level) and operand.memory != STREAM


def _bytes_of(operand: Operand) -> int:
    return operand.compressed_bytes or layout_of(operand).span


def _banks(address: Column, size: int, kind: BankKind) -> Column:
    """The banks of some bytes, as bits: neighbours in turn, each with `interleave` of them."""
    if address.size <= _FEW:
        return _banks_of_each(address, size, kind)
    # What matters of an address is where it lies in a round of all banks: of a ring, a few places.
    places = address % min(kind.interleave * kind.banks, _LONGEST_ROUND)
    places, which = np.unique(places, return_inverse=True)
    return _banks_of_each(places, size, kind)[which.reshape(-1)]


def _banks_of_each(address: Column, size: int, kind: BankKind) -> Column:
    first = address // kind.interleave
    count = (address + max(size, 1) - 1) // kind.interleave - first + 1
    if kind.banks <= MOST_BANKS:  # a run of banks, whose rest begins again at the first
        first %= kind.banks
        count = np.minimum(count, kind.banks)
        until_end = np.minimum(count, kind.banks - first)
        found: Column = (((1 << until_end) - 1) << first) | ((1 << (count - until_end)) - 1)
        return found
    found = np.zeros(address.size, np.int64)
    for bank in _group_starts(kind.banks):
        is_used = (bank - first) % kind.banks < count
        found |= is_used.astype(np.int64) << (bank * MOST_BANKS // kind.banks)
    return found


def _group_starts(count: int) -> list[int]:
    """The first bank of each group of neighbours."""
    return [-(-group * count // MOST_BANKS) for group in range(MOST_BANKS)]


def bank_total(machine: Machine, kinds: tuple[BankKind, BankKind]) -> int:
    """How many banks and slices there are, as they are looked at."""
    l1, l2 = (min(kind.banks, MOST_BANKS) for kind in kinds)
    return machine.engines * l1 + l2


def burst_cycles(placed: PlacedBlock, figures: Figures) -> Column:
    """By row, the cycles that requests take beside the work: short, unaligned, in turn.

    OverflowError where they are more than MOST_CYCLES.
    """
    block, rows = placed.block, placed.grid.rows
    longer = np.zeros(rows, np.int64)
    use = next((u for u in block.units if u.unit in REQUESTING), None)
    if use is None or not any(figures.count(key) != default for key, default in _BURST_KEYS):
        return longer
    for operand in (*block.inputs, *block.outputs):
        if operand is not None and operand.memory != STREAM:
            cost = _RequestCost(operand, block.burst or figures.count("dma.burst"), figures)
            address = placed.grid.column(operand.address)
            # What matters of an address is how it lies to the alignment of requests.
            phases, which = np.unique(address % cost.align, return_inverse=True)
            found = [cost.cycles(int(phase), use.latency, use.work) for phase in phases]
            if max(found, default=0) > MOST_CYCLES:
                raise OverflowError("requests that take more cycles than can be counted")
            longer = np.maximum(longer, np.array(found, np.int64)[which.reshape(-1)] - use.work)
    return longer


# Of a run: sums of a few such times still fit in 64 bits.
MOST_CYCLES = 1 << 60

_BURST_KEYS = (
    ("dma.burst", 0),
    ("dma.burst_cycles", 0),
    ("dma.align", 1),
    ("dma.dims", 0),
    ("dma.outstanding", 0),
)


class _RequestCost:
    """What the requests for an operand cost, by how it lies to their alignment."""

    def __init__(self, operand: Operand, burst: int, figures: Figures) -> None:
        self.align = figures.count("dma.align")
        self._burst = burst
        self._each = figures.count("dma.burst_cycles")
        self._outstanding = figures.count("dma.outstanding")
        starts, self._length, dims = _runs(operand)
        self._starts = starts
        most = figures.count("dma.dims")
        self._descriptors = _product(dims[: max(0, len(dims) - most)]) if most else 1

    def cycles(self, phase: int, latency: int, work: int) -> int:
        """Cycles of work that begins so many bytes after a multiple of the alignment."""
        before = (phase + self._starts) % self.align
        padded = -(-(before + self._length) // self.align) * self.align
        requests = self._starts.size
        if self._burst:
            requests = int((-(-padded // self._burst)).sum())
        size = self._starts.size * self._length
        moved = int(padded.sum()) if self.align > 1 else size
        needed = -(-work * moved // max(size, 1)) + requests * self._each
        if self._outstanding:
            needed = max(needed, -(-requests // self._outstanding) * latency)
        return needed + (self._descriptors - 1) * latency


def _runs(operand: Operand) -> tuple[Column, int, tuple[int, ...]]:
    """Bytes without a gap: where each run begins, how long all are, and how runs are counted."""
    if operand.strides is None or operand.compressed_bytes is not None:
        return np.zeros(1, np.int64), _bytes_of(operand), ()
    layout = layout_of(operand)
    dims, length = list(operand.dims), 1
    strides = list(operand.strides)
    while dims and (strides[-1] == length or dims[-1] == 1):
        length *= dims.pop()
        strides.pop()
    outer = tuple(dims)
    first = layout.first_bytes().reshape(-1)[::length]
    return first, max(1, length * layout.element_bytes), outer


def _product(dims: tuple[int, ...]) -> int:
    return int(np.prod(dims, dtype=np.int64)) if dims else 1
