"""`nacre check`: find every mistake in NEM files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, has_errors
from nacre.base.excerpt import safe
from nacre.base.rendering import render_json, summary, to_json
from nacre.base.rules import RULES
from nacre.base.suggest import did_you_mean
from nacre.cli.exit_status import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.fixing import FixedFiles, fix_files, messages_on_stderr
from nacre.cli.inputs import (
    STDIN,
    import_option,
    program_in,
    read_argument,
    show,
    without_repetition,
)
from nacre.cli.options import include_root_option, max_instances_option
from nacre.cli.terminal.progress import show_stages
from nacre.nem.checks.engine import CheckOptions, CheckResult, check_source
from nacre.nem.model.imports import Import
from nacre.nem.model.target import UnknownDeviceError

if TYPE_CHECKING:
    from nacre.nem.api.token_verdict import TokenVerdict


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--device", metavar="D", help="A built-in device or a file; replaces the program's.")
@click.option("--strict", is_flag=True, help="Warnings are errors; grammar extensions are warned.")
@click.option("--allow", multiple=True, metavar="CODE", help="Leave out a code or a whole group.")
@include_root_option
@import_option
@click.option("--all", "every", is_flag=True, help="Show each of many findings with one cause.")
@click.option("--fix", is_flag=True, help="Mend what has one sure remedy, and rewrite the files.")
@click.option("--diff", is_flag=True, help="With --fix: show what would change, write nothing.")
@click.option("--explain", is_flag=True, help="Say why nothing orders the two sides of a hazard.")
@max_instances_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="How findings are printed.",
)
def check(
    files: tuple[str, ...],
    device: str | None,
    strict: bool,
    allow: tuple[str, ...],
    include_roots: tuple[Path, ...],
    imports: tuple[Import, ...],
    explain: bool,
    every: bool,
    max_instances: int,
    output: str,
    fix: bool,
    diff: bool,
) -> int:
    """Find every mistake in NEM programs, devices and families.

    FILE may be `-` for standard input, or the folder of a bundle. Of a program without errors, on a
    device that limits tokens, it also says whether they can run out: safe, deadlock or unknown.
    With --fix, `-` is fixed to standard output, and findings go to standard error; the program of
    a bundle is never rewritten. Exit status: 0 no errors, 1 errors, 2 wrong usage; with --diff, 1
    where something would change.
    """
    allowed = tuple(_require_known_code(code) for code in allow)
    _require_compatible_options(files, fix, diff, output)
    options = CheckOptions(
        device=device,
        strict=strict,
        include_roots=include_roots,
        max_instances=max_instances,
        imports=imports,
    )
    fixes = None
    if fix:
        on_stderr = output != "text" or STDIN in files
        fixes = fix_files(files, options, allowed, diff=diff, on_stderr=on_stderr)
        if diff:
            return fixes.status
    findings, verdicts, checked, failed = _check_all(files, options, fixes)
    shown_findings = [d for d in without_repetition(findings) if not d.code.startswith(allowed)]
    with messages_on_stderr() if fix and STDIN in files else nullcontext():
        if output == "json":
            click.echo(render_json(shown_findings, others=_json_extras(verdicts, fixes)))
        else:
            show(shown_findings, output, explain=explain, every=every)
        if output == "text" and checked:
            _show_verdicts(verdicts)
            count = f"{checked} file{'s' if checked > 1 else ''}"
            mended = "" if fixes is None else f"; {fixes.count} fixed"
            click.echo(f"checked {count}: {summary(shown_findings)}{mended}")
    if failed or (fixes is not None and fixes.status == WRONG_USAGE):
        return WRONG_USAGE
    return ERRORS_FOUND if has_errors(shown_findings) else OK


def _check_all(
    files: Sequence[str], options: CheckOptions, fixes: FixedFiles | None
) -> tuple[list[Diagnostic], list[tuple[str, TokenVerdict]], int, bool]:
    """Findings and verdicts, how many files were checked, and whether one could not be read."""
    findings: list[Diagnostic] = []
    verdicts: list[tuple[str, TokenVerdict]] = []
    checked = 0
    failed = False
    for name in files:
        source = fixes.source(name) if fixes is not None else read_argument(program_in(name))
        if isinstance(source, str):
            click.echo(f"nacre: {source}", err=True)
            failed = True
        elif isinstance(source, Diagnostic):
            findings.append(source)
            checked += 1
        else:
            try:
                of_file = fixes.last_check(name) if fixes is not None else None
                if of_file is None:
                    with show_stages():
                        of_file = check_source(source, options)
                findings += of_file.diagnostics
                verdicts += _token_verdicts(source.name, of_file)
            except UnknownDeviceError as error:
                raise click.UsageError(safe(str(error))) from None
            checked += 1
    return findings, verdicts, checked, failed


def _require_compatible_options(files: Sequence[str], fix: bool, diff: bool, output: str) -> None:
    if diff and not fix:
        raise click.UsageError("--diff shows what --fix would change: give both")
    if diff and output != "text":
        raise click.UsageError("--diff prints a patch; leave --format out")
    if fix and STDIN in files and output != "text":
        raise click.UsageError("the fixed text of `-` goes to standard output; leave --format out")


def _json_extras(
    verdicts: Sequence[tuple[str, TokenVerdict]], fixes: FixedFiles | None
) -> dict[str, object]:
    """What stands beside the findings in JSON."""
    tokens = [{"file": name, **verdict.as_json()} for name, verdict in verdicts]
    fixed = {} if fixes is None else {"fixed": [to_json(d) for d in fixes.applied]}
    return {**({"tokens": tokens} if tokens else {}), **fixed}


def _token_verdicts(name: str, checked: CheckResult) -> list[tuple[str, TokenVerdict]]:
    from nacre.nem.api.token_verdict import token_verdict

    verdict = token_verdict(checked)
    # Nothing limits them, or errors come first.
    return [] if verdict is None or verdict.limit is None else [(name, verdict)]


def _show_verdicts(verdicts: Sequence[tuple[str, TokenVerdict]]) -> None:
    for name, verdict in verdicts:
        click.echo(f"{safe(name)}: {verdict}" if len(verdicts) > 1 else str(verdict))


def _require_known_code(text: str) -> str:
    code = text.upper()
    known = {*RULES, *(rule.group for rule in RULES.values())}
    if code not in known:
        hint = did_you_mean(code, known)
        raise click.UsageError(f"no rule or group {safe(text)}{'; ' + hint if hint else ''}")
    return code
