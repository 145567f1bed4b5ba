"""`nacre validate --blame`: its options, and what it prints and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.excerpt import safe
from nacre.base.stages import stage
from nacre.cli.arrays import report_write_errors, require_writable
from nacre.cli.calibration import place_in_file, read_calibration
from nacre.cli.outputs import require_page_name

if TYPE_CHECKING:
    from nacre.compile.blame.result import Blame
    from nacre.compile.bundle.bundle import Bundle


@dataclass(frozen=True)
class BlameOptions:
    """What is asked for about noise."""

    is_wanted: bool
    remedies: int
    calibration: Path | None
    report: Path | None
    most: int

    def require_sense(self) -> None:
        """UsageError for options that nothing asks for, or a page that cannot be written."""
        given = {"--remedies": self.remedies, "--report": self.report}
        for option, value in given.items():
            if value and not self.is_wanted:
                raise click.UsageError(f"{option} is for --blame")
        if self.calibration is not None and not self.remedies:
            raise click.UsageError("--calibrate is for the scales of --remedies")
        if self.report is not None:
            require_page_name(self.report, "a report")
            require_writable(self.report)


def find_noise(bundle: Bundle, inputs: Mapping[str, Any], options: BlameOptions) -> Blame:
    """The noise of every tensor; a page about it is written where one is asked for."""
    data = None if options.calibration is None else read_calibration(options.calibration)
    with stage("measuring the noise of every tensor"), place_in_file(options.calibration):
        found = bundle.blame(inputs, remedies=options.remedies, calibration=data)
    if options.report is not None:
        from nacre.viz.noise import write_blame

        with report_write_errors(options.report), stage("writing the report"):
            write_blame(bundle, found, options.report)
    return found


def noise_text(found: Blame, options: BlameOptions) -> str:
    """For a terminal."""
    from nacre.compile.blame.text import blame_text

    text = blame_text(found, options.most)
    if options.report is None:
        return text
    return f"{text}\n\nwrote {safe(str(options.report))}: layers, their times and their noise"
