"""What the rules look at, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from nacre.base.source import Source, Span
from nacre.nem.model.devices import Device
from nacre.nem.model.families import Family
from nacre.nem.model.imports import Import
from nacre.nem.model.linking import LinkedFile
from nacre.nem.model.program import Program
from nacre.nem.plan.conflicts import Conflict, find_conflicts
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.spec.limits import MAX_TASK_INSTANCES
from nacre.nem.syntax import ast


class DeviceFacts(Struct, frozen=True):
    """A device configuration, what it resolves to, and the families that it sees."""

    node: ast.DeviceConfig
    source: Source
    device: Device
    families: Mapping[str, Family]
    linked: LinkedFile

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.source.span(node.start, node.end)

    def may_be_elsewhere(self, name: str) -> bool:
        """Whether a name that is not defined could stand where reading failed."""
        return self.linked.may_define(name)


@dataclass(frozen=True)
class ProgramFacts:
    """A resolved program and its device; the plan and the conflicts are made when asked for."""

    program: Program
    device: Device
    device_is_named: bool
    ddr_size_bytes: int
    max_instances: int = MAX_TASK_INSTANCES
    host_filled: frozenset[str] = frozenset()  # buffers that hold something from the start
    imports: Mapping[str, Import] = field(default_factory=dict)  # the host's marks, by buffer

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.program.span(node)

    @cached_property
    def plan(self) -> Plan:
        """The program expanded."""
        return build_plan(self.program, self.max_instances)

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicting accesses that nothing orders."""
        return tuple(find_conflicts(self.plan))
