"""Case files: what a comment on a line says that `nacre check` must find there.

A case is a file `CODE_what_it_shows.nem`, or a folder of that name whose `main.nem` is checked:

    buffer A : L2 (size=0)  # error[BUF01]: part of the message # help: part of the help
    const B = 4 $ 2 # warning[ABC01]: one finding # info[ABC02]: another one on the same line

A first line `# options: --strict --device npm_lite --include-root ../shared` sets options; paths
are relative to the case.
"""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source, read_source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.imports import as_imports

CASES = Path(__file__).parent / "cases"

_EXPECTED = re.compile(r"# (?:(error|warning|info)\[([A-Z]+\d+)\]|(help)): (.*?)(?= # |$)")
_OPTIONS = re.compile(r"# options: (.+)")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A finding that must stand on a line; the texts are parts of its message and help."""

    file: str
    line: int
    severity: str
    code: str
    message: str
    help: str = ""

    @property
    def place(self) -> tuple[str, int, str, str]:
        return self.file, self.line, self.severity, self.code

    def describes(self, found: Diagnostic) -> bool:
        return self.message in found.message and self.help in (found.help or "")


@dataclass(frozen=True, slots=True)
class Case:
    """A program to check, the options to check it with, and what must be found."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def code(self) -> str:
        return self.name.partition("_")[0]

    @property
    def root(self) -> Path:
        return self.path / "main.nem" if self.path.is_dir() else self.path

    @property
    def files(self) -> list[Path]:
        return sorted(self.path.rglob("*.nem")) if self.path.is_dir() else [self.path]

    @property
    def folder(self) -> Path:
        return self.root.parent

    def expectations(self) -> list[Expectation]:
        return [expected for file in self.files for expected in _expectations(file, self.folder)]

    def options(self) -> CheckOptions:
        first = self.root.read_text(encoding="utf-8").partition("\n")[0]
        match = _OPTIONS.fullmatch(first)
        parser = argparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("--strict", action="store_true")
        parser.add_argument("--device")
        parser.add_argument("--include-root", action="append", default=[])
        parser.add_argument("--import", dest="imports", action="append", default=[])
        given = parser.parse_args(shlex.split(match[1]) if match else [])
        device = given.device
        if device is not None and (self.folder / device).is_file():
            device = str(self.folder / device)
        roots = tuple(self.folder / root for root in given.include_root)
        marks = as_imports(given.imports)
        return CheckOptions(device=device, strict=given.strict, include_roots=roots, imports=marks)

    def check(self) -> list[Diagnostic]:
        source = read_source(self.root)
        assert isinstance(source, Source), f"{self.root} cannot be read: {source}"
        return list(check_source(source, self.options()).diagnostics)

    def place_of(self, found: Diagnostic) -> tuple[str, int, str, str]:
        path = found.span.source.path
        file = path.relative_to(self.folder).as_posix() if path is not None else found.location.file
        return file, found.location.line, found.severity, found.code


def _expectations(file: Path, folder: Path) -> list[Expectation]:
    name = file.relative_to(folder).as_posix()
    found: list[Expectation] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        for severity, code, is_help, text in _EXPECTED.findall(line):
            if not is_help:
                found.append(Expectation(name, number, severity, code, text.strip()))
                continue
            assert found, f"{file}:{number}: `help:` without a finding before it"
            last = found.pop()
            found.append(Expectation(*last.place, last.message, text.strip()))
    return found


def all_cases() -> list[Case]:
    """Every case: the files and the folders of `cases/`."""
    return [
        Case(path)
        for path in sorted(CASES.iterdir())
        if path.suffix == ".nem" or (path / "main.nem").is_file()
    ]
