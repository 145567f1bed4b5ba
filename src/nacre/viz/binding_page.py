"""The page about a binding: a program and its image side by side, and why they differ."""

from __future__ import annotations

from pathlib import Path

from nacre.base.files import write_whole
from nacre.bind.measure.cycle_causes import CycleSteps
from nacre.bind.measure.measured import MeasuredBinding
from nacre.tcbcheck.proof import Proof
from nacre.viz.binding_data import binding_data
from nacre.viz.pages import PageKind, render_page

BINDING = PageKind(
    "binding.html",
    (
        "data.js",
        "elements.js",
        "tracks.js",
        "bound_model.js",
        "timeline.js",
        "source.js",
        "tables.js",
        "charts.js",
        "bound_details.js",
        "bound_tables.js",
        "memory_map.js",
        "theme.js",
        "choosing.js",
        "binding.js",
    ),
    ("report.css", "binding.css"),
)


def render_binding(
    measured: MeasuredBinding, proof: Proof | None = None, *, title: str | None = None
) -> str:
    """The page as text; its title is the program's name."""
    data = binding_data(measured, proof)
    sentence = _sentence(measured.steps, measured.bound.image.machine.uarch)
    return render_page(BINDING, data, title=title or measured.bound.image.entry, sentence=sentence)


def write_binding(
    measured: MeasuredBinding, path: Path | str, proof: Proof | None = None, *,
    title: str | None = None,
) -> None:  # fmt: skip
    """Write the page to a file, whole or not at all."""
    write_whole(Path(path), [render_binding(measured, proof, title=title)])


def _sentence(steps: CycleSteps, uarch: str) -> str:
    """How the image compares with its program, and what weighs most."""
    cycles = f"the image takes {steps.image} cycles on {uarch}"
    difference = steps.image - steps.program
    if not difference:
        return f"{cycles}, as many as the program on ideal hardware"
    share = 100 * abs(difference) / max(1, steps.program)
    more, sign = ("more", 1) if difference > 0 else ("less", -1)
    weightiest = max(steps.causes, key=lambda cause: sign * cause.added)
    mostly = f"mostly for {weightiest.title} ({abs(weightiest.added)})"
    return (
        f"{cycles}, {abs(difference)} or {share:.1f}% {more} than the program on ideal hardware, "
        f"{mostly}"
    )
