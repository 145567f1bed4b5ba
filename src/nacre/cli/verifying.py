"""What verbs named `verify` share: every file looked at, all findings shown, a line at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.rendering import summary
from nacre.base.stages import stage
from nacre.cli.arrays import WrongUsage
from nacre.cli.exit_status import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.inputs import show, without_repetition
from nacre.cli.terminal.progress import show_stages


def verify_files(
    names: Sequence[str], find: Callable[[str], Iterable[Diagnostic]], what: str, output: str
) -> int:
    """Look at files one after the other; one that is not there does not keep the others waiting."""
    findings: list[Diagnostic] = []
    count, failed = 0, False
    for name in names:
        try:
            with show_stages(), stage("verifying"):
                findings += find(name)
        except InputError as error:
            findings += error.diagnostics
        except WrongUsage as error:
            error.show()
            failed = True
            continue
        count += 1
    shown_findings = without_repetition(findings)
    show(shown_findings, output)
    if output == "text" and count:
        click.echo(
            f"verified {count:,} {what}{'' if count == 1 else 's'}: {summary(shown_findings)}"
        )
    if failed:
        return WRONG_USAGE
    return ERRORS_FOUND if has_errors(shown_findings) else OK
