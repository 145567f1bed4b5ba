"""What `nacre run --mode timed` adds: profiles, what-if, traces with times, the report page.

And `--fuse`, timed or not: the chains, what they save, and why other pairs are not fused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.cli.arrays import report_write_errors, require_writable
from nacre.cli.machine import Setup, usage_error
from nacre.cli.options import options_of
from nacre.cli.outputs import require_page_name

if TYPE_CHECKING:
    from nacre.compile.estimate.result import Estimate
    from nacre.nem.api import NemInterpreter
    from nacre.nem.api.programs import LoadedProgram
    from nacre.nem.plan.fusion.chains import Fusion
    from nacre.nem.run.timing.fused import FusedResult
    from nacre.nem.run.timing.result import TimedResult

PERFETTO_ENDINGS = (".perfetto-trace", ".pftrace")


@dataclass(frozen=True)
class TimedOptions:
    """The options that a timed run takes."""

    profile: Path | None
    what_if: str | None
    no_values: bool
    report: Path | None

    def require(self, mode: str, setup: Setup, *, has_outputs: bool) -> None:
        """Options that go together; the report's place is looked at before a long run."""
        setup.require_one_order(mode)
        unused = [("--detect-races", setup.detect_races), ("--input", bool(setup.inputs))]
        for name, is_given in unused:
            if is_given and self.no_values:
                raise click.UsageError(f"--no-values computes nothing: {name} would be ignored")
        timed_only = [
            ("--profile", self.profile is not None),
            ("--what-if", self.what_if is not None),
            ("--no-values", self.no_values),
            ("--report", self.report is not None),
        ]
        for name, is_given in timed_only:
            if is_given and mode != "timed":
                raise click.UsageError(f"{name} needs --mode timed")
        if self.no_values and has_outputs:
            raise click.UsageError("--no-values computes nothing that --output could write")
        if self.report is not None:
            require_page_name(self.report, "a report")
            require_writable(self.report)


def _join_repeated(
    ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> str | None:
    """An option that was repeated as if all were given at once."""
    return ",".join(values) if values else None


timed_options = options_of(
    TimedOptions,
    "timed",
    click.option("--profile", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
                 help="Figures that replace the device's: .json or .toml."),
    click.option("--what-if", multiple=True, metavar="KEY=VALUE,..", callback=_join_repeated,
                 help="Time it again with other figures, such as NMU.int8_macs=8192; may be "
                 "repeated, each figure once."),
    click.option("--no-values", is_flag=True, help="Time only: compute nothing."),
    click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
                 help="Write a page that shows where the time goes."),
)  # fmt: skip


def set_profile(machine: NemInterpreter, timed: TimedOptions) -> None:
    """Give the interpreter the profile of `--profile`."""
    if timed.profile is None:
        return
    try:
        machine.set_timing_profile(timed.profile)
    except InputError as error:
        raise usage_error(error) from None


def time_what_if(
    machine: NemInterpreter, program: LoadedProgram, timed: TimedOptions, allow: tuple[str, ...]
) -> TimedResult | None:
    """The run with other figures, where `--what-if` asks for one."""
    from nacre.nem.run.timing.profile import ProfileError
    from nacre.nem.run.timing.what_if import parse_changes

    if timed.what_if is None:
        return None
    try:
        return machine.time(program, changes=parse_changes(timed.what_if), allow=allow)
    except ProfileError as error:
        raise click.UsageError(f"--what-if: {safe(str(error))}") from None
    except InputError as error:
        if any(d.code != "RUN11" for d in error.diagnostics):
            raise  # the program does not fit the changed device: that is found in the input
        raise usage_error(error) from None


def timing_text(
    timing: TimedResult,
    changed: TimedResult | None,
    timed: TimedOptions,
    layers: Estimate | None = None,
) -> str:
    """Where the time goes, of a bundle by layer too; with `--what-if`, both runs side by side."""
    from nacre.compile.estimate.text import layer_tables
    from nacre.nem.run.timing.text import comparison, summary

    text = summary(timing, {} if layers is None else _nodes(layers))
    if layers is not None:
        text = "\n\n".join([text, _model_macs(layers), *layer_tables(layers.device.name, layers)])
    if changed is not None:
        text += f"\n\n{comparison(timing, changed, safe(timed.what_if or ''))}"
        text += "".join(f"\n{note}" for note in _what_if_notes(timed))
    return text


