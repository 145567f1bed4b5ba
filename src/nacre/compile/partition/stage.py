"""Third stage: operations gathered into layers, each of which runs tile by tile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import nodes_of
from nacre.compile.options import Options
from nacre.compile.partition.assembly import memory_of
from nacre.compile.partition.drafts import DeviceLimits, Draft
from nacre.compile.partition.grouping import Group, group_items
from nacre.compile.partition.items import Item, items_of
from nacre.compile.partition.layers import Access, Layer, Move
from nacre.compile.partition.outline import OUTLINES, add_map_steps, load_norm_vectors, results_of
from nacre.compile.partition.tensors import Memory, Tensor, ViewCopy
from nacre.compile.partition.variants import carriers, repeatable_types
from nacre.compile.partition.views import View
from nacre.core.module import CoreOperation, Module

RECURRING = 3  # layers that use the same weights: the first of them pays for the way to L2


@dataclass(frozen=True, eq=False)
class Partition:
    """Layers in the order in which they run, the tensors between them, the outputs."""

    legal: Legal
    layers: tuple[Layer, ...]
    tensors: Mapping[int, Tensor]
    views: Mapping[int, View]  # where each value lies
    outputs: tuple[View, ...]
    spilled: frozenset[int] = frozenset()  # tensors between layers that an L2 had no room for

    @cached_property
    def outside(self) -> frozenset[int]:
        """Tensors that lie in DDR whatever happens: inputs, outputs, constants."""
        inputs = (op.value_id for op in self.legal.module.inputs)
        constants = (t for t, found in self.tensors.items() if found.constant is not None)
        return frozenset({*inputs, *constants, *(view.tensor for view in self.outputs)})

    @cached_property
    def recurring_weights(self) -> frozenset[tuple[int, ...]]:
        """Constants of weights that enough layers use to be worth a place in L2 between them."""
        uses = Counter(layer.packed.key for layer in self.layers if layer.packed is not None)
        return frozenset(key for key, count in uses.items() if count >= RECURRING)

    def is_outside(self, tensor: int) -> bool:
        """Whether a tensor lies in DDR whatever happens."""
        return tensor in self.outside

    def is_in_ddr(self, tensor: int) -> bool:
        """Whether a tensor travels from and to DDR, as far as one knows."""
        return tensor in self.outside or tensor in self.spilled

    def __str__(self) -> str:
        return "".join(f"{layer}\n" for layer in self.layers)


def partition(legal: Legal, options: Options) -> Partition:
    """Layers: one for each product or pooling, with the functions of elements around its result."""
    module = legal.module
    items = items_of(module, legal.escaped)
    memory = memory_of(module, items)
    groups = group_items(module, items, memory, options.l1_bytes)
    builder = _LayerBuilder(legal, memory, options, _values_between_groups(module, items, groups))
    for group in groups:
        builder.take(group)
    for copy in memory.output_copies:
        builder.copy("output", (), [copy])
    tensors = {**memory.tensors, **builder.tensors}
    return Partition(legal, tuple(builder.layers), tensors, memory.views, memory.outputs)


def _values_between_groups(
    module: Module, items: list[Item], groups: list[Group]
) -> frozenset[int]:
    """Values that are read outside of the group that makes them."""
    home = {item.result: group.number for group in groups for item in group.items}
    own = {item.result: group.number for group in groups for item in group.items}
    wanted = set(module.outputs)
    for item in items:
        at = own.get(item.result)
        wanted.update(u.value for u in item.inputs if at is None or home.get(u.value) != at)
    return frozenset(wanted)


class _LayerBuilder:
    """Makes layers of groups."""

    def __init__(
        self, legal: Legal, memory: Memory, options: Options, wanted: frozenset[int]
    ) -> None:
        self._legal, self._module, self._memory = legal, legal.module, memory
        self._device = DeviceLimits(
            options.l1_bytes, repeatable_types(options.device), carriers(options.device)
        )
        self._wanted = wanted
        self.layers: list[Layer] = []
        self.tensors: dict[int, Tensor] = {}

    def take(self, group: Group) -> None:
        """A group as a layer, after the copies that it needs."""
        operations = tuple(op for item in group.items for op in item.operations)
        if group.main == "copy":
            item = group.items[0]
            self.copy(_word(item.op), operations, list(self._memory.copies[item.result]))
            return
        draft = Draft(self._module, self._memory, group, self._device, self._wanted)
        draft.tensors = self.tensors
        load_norm_vectors(draft)
        OUTLINES[group.main](draft)
        add_map_steps(draft)
        results = results_of(draft)
        if draft.copies:
            self.copy("dense", (), draft.copies)
        self.layers.append(
            Layer(
                self._name(_word(group.items[0].op)),
                group.main,  # type: ignore[arg-type]
                operations,
                draft.images,
                draft.rows,
                draft.columns,
                draft.cuts_columns,
                tuple(draft.operands),
                draft.packed,
                tuple(draft.locals),
                tuple(draft.steps),
                results,
                draft.window,
                macs=draft.macs,
                makes=_step_values(draft),
                nodes=self._nodes(operations),
            )
        )

    def copy(
        self, word: str, operations: tuple[CoreOperation, ...], copies: list[ViewCopy]
    ) -> None:
        """A layer that only moves elements."""
        plain = (part for copy in copies for part in copy.plain())
        moves = tuple(Move(self._access(s.source), self._access(s.target)) for s in plain)
        nodes = self._nodes(operations)
        self.layers.append(Layer(self._name(word), "copy", operations, moves=moves, nodes=nodes))

    def _access(self, view: View) -> Access:
        tensor = self._memory.tensors.get(view.tensor) or self.tensors[view.tensor]
        return Access(view.tensor, view.shape, view.strides, tensor.elem, view.offset)

    def _nodes(self, operations: tuple[CoreOperation, ...]) -> tuple[str, ...]:
        return nodes_of(self._legal, [op.value_id for op in operations])

    def _name(self, word: str) -> str:
        return f"{word}_{len(self.layers)}"


def _step_values(draft: Draft) -> tuple[int, ...]:
    """The value that each step makes; what no value is belongs to the step that takes it."""
    values = {local: value for value, local in draft.of_value.items() if value >= 0}
    values_made: list[int] = []
    value = draft.group.items[-1].result
    for step in reversed(draft.steps):
        value = values.get(step.output.local, value)
        values_made.append(value)
    return tuple(values_made[::-1])


def _word(op: CoreOperation) -> str:
    return re.sub(r"[^a-z0-9]", "", str(op.attributes.get("op", op.opcode)).lower())
