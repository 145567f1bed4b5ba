"""The noise view of the report page: what every tensor of a plan adds and passes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nacre.base.files import write_whole
from nacre.compile.blame.result import Blame
from nacre.compile.bundle.bundle import Bundle
from nacre.viz.layers import layer_view
from nacre.viz.report import render_report


def write_blame(bundle: Bundle, blame: Blame, path: Path, *, title: str | None = None) -> None:
    """Write the page of a bundle with its layers and their noise, whole or not at all."""
    estimate = bundle.estimate()
    assert estimate.plan is not None
    page = render_report(
        estimate.plan.ideal,
        title=title or f"{bundle.manifest.device}, {bundle.precision_text}",
        layers=layer_view(estimate),
        noise=noise_view(blame),
    )
    write_whole(path, [page])


def noise_view(blame: Blame) -> dict[str, Any]:
    """Blame as the page takes it."""
    return blame.as_json()
