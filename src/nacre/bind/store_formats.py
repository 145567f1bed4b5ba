"""Conversions on the store path: a `cast` or `quantize` and the store of its result as one block.

Whether a pair may be one is asked twice: here, whether the store path computes the same bits; in
the search for chains, whether anything else could see the value between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.nem.plan.fusion.stages import PlacedStage, place_stage
from nacre.nem.plan.placement import requested_unit
from nacre.nem.plan.plan import Plan
from nacre.tcb.figures import Figures
from nacre.tcb.image import Block, Item, Repeat, Stream

CONVERSIONS = ("cast", "quantize")
_CSTL = "CSTL"


class Conversion(Struct, frozen=True, eq=False):
    """A task that the store behind it does on its way, and the elements that this writes."""

    task: Task
    store: Task
    format: str


class NoConversion(Struct, frozen=True, eq=False):
    """A conversion that the store path does not do, and why."""

    task: Task
    store: Task
    detail: str


class Conversions(Struct, frozen=True, eq=False):
    """The pairs that the store path could do, by the position of the first, and the others."""

    found: Mapping[int, Conversion]
    refused: Mapping[tuple[int, int], NoConversion]  # by the positions of both

    def place(self, task: Task, plan: Plan, device: Device) -> PlacedStage:
        """What a task can be in a chain."""
        placed = place_stage(task, plan, device)
        return PlacedStage("conversion", placed.binding) if task.position in self.found else placed


def find_conversions(plan: Plan, figures: Figures) -> Conversions:
    """Every conversion whose token a store names that reads what it wrote."""
    formats = frozenset(figures.words("store.formats"))
    found: dict[int, Conversion] = {}
    refused: dict[tuple[int, int], NoConversion] = {}
    for task, store in _pairs(plan):
        detail = _refusal(task, store, formats)
        if detail is None:
            found.setdefault(task.position, Conversion(task, store, _written_elem(task)))
        else:
            refused[task.position, store.position] = NoConversion(task, store, detail)
    return Conversions(found, refused)


def _pairs(plan: Plan) -> Iterator[tuple[Task, Task]]:
    for store in plan.program.tasks:
        source = _region(store, "read") if store.op == "store" else None
        for dep in store.deps if source is not None else ():
            task = plan.program.task_at[dep]
            if task.op in CONVERSIONS and task.loops == store.loops:
                target = _region(task, "write")
                if source is not None and target.buffer is source.buffer:
                    yield task, store


def _region(task: Task, access: str) -> Region:
    region = next(o.region for o in task.operands if o.access == access)
    if region is None:
        raise ValueError("a region of a program with errors")
    return region


def _written_elem(task: Task) -> str:
    return _region(task, "write").elem or ""


def _refusal(task: Task, store: Task, formats: frozenset[str]) -> str | None:
    """Why the store path does not give the bits of both tasks; None where it does."""
    source, target = _region(task, "read"), _region(task, "write")
    elem = _written_elem(task)
    if elem not in formats:
        return f"`store.formats` has no {elem}"
    if source.elem is None or ELEMENT_TYPES[source.elem].is_integer:
        return "it converts floats, and nothing else"
    asked = requested_unit(task)
    if asked is not None and asked.unit != _CSTL:
        return f"`@resource` binds the conversion to {asked.unit}"
    if not _rounds_as_stores_do(task, is_integer=ELEMENT_TYPES[elem].is_integer):
        return "it rounds to nearest even and saturates integers"
    if target.quant is not None and target.quant.form == "per_group" and task.op == "quantize":
        return "it has no scales by groups"
    if quantises(store) or ELEMENT_TYPES[elem].bits < 8:
        return "elements of four bits, or of a store that converts them again"
    if copies_elements(store) and _region(store, "read").shape != target.shape:
        return "the store takes the elements in another shape"
    return None


def _rounds_as_stores_do(task: Task, *, is_integer: bool) -> bool:
    if task.attributes.get("rounding", "nearest_even") != "nearest_even":
        return False
    saturate = task.attributes.get("saturate")
    return saturate is None or saturate is is_integer


def merge_conversions(
    streams: tuple[Stream, ...], merged: Sequence[Conversion]
) -> tuple[Stream, ...]:
    """Streams in which each of these pairs, which stand one behind the other, is one block."""
    if not merged:
        return streams
    by_position = {one.task.position: one for one in merged}
    return tuple(Stream(s.engine, _merge_items(s.items, by_position)) for s in streams)


def _merge_items(
    items: tuple[Item, ...], by_position: Mapping[int, Conversion]
) -> tuple[Item, ...]:
    made: list[Item] = []
    first: Block | None = None  # a conversion whose store is next
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=_merge_items(item.items, by_position)))
        elif item.kind == "task" and item.position in by_position:
            first = item
        elif first is not None:
            block = _merged(first, item, by_position[first.position])
            made.append(_renamed(block, by_position))
            first = None
        else:
            made.append(_renamed(item, by_position))
    return tuple(made)


def _merged(first: Block, store: Block, conversion: Conversion) -> Block:
    converted, stored = first.outputs[0], store.outputs[0]
    quant = converted.quant if conversion.task.op == "quantize" else None
    strides = stored.strides if copies_elements(conversion.store) else None
    output = replace(
        stored, elem=converted.elem, dims=converted.dims, strides=strides, quant=quant
    )  # fmt: skip
    asked = next((use.instance for use in first.units if use.unit == _CSTL), None)
    units = tuple(
        use if asked is None or use.instance is not None else replace(use, instance=asked)
        for use in store.units
    )
    return replace(
        store,
        inputs=first.inputs,
        units=units,
        outputs=(output,),
        format=conversion.format,
        waits=(*first.waits, *store.waits),
        has_token=first.has_token or store.has_token,
        names=(*first.names, *store.names),
    )


def _renamed(block: Block, by_position: Mapping[int, Conversion]) -> Block:
    """A block that names the tokens of stores where it named those of their conversions."""
    if not any(name in by_position for name in block.names):
        return block
    named = (by_position[n].store.position if n in by_position else n for n in block.names)
    names = tuple(n for n in dict.fromkeys(named) if n != block.position)
    return replace(block, names=names)
