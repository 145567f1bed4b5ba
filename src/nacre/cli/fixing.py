"""`nacre check --fix`: files with their sure remedies applied."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import safe
from nacre.base.files import write_whole
from nacre.base.source import Source
from nacre.cli.exit_status import ERRORS_FOUND, MACHINE_FAULTS, OK, WRONG_USAGE
from nacre.cli.inputs import STDIN, program_in, read_argument, show_diff
from nacre.cli.terminal.progress import show_stages
from nacre.cli.terminal.streams import echo_document
from nacre.nem.checks.engine import CheckOptions, CheckResult
from nacre.nem.checks.fixing import FixResult, fix_source
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.syntax.parser import ParsedSource


@dataclass
class FixedFiles:
    """What became of each file that was asked for."""

    status: int = OK
    applied: list[Diagnostic] = field(default_factory=list)
    _changed: int = 0
    _sources: dict[str, Source | Diagnostic | str] = field(default_factory=dict)
    _checked: dict[str, CheckResult] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many findings were fixed."""
        return len(self.applied)

    def source(self, name: str) -> Source | Diagnostic | str:
        """A file as it is now; one that includes others that changed is read again."""
        if name == STDIN or self._is_settled:
            return self._sources[name]
        return read_argument(program_in(name))

    def last_check(self, name: str) -> CheckResult | None:
        """What the last check said, where nothing has changed since."""
        return self._checked.get(name) if self._is_settled else None

    @property
    def _is_settled(self) -> bool:
        return not self._changed or len(self._sources) == 1

    def note_source(
        self, name: str, source: Source | Diagnostic | str, checked: CheckResult | None
    ) -> None:
        """Note what a file is, and what a check says about it."""
        self._sources[name] = source
        if checked is not None:
            self._checked[name] = checked

    def note_change(self, fixed: FixResult) -> None:
        """Note that a file was rewritten."""
        self._changed += 1
        self.applied += fixed.applied


def fix_files(
    names: Sequence[str],
    options: CheckOptions,
    allowed: tuple[str, ...],
    *,
    diff: bool,
    on_stderr: bool,
) -> FixedFiles:
    """Fix every file, rewrite it and say so; with `diff`, show what would change instead."""
    files = FixedFiles()
    for name in dict.fromkeys(names):
        source = read_argument(program_in(name))
        files.note_source(name, source, None)
        if not isinstance(source, Source):
            files.status = WRONG_USAGE if isinstance(source, str) else ERRORS_FOUND
            if diff:
                click.echo(f"nacre: {source}", err=True)
            continue
        if _is_of_bundle(name) or isinstance(source, ParsedSource):
            message = "is the program of a bundle, whose manifest has its hash: it stays as it is"
            if isinstance(source, ParsedSource):
                message = "is bytecode: fix the text that it was made of, and pack it again"
            click.echo(f"nacre: {safe(name)} {message}", err=True)
            continue
        try:
            with show_stages():
                fixed = fix_source(source, options, lambda d: not d.code.startswith(allowed))
        except UnknownDeviceError as error:
            raise click.UsageError(safe(str(error))) from None
        if diff:
            _preview(name, source, fixed, files)
        else:
            _rewrite(name, source, fixed, files, on_stderr)
    return files


def _is_of_bundle(name: str) -> bool:
    from nacre.compile.storage.names import is_program_of_bundle

    return name != STDIN and (os.path.isdir(name) or is_program_of_bundle(Path(name).resolve()))


def _preview(name: str, source: Source, fixed: FixResult, files: FixedFiles) -> None:
    _show_refused(fixed, on_stderr=True)
    if fixed.source.text != source.text:
        show_diff(name, source.text, fixed.source.text)
    has_errors = any(d.severity == "error" for d in fixed.checked.diagnostics)
    if fixed.source.text != source.text or has_errors:
        files.status = max(files.status, ERRORS_FOUND)


def _rewrite(
    name: str, source: Source, fixed: FixResult, files: FixedFiles, on_stderr: bool
) -> None:
    if name == STDIN:
        echo_document(fixed.source.text)
    elif fixed.source.text != source.text:
        try:
            write_whole(Path(name), [_byte_order_mark(name), fixed.source.text])
        except OSError as error:
            click.echo(f"nacre: cannot write {safe(name)}: {error.strerror}", err=True)
            files.status = ERRORS_FOUND if error.errno in MACHINE_FAULTS else WRONG_USAGE
            return
    files.note_source(name, fixed.source, fixed.checked)
    if fixed.applied:
        files.note_change(fixed)
    for finding in fixed.applied:
        assert finding.fix is not None
        text = f"{finding.location}: {finding.code}: {finding.fix.description}"
        click.echo(f"fixed {safe(text)}", err=on_stderr)
    _show_refused(fixed, on_stderr)


def _show_refused(fixed: FixResult, on_stderr: bool) -> None:
    for refused in fixed.refused:
        finding, new = refused.diagnostic, refused.because
        assert finding.fix is not None
        why = "it mends nothing" if new is None else f"it would bring up {new}"
        text = f"{finding.location}: {finding.code}: {finding.fix.description}: {why}"
        click.echo(f"not fixed {safe(text)}", err=on_stderr)


def _byte_order_mark(name: str) -> bytes:
    """The byte order mark that a file begins with, which stays."""
    with Path(name).open("rb") as file:
        return codecs.BOM_UTF8 if file.read(3) == codecs.BOM_UTF8 else b""


@contextlib.contextmanager
def messages_on_stderr() -> Iterator[None]:
    """Findings go to standard error where standard output has the fixed text."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
