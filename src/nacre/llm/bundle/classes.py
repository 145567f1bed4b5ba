"""Contexts that get a plan of their own: a short text need not read the cache of a long one."""

from __future__ import annotations

from typing import cast

from nacre.llm.bundle.precisions import PlanPrecision
from nacre.llm.estimate.bounds import estimate_model
from nacre.llm.estimate.sizes import ModelSizes, Precision
from nacre.nem.model.devices import Device

_FIRST = 512  # rows of the least class; each further one has twice as many
_WORTH = 0.95  # of the cycles of the next larger class: less saving is not worth a plan


def context_classes(
    sizes: ModelSizes, device: Device, precision: PlanPrecision, context: int, ddr_bytes: int
) -> tuple[int, ...]:
    """Rows of the caches of shorter plans, ascending: where a token reads that much less."""
    known = cast(Precision, "f16" if precision == "f32" else precision)
    rows = [_FIRST << power for power in range(32) if _FIRST << power < context]
    found = estimate_model(
        sizes, device, known, context=context, prompts=(), ddr_bytes=ddr_bytes, rows=rows
    )
    cycles = {step.context: step.cycles for step in found.decode}
    kept = [context]
    for size in reversed(rows):
        if cycles[size] <= _WORTH * cycles[kept[-1]]:
            kept.append(size)
    return tuple(reversed(kept[1:]))
