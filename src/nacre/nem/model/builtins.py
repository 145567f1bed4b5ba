"""The files that nacre ships: the baseline, the built-in devices, and families beyond the text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nacre.base.diagnostics import InternalError
from nacre.base.source import Source, Unreadable, read_source
from nacre.nem.syntax.parser import ParseResult, parse

_SPEC = Path(__file__).resolve().parent.parent / "spec"
BASELINE_FILE = "nem_baseline_1.0.nem"
BASELINE_DEVICE = "nem_baseline_1_0"
_PREFIX = "nacre"  # of the names of sources that nacre ships


@cache
def builtin_names() -> tuple[str, ...]:
    """The names of the built-in devices, the abstract baseline first."""
    return (BASELINE_DEVICE, *sorted(path.stem for path in (_SPEC / "devices").glob("*.nem")))


def builtin_file(device: str) -> str:
    """The file that defines a built-in device."""
    return BASELINE_FILE if device == BASELINE_DEVICE else f"{device}.nem"


def builtin_path(source_name: str) -> Path | None:
    """Where a shipped file lies, by the name that its source has; None for any other source."""
    prefix, _, file_name = source_name.partition(":")
    return _shipped().get(file_name) if prefix == _PREFIX else None


def builtin(file_name: str) -> ParseResult | None:
    """A shipped file by its plain name, parsed; None when there is none of that name."""
    return _parse(file_name) if file_name in _shipped() else None


@cache
def _shipped() -> dict[str, Path]:
    """Every file that an `include` finds without a folder, by its plain name."""
    files = (_SPEC / BASELINE_FILE, *_SPEC.glob("devices/*.nem"), *_SPEC.glob("families/*.nem"))
    return {path.name: path for path in files}


@cache
def _parse(file_name: str) -> ParseResult:
    path = _shipped()[file_name]
    source = read_source(path, name=f"{_PREFIX}:{file_name}")
    if isinstance(source, Unreadable):
        raise InternalError(f"shipped file {file_name} {source.reason}")
    return parse(Source(source.name, source.text))
