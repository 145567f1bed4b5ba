"""Which device a program is for: the option, else the directive, else none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Fix, InternalError, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import include_fix, respelling_fix
from nacre.base.source import Span, Unreadable
from nacre.base.suggest import did_you_mean
from nacre.nem.bytecode.sources import read_program
from nacre.nem.model.builtins import builtin, builtin_file, builtin_names
from nacre.nem.model.devices import Device, default_device, device_span
from nacre.nem.model.file import File
from nacre.nem.model.files import IncludeRoots, default_roots, load, unreadable_finding
from nacre.nem.model.linking import LinkedFile, link
from nacre.nem.spec.rules.devices import DEV11, INH03
from nacre.nem.spec.rules.includes import DVD01, DVD02, DVD04
from nacre.nem.syntax.ast import NameRef
from nacre.nem.syntax.parser import parse


class Target(Struct, frozen=True):
    """The device, whether anybody named it, and what choosing it brought up."""

    device: Device
    is_named: bool
    diagnostics: tuple[Diagnostic, ...] = ()


class UnknownDeviceError(Exception):
    """An option asked for a device that does not exist or cannot be a target."""


def directive_target(root: File, linked: Mapping[int, LinkedFile]) -> Target:
    """The device that a program names; the default one where it names none or wrongly."""
    document = root.parsed.document
    scope = linked[id(root)]
    if not document.is_program:
        return Target(default_device(), False)
    if document.device is None:
        if not document.devices:
            return _unknown_target() if root.parsed.unread else Target(default_device(), False)
        inline = scope.devices[document.devices[0].name.name]
        name = document.devices[0].name
        return _concrete_target(inline, root.source.span(name.start, name.end))
    span = root.source.span(document.device.target.start, document.device.target.end)
    if isinstance(document.device.target, NameRef):
        return _named_target(document.device.target.name, span, scope)
    if root.device_file is None:  # why it could not be read has been reported
        return _unknown_target()
    return _only_leaf(linked[id(root.device_file[1])], span)


def _unknown_target(*findings: Diagnostic) -> Target:
    """A device was named but is not known: it has types, and no figure to hold against anything."""
    return Target(replace(default_device(), name="(unknown)", topology=None), True, findings)


def _named_target(name: str, span: Span, scope: LinkedFile) -> Target:
    device = scope.devices.get(name)
    if device is not None:
        return _concrete_target(device, span)
    if name in builtin_names():
        help_: str | None = f'add `include "{builtin_file(name)}"` at the top of the file'
        fix: Fix | None = include_fix(span.source, builtin_file(name))
    else:
        help_ = did_you_mean(name, (*scope.devices, *builtin_names()))
        fix = respelling_fix(span, name, (*scope.devices, *builtin_names()))
    if scope.may_define(name):
        return _unknown_target()
    message = f"device {backquote(name)} is not defined in an included file"
    return _unknown_target(DVD01.at(span, message, help=help_, fix=fix))


def _concrete_target(device: Device, span: Span) -> Target:
    if not device.is_abstract:
        return Target(device, True)
    name = device_span(device)
    related = (Related(name, "defined here"),) if name is not None and name != span else ()
    if device.lacks_parent:  # which has been reported
        return _unknown_target()
    if device.parent is not None:
        finding = INH03.at(span, f"device `{device.name}` has no topology, nor has its parent",
                         related=related, help="add a `topology { ... }` block")  # fmt: skip
    else:
        finding = DEV11.at(span, f"device `{device.name}` has no topology and cannot be a target",
                         related=related, help="extend it with a topology")  # fmt: skip
    return _unknown_target(finding)


def _only_leaf(scope: LinkedFile, span: Span) -> Target:
    """The one device of a file that has a topology and that no other device of it extends."""
    extended = {
        d.node.extends.name for d in scope.own_devices.values() if d.node and d.node.extends
    }
    leaves = [d for n, d in scope.own_devices.items() if n not in extended and not d.is_abstract]
    if len(leaves) == 1:
        return Target(leaves[0], True)
    if scope.file.parsed.unread or any(d.lacks_parent for d in scope.own_devices.values()):
        return _unknown_target()
    name = scope.file.source.name
    if leaves:
        names = ", ".join(f"`{d.name}`" for d in leaves)
        message = f"{backquote(name, 60)} holds several devices: {names}"
        help_ = "include the file and write `device NAME`"
    elif scope.own_devices:
        message = f"{backquote(name, 60)} holds no device with a topology"
        help_ = "name a file with a device that has a `topology` block"
    else:
        message = f"{backquote(name, 60)} holds no device"
        help_ = "name a file with a device configuration"
    return _unknown_target(DVD02.at(span, message, help=help_))


def builtin_target(name: str) -> Target:
    """The built-in device that an option names."""
    device = builtin_device(name)
    if device.is_abstract:
        raise UnknownDeviceError(f"device `{name}` has no topology and cannot be a target")
    return Target(device, True)


def builtin_device(name: str) -> Device:
    """A built-in device by its name."""
    parsed = builtin(builtin_file(name))
    if parsed is None:
        raise InternalError(f"there is no built-in device {name}")
    root = load(parsed, IncludeRoots(()), is_builtin=True)
    return link(root)[id(root)].own_devices[name]


def load_device_file(name: str, include_roots: tuple[Path, ...] = ()) -> File:
    """The file that an option names where a device is asked for, with what it includes."""
    path = Path(name)
    source = read_program(path)
    if isinstance(source, Unreadable):
        if source.kind == "missing" and not path.suffix and "/" not in name:
            near = did_you_mean(name, builtin_names())
            known = f"the built-in devices are {', '.join(builtin_names()[1:])}"
            raise UnknownDeviceError(f"no device `{name}`; {near or known}")
        raise UnknownDeviceError(str(unreadable_finding(name, path, source).message))
    return load(parse(source), default_roots(path, include_roots))


def file_target(root: File, linked: Mapping[int, LinkedFile]) -> Target:
    """The only device of a file that can be a target."""
    return _only_leaf(linked[id(root)], root.source.span(0, 0))


def override_note(root: File, chosen: Device) -> tuple[Diagnostic, ...]:
    """The note that an option's device replaces the one that the program names."""
    document = root.parsed.document
    node = document.device.target if document.device is not None else None
    if node is None and document.is_program and document.devices:
        node = document.devices[0].name
    if node is None:
        return ()
    span = root.source.span(node.start, node.end)
    return (DVD04.at(span, f"device `{chosen.name}`, given as an option, replaces this one"),)
