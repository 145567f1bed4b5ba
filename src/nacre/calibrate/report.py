"""What a fit found, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from nacre.base.excerpt import safe
from nacre.calibrate.fit import Fit, FittedFigure
from nacre.calibrate.measurements import Measurement
from nacre.nem.model.calibration import ErrorBand

_WORST = 5  # rows that are shown


def fit_text(fit: Fit) -> str:
    """Figures, errors, the worst rows and what the rows cannot tell, in a page of text."""
    parts = [_headline(fit), _figure_table(fit), _error_table(fit), _worst_table(fit)]
    return "\n\n".join(["\n".join(part) for part in parts])


def _headline(fit: Fit) -> list[str]:
    before = float(np.median(np.abs(fit.before / fit.measured - 1)))
    after = float(np.median(np.abs(fit.modelled / fit.measured - 1)))
    return [
        f"{safe(fit.device.name)} fitted to {len(fit.rows)} rows in {fit.groups} groups: "
        f"{len(fit.figures)} free figures",
        f"median error of these rows: {before:.1%} before, {after:.1%} after",
    ]


def _figure_table(fit: Fit) -> list[str]:
    rows: list[tuple[str, ...]] = [("figure", "start", "fitted", "error", "range", "provenance")]
    rows += [_figure_row(fit, one) for one in fit.figures]
    rows += [(name, "", str(value), "", "", "assumed: set") for name, value in fit.fixed.items()]
    return _aligned(rows, right=(1, 2, 3))


def _figure_row(fit: Fit, one: FittedFigure) -> tuple[str, ...]:
    figure = one.figure
    start = "-" if figure.start is None else str(figure.start)
    range_ = f"{figure.low}..{figure.high}"
    if one.error is None:
        return (figure.name, start, "-", "", range_, "no row depends on it")
    share = one.error / max(1, one.value)
    error = f"+-{one.error:.2g}" if share < 10 else "unknown"
    return (figure.name, start, str(one.value), error, range_, f"fitted to {len(fit.rows)} rows")


def _error_table(fit: Fit) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "rows", "median", "90%", "ranks", "80% band", "inside")]
    rows.append(_error_row("all", fit.overall))
    rows += [_error_row(safe(kind), band) for kind, band in fit.classes.items()]
    what = "rows of groups that were left out" if fit.left_out else "the rows that were fitted"
    return [f"errors of {what}", *_aligned(rows, right=(1, 2, 3, 4, 5, 6))]


def _error_row(name: str, band: ErrorBand) -> tuple[str, ...]:
    inside = "-" if band.inside is None else f"{band.inside:.0%}"
    return (
        name,
        str(band.rows),
        f"{band.median:.1%}",
        f"{band.most:.1%}",
        f"{band.rank:.2f}",
        f"{band.low:.2f} to {band.high:.2f}",
        inside,
    )


def _worst_table(fit: Fit) -> list[str]:
    rows: list[tuple[str, ...]] = [("measured", "modelled", "", "off", "row")]
    for place in worst_rows(fit):
        row = fit.rows[place]
        line = row.span.location.line
        where = f" (line {line})" if row.span.source.size else ""
        rows.append((
            f"{fit.measured[place]:.6g}",
            f"{fit.predicted[place]:.6g}",
            _unit(row),
            f"{fit.predicted[place] / fit.measured[place] - 1:+.0%}",
            f"{safe(str(row.subject))}{where}",
        ))  # fmt: skip
    return ["worst rows", *_aligned(rows, right=(0, 1, 3))]


def _unit(row: Measurement) -> str:
    return "cycles" if row.is_in_cycles else "us"


def worst_rows(fit: Fit) -> list[int]:
    """The rows that are furthest off, the worst first."""
    off = np.abs(np.log(fit.predicted / fit.measured))
    return [int(place) for place in np.argsort(-off, kind="stable")[:_WORST]]


def _aligned(rows: Sequence[tuple[str, ...]], right: Iterable[int]) -> list[str]:
    """Columns two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_right = set(right)
    return ["  ".join(_cells(row, widths, is_right)).rstrip() for row in rows]


def _cells(row: tuple[str, ...], widths: list[int], right: set[int]) -> Iterator[str]:
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if place in right else cell.ljust(width)


def fit_json(fit: Fit) -> dict[str, Any]:
    """The same for tools."""
    return {
        "device": fit.device.name,
        "rows": len(fit.rows),
        "groups": fit.groups,
        "figures": [_figure_json(one) for one in fit.figures],
        "set": dict(fit.fixed),
        "is_left_out": fit.left_out is not None,
        "overall": msgspec.to_builtins(fit.overall),
        "classes": {kind: msgspec.to_builtins(band) for kind, band in fit.classes.items()},
        "alike": [[name for name, _ in one.members] for one in fit.alike],
        "times": [
            {
                "workload": str(row.subject),
                "group": row.group_name,
                "class": row.class_name,
                "unit": _unit(row),
                "measured": float(fit.measured[place]),
                "fitted": float(fit.modelled[place]),
                "left_out": None if fit.left_out is None else float(fit.left_out.times[place]),
            }
            for place, row in enumerate(fit.rows)
        ],
    }


def _figure_json(one: FittedFigure) -> dict[str, Any]:
    return {
        "name": one.figure.name,
        "start": one.figure.start,
        "value": one.value if one.is_fitted else one.figure.start,
        "error": one.error,
        "low": one.figure.low,
        "high": one.figure.high,
        "provenance": "fitted" if one.is_fitted else "assumed",
    }
