"""Contexts that get a plan of their own: a short text need not read the cache of a long one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from nacre.compile.options import GROUP_SIZE
from nacre.llm.bundle.precisions import PlanPrecision
from nacre.llm.estimate.bounds import estimate_model
from nacre.llm.estimate.sizes import ModelSizes, Precision, packed_bytes
from nacre.nem.model.devices import Device

_F16_BYTES = 2
_FIRST = 512  # rows of the least class; each further one has twice as many
_WORTH = 0.95  # of the cycles of the next larger class: less saving is not worth a plan


def context_classes(
    sizes: ModelSizes, device: Device, precision: PlanPrecision, context: int, ddr_bytes: int
) -> tuple[int, ...]:
    """Rows of the caches of shorter plans, ascending: where a token reads that much less."""
    known, rows = _estimated_precision(precision), _candidates(context)
    found = estimate_model(
        sizes, device, known, context=context, prompts=(), ddr_bytes=ddr_bytes, rows=rows
    )
    return _select_contexts({step.context: step.cycles for step in found.decode}, rows, context)


def classes_of_counts(
    weights: int, cache_row: int, precision: PlanPrecision, context: int
) -> tuple[int, ...]:
    """The same where no more is known than how many weights and elements of a row there are.

    Of bytes: one row of anything is limited by how fast it comes.
    """
    known, rows = _estimated_precision(precision), _candidates(context)
    fixed = packed_bytes(weights, known, GROUP_SIZE.get(known, 1))
    moved = {size: fixed + _F16_BYTES * cache_row * size for size in (*rows, context)}
    return _select_contexts(moved, rows, context)


def _estimated_precision(precision: PlanPrecision) -> Precision:
    return cast(Precision, "f16" if precision == "f32" else precision)


def _candidates(context: int) -> list[int]:
    return [_FIRST << power for power in range(32) if _FIRST << power < context]


def _select_contexts(
    cycles: Mapping[int, int], rows: Sequence[int], context: int
) -> tuple[int, ...]:
    """Those contexts that save enough cycles, ascending."""
    kept = [context]
    for size in reversed(rows):
        if cycles[size] <= _WORTH * cycles[kept[-1]]:
            kept.append(size)
    return tuple(reversed(kept[1:]))
