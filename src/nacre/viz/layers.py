"""The layer view of the report page: an estimate's layers, and which statements are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nacre.base.files import write_whole
from nacre.compile.estimate.layer_times import LayerTime, operation_times
from nacre.compile.estimate.result import Estimate, PlanTimes
from nacre.compile.estimate.text import DERATING_FACTORS
from nacre.viz.report import render_report
from nacre.viz.report_data import statement_tasks


def write_estimate(estimate: Estimate, path: Path, *, title: str) -> None:
    """Write the page of an estimate that has a plan, whole or not at all."""
    assert estimate.plan is not None
    page = render_report(estimate.plan.ideal, title=title, layers=layer_view(estimate))
    write_whole(path, [page])


def layer_view(estimate: Estimate, *, is_derated: bool = True) -> dict[str, Any]:
    """The layers as the page takes them, with the model's bounds and what the times rest on.

    Without `is_derated` the plan is not timed again for what the figures leave out.
    """
    plan, bounds = estimate.plan, estimate.bounds
    assert plan is not None
    assert bounds is not None
    tasks = statement_tasks(plan.ideal.timeline)
    number = {task.token: index for index, task in enumerate(tasks) if task.token is not None}
    return {
        "precision": estimate.precision,
        "clock_mhz": estimate.clock_mhz,
        "milliseconds": plan.ideal.milliseconds,
        "band": plan.band.as_json(plan.ideal.cycles) if is_derated else None,
        "derated_cycles": plan.derated.cycles if is_derated and plan.derating else None,
        "derated_milliseconds": plan.derated.milliseconds if is_derated and plan.derating else None,
        "derated_added": _added_cycles(plan) if is_derated else [],
        "layer_bound": bounds.layer,
        "whole_bound": bounds.whole,
        "floor": bounds.floor,
        "mac_utilisation": estimate.mac_utilisation,
        "ddr_bytes": plan.ddr_bytes,
        "assumptions": list(estimate.assumptions),
        "escaped": [[op, why] for op, why in (estimate.escaped or {}).items()],
        "operations": [row.as_json(plan.ideal.cycles) for row in operation_times(plan.layers)],
        "rows": [
            {**_row(layer, number), **(plan.layer_band(layer) if is_derated else {})}
            for layer in plan.layers
        ],
    }


def _added_cycles(plan: PlanTimes) -> list[list[Any]]:
    """What each derating factor adds, by what it is called."""
    return [[DERATING_FACTORS.get(key, key), n] for key, n in plan.derating_costs.items()]


def _row(layer: LayerTime, number: Mapping[str, int]) -> dict[str, Any]:
    bound = layer.bound
    return {
        "name": layer.name,
        "operations": list(layer.main_operations),
        "nodes": list(layer.nodes),
        "macs": layer.macs,
        "cycles": layer.cycles,
        "start": layer.start,
        "end": layer.end,
        "bound": bound.cycles if bound is not None else 0,
        "bound_by": (bound.limit or "") if bound is not None else "",
        "bottleneck": layer.bottleneck,
        "busy": dict(layer.busy),
        "bytes": layer.ddr_bytes,
        "members": list(layer.members),
        "statements": [number[token] for token in layer.tasks if token in number],
    }
