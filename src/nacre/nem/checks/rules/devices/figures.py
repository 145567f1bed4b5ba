"""DEV05, DEV06, DEV08-DEV10, DEV22: the figures of a device."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.base.source import Span
from nacre.nem.checks.facts import DeviceFacts
from nacre.nem.spec.figures import TOPOLOGY, bounds_of
from nacre.nem.spec.limits import MAX_ENGINES, MAX_FIGURE, MAX_UNIT_INSTANCES, MAX_UNITS
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS
from nacre.nem.syntax.ast import UnitCount

_SCHEMA = "Device Configuration / Schema Rules"
_GRAMMAR = "Formal Language Definition / Device Configuration Grammar"


@rule("DEV05", "engine-count", f"{_SCHEMA} 5")
def engine_count(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A topology has no engine, more than 1024, or does not say how many.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
        -         num_engines = 0
        +         num_engines = 1
                  l2_size_bytes = 1048576
                  per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    topology = facts.node.topology
    if topology is None:
        return
    if topology.num_engines is None:
        if not topology.starts[0]:
            yield engine_count.at(_topology_word(facts), "the topology lacks `num_engines`")
    else:
        count, bounds = topology.num_engines.value, bounds_of(TOPOLOGY, "num_engines")
        if bounds is not None and not bounds.admit(count):
            message = f"`num_engines` is {count}; a device has at least 1 engine"
            if count > bounds.most:
                message = f"`num_engines` is {count}, expected at most {bounds.most}"
            yield engine_count.at(facts.span(topology.num_engines), message)


@rule("DEV06", "unit-count", f"{_SCHEMA} 5")
def unit_count(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A per-engine unit is declared with a count below 1, or a device-level one below 0.

    Leave a per-engine unit out when an engine lacks it. There are at most 1024 of a type, on an
    engine or on the device, and 65536 on all engines together.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
                  l2_size_bytes = 1048576
        -         per_engine { NMU = 0 l1_size_bytes = 524288 }
        +         per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    per_engine, device_units = unit_counts(facts)
    for units, known, least in ((per_engine, ENGINE_UNITS, 1), (device_units, DEVICE_UNITS, 0)):
        for unit in units:
            is_known = unit.unit.name in known  # otherwise it has been reported
            if not is_known or unit.count is None:
                continue
            message = f"the count of `{unit.unit.name}` is {unit.count.value}"
            if unit.count.value < least:
                message += f", at least {least} is needed here"
            elif unit.count.value > MAX_UNITS:
                message += f", expected at most {MAX_UNITS}"
            elif _is_crowded(facts, unit):
                engines = facts.device.num_engines
                total = f"{engines} engines have {engines * unit.count.value}"
                message += f", so that {total}; expected at most {MAX_UNIT_INSTANCES}"
            else:
                continue
            yield unit_count.at(facts.span(unit.count), message)


def _is_crowded(facts: DeviceFacts, unit: UnitCount) -> bool:
    """Whether all engines together have too many of a unit; too many engines are DEV05."""
    engines = facts.device.num_engines
    if unit.count is None or unit.unit.name not in ENGINE_UNITS or engines > MAX_ENGINES:
        return False
    return engines * unit.count.value > MAX_UNIT_INSTANCES


def unit_counts(facts: DeviceFacts) -> tuple[tuple[UnitCount, ...], tuple[UnitCount, ...]]:
    """The units of an engine, and those of the device, as they are declared."""
    topology = facts.node.topology
    if topology is None:
        return (), ()
    per_engine = topology.per_engine.units if topology.per_engine is not None else ()
    return per_engine, topology.device_units.units if topology.device_units is not None else ()


@rule("DEV08", "l2-size", f"{_SCHEMA} 5")
def l2_size(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """`l2_size_bytes` is not positive, or a tebibyte and more.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
        -         l2_size_bytes = 0
        +         l2_size_bytes = 1024 * 1024
                  per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    node, topology = facts.node.topology, facts.device.topology
    if node is None or node.l2_size is None or topology is None:
        return
    problem = _size_problem("l2_size_bytes", topology.l2_size_bytes)
    if problem is not None:
        yield l2_size.at(facts.span(node.l2_size), problem)


def _size_problem(name: str, value: int | None) -> str | None:
    """What is wrong with the size of a memory, where it is known."""
    if value is not None and value <= 0:
        return f"`{name}` is {value}, expected more than 0"
    if value is not None and value > MAX_FIGURE:
        return f"`{name}` is {value}, expected at most {MAX_FIGURE}"
    return None


@rule("DEV09", "l1-size", f"{_SCHEMA} 5")
def l1_size(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """`l1_size_bytes` is not positive, or a tebibyte and more.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
                  l2_size_bytes = 1048576
        -         per_engine { NMU = 1 l1_size_bytes = 0 }
        +         per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    node, topology = facts.node.topology, facts.device.topology
    if node is None or node.per_engine is None or topology is None:
        return
    problem, size = _size_problem("l1_size_bytes", topology.l1_size_bytes), node.per_engine.l1_size
    if size is not None and problem is not None:
        yield l1_size.at(facts.span(size), problem)


@rule("DEV10", "memory-size-missing", f"{_GRAMMAR} (Memory Capacity Fields)")
def memory_size_missing(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A topology lacks `l1_size_bytes` or `l2_size_bytes`.

    Bad (-) and good (+):

          include "nem_baseline_1.0.nem"
          device d extends nem_baseline_1_0 {
              topology {
                  num_engines = 1
        +         l2_size_bytes = 1048576
                  per_engine { NMU = 1 l1_size_bytes = 524288 }
              }
          }
    """
    node = facts.node.topology
    if node is None:
        return
    missing = []
    if not node.starts[1]:
        missing.append("`l2_size_bytes`")
    if node.per_engine is None or not node.per_engine.l1_start:
        missing.append("`l1_size_bytes` in `per_engine`")
    if missing:
        message = f"the topology lacks {' and '.join(missing)}"
        yield memory_size_missing.at(_topology_word(facts), message)


def _topology_word(facts: DeviceFacts) -> Span:
    start = facts.node.topology.start if facts.node.topology is not None else facts.node.start
    return facts.source.span(start, start + len("topology"))


@rule("DEV22", "characteristic-out-of-range", f"{_GRAMMAR} (Unit Characteristics)")
def characteristic_out_of_range(facts: DeviceFacts) -> Iterator[Diagnostic]:
    """A characteristic that nacre uses has a value that no unit has: none, negative, or huge.

    Rates, bandwidths and numbers of tokens are at least 1, latencies at least 0. Keys that nacre
    does not use are kept as they are.

    Bad (-) and good (+):

          include "npm_lite.nem"
          device d extends npm_lite {
        -     unit_characteristics { CSTL { eltwise_throughput = 0 } }
        +     unit_characteristics { CSTL { eltwise_throughput = 128 latency = 0 } }
          }
    """
    block = facts.node.characteristics
    for group in block.groups if block is not None else ():
        for entry in group.entries:
            bounds = bounds_of(group.unit.name, entry.key.name)
            if entry.value is None or bounds is None or bounds.admit(entry.value.value):
                continue
            name = f"{group.unit.name}.{entry.key.name}"
            message = f"`{name}` is {entry.value.value}, expected {bounds}"
            yield characteristic_out_of_range.at(facts.span(entry.value), message)
