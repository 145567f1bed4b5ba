"""`nacre tcb time`: how long an image takes on its hardware, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.base.rendering import summary, to_json
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.inputs import show
from nacre.cli.machine import show_findings
from nacre.cli.nac.files import table
from nacre.cli.options import form_option
from nacre.cli.tcb.group import open_image, tcb
from nacre.cli.terminal.progress import show_stages

if TYPE_CHECKING:
    from nacre.tcb.machine.timing import ImageTiming

# What tasks wait for, and what figures of the hardware add to their work.
_MEANINGS = {
    "tags": "what has to happen before",
    "queue": "a queue that was full",
    "token": "a token of the engine",
    "arbitration": "others that went first",
    "unit": "a unit that was busy",
    "bank": "banks and slices that others used",
    "burst": "requests, beside their bytes",
    "chain": "what streams into them",
}


@tcb.command()
@click.argument("file", metavar="FILE.tcb")
@form_option
def time(file: str, form: str) -> int:
    """Time an image on the hardware that it is bound to, and say where the time goes.

    Exit status: 0 timed, 1 errors in the image, or a run that would never end, 2 wrong usage.
    """
    try:
        with show_stages():
            image = open_image(file)
            timing, ideal = image.time(), image.time(ideal=True)
    except InputError as error:
        show(error.diagnostics, form)
        if form == "text":
            click.echo(f"did not time {safe(file)}: {summary(error.diagnostics)}")
        return ERRORS_FOUND
    if form == "json":
        click.echo(json.dumps(_as_json(timing, ideal), indent=2))
    else:
        show_findings(timing.diagnostics)
        click.echo(_text(timing, ideal))
    return ERRORS_FOUND if timing.is_stuck else OK


def _text(timing: ImageTiming, ideal: ImageTiming) -> str:
    machine = timing.instances.image.machine
    how = "before it cannot go on" if timing.is_stuck else f"on {machine.uarch}"
    head = f"cycles: {timing.cycles:,} {how}; {ideal.cycles:,} on ideal hardware"
    units = [
        (row["unit"], f"{row['blocks']:,}", f"{row['busy']:,}", f"{row['share']:.1%}")
        for row in _unit_rows(timing)
    ]
    stalls = [
        (cause, f"{cycles:,}", _MEANINGS[cause])
        for cause, cycles in timing.stall_totals.items()
        if cycles
    ]
    parts = [safe(head), table([("unit", "blocks", "busy", "share"), *units], frozenset({1, 2, 3}))]
    if stalls:
        parts.append(
            table([("lost to", "cycles", "of all tasks together"), *stalls], frozenset({1}))
        )
    return "\n\n".join(parts)


def _unit_rows(timing: ImageTiming) -> Iterator[dict[str, Any]]:
    """How long every unit was busy."""
    import numpy as np

    total = max(1, timing.cycles)
    lasted = timing.end - timing.start
    for pool in timing.units.pools:
        for number in range(pool.first, pool.first + pool.count):
            used = (timing.unit == number).any(axis=1) & (timing.start >= 0)
            busy, blocks = int(lasted[used].sum()), int(np.count_nonzero(used))
            if blocks:
                yield {"unit": pool.name(number), "blocks": blocks, "busy": busy,
                       "share": busy / total}  # fmt: skip


def _as_json(timing: ImageTiming, ideal: ImageTiming) -> dict[str, Any]:
    instances = timing.instances
    return {
        "status": "stuck" if timing.is_stuck else "completed",
        "program": instances.image.entry,
        "device": instances.image.machine.device,
        "uarch": instances.image.machine.uarch,
        "cycles": timing.cycles,
        "ideal_cycles": ideal.cycles,
        "stalls": timing.stall_totals,
        "units": list(_unit_rows(timing)),
        "tasks": [
            {
                "name": instances.name(number),
                "start": int(timing.start[number]),
                "end": int(timing.end[number]),
                "units": timing.unit_names(number),
                "stall": {cause: int(column[number]) for cause, column in timing.stalls.items()},
            }
            for number in timing.tasks.tolist()
        ],
        "diagnostics": [to_json(finding) for finding in timing.diagnostics],
    }
