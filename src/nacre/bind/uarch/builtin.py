"""The microarchitectures that nacre ships, one for each device that has one, and the ideal one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nacre.base.diagnostics import InputError, InternalError
from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, read_source, whole_file
from nacre.base.suggest import did_you_mean
from nacre.bind.uarch.reader import IDEAL, Uarch, read_uarch
from nacre.bind.uarch.rules import BND13

_FOLDER = Path(__file__).resolve().parent / "files"


@cache
def builtin_uarchs() -> tuple[str, ...]:
    """Their names."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.uarch")))


def load_uarch(name: str | Path | None, device: str, *extended: str) -> Uarch:
    """A microarchitecture by name or from a file; without either that of a device, or ideal.

    A device that has none has that of the nearest device that it extends.
    """
    if name is None:
        own = (known for known in (device, *extended) if known in builtin_uarchs())
        name = next(own, IDEAL.name)
    if str(name) in builtin_uarchs():
        return _builtin(str(name))
    source = read_source(Path(name)) if str(name) else Unreadable("names no file", "missing")
    if isinstance(source, Unreadable):
        known = did_you_mean(str(name), builtin_uarchs())
        help_ = known or f"known by name are {', '.join(builtin_uarchs())}; a file ends in .uarch"
        span = source.span or whole_file(str(name))
        raise InputError([BND13.at(span, f"{backquote(str(name))} {source.reason}", help=help_)])
    result = read_uarch(source)
    if result.diagnostics:
        raise InputError(list(result.diagnostics))
    return result.uarch


@cache
def _builtin(name: str) -> Uarch:
    source = read_source(_FOLDER / f"{name}.uarch", name=f"nacre:{name}.uarch")
    if isinstance(source, Unreadable):
        raise InternalError(f"shipped file {name}.uarch {source.reason}")
    result = read_uarch(source)
    if result.diagnostics:
        raise InternalError(f"shipped file {name}.uarch: {result.diagnostics[0].message}")
    return result.uarch
