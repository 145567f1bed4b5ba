"""What the rules look at, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.base.source import Source, Span
from nacre.nem.model.devices import Device
from nacre.nem.model.families import Family
from nacre.nem.model.program import Program
from nacre.nem.syntax import ast


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device configuration, what it resolves to, and the families that it sees."""

    node: ast.DeviceConfig
    source: Source
    device: Device
    families: Mapping[str, Family]

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.source.span(node.start, node.end)


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """A resolved program and its device."""

    program: Program
    device: Device
    device_is_named: bool
    ddr_size_bytes: int

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.program.span(node)
