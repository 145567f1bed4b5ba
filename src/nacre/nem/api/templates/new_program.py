"""A new program from a template, for a device: written, laid out and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.api.templates import attention, conv2d, gemm
from nacre.nem.api.templates.names import TEMPLATE_NAMES
from nacre.nem.api.templates.setting import Setting, setting_for
from nacre.nem.checks.engine import CheckOptions, check_source, named_device
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.target import builtin_device
from nacre.nem.syntax.formatter import format_source

TEMPLATES: Mapping[str, Callable[[Setting], str]] = MappingProxyType(
    dict(zip(TEMPLATE_NAMES, (gemm.write, conv2d.write, attention.write), strict=True))
)


def new_program(
    name: str,
    template: str,
    device: str,
    path: Path | None = None,
    include_roots: tuple[Path, ...] = (),
) -> str:
    """The text of a program, which has no errors and no warnings.

    `device` is a built-in one, or a file. `path` is where the text will stand: what it includes is
    looked for from there. Where the device cannot carry the template, InputError has the findings;
    a device that does not exist is UnknownDeviceError.
    """
    text = TEMPLATES[template](_setting(name, device, path, include_roots))
    file_name = str(path) if path is not None else f"{name}.nem"
    source = Source(file_name, format_source(Source(file_name, text)), path)
    diagnostics = check_source(source, CheckOptions(include_roots=include_roots)).diagnostics
    refused = [each for each in diagnostics if each.severity != "info"]
    if refused:
        raise InputError(refused)
    return source.text


def _setting(name: str, device: str, path: Path | None, include_roots: tuple[Path, ...]) -> Setting:
    if device in builtin_names():
        return setting_for(name, device, builtin_device(device))
    folder = path.parent if path is not None else Path()
    named = os.path.relpath(device, folder).replace(os.sep, "/")
    return setting_for(name, named, named_device(device, include_roots).device)
