"""`nacre nac build`: a model of any kind becomes a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote, safe
from nacre.base.source import Unreadable, read_bytes, read_source
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage, report_write_errors, require_writable
from nacre.cli.core.files import (
    Shapes,
    format_option,
    print_warnings,
    report_findings,
    shape_option,
)
from nacre.cli.exit_status import OK
from nacre.cli.llm.group import is_language_model, open_model_file
from nacre.cli.nac.files import SUFFIX, is_folder, nac, require_readable, weights_option
from nacre.cli.options import WholeNumber, out_option
from nacre.cli.outputs import require_distinct_files
from nacre.cli.terminal.progress import watch_progress
from nacre.nac.spec.elements import QUANTIZATIONS

if TYPE_CHECKING:
    from nacre.nac.format.values import Plan
    from nacre.nac.quantise.report import QuantisationReport
    from nacre.nac.run.model import NacModel
    from nacre.nac.save import Storage

QUANTS = tuple(layout.option for layout in QUANTIZATIONS.values())
quant_choice = click.Choice(QUANTS, case_sensitive=False)  # the format writes INT8_TENSOR
_CONTEXT = 512  # of language models
_MOST_RESOURCE = 0xFFFFFFFF  # bytes: the length has 32 bits


@nac.command()
@click.argument("model", metavar="MODEL")
@out_option("FILE.nac", "Write the file here.", required=True)
@click.option(
    "--quant",
    type=quant_choice,
    default="none",
    show_default=True,
    help="How weights are stored.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="PATTERN",
    help="Weights that are not quantised, such as `*.bias`; may be repeated.",
)
@weights_option
@click.option(
    "--tokenizer",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Compile the tokenizer of this folder, or of this file, into the file.",
)
@click.option(
    "--unlimited",
    is_flag=True,
    help="Take a tokenizer that truncates or pads for one that does not.",
)
@click.option(
    "--plan",
    metavar="NAME|FILE",
    help="Put an execution plan into the file: greedy, cached, top_k, classify, or a text of one.",
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="FILE",
    help="Put a file into the file, under its own name; may be repeated.",
)
@click.option(
    "--context", type=WholeNumber(min=1), metavar="N",
    help="How many tokens the cache of a language model holds. Default: 512.",
)  # fmt: skip
@shape_option
@click.option("--report", is_flag=True, help="Say what quantisation does to each weight.")
@format_option
def build(
    model: str,
    out: Path,
    quant: str,
    keep: tuple[str, ...],
    weights: Storage | None,
    tokenizer: Path | None,
    unlimited: bool,
    plan: str | None,
    resources: tuple[str, ...],
    context: int | None,
    shapes: Shapes,
    report: bool,
    output: str,
) -> int:
    """Build a file of MODEL (.core, .onnx, .pt2, .nac, .gguf or a folder of transformers).

    A language model goes in with its cache, its tokenizer and a plan that writes text.
    """
    if is_language_model(model):
        others = {"--tokenizer": tokenizer, "--plan": plan, "--shape": shapes, "--keep": keep}
        _require_none_of({**others, "--resource": resources, "--unlimited": unlimited})
        return _build_language_model(model, out, quant, weights, context, report, output)
    if context is not None:
        raise click.UsageError("--context is for language models: .gguf, or a folder")
    require_readable(model)
    require_file(out)
    require_distinct_files([out], [model, *resources, str(tokenizer), str(plan)])
    embedded = _read_resources(resources)
    _require_quant(quant, bool(keep), report)
    if unlimited and tokenizer is None:
        raise click.UsageError(
            "--unlimited is about a tokenizer: without --tokenizer there is none"
        )

    def work() -> None:
        from nacre.nac.build import build as built

        manifest, vocabulary = _read_tokenizer(tokenizer, unlimited)
        for name in vocabulary.keys() & embedded.keys():
            raise click.UsageError(f"--resource {backquote(name)} is a file of the tokenizer, too")
        reports: list[QuantisationReport] = []
        warnings: list[Diagnostic] = []
        with watch_progress("building", "nodes") as progress:
            nac_model = built(
                model,
                quant,
                shapes=dict(shapes),
                keep=keep,
                resources={**vocabulary, **embedded},
                manifest=manifest,
                plan=None if plan is None else _read_plan(plan),
                on_report=reports.append,
                progress=progress,
                warn=warnings.append,
            )
        print_warnings(warnings)
        _print_built(nac_model, save_model(nac_model, out, weights), reports, report, output)

    return report_findings(work, output) or OK


def _require_quant(quant: str, keeps: bool, reports: bool) -> None:
    """UsageError for options about quantising where nothing is quantised."""
    if keeps and quant == "none":
        raise click.UsageError("--keep says what is not quantised: without --quant nothing is")
    if reports and quant == "none":
        raise click.UsageError("--report says what quantisation does: without --quant it does none")


def _require_none_of(given: Mapping[str, object]) -> None:
    """UsageError for options that are about other models."""
    for name, value in given.items():
        if value:
            message = f"{name} is not for language models, which bring their tokenizer and a plan"
            raise click.UsageError(message)


def _build_language_model(
    model: str,
    out: Path,
    quant: str,
    weights: Storage | None,
    context: int | None,
    report: bool,
    output: str,
) -> int:
    require_file(out)
    require_distinct_files([out], [model])
    _require_quant(quant, keeps=False, reports=report)

    def work() -> None:
        from nacre.llm.nac_file.build import build_nac

        reports: list[QuantisationReport] = []
        source = open_model_file(model)
        made = build_nac(source, context or _CONTEXT, quant, on_report=reports.append)
        written = save_model(made, out, weights)
        _print_built(made, written, reports, report, output)

    return report_findings(work, output) or OK


def _print_built(
    model: NacModel,
    written: list[Path],
    reports: list[QuantisationReport],
    is_long: bool,
    output: str,
) -> None:
    if output == "json":
        click.echo(summary_json(model, written, reports))
        return
    click.echo(summary(model, written))
    for one in reports:
        click.echo(str(one) if is_long else str(one).splitlines()[-1])


def require_file(out: Path) -> None:
    """UsageError for a name that readers would not know."""
    if out.suffix.lower() != SUFFIX:
        raise click.UsageError(
            f"cannot write to {backquote(str(out))}, expected a name in `{SUFFIX}`"
        )
    require_writable(out)


def save_model(model: NacModel, out: Path, weights: Storage | None) -> list[Path]:
    """Write a model; without a word about weights these stay where they are. What was written."""
    from nacre.nac import save
    from nacre.nac.format.external import external_path

    current: Storage = "internal" if model.file.header.is_internal else "external"
    chosen = weights or current
    with report_write_errors(out), stage("writing"):
        save(model, out, chosen)
    return [out] if chosen == "internal" else [out, external_path(out)]


def summary(model: NacModel, written: Sequence[Path]) -> str:
    """A line about each file that was written."""
    calls = sum(not i.is_system for i in model.file.instructions)
    tensors = len(model.weights.names)
    about = f"{calls:,} call{'s' * (calls != 1)}, {tensors:,} weights, "
    lines = []
    for path in written:
        lines.append(f"wrote {safe(str(path))}: {about}{path.stat().st_size:,} bytes")
        about = ""
    return "\n".join(lines)


def summary_json(
    model: NacModel, written: Sequence[Path], reports: list[QuantisationReport]
) -> str:
    """The same for programs, with what quantisation did."""
    from math import isfinite

    from nacre.nac.tools.overview import calls_by_operation

    out, *beside = written
    rows = [
        {
            "name": weight.name,
            "stored": weight.stored,
            "kept": weight.reason or None,
            "max_error": weight.max_error,
            "rms_error": weight.rms_error,
            "sqnr_db": weight.sqnr_db if isfinite(weight.sqnr_db) else None,
        }
        for one in reports
        for weight in one.weights
    ]
    entries = {
        "path": str(out),
        "bytes": out.stat().st_size,
        "weights": [{"path": str(path), "bytes": path.stat().st_size} for path in beside],
        "operations": calls_by_operation(model.file),
        "inputs": [
            {"name": i.name, "dtype": i.dtype, "shape": i.shape and list(i.shape)}
            for i in model.inputs
        ],
        "outputs": list(model.surroundings.output_names),
        "quantised": rows,
    }
    return json.dumps(entries, indent=2)


def _read_resources(names: tuple[str, ...]) -> dict[str, bytes]:
    """Files by their names, which are the last parts of their paths."""
    contents: dict[str, bytes] = {}
    for name in names:
        path = Path(name)
        raw = read_bytes(path, limit=_MOST_RESOURCE)
        if isinstance(raw, Unreadable):
            raise WrongUsage(f"{safe(name)} {raw.reason}")
        if path.name in contents:
            raise click.UsageError(f"two resources are called {backquote(path.name)}")
        contents[path.name] = raw
    return contents


def _read_plan(name: str) -> Plan:
    """A plan of the package by its name, or out of its text."""
    from nacre.nac.mep import plan_names
    from nacre.nac.mep.plan_sources import plan_of

    source = None if name in plan_names() else read_source(Path(name))
    if isinstance(source, Unreadable):
        known = ", ".join(plan_names())
        raise WrongUsage(f"{safe(name)} {source.reason}, and is none of the plans {known}")
    return plan_of(name)


def _read_tokenizer(path: Path | None, unlimited: bool) -> tuple[bytes, dict[str, bytes]]:
    """The manifest of a tokenizer and the files that it needs."""
    if path is None:
        return b"", {}
    from nacre.nac.tisa import compile_bundle

    if not is_folder(path):
        require_readable(str(path))
    tokenizer = compile_bundle(path, unlimited=unlimited)
    return tokenizer.manifest, dict(tokenizer.resources)
