"""Checking a file: load, link, resolve, then ask every rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from nacre.base.collection import no_collection
from nacre.base.diagnostics import (
    Diagnostic,
    Related,
    in_order,
    warnings_as_errors,
)
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.base.stages import stage
from nacre.nem.checks.facts import DeviceFacts, ProgramFacts
from nacre.nem.checks.rule_sets import DEVICE_RULES, FAMILY_RULES, ORDER_RULES, STATEMENT_RULES
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.model.expressions import Expressions
from nacre.nem.model.families import standard_families
from nacre.nem.model.file import File
from nacre.nem.model.files import default_roots, load
from nacre.nem.model.folding import MEMORY_SIZE
from nacre.nem.model.imports import Import
from nacre.nem.model.linking import LinkedFile, all_files, link
from nacre.nem.model.names import Names
from nacre.nem.model.resolver import resolve
from nacre.nem.model.target import (
    Target,
    builtin_target,
    directive_target,
    file_target,
    load_device_file,
    override_note,
)
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES, MAX_DIAGNOSTICS, MAX_TASK_INSTANCES
from nacre.nem.spec.rules.document import DOC25
from nacre.nem.spec.rules.includes import INC03
from nacre.nem.syntax.parser import parse


class CheckOptions(Struct, frozen=True, kw_only=True):
    """How a program is checked."""

    device: str | Device | None = None  # a built-in one, a file's, or a value: replaces the own
    strict: bool = False  # warnings become errors, and extensions of the grammar are warned about
    include_roots: tuple[Path, ...] = ()  # folders beside the default one
    ddr_size_bytes: int = DEFAULT_DDR_BYTES
    l2_size_bytes: int | None = None  # where no device is named
    l1_size_bytes: int | None = None
    max_instances: int = MAX_TASK_INSTANCES  # that loops may expand to
    host_filled: frozenset[str] = frozenset()  # buffers that the host fills, wholly or in part
    imports: tuple[Import, ...] = ()  # buffers whose contents are the host's


class CheckResult(Struct, frozen=True):
    """The device that was chosen, every finding in order, and the program where there is one."""

    device: Device
    diagnostics: tuple[Diagnostic, ...]
    facts: ProgramFacts | None = None
    needed: tuple[Path, ...] = ()  # other files that were read


class ResolvedSource(Struct, frozen=True):
    """A document with its device and its program, before rules are asked about that."""

    device: Device
    findings: tuple[Diagnostic, ...]
    facts: ProgramFacts | None = None
    needed: tuple[Path, ...] = ()  # other files that were read


def check_source(source: Source, options: CheckOptions) -> CheckResult:
    """Ask every rule about a document and what it includes."""
    return check_resolved(resolve_source(source, options), options)


def resolve_source(source: Source, options: CheckOptions) -> ResolvedSource:
    """Read a document and what it includes, and resolve the names of its program."""
    with no_collection():
        return _resolve(source, options)


def check_resolved(resolved: ResolvedSource, options: CheckOptions) -> CheckResult:
    """Ask every rule about a program."""
    findings = list(resolved.findings)
    facts = resolved.facts
    if facts is not None:
        with no_collection():
            findings += _check_program(facts)
    found = tuple(_select_findings(findings, options.strict))
    return CheckResult(resolved.device, found, facts, resolved.needed)


def _resolve(source: Source, options: CheckOptions) -> ResolvedSource:
    with stage("reading"):
        root = load(parse(source), default_roots(source.path, options.include_roots))
    linked = link(root)
    findings = _check_files(root, linked)
    target = _target(root, linked, options)
    findings += target.diagnostics
    if not root.parsed.document.is_program:
        return ResolvedSource(target.device, tuple(findings))
    of_names, facts = _resolve_program(root, target, options)
    paths = (file.source.path for file in root.needed() if not file.is_builtin)
    needed = tuple(path for path in paths if path is not None)
    return ResolvedSource(facts.device, (*findings, *of_names), facts, needed)


def _target(root: File, linked: Mapping[int, LinkedFile], options: CheckOptions) -> Target:
    if options.device is None:
        target = directive_target(root, linked)
        if target.is_named:
            return target
        return Target(resize_memories(target.device, options), False, target.diagnostics)
    if isinstance(options.device, Device):
        return Target(options.device, True, override_note(root, options.device))
    chosen = named_device(options.device, options.include_roots)
    notes = override_note(root, chosen.device)
    return Target(chosen.device, True, (*chosen.diagnostics, *notes))


def resize_memories(device: Device, options: CheckOptions) -> Device:
    """Where no device is named, the caller may say how large L1 and L2 are."""
    topology = device.topology
    if topology is None:
        return device
    sizes = dataclasses.replace(
        topology,
        l1_size_bytes=options.l1_size_bytes or topology.l1_size_bytes,
        l2_size_bytes=options.l2_size_bytes or topology.l2_size_bytes,
    )
    return dataclasses.replace(device, topology=sizes)


def named_device(name: str, include_roots: tuple[Path, ...] = ()) -> Target:
    """The device that an option asks for: a built-in one, or the only one of a file, checked."""
    if name in builtin_names():
        return builtin_target(name)
    root = load_device_file(name, include_roots)
    linked = link(root)
    target = file_target(root, linked)
    return Target(target.device, True, (*_check_files(root, linked), *target.diagnostics))


def _check_files(root: File, linked: Mapping[int, LinkedFile]) -> list[Diagnostic]:
    """The findings of every file, those of the root first; includes of bad files get INC03."""
    by_file: dict[int, list[Diagnostic]] = {}
    for file in all_files(root):
        if file.is_builtin:
            by_file[id(file)] = []
            continue
        findings = [*file.parsed.diagnostics, *file.findings, *_check_configs(linked[id(file)])]
        references = [*file.includes, *([file.device_file] if file.device_file else [])]
        for span, target in references:
            errors = [d for d in by_file.get(id(target), ()) if d.severity == "error"]
            if errors:
                message = f"included file `{target.source.name}` has errors"
                findings.append(INC03.at(span, message, related=_cause(errors[0])))
        by_file[id(file)] = in_order(findings)
    of_root = by_file.pop(id(root))
    return of_root + [d for findings in by_file.values() for d in findings]


def _cause(first: Diagnostic) -> tuple[Related, ...]:
    if first.code == INC03.code:  # not the next link of the chain but its end
        return first.related
    return (Related(first.span, f"{first.code}: {first.message}"),)


def _check_configs(linked: LinkedFile) -> Iterator[Diagnostic]:
    file = linked.file
    yield from linked.findings
    families = {**standard_families(), **linked.families}
    for family in linked.own_families.values():
        for check in FAMILY_RULES:
            yield from check(family)
    for node in file.parsed.document.devices:
        device = linked.own_devices[node.name.name]
        if device.node is not node:  # a second device of the name, which has been reported
            continue
        facts = DeviceFacts(node, file.source, device, families, linked)
        yield from _memory_sizes(facts)
        for device_check in DEVICE_RULES:
            yield from device_check(facts)


def _memory_sizes(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """Sizes are expressions, but a device document has no constants to name."""
    topology = facts.node.topology
    if topology is None:
        return
    names = Names(facts.source)
    per_engine = topology.per_engine
    for size in (topology.l2_size, per_engine.l1_size if per_engine is not None else None):
        if size is not None:
            Expressions(names).resolve(size, MEMORY_SIZE)
    yield from names.findings


def _resolve_program(
    root: File, target: Target, options: CheckOptions
) -> tuple[Sequence[Diagnostic], ProgramFacts]:
    with stage("resolving names"):
        resolved = resolve(root.source, root.parsed.document, is_valid=root.parsed.is_valid)
    facts = ProgramFacts(
        resolved.program,
        target.device,
        target.is_named,
        options.ddr_size_bytes,
        options.max_instances,
        options.host_filled | {mark.name for mark in options.imports},
        {mark.name: mark for mark in options.imports},
    )
    return resolved.diagnostics, facts


def _check_program(facts: ProgramFacts) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    rules = STATEMENT_RULES + (ORDER_RULES if facts.program.is_whole else ())
    asked = 0
    with stage("checking", "rules", lambda: (asked, len(rules))):
        for check in rules:
            findings += check(facts)
            asked += 1
    return findings


def _select_findings(findings: Iterable[Diagnostic], strict: bool) -> list[Diagnostic]:
    if strict:
        return _limit_findings(in_order(warnings_as_errors(findings)))
    return _limit_findings(in_order(d for d in findings if not RULES[d.code].strict_only))


def _limit_findings(findings: list[Diagnostic]) -> list[Diagnostic]:
    """At most so many findings, errors before others, and a note where some are left out."""
    if len(findings) <= MAX_DIAGNOSTICS:
        return findings
    rank = {"error": 0, "warning": 1, "info": 2}
    first = in_order(sorted(findings, key=lambda d: rank[d.severity])[:MAX_DIAGNOSTICS])
    message = f"more than {MAX_DIAGNOSTICS} findings; the rest is left out"
    return [*first, DOC25.at(first[-1].span, message, help="mend these first")]