def _what_if_notes(timed: TimedOptions) -> list[str]:
    from nacre.nem.run.timing.what_if import absent_figures, parse_changes

    return absent_figures(parse_changes(timed.what_if or ""))


def _nodes(layers: Estimate) -> dict[str, str]:
    """The first node of each layer, by the tokens of its statements."""
    return {token: safe(one.nodes[0]) for one in layers.layers if one.nodes for token in one.tasks}


def _model_macs(layers: Estimate) -> str:
    assert layers.plan is not None
    return f"the model: {layers.plan.bundle.manifest.macs_text}"


def timing_json(
    timing: TimedResult,
    changed: TimedResult | None,
    timed: TimedOptions,
    layers: Estimate | None = None,
) -> dict[str, Any]:
    """The same as plain values."""
    report = timing.as_json()
    if layers is not None and layers.plan is not None:
        of_layers = layers.plan.as_json()
        report |= {key: of_layers[key] for key in ("macs", "plan_macs", "layers", "operations")}
    report["stalls"] = timing.stall_totals
    report["summary"] = timing.sentence()
    if changed is not None:
        report["what_if"] = {
            **{k: v for k, v in changed.as_json().items() if k != "tasks"},
            "device": changed.timeline.device.name,
            "summary": changed.sentence(),
            "notes": _what_if_notes(timed),
        }
    return report


def write_trace(timing: TimedResult, path: Path) -> None:
    """Write a trace by the file's ending: .json, .csv or one of Perfetto's."""
    from nacre.nem.run.timing.export import export_timed
    from nacre.viz.perfetto import write_perfetto

    _write_file(path, lambda: write_perfetto(timing, path)
             if path.name.lower().endswith(PERFETTO_ENDINGS)
             else export_timed(timing, timing.started, path))  # fmt: skip


def write_page(timing: TimedResult, path: Path, title: str, layers: Estimate | None = None) -> None:
    """Write the report page."""
    from nacre.viz.layers import layer_view
    from nacre.viz.report import write_report

    view = None if layers is None else layer_view(layers, is_derated=False)
    _write_file(path, lambda: write_report(timing, path, title=title, layers=view))


def _write_file(path: Path, write: Callable[[], None]) -> None:
    with report_write_errors(path):
        write()


@dataclass(frozen=True)
class Fusing:
    """The chains of a program, timed where the run is."""

    program: LoadedProgram
    fusion: Fusion
    timed: FusedResult | None

    @property
    def text(self) -> str:
        """What is said after a run."""
        from nacre.nem.run.timing.fused_text import count_text, fused_text, refusal_table

        if self.timed is not None:
            return f"\n{safe_lines(fused_text(self.timed))}"
        parts = [f"fused {count_text(self.fusion)}"]
        if self.fusion.refusals:
            parts.append(refusal_table(self.fusion.refusals, self.program.plan.program))
        return safe_lines("\n\n".join(parts))

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        from nacre.nem.run.timing.fused_text import fused_json, fusion_json

        if self.timed is not None:
            return fused_json(self.timed)
        return fusion_json(self.fusion, self.program.plan.program)


def safe_lines(text: str) -> str:
    """A text of lines without control characters."""
    return "\n".join(safe(line) for line in text.split("\n"))


def find_fusing(
    machine: NemInterpreter,
    program: LoadedProgram,
    mode: str,
    observed: Sequence[str] | None,
) -> Fusing | None:
    """What `--fuse` does to a program, None without it; `observed` are the buffers it writes.

    Errors that were allowed through are wrong usage.
    """
    from nacre.nem.api.fusing import chains_of

    if observed is None:
        return None
    if any(finding.severity == "error" for finding in program.diagnostics):
        raise click.UsageError(
            "--fuse needs a program without errors, and --allow lets some through: mend them, or "
            "leave --fuse out"
        )
    if mode == "timed":
        timed = machine.time_fused(program, observed=observed)
        return Fusing(program, timed.fusion, timed)
    return Fusing(program, chains_of(program, observed), None)
