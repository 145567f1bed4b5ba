"""Places in L1 for what is there at known times."""

from __future__ import annotations

from collections.abc import Iterable

from ortools.sat.python import cp_model

from tests.compile.optimal.answer import Addresses
from tests.compile.optimal.model_writer import GRAIN
from tests.compile.optimal.solution import Box

_SECONDS = 2.0


def addresses(boxes: Iterable[Box], l1_bytes: int) -> Addresses | None:
    """Where everything begins; None where it cannot be cut like that, or not in time."""
    model, most = cp_model.CpModel(), l1_bytes // GRAIN
    times, places = list[cp_model.IntervalVar](), list[cp_model.IntervalVar]()
    begins: dict[tuple[object, ...], cp_model.IntVar] = {}
    for box in boxes:
        size = box.size // GRAIN
        begins[box.key] = begin = model.new_int_var(0, max(0, most - size), "")
        if size and box.start < box.end:
            times.append(model.new_fixed_size_interval_var(box.start, box.end - box.start, ""))
            places.append(model.new_fixed_size_interval_var(begin, size, ""))
    model.add_no_overlap_2d(times, places)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _SECONDS
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return {key: solver.value(begin) * GRAIN for key, begin in begins.items()}
