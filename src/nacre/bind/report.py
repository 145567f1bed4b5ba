"""Every decision of a binding with its reason, as text for terminals and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from nacre.base.excerpt import safe
from nacre.bind.chains.savings import ChainSavings, chain_savings
from nacre.bind.fusion import NotFused
from nacre.bind.report_banks import BankReport
from nacre.bind.report_requests import RequestReport, priority_json, priority_sections
from nacre.bind.report_weights import WeightReport
from nacre.bind.request import Bound
from nacre.bind.store_formats import Conversion
from nacre.bind.tag_pressure import Serialisation
from nacre.bind.task_places import TaskPlaces, plural
from nacre.bind.units import UnitDecision
from nacre.nem.model.program import Program
from nacre.nem.plan.fusion.chains import Chain
from nacre.nem.run.sessions.tables import align_table
from nacre.tcb.image import DEVICE, Item, Port, Repeat

_MATCHES = {
    "free": "any that can run it",
    "exact": "the instance that `@resource` asks for",
    "remapped": "of the type that `@resource` asks for, the instance modulo their number",
    "translated": "another type than `@resource` asks for, of which none can run it",
}
_CONVERSION_HEADING = ("Store", "Line", "Does", "Format")
_SHOWN_PORTS = 8
_NO_SAVINGS = ChainSavings()


class BindReport:
    """A bound program in words."""

    def __init__(self, bound: Bound, program: Program) -> None:
        self._bound, self._program, self._image = bound, program, bound.image
        self._places = TaskPlaces(program)
        self._banks = BankReport(bound.banks)
        self._requests = RequestReport(bound.requests, program, self._places)
        self._weights = WeightReport(bound.weights, self._places)

    @property
    def summary(self) -> str:
        """What came out, in a few lines."""
        machine, fused = self._image.machine, self._bound.fused
        kinds, repeats = self._counts["block"], self._counts["repeat"]
        streams = len(self._image.streams)
        lines = [
            f"bound {self._image.entry} to {machine.device} with uarch {machine.uarch}: "
            f"{plural(kinds, 'block')} in {plural(streams, 'stream')}, "
            f"{plural(repeats, 'repeat')}",
            f"tags: {self._tags_text}",
            f"chains: {self._chains_text}" + (f"; {plural(len(fused.refusals), 'pair')} not fused"
                                              if fused.refusals else ""),
        ]  # fmt: skip
        if self._banks.summary is not None:
            lines.append(f"banks: {self._banks.summary}")
        if fused.conversions:
            lines.append(
                f"stores: {plural(len(fused.conversions), 'conversion')} on the store path"
            )
        if self._weights.summary is not None:
            lines.append(f"weights: {self._weights.summary}")
        serialised = list(map(_serialisation_text, self._bound.serialised))
        lines += [f"serialised: {text}" for text in serialised]
        lines.append(f"relocations: {_ports_text(self._image.ports)}")
        return "\n".join(map(safe, lines))

    @property
    def decisions(self) -> str:
        """Every decision with its reason."""
        units = ("Task", "Line", "Units", "Asked for", "Why")
        places = ((p.buffer, p.memory, f"{p.address:#x}", p.size) for p in self._image.placements)
        parts = [
            f"Units\n{align_table(units, map(self._unit_row, self._bound.units))}",
            f"Addresses\n{align_table(('Buffer', 'Memory', 'Address', 'Bytes'), places)}",
        ]
        parts += self._banks.sections
        if self._bound.fused.streaming:
            heading = ("Chain", "Lines", "Times", "Bytes not written", "Cycles alone", "Chained")
            rows = map(self._chain_row, self._bound.fused.streaming)
            parts.append(f"Chains\n{align_table(heading, rows)}")
        if self._bound.fused.conversions:
            rows = map(self._conversion_row, self._bound.fused.conversions)
            parts.append(f"Stores that convert\n{align_table(_CONVERSION_HEADING, rows)}")
        if self._bound.fused.refusals:
            parts.append("\n".join(["Not fused", *self._refusal_lines()]))
        parts += self._weights.sections
        parts += self._requests.sections
        parts += priority_sections(self._bound.priority)
        if self._bound.serialised:
            lines = map(_serialisation_text, self._bound.serialised)
            parts.append("\n".join(["More order than the program asks for", *lines]))
        return "\n\n".join("\n".join(map(safe, part.split("\n"))) for part in parts)

    def as_json(self) -> dict[str, Any]:
        """The same as plain values, every decision."""
        machine = self._image.machine
        return {
            "program": self._image.entry,
            "device": machine.device,
            "uarch": machine.uarch,
            "blocks": {kind: self._counts[kind] for kind in ("task", "wait", "join")},
            "repeats": self._counts["repeat"],
            "streams": [_space_text(stream.engine) for stream in self._image.streams],
            "tags": [
                {"of": _space_text(space), "used": used, "available": self._available(space)}
                for space, used in self._bound.tags
            ],
            "units": list(map(self._unit_json, self._bound.units)),
            "addresses": [
                {"buffer": p.buffer, "memory": p.memory, "address": p.address, "bytes": p.size}
                for p in self._image.placements
            ],
            "banks": self._banks.as_json(),
            "chains": list(map(self._chain_json, self._bound.fused.streaming)),
            "conversions": list(map(self._conversion_json, self._bound.fused.conversions)),
            "not_fused": list(map(self._refusal_json, self._bound.fused.refusals)),
            "weights": self._weights.as_json(),
            "requests": self._requests.as_json(),
            "priority": priority_json(self._bound.priority),
            "serialised": list(map(self._serialisation_json, self._bound.serialised)),
            "relocations": list(map(_port_json, self._image.ports)),
        }

    # Counts

    @cached_property
    def _counts(self) -> Counter[str]:
        items = [item for stream in self._image.streams for item in _items(stream.items)]
        counts = Counter("repeat" if isinstance(item, Repeat) else item.kind for item in items)
        counts["block"] = len(items) - counts["repeat"]
        return counts

    @cached_property
    def _savings(self) -> dict[int, ChainSavings]:
        return chain_savings(self._image)

    def _available(self, space: int) -> int | None:
        machine = self._image.machine
        return machine.device_tags if space == DEVICE else machine.tags

    @property
    def _tags_text(self) -> str:
        parts = []
        for space, used in self._bound.tags:
            most = self._available(space)
            of = f"{used:,}" if most is None else f"{used:,} of {most:,}"
            parts.append(f"{of} of {_space_text(space)}")
        return ", ".join(parts) or "none"

    @property
    def _chains_text(self) -> str:
        chains = self._bound.fused.streaming
        if not chains:
            return "none"
        total = _NO_SAVINGS
        for found in self._savings.values():
            total = total.plus(found)
        run = f"run{'s' if len(chains) == 1 else ''} {plural(sum(c.times for c in chains), 'time')}"
        saved = f"{plural(total.bytes, 'byte')} not written"
        cycles = f"units held for {total.chained:,} cycles, not {total.alone:,}"
        return f"{plural(len(chains), 'chain')} that {run}, {saved}, {cycles}"

    # Rows

    def _unit_row(self, decision: UnitDecision) -> tuple[object, ...]:
        task, asked = decision.task, decision.requested or "-"
        units = " + ".join(decision.units)
        units += f", {decision.part}" if decision.part else ""
        return (
            self._places.name(task),
            self._places.line(task),
            units,
            asked,
            _MATCHES[decision.match],
        )

    def _unit_json(self, decision: UnitDecision) -> dict[str, Any]:
        return {
            "task": self._places.name(decision.task),
            "line": self._places.line(decision.task),
            "units": list(decision.units),
            "part": decision.part,
            "match": decision.match,
            "requested": decision.requested,
            "because": _MATCHES[decision.match],
        }

    def _saved_by(self, chain: Chain) -> ChainSavings:
        return self._savings.get(chain.tasks[-1].position, _NO_SAVINGS)

    def _chain_row(self, chain: Chain) -> tuple[object, ...]:
        name = " -> ".join(map(self._places.name, chain.tasks))
        lines = f"{self._places.line(chain.head)}-{self._places.line(chain.tasks[-1])}"
        saved = self._saved_by(chain)
        return name, lines, chain.times, saved.bytes, saved.alone, saved.chained

    def _chain_json(self, chain: Chain) -> dict[str, Any]:
        saved = self._saved_by(chain)
        return {
            "tasks": list(map(self._places.name, chain.tasks)),
            "lines": list(map(self._places.line, chain.tasks)),
            "times": chain.times,
            "bytes_not_written": saved.bytes,
            "cycles_alone": saved.alone,
            "cycles_chained": saved.chained,
        }

    def _conversion_row(self, one: Conversion) -> tuple[object, ...]:
        task = self._places.name(one.task)
        return self._places.name(one.store), self._places.line(one.store), task, one.format

    def _conversion_json(self, one: Conversion) -> dict[str, Any]:
        return {
            "task": self._places.name(one.task),
            "store": self._places.name(one.store),
            "line": self._places.line(one.store),
            "format": one.format,
            "because": "nothing else sees the value, and `store.formats` has its elements",
        }

    def _refusal_lines(self) -> Iterator[str]:
        """Refused pairs under their reasons, the most frequent first."""
        groups: dict[str, list[NotFused]] = {}
        for refusal in self._bound.fused.refusals:
            groups.setdefault(refusal.sentence, []).append(refusal)
        for sentence, refusals in sorted(groups.items(), key=lambda item: -len(item[1])):
            yield f"{plural(len(refusals), 'pair')}: {sentence}"
            for one in refusals:
                pair = f"{self._places.name(one.writer)} -> {self._places.name(one.reader)}"
                detail = f": {one.detail}" if one.detail else ""
                yield f"    {pair} at line {self._places.line(one.reader)}{detail}"

    def _refusal_json(self, refusal: NotFused) -> dict[str, Any]:
        return {
            "writer": self._places.name(refusal.writer),
            "reader": self._places.name(refusal.reader),
            "line": self._places.line(refusal.reader),
            "reason": refusal.reason,
            "because": refusal.sentence,
            "detail": refusal.detail,
        }

    def _serialisation_json(self, found: Serialisation) -> dict[str, Any]:
        loop = found.loop
        return {
            "loop": None if loop is None else loop.variable.name,
            "line": None if loop is None else self._program.span(loop.node).location.line,
            "window": found.window,
            "chains": found.chains,
            "because": _serialisation_text(found),
        }


def _items(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Repeat):
            yield from _items(item.items)


def _serialisation_text(found: Serialisation) -> str:
    where = "outside of loops" if found.loop is None else f"in loop `{found.loop.variable.name}`"
    parts = []
    if found.window is not None:
        parts.append(f"{found.window[1]} of {found.window[0]} iterations in flight")
    if found.chains is not None:
        parts.append(f"{found.chains[1]} instead of {found.chains[0]} rows of tasks side by side")
    return f"{where} {' and '.join(parts)}, for want of {found.for_want_of}"


def _space_text(space: int) -> str:
    return "the device" if space == DEVICE else f"engine {space}"


def _ports_text(ports: tuple[Port, ...]) -> str:
    shown = ", ".join(f"{port.name} ({port.kind})" for port in ports[:_SHOWN_PORTS])
    more = f", and {len(ports) - _SHOWN_PORTS} more" if len(ports) > _SHOWN_PORTS else ""
    return f"{len(ports)}: {shown}{more}" if ports else "none"


def _port_json(port: Port) -> dict[str, Any]:
    return {
        "name": port.name, "kind": port.kind, "memory": port.memory, "address": port.address,
        "bytes": port.size, "elem": port.elem, "dims": port.dims,
    }  # fmt: skip
