"""What must pass between DDR and the chip, from a model's graph: bytes, layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Protocol

import numpy as np

from nacre.base.elements import bytes_needed
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS

VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze"})
MOVES = VIEWS | {"Slice", "Concat", "Broadcast", "Pad", "Resize", "Gather", "GatherAxis"}
_MOST_CLASSES = 1 << 16  # of places that windows have: a hostile one has billions
_WINDOWS = frozenset({"Conv", "QConv", "MaxPool", "AvgPool", "QPool"})


class Group(Protocol):
    """Operations that run together, tile by tile: a product and what is done to its result."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def operations(self) -> Sequence[CoreOperation]:
        """Everything that it computes, in order; an operation may stand in several groups."""


def ddr_traffic(module: Module, groups: Sequence[Group]) -> list[int]:
    """Bytes of DDR that each layer is charged with."""
    charged = [0] * len(groups)
    owners: dict[int, int] = {}
    for index, group in enumerate(groups):
        for op in group.operations:
            owners.setdefault(op.value_id, index)
    if not owners:
        return charged
    reading = _Readers(module)
    for op in module.operations:
        if op.opcode == "Input" or "constant" in OPS[op.opcode].traits:
            charged[reading.first_owner(op.value_id, owners)] += reading.demand(op.value_id)
    for value in dict.fromkeys(module.outputs):
        charged[_maker(module, value, owners)] += module.by_id[value].type.size_bytes
    return charged


def _maker(module: Module, value: int, owners: Mapping[int, int]) -> int:
    """The layer that makes a value, followed back through what only moves it."""
    todo, latest = [value], 0
    while todo:
        at = todo.pop()
        if at in owners:
            latest = max(latest, owners[at])
        else:
            todo += module.by_id[at].operands
    return latest


class _Readers:
    """Who reads a value, and how much of it."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._readers: dict[int, list[CoreOperation]] = defaultdict(list)
        for op in module.operations:
            for operand in dict.fromkeys(op.operands):
                self._readers[operand].append(op)
        self._outputs = set(module.outputs)
        self._known: dict[int, int] = {}

    def demand(self, value: int) -> int:
        """Bytes of a value that its readers look at together, at the least."""
        if value not in self._known:
            type_ = self._module.by_id[value].type
            full = type_.size_bytes
            is_literal = prod(type_.shape) == 1 and self._module.by_id[value].opcode != "Input"
            looked = full if value in self._outputs else self._bytes_read(value, full)
            self._known[value] = 0 if is_literal else min(full, looked)
        return self._known[value]

    def _bytes_read(self, value: int, full: int) -> int:
        # The most of one reader, not the sum: two may look at the same elements.
        return max((self._bytes_read_by(op, value, full) for op in self._readers[value]), default=0)

    def _bytes_read_by(self, op: CoreOperation, value: int, full: int) -> int:
        place = op.operands.index(value)
        if op.opcode in VIEWS or op.opcode == "Slice":
            return self.demand(op.value_id)
        if op.opcode in ("Gather", "GatherAxis") and place == 0:
            return 0
        if op.opcode in ("Quantize", "Dequantize") and place > 0 and not op.attributes.get("block"):
            return 0
        if op.opcode in _WINDOWS and place == 0:
            return _window_bytes(self._module, op)
        return full

    def first_owner(self, value: int, owners: Mapping[int, int]) -> int:
        """The first layer that a value reaches; layers' own operations end the way."""
        todo, seen, earliest = [value], {value}, len(owners)
        last = max(owners.values())
        while todo:
            for op in self._readers[todo.pop()]:
                if op.value_id in owners:
                    earliest = min(earliest, owners[op.value_id])
                elif op.value_id not in seen:
                    seen.add(op.value_id)
                    todo.append(op.value_id)
        return min(earliest, last)


def _window_bytes(module: Module, op: CoreOperation) -> int:
    """Bytes of the input of a convolution or pooling that lie under some window."""
    x = module.by_id[op.operands[0]].type
    given = OPS[op.opcode].with_defaults(op.attributes)
    is_last = given.get("layout", "NCHW") == "NHWC"
    first = 1 if is_last else 2
    axes = range(first, first + x.rank - 2)
    kernel = given.get("kernel")
    if kernel is None:
        weights = module.by_id[op.operands[1]].type.shape
        kernel = weights[:-2] if is_last else weights[2:]
    count = len(axes)
    strides = given.get("strides") or (1,) * count
    dilations = given.get("dilations") or (1,) * count
    pads = given.get("pads") or (0,) * (2 * count)
    seen = {
        axis: _covered_count(
            x.shape[axis], op.type.shape[axis], kernel[i], strides[i], dilations[i], pads[i]
        )
        for i, axis in enumerate(axes)
    }  # fmt: skip
    elements = prod(seen.get(axis, size) for axis, size in enumerate(x.shape))
    return bytes_needed(elements, x.element)


def _covered_count(
    size: int, windows: int, kernel: int, stride: int, dilation: int, pad: int
) -> int:
    """How many places of an axis lie under a window; of very many classes of them, fewer."""
    common = gcd(stride, dilation)
    if dilation // common > windows:  # places of windows and windows of places: the same sums
        windows, kernel, stride, dilation = kernel, windows, dilation, stride
    # Places that are `period` apart see what windows see that are `shift` apart.
    period, shift = stride // common, dilation // common
    seen = np.zeros(size, np.bool_)
    for place in range(min(kernel, period, _MOST_CLASSES)):
        count = (kernel - 1 - place) // period * shift + windows
        start = place * dilation - pad
        first, end = max(0, -(start // stride)), min(count, (size - 1 - start) // stride + 1)
        if first < end:
            seen[start + first * stride : start + (end - 1) * stride + 1 : stride] = True
    return int(np.count_nonzero(seen))


def stored_values(module: Module, groups: Sequence[Group]) -> list[list[int]]:
    """The values of each group that another one reads, and that do not leave the model."""
    homes: dict[int, set[int]] = defaultdict(set)
    for index, group in enumerate(groups):
        for op in group.operations:
            homes[op.value_id].add(index)
    own = frozenset(homes)
    # A step inside of one that a group has is that group's.
    for op in reversed(module.operations):
        for value in op.operands:
            inner = module.by_id[value]
            if value not in own and inner.opcode not in MOVES:
                homes[value] |= homes.get(op.value_id, set())
    gone = values_that_leave(module)
    stored: list[list[int]] = [[] for _ in groups]
    for op in module.operations:
        # Who makes a value for itself needs none of another group's.
        for value in dict.fromkeys(op.operands):
            others = [h for h in homes.get(op.value_id, {-1}) if h not in homes[value]]
            if value in gone or not others or not homes[value]:
                continue
            made_by = stored[min(homes[value])]
            if value not in made_by:
                made_by.append(value)
    return stored


def values_that_leave(module: Module) -> frozenset[int]:
    """Values that leave the model, as they are or moved."""
    leaving: set[int] = set()
    todo: list[int] = list(module.outputs)
    while todo:
        value = todo.pop()
        if value in leaving:
            continue
        leaving.add(value)
        op = module.by_id[value]
        if op.opcode in MOVES:
            todo += op.operands
    return frozenset(leaving)
