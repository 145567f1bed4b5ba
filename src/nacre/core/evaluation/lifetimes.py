"""From when to when values live, how much memory that takes, and where they lie."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.memory import Allocation, Layout, lay_out
from nacre.core.evaluation.run import operation_span
from nacre.core.evaluation.workspace import Step
from nacre.core.module import Module
from nacre.core.rules.evaluation import EVL05
from nacre.kernels.interface.call import TensorType as KernelType

Views = Mapping[int, tuple[int, int]]  # values within others: which one, from which element on


def layout_of_values(
    steps: Sequence[Step], views: Views, kept: Collection[int], types: Mapping[int, KernelType]
) -> Layout:
    """Places for what steps compute; what outlives a run has memory of its own in each of them."""
    roots = {value: root for value, (root, _) in views.items()}
    last: dict[int, int] = {}
    for at, step in enumerate(steps):
        last |= dict.fromkeys(step.results, at)
        for operand in step.operands:
            last[roots.get(operand, operand)] = at
    dead: list[list[int]] = [[] for _ in steps]
    for value, at in last.items():
        dead[at].append(value)
    births = []
    sizes: dict[int, int] = {}
    for step, leaving in zip(steps, dead, strict=True):
        new = [
            Allocation(value, None if value in kept else _bytes(type_), ())
            for value, type_ in zip(step.results, step.types, strict=True)
        ]
        sizes |= {birth.value: birth.bytes for birth in new if birth.bytes is not None}
        *others, final = new
        births += others
        births.append(
            Allocation(
                final.value, final.bytes, tuple(leaving), _overwritable_values(step, roots, sizes)
            )
        )
    layout = lay_out(births)
    inner = {
        value: layout.offsets[root] + offset * types[value].dtype.itemsize
        for value, (root, offset) in views.items()
        if root in layout.offsets
    }
    return Layout({**layout.offsets, **inner}, layout.size)


def _overwritable_values(
    step: Step, roots: Mapping[int, int], sizes: Mapping[int, int]
) -> tuple[int, ...]:
    """The values in whose place a step may write: of its size, and seen in one way only."""
    if not step.in_place_operands:
        return ()
    size = _bytes(step.types[-1])
    seen = [roots.get(operand, operand) for operand in set(step.operands)]
    candidates = [roots.get(value, value) for value in step.in_place_operands]
    return tuple([root for root in candidates if sizes.get(root) == size and seen.count(root) == 1])


def _machine_bytes() -> int:
    """The memory of the machine; where the system does not say, whatever can be addressed."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def _last_uses(module: Module) -> list[tuple[int, ...]]:
    """For every operation, the values that nothing needs after it."""
    kept = {*module.outputs, *(state.output for state in module.states)}
    last: dict[int, int] = {}
    for index, op in enumerate(module.operations):
        last[op.value_id] = index
        for operand in op.operands:
            last[operand] = index
    dead: list[list[int]] = [[] for _ in module.operations]
    inputs = {op.value_id for op in module.inputs}
    for value, index in last.items():
        # An Input is no step: one that nothing uses is given in any case.
        if value not in kept and not (
            value in inputs and module.operations[index].value_id == value
        ):
            dead[index].append(value)
    return [tuple(values) for values in dead]


def require_affordable_peak(
    module: Module, types: Mapping[int, KernelType], stored: Collection[int] = ()
) -> int:
    """The most bytes at one time; InputError where the machine has fewer.

    What is stored in a narrower type takes none: those are other values, seen in another way.
    """
    peak, most = _peak(module, types, stored), _machine_bytes()
    if peak > most:
        message = f"the values need {peak:,} bytes at one time, the machine has {most:,}"
        raise InputError([EVL05.at(operation_span(module, 0), message)])
    return peak


def _peak(module: Module, types: Mapping[int, KernelType], stored: Collection[int]) -> int:
    by_type = {id(type_): _bytes(type_) for type_ in types.values()}
    sizes = {value: by_type[id(type_)] for value, type_ in types.items()}
    return peak_bytes(module, sizes | dict.fromkeys(stored, 0))


def peak_bytes(module: Module, sizes: Mapping[int, int]) -> int:
    """The most bytes at one time, of values of these sizes that live as long as they are needed."""
    dead = _last_uses(module)
    live = peak = sum(sizes[op.value_id] for op in module.inputs)
    for index, op in enumerate(module.operations):
        if op.opcode == "Input":
            continue
        live += sizes[op.value_id]
        peak = max(peak, live)
        live -= sum([sizes[value] for value in dead[index]])
    return peak


def _bytes(type_: KernelType) -> int:
    count = type_.dtype.itemsize
    for dim in type_.shape:  # in Python's integers: hostile shapes leave those of NumPy
        count *= dim
    return count
