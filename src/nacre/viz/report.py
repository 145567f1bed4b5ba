"""The report page: one file that shows where the time of a run goes, without any network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nacre.base.files import write_whole
from nacre.nem.run.timing.result import TimedResult
from nacre.viz.pages import PageKind, render_page
from nacre.viz.report_data import program_name, report_data

REPORT = PageKind(
    "report.html",
    (
        "data.js",
        "elements.js",
        "tracks.js",
        "timeline.js",
        "details.js",
        "source.js",
        "tables.js",
        "charts.js",
        "layers.js",
        "noise.js",
        "theme.js",
        "choosing.js",
        "report.js",
    ),
    ("report.css",),
)


def render_report(
    result: TimedResult,
    *,
    title: str,
    layers: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
) -> str:
    """The page as text, with views of a model's layers and of their noise where there are some."""
    data = report_data(result) | {"layers": layers, "noise": noise}
    return render_page(REPORT, data, title=title, sentence=result.sentence())


def write_report(
    result: TimedResult,
    path: Path | str,
    *,
    title: str | None = None,
    layers: Mapping[str, Any] | None = None,
) -> None:
    """Write the page to a file, whole or not at all; its title is the program's name."""
    name = title or program_name(result.timeline.steps.plan.program)
    write_whole(Path(path), [render_report(result, title=name, layers=layers)])
