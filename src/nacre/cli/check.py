"""`nacre check`: find every mistake in NEM files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import Diagnostic, has_errors
from nacre.base.excerpt import safe
from nacre.base.rendering import render_json, summary
from nacre.base.rules import RULES
from nacre.base.suggest import did_you_mean
from nacre.cli.inputs import distinct, import_option, program_in, read_argument, show
from nacre.cli.main import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.progress import shown_stages
from nacre.nem.checks.engine import Checked, CheckOptions, check_source
from nacre.nem.model.imports import Import
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.spec.limits import MAX_TASK_INSTANCES

if TYPE_CHECKING:
    from nacre.nem.api.token_verdict import TokenVerdict


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--device", metavar="D", help="A built-in device or a file; replaces the program's.")
@click.option("--strict", is_flag=True, help="Warnings are errors; grammar extensions are warned.")
@click.option("--allow", multiple=True, metavar="CODE", help="Leave out a code or a whole group.")
@click.option(
    "--include-root",
    "include_roots",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further folder that includes may lead to.",
)
@import_option
@click.option("--all", "every", is_flag=True, help="Show each of many findings with one cause.")
@click.option("--explain", is_flag=True, help="Say why nothing orders the two sides of a hazard.")
@click.option(
    "--max-instances",
    type=click.IntRange(min=1),
    default=MAX_TASK_INSTANCES,
    show_default=True,
    help="The most task instances that loops may expand to.",
)
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
) -> int:
    """Find every mistake in NEM programs, devices and families.

    FILE may be `-` for standard input, or the folder of a bundle. Of a program without errors, on a
    device that limits tokens, it also says whether they can run out: safe, deadlock or unknown.
    Exit status: 0 no errors, 1 errors, 2 wrong usage.
    """
    allowed = [_known_code(code) for code in allow]
    options = CheckOptions(
        device=device,
        strict=strict,
        include_roots=include_roots,
        max_instances=max_instances,
        imports=imports,
    )
    found: list[Diagnostic] = []
    verdicts: list[tuple[str, TokenVerdict]] = []
    checked = 0
    failed = False
    for name in files:
        source = read_argument(program_in(name))
        if isinstance(source, str):
            click.echo(f"nacre: {source}", err=True)
            failed = True
        elif isinstance(source, Diagnostic):
            found.append(source)
            checked += 1
        else:
            try:
                with shown_stages():
                    of_file = check_source(source, options)
                found += of_file.diagnostics
                verdicts += _verdict(source.name, of_file)
            except UnknownDeviceError as error:
                raise click.UsageError(safe(str(error))) from None
            checked += 1
    shown = [d for d in distinct(found) if not d.code.startswith(tuple(allowed))]
    if output == "json":
        tokens = [{"file": name, **verdict.as_json()} for name, verdict in verdicts]
        click.echo(render_json(shown, others={"tokens": tokens} if tokens else {}))
    else:
        show(shown, output, explain=explain, every=every)
    if output == "text" and checked:
        _show_verdicts(verdicts)
        count = f"{checked} file{'s' if checked > 1 else ''}"
        click.echo(f"checked {count}: {summary(shown)}")
    if failed:
        return WRONG_USAGE
    return ERRORS_FOUND if has_errors(shown) else OK


def _verdict(name: str, checked: Checked) -> list[tuple[str, TokenVerdict]]:
    from nacre.nem.api.token_verdict import token_verdict

    verdict = token_verdict(checked)
    # Nothing limits them, or errors come first.
    return [] if verdict is None or verdict.limit is None else [(name, verdict)]


def _show_verdicts(verdicts: Sequence[tuple[str, TokenVerdict]]) -> None:
    for name, verdict in verdicts:
        click.echo(f"{safe(name)}: {verdict}" if len(verdicts) > 1 else str(verdict))


def _known_code(text: str) -> str:
    code = text.upper()
    known = {*RULES, *(rule.group for rule in RULES.values())}
    if code not in known:
        hint = did_you_mean(code, known)
        raise click.UsageError(f"no rule or group {safe(text)}{'; ' + hint if hint else ''}")
    return code
