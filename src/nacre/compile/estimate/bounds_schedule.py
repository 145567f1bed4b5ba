"""The schedule bound: what no plan can beat, for some work must wait and some must follow.

Each kind of unit is one machine as fast as all of its instances. Every operation has a *head*, the
earliest time at which its first task can begin: what it reads must be loaded, and as much of what
it reads computed as its first result needs. It has a *tail*, the least time from its last task to
the end of the run. No order of the work, and no interruption, brings the machine to the end of all
tails any earlier than working at any time on what has been released and has the longest tail.

Everything is counted from below. A function of elements needs nothing of its operand to begin, for
it may follow it element by element; a product needs a row of it, whole. VPUs help everywhere, and
only products and reductions have latencies.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import ceil, prod

from nacre.compile.estimate.bounds_rates import CONVERSIONS, Rates, call_of, element_passes
from nacre.compile.estimate.bounds_scales import scaling_values
from nacre.compile.estimate.bounds_traffic import MOVES, VIEWS
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Call
from nacre.kernels.registry import PRIMITIVES

_FREE = MOVES | CONVERSIONS | {"Transpose"}  # a plan may do them on the way
_WHOLE = VIEWS | CONVERSIONS | {"Transpose"}  # all elements, and no others
_PRODUCTS = frozenset({"Linear", "QLinear", "MatMul", "Dot"})
_ALONG_AN_AXIS = frozenset({"Softmax", "LogSoftmax", "LayerNorm", "RmsNorm"})
_REDUCTIONS = frozenset({"Reduce", "Mean", "Sum"})
_POOLS = frozenset({"AvgPool", "MaxPool", "QPool"})
_SLACK = 1e-6  # of sums of floats


@dataclass(frozen=True)
class Job:
    """Work on a machine: not before its head, and its tail comes after it."""

    head: float
    cycles: float
    tail: float


def schedule_bound(module: Module, rates: Rates, escaped: Collection[int], ddr: float) -> int:
    """The least cycles of any plan; `ddr` are the cycles that DDR is busy in any case."""
    chains = _Chains(module, rates, escaped)
    machines = [chains.jobs(unit) for unit in ("NMU", "CSTL")]
    longest = (job.head + job.cycles + job.tail for jobs in machines for job in jobs)
    bounds = (*map(one_machine_bound, machines), max(longest, default=0.0), ddr)
    return ceil(max(bounds) * (1 - _SLACK))


def one_machine_bound(jobs: Iterable[Job]) -> float:
    """When the last tail of interruptible work on one machine ends, at the earliest."""
    waiting = sorted((job for job in jobs if job.cycles > 0), key=lambda job: -job.head)
    ready: list[tuple[float, int, float]] = []  # longest tail first; cycles that are left
    now = latest = 0.0
    while waiting or ready:
        if not ready:
            now = max(now, waiting[-1].head)
        while waiting and waiting[-1].head <= now:
            job = waiting.pop()
            heapq.heappush(ready, (-job.tail, len(waiting), job.cycles))
        tail, number, left = heapq.heappop(ready)
        until = min(now + left, waiting[-1].head) if waiting else now + left
        left -= until - now
        now = until
        if left > _SLACK:
            heapq.heappush(ready, (tail, number, left))
        else:
            latest = max(latest, now - tail)
    return latest


class _Chains:
    """Heads and tails of the operations of a module."""

    def __init__(self, module: Module, rates: Rates, escaped: Collection[int]) -> None:
        self._module, self._rates = module, rates
        counted = [op for op in module.operations if op.value_id not in escaped]
        counted = [op for op in counted if not _is_source(op)]
        calls = {op.value_id: call_of(module, op) for op in counted}
        inside = scaling_values(module, counted, calls)  # parts of other operations
        self._work = {  # unit and cycles
            op.value_id: self._work_of(op, *calls[op.value_id])
            for op in counted
            if op.opcode not in _FREE and op.value_id not in inside
        }
        self._head: dict[int, float] = {}
        for op in module.operations:
            needed = (self._available(v, _first_share(module, op, k)) for k, v in _operands(op))
            self._head[op.value_id] = max(needed, default=0.0)
        self._tail = self._tails()

    def jobs(self, unit: str) -> list[Job]:
        """The work of all instances of a unit."""
        return [
            Job(self._head[value], cycles, self._tail[value])
            for value, (own, cycles) in self._work.items()
            if own == unit
        ]

    def _work_of(self, op: CoreOperation, primitive: str, call: Call) -> tuple[str, float]:
        macs = PRIMITIVES[primitive].work(call).macs
        if macs:
            return "NMU", float(macs / (self._rates.macs(call) + self._rates.help))
        elements = element_passes(op, primitive, call)
        return "CSTL", float(elements / (self._rates.elements + self._rates.help))

    def _latency(self, op: CoreOperation) -> float:
        unit, cycles = self._work.get(op.value_id, ("", 0.0))
        is_counted = op.opcode in _ALONG_AN_AXIS | _REDUCTIONS or unit == "NMU"
        return self._rates.latency(unit) if is_counted and cycles else 0.0

    def _available(self, value: int, share: float) -> float:
        """The earliest time at which so much of a value can be there."""
        op = self._module.by_id[value]
        if _is_source(op):
            size = op.type.size_bytes if op.opcode == "Input" else 0
            return self._rates.latency("sDMA") + share * float(size / self._rates.ddr)
        if op.opcode in _FREE:
            inner = share if op.opcode in _WHOLE or (share == 1 and op.opcode == "Concat") else 0.0
            return max((self._available(v, inner) for _, v in _operands(op)), default=0.0)
        _, cycles = self._work.get(value, ("", 0.0))
        return self._head[value] + self._latency(op) + share * cycles

    def _tails(self) -> dict[int, float]:
        """The least time from the last task of each operation to the end."""
        after: dict[int, float] = defaultdict(float)
        leaving = self._rates.latency("sDMA")
        for value in self._module.outputs:
            after[value] = leaving
        for op in reversed(self._module.operations):
            own = after[op.value_id]
            if op.opcode in _FREE and op.opcode not in _WHOLE | {"Concat"}:
                own = 0.0  # the last element may be among those that are left out
            for k, value in _operands(op):
                _, cycles = self._work.get(op.value_id, ("", 0.0))
                share = _last_share(self._module, op, k)
                after[value] = max(after[value], self._latency(op) + share * cycles + own)
        return after


def _is_source(op: CoreOperation) -> bool:
    return op.opcode == "Input" or "constant" in OPS[op.opcode].traits


def _operands(op: CoreOperation) -> Iterator[tuple[int, int]]:
    yield from enumerate(op.operands)


def _first_share(module: Module, op: CoreOperation, operand: int) -> float:
    """How much of an operand the first element of a result needs, at least."""
    shape = module.by_id[op.operands[operand]].type.shape
    size = prod(shape)
    if not size:
        return 0.0
    if op.opcode in _PRODUCTS and len(shape) > 1:
        return _vector_share(op, operand, shape)
    if op.opcode in _ALONG_AN_AXIS and operand == 0:
        return shape[-1] / size if _is_last_axis(op, len(shape)) else 0.0
    if op.opcode in _REDUCTIONS or (op.opcode in _POOLS and prod(op.type.shape[2:]) == 1):
        return 1 / prod(op.type.shape) if operand == 0 else 0.0
    return 0.0


def _last_share(module: Module, op: CoreOperation, operand: int) -> float:
    """How much of the work on a result is left when the last element of an operand is there."""
    return _first_share(module, op, operand)


def _vector_share(op: CoreOperation, operand: int, shape: tuple[int, ...]) -> float:
    """A row of the first factor; a column of the second, where that is no constant."""
    if operand == 0:
        return 1 / prod(shape[:-1])
    return 1 / prod((*shape[:-2], shape[-1])) if operand == 1 and op.opcode == "MatMul" else 0.0


def _is_last_axis(op: CoreOperation, rank: int) -> bool:
    axis = op.attributes.get("axis", -1)
    return isinstance(axis, int) and axis % rank == rank - 1
