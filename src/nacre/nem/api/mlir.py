"""Programs as modules of MLIR, for Python programs."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import MAX_SOURCE_BYTES, Source
from nacre.nem.api.documents import TEXT_NAME
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.mlir.export import export_source
from nacre.nem.mlir.importing import Imported, import_source
from nacre.nem.mlir.origins import origin_source
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.spec.rules.includes import DVD01
from nacre.nem.spec.rules.mlir import MLR02


def to_mlir(text: str, name: str = TEXT_NAME) -> str:
    """A NEM text as a module of MLIR; `name` is what its locations call the file.

    InputError where the text does not follow the grammar.
    """
    return export_source(Source(name, text))


def from_mlir(text: str, name: str = TEXT_NAME) -> str:
    """The canonical NEM text of a module; InputError where it is none."""
    return import_source(_bounded(text, name)).text


def check_mlir(
    text: str, device: str | None = None, strict: bool = False, name: str = TEXT_NAME
) -> list[Diagnostic]:
    """Every finding in the program of a module, at the places that its locations name.

    A module without locations, or with those of several files, is judged as its NEM text.
    """
    imported = import_source(_bounded(text, name))
    return findings(imported, name, device=device, strict=strict)


def findings(
    imported: Imported, name: str, *, device: str | None, strict: bool
) -> list[Diagnostic]:
    """What is wrong with a program that was read from a module."""
    source = origin_source(imported, name)
    try:
        checked = check_source(source, CheckOptions(device=device, strict=strict))
    except UnknownDeviceError as error:
        raise InputError([DVD01.at(source.span(0, 0), str(error))]) from None
    return list(checked.diagnostics)


def _bounded(text: str, name: str) -> Source:
    source = Source(name, text)
    if len(text) > MAX_SOURCE_BYTES:
        message = f"has {len(text):,} characters; the limit is {MAX_SOURCE_BYTES:,}"
        raise InputError([MLR02.at(source.span(0, 0), message)])
    return source
