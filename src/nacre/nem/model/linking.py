"""Which devices and families each file sees, and every device resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nacre.base.diagnostics import Diagnostic, InternalError, Related
from nacre.base.fixes import include_fix, respelling_fix
from nacre.base.rules import Rule
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.nem.model.builtins import builtin_file, builtin_names
from nacre.nem.model.devices import Device, device_span, resolve_device
from nacre.nem.model.families import Family, standard_families
from nacre.nem.model.file import File
from nacre.nem.spec.rules.devices import INH07, INH09
from nacre.nem.spec.rules.includes import INC05, INC06
from nacre.nem.syntax import ast

Reported = set[frozenset[Span]]  # pairs of definitions that have been reported


@dataclass(slots=True)
class LinkedFile:
    """A file's own definitions and what it sees of others."""

    file: File
    own_devices: dict[str, Device] = field(default_factory=dict)
    own_families: dict[str, Family] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)  # visible, own ones too
    families: dict[str, Family] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    unread: frozenset[str] = frozenset()  # what could not be read, here or in an included file
    is_partial: bool = False  # an included file is missing
    reached: set[int] = field(default_factory=set)  # the files that it includes, by identity

    def may_define(self, name: str) -> bool:
        """Whether a name that is not defined could stand where reading failed."""
        return self.is_partial or name in self.unread


def all_files(root: File) -> list[File]:
    """Every file that takes part, those that others need first, the root last."""
    files: dict[int, File] = {}
    for start in (root, *((root.device_file[1],) if root.device_file else ())):
        for file in (*start.reachable(), start):
            files.setdefault(id(file), file)
    files.pop(id(root))
    return [*files.values(), root]


def link(root: File) -> dict[int, LinkedFile]:
    """Link every file, by the file's identity."""
    linked: dict[int, LinkedFile] = {}
    reported: Reported = set()
    for file in all_files(root):
        linked[id(file)] = _link_file(file, linked, reported)
    return linked


def _link_file(file: File, linked: Mapping[int, LinkedFile], reported: Reported) -> LinkedFile:
    result = LinkedFile(file, unread=file.parsed.unread, is_partial=bool(file.findings))
    for link_span, target in file.includes:
        if id(target) not in result.reached:
            _include_file(result, linked[id(target)], link_span, reported)
    for node in file.parsed.document.families:
        family = Family(node, file.source)
        _add_family(result, family.name, family, family.span, reported)
        result.own_families.setdefault(family.name, family)
    for config in file.parsed.document.devices:
        _define_device(result, config, reported)
    return result


def _include_file(into: LinkedFile, other: LinkedFile, at: Span, reported: Reported) -> None:
    into.reached |= other.reached | {id(other.file)}
    into.unread |= other.unread
    into.is_partial = into.is_partial or other.is_partial
    for name, family in other.families.items():
        _add_family(into, name, family, at, reported)
    for name, device in other.devices.items():
        _add_device(into, name, device, at, reported)


def _add_family(into: LinkedFile, name: str, family: Family, at: Span, reported: Reported) -> None:
    known = into.families.setdefault(name, family)
    pair = frozenset((known.span, family.span))
    if known.span != family.span and pair not in reported:
        reported.add(pair)
        into.findings.append(
            _duplicate_finding(INC06, "type family", name, at, known.span, family.span)
        )


def _add_device(into: LinkedFile, name: str, device: Device, at: Span, reported: Reported) -> None:
    known = into.devices.setdefault(name, device)
    first, second = _span(known), _span(device)
    pair = frozenset((first, second))
    if first != second and pair not in reported:
        reported.add(pair)
        into.findings.append(_duplicate_finding(INC05, "device", name, at, first, second))


def _duplicate_finding(
    rule: Rule, what: str, name: str, at: Span, first: Span, second: Span
) -> Diagnostic:
    related = [Related(first, "defined here")]
    if second != at:
        related.append(Related(second, "and here"))
    return rule.at(at, f"{what} `{name}` is defined twice", related=tuple(related),
                   help="rename one of them, or include only one of the files")  # fmt: skip


def _span(device: Device) -> Span:
    span = device_span(device)
    if span is None:
        raise InternalError(f"device {device.name} has no declaration")
    return span


def _define_device(into: LinkedFile, node: ast.DeviceConfig, reported: Reported) -> None:
    source = into.file.source
    families = {**standard_families(), **into.families}
    parent = into.devices.get(node.extends.name) if node.extends is not None else None
    if node.extends is not None and (parent is None or node.extends.name == node.name.name):
        into.findings += _missing_parent(into, node, node.extends)
        parent = None
    device = resolve_device(node, source, parent, families)
    _add_device(into, device.name, device, _span(device), reported)
    into.own_devices.setdefault(device.name, device)


def _missing_parent(
    into: LinkedFile, node: ast.DeviceConfig, extends: ast.NameRef
) -> Iterator[Diagnostic]:
    name, parent = node.name.name, extends.name
    span = into.file.source.span(extends.start, extends.end)
    by_name = {d.name.name: d for d in into.file.parsed.document.devices}
    seen, at = {name}, parent
    while at in by_name and at not in seen:
        seen.add(at)
        above = by_name[at].extends
        at = above.name if above is not None else ""
    if at == name:
        if into.own_devices.keys().isdisjoint(seen):  # the first of the circle speaks for all
            way = "" if parent == name else f" by way of `{parent}`"
            yield INH09.at(span, f"device `{name}` extends itself{way}")
    elif parent in by_name:
        definition = by_name[parent].name
        related = (
            Related(into.file.source.span(definition.start, definition.end), "defined here"),
        )
        yield INH07.at(span, f"parent device `{parent}` is defined further down",
                       related=related, help="move it above")  # fmt: skip
    elif not into.may_define(parent):
        help_ = did_you_mean(parent, into.devices)
        fix = respelling_fix(span, parent, into.devices)
        if parent in builtin_names():
            help_ = f'add `include "{builtin_file(parent)}"`'
            fix = include_fix(span.source, builtin_file(parent))
        yield INH07.at(span, f"parent device `{parent}` is not defined", help=help_, fix=fix)
