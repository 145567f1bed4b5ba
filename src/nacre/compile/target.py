"""The device that a model is compiled for, and how a program names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.compile.rules import CMP04
from nacre.nem.checks.engine import named_device
from nacre.nem.model.builtins import builtin, builtin_file, builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.model.figures import figure_problems
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.syntax.parser import parse


@dataclass(frozen=True)
class Target:
    """A device and the lines at the head of its programs."""

    device: Device
    head: tuple[str, ...]


def request_error(message: str, help: str | None = None) -> InputError:
    """The exception for something that was asked for and does not exist."""
    return InputError([CMP04.at(whole_file("<compile>"), message, help=help)])


def target_of(device: str | Path | Device, include_roots: tuple[Path, ...] = ()) -> Target:
    """The device that a caller names: a built-in one, that of a file, or a value."""
    if isinstance(device, Device):
        if problems := figure_problems(device):
            raise request_error("; ".join(problems))
        return Target(device, _head(device))
    if not isinstance(device, str | Path):
        problem = f"a device is a name, a path or a `Device`, found {type(device).__name__}"
        raise request_error(problem, "`nacre devices` lists those that are built in")
    try:
        known = named_device(str(device), include_roots)
    except UnknownDeviceError as error:
        if not Path(device).is_file():
            raise request_error(str(error)) from None
        message = f"{backquote(Path(device).name, 60)} cannot be read as a device: {error}"
        raise InputError([CMP04.at(whole_file(str(device)), message)]) from None
    errors = [d for d in known.diagnostics if d.severity == "error"]
    if errors:
        raise InputError(errors)
    return Target(known.device, _head(known.device))


def _head(device: Device) -> tuple[str, ...]:
    """How a program names a device: a built-in one is included, another is written out."""
    if device.name in builtin_names() and _is_builtin(device):
        return (f'include "{builtin_file(device.name)}"', "", f"device {device.name}")
    chain: list[Device] = []
    at: Device | None = device
    while at is not None and not _is_builtin(at):
        chain.append(at)
        at = at.parent
    if at is None or any(d.node is None or d.source is None for d in chain):
        raise request_error(
            f"device `{device.name}` does not extend a built-in device",
            "let it extend `nem_baseline_1_0`",
        )
    sources = dict.fromkeys(d.source for d in chain if d.source is not None)
    documents = {source: parse(source).document for source in sources}
    shipped = dict.fromkeys([builtin_file(at.name)])
    for document in documents.values():
        shipped |= dict.fromkeys(i.path.value for i in document.includes if builtin(i.path.value))
    # The first device that a program writes out is the one that it is for.
    texts = [d.source.text[d.node.start : d.node.end] for d in chain]  # type: ignore[union-attr]
    families = (family.name.name for one in documents.values() for family in one.families)
    for name in families:
        if any(f"{name}<" in text or f"{name}." in text for text in texts):
            raise request_error(
                f"device `{device.name}` has operations of `{name}`, a type family of its file, "
                "and a program defines none",
                "compile for a device without them: one that this device extends, or a copy",
            )
    return (*(f'include "{name}"' for name in shipped), "", *texts)


def _is_builtin(device: Device) -> bool:
    return device.source is not None and device.source.name.startswith("nacre:")
