"""Programs as modules of MLIR, for Python programs."""

from __future__ import annotations

from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import MAX_SOURCE_BYTES, Source
from nacre.nem.api.documents import TEXT_NAME, require_text
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.mlir.export import export_source
from nacre.nem.mlir.importing import ImportedText, import_source
from nacre.nem.mlir.module_places import move_to_operations
from nacre.nem.mlir.origins import operation_places, origin_source
from nacre.nem.model.files import default_roots
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.spec.rules.includes import DVD01
from nacre.nem.spec.rules.mlir import MLR02


def to_mlir(text: str, name: str = TEXT_NAME) -> str:
    """A NEM text as a module of MLIR; `name` is what its locations call the file.

    InputError where the text does not follow the grammar.
    """
    return export_source(Source(name, require_text("to_mlir", text)))


def from_mlir(text: str, name: str = TEXT_NAME) -> str:
    """The canonical NEM text of a module; InputError where it is none."""
    return import_source(_bounded(require_text("from_mlir", text), name)).text


def check_mlir(
    text: str, device: str | None = None, strict: bool = False, name: str = TEXT_NAME
) -> list[Diagnostic]:
    """Every finding in the program of a module, at the places that its locations name.

    In a module without locations, or with those of several files, they stand at its operations.
    """
    imported = import_source(_bounded(require_text("check_mlir", text), name))
    return findings(imported, CheckOptions(device=device, strict=strict))


def findings(imported: ImportedText, options: CheckOptions) -> list[Diagnostic]:
    """What is wrong with a program that was read from a module.

    Includes are looked for from the file that its locations name, where that lies in the module's
    project, else from the module's own.
    """
    module, origin = imported.module, origin_source(imported)
    if origin is not None:
        path = _origin_path(origin.name, module.path, options.include_roots)
        source = Source(origin.name, origin.text, path or module.path)
    else:
        source = Source(module.name, imported.text, module.path)
    try:
        checked = check_source(source, options)
    except UnknownDeviceError as error:
        raise InputError([DVD01.at(module.span(0, 0), str(error))]) from None
    if origin is not None:
        return list(checked.diagnostics)
    places = operation_places(imported, source)
    return move_to_operations(checked.diagnostics, source, module, places)


def _origin_path(name: str, module: Path | None, more: tuple[Path, ...]) -> Path | None:
    """Where the file lies that a module comes from; strangers do not choose what is read."""
    roots = default_roots(module, more)
    ways = [Path(name), *([module.parent / name] if module is not None else [])]
    for path in ways if "\0" not in name else ():
        if path.parent.is_dir() and roots.contains(path.resolve()):
            return path
    return None


def _bounded(text: str, name: str) -> Source:
    source = Source(name, text)
    if len(text) > MAX_SOURCE_BYTES:
        message = f"has {len(text):,} characters; the limit is {MAX_SOURCE_BYTES:,}"
        help_ = "write what repeats as a `nem.loop`"
        raise InputError([MLR02.at(source.span(0, 0), message, help=help_)])
    return source
