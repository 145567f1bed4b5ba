"""The columns that the event loop works on, made from instances, units and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nacre.base.loops.column_heaps import Ints
from nacre.base.term_columns import Column
from nacre.tcb.figures import Figures
from nacre.tcb.machine.event_columns import (
    COUNTS,
    DEPTH,
    JOIN,
    MOST_UNITS,
    NEVER,
    RIVALRY,
    STEPS,
    STREAMS,
    TOP,
    Columns,
)
from nacre.tcb.machine.hardware import MOST_BANKS, bank_kinds, bank_total, bank_use
from nacre.tcb.machine.instances import NONE, Instances
from nacre.tcb.machine.units import UnitColumns

Arrays = dict[str, Column]


def event_columns(
    instances: Instances,
    units: UnitColumns,
    banks: BankColumns,
    figures: Figures,
    as_ints: Callable[[Column], Ints],
) -> Columns:
    """Everything that the loop reads and writes; `as_ints` makes lists or leaves arrays."""
    depth = figures.count("queue.depth")
    arrays = {
        **_state(instances.count),
        **_by_instance(instances, units),
        **_tokens(instances),
        "producer": instances.producer,
        "consumer": instances.consumer,
        **_tags(instances),
        **_groups(instances, units, figures),
        **_by_unit(instances, units),
        **_banks(instances, banks, figures),
        **_lanes(instances, units),
    }
    arrays.update(_scratch(instances, units, arrays, depth, figures))
    return Columns(**{name: as_ints(arrays[name]) for name in Columns._fields})


def _state(count: int) -> Arrays:
    """What the loop finds out."""
    unknown = ("candidate_at", "passed_at", "start", "end")
    nothing = ("blocked", "token_at", "bank_wait", "chain_wait", "releaser_from")
    return {
        **{name: np.full(count, NONE, np.int64) for name in unknown},
        **{name: np.zeros(count, np.int64) for name in nothing},
        "unit": np.full(MOST_UNITS * count, NONE, np.int64),
    }


def _by_instance(instances: Instances, units: UnitColumns) -> Arrays:
    return {
        "kind": instances.kinds,
        "duration": units.duration,
        "shared": units.shared,
        "first_output": units.first_output,
        "signal": instances.signal,
        "first_raise": instances.raises.first,
        **dict(
            zip(("raise_tag", "raise_count", "raise_value"), instances.raises.columns, strict=True)
        ),
    }


def _tokens(instances: Instances) -> Arrays:
    count = instances.count
    is_limited = instances.image.machine.token_limit is not None
    has_token = instances.by_block(lambda placed: is_limited and placed.block.has_token)
    named, namer = token_names(instances) if is_limited else (np.zeros(0, np.int64),) * 2
    order = np.argsort(namer, kind="stable")
    mixed = np.zeros(count, np.int64)
    np.bitwise_xor.at(mixed, named, namer)
    return {
        "has_token": has_token,
        "first_name": np.searchsorted(namer[order], np.arange(count + 1)),
        "name": named[order],
        "namers_left": np.bincount(named, minlength=count),
        "namers_mixed": mixed,
    }


def token_names(instances: Instances) -> tuple[Column, Column]:
    """Every pair of an instance and one that names its token."""
    empty = np.zeros(0, np.int64)
    named, namers = [empty], [empty]
    for placed, rows in zip(instances.blocks, instances.numbers, strict=True):
        for position in placed.block.names:
            found = placed.scope.find(position)
            if found is not None:
                home = instances.blocks[found].grid
                named.append(instances.numbers[found][placed.grid.rows_in(home)])
                namers.append(rows)
    return np.concatenate(named), np.concatenate(namers)


def _tags(instances: Instances) -> Arrays:
    """Tags, and who waits for them, in the order of the values that they wait for."""
    tags, values = instances.waits.columns
    counts = np.diff(instances.waits.first)
    order = np.lexsort((values, tags))
    every = np.arange(instances.tags.count)
    return {
        "open_waits": counts.copy(),
        "tag_count": np.zeros(instances.tags.count, np.int64),
        "next_wait": np.searchsorted(tags[order], every, side="left"),
        "end_wait": np.searchsorted(tags[order], every, side="right"),
        "wait_value": values[order],
        "wait_instance": np.repeat(np.arange(instances.count), counts)[order],
    }


def _groups(instances: Instances, units: UnitColumns, figures: Figures) -> Arrays:
    """Instances that ask for the same units, tokens and turn."""
    is_limited = instances.image.machine.token_limit is not None
    has_token = instances.by_block(lambda placed: is_limited and placed.block.has_token)
    classes = figures.count("arbitration.classes")
    urgency = instances.by_block(lambda p: max(0, min(p.block.priority, classes - 1)))
    in_turn = figures.word("arbitration.rule") == "round_robin"
    rest = [
        np.where(has_token == 1, units.engine, NONE),
        (units.shared > 0).astype(np.int64),
        classes - 1 - urgency,
        _stream_numbers(instances) if in_turn else np.zeros(instances.count, np.int64),
    ]
    key = np.zeros(instances.count, np.int64)
    for column in (*units.pool.T, *units.bound.T, *rest):
        # One number for each combination: compacted, so that it stays small.
        key = key * (int(column.max(initial=0)) + 2) + column + 1
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    first = np.unique(key, return_index=True)[1]
    sizes = np.bincount(key, minlength=first.size)
    names = ("engine", "shares", "rank", "group_stream")
    return {
        "group": key,
        "pool": units.pool[first].reshape(-1),
        "bound": units.bound[first].reshape(-1),
        **{name: column[first] for name, column in zip(names, rest, strict=True)},
        "heap_base": np.cumsum(sizes) - sizes,
        "heap_size": np.zeros(first.size, np.int64),
        "releasers": np.zeros(first.size, np.int64),
    }


def _stream_numbers(instances: Instances) -> Column:
    """The stream of every instance, counted from 0."""
    engines = [stream.engine for stream in instances.image.streams]
    return instances.by_block(lambda placed: engines.index(placed.stream))


def _by_unit(instances: Instances, units: UnitColumns) -> Arrays:
    machine, pools = instances.image.machine, units.pools
    total = sum(pool.count for pool in pools)
    limit = NEVER if machine.token_limit is None else machine.token_limit
    return {
        "pool_first": np.array([*(p.first for p in pools), total], np.int64),
        "last_stream": np.full(len(pools), NONE, np.int64),
        "free_count": np.array([p.count for p in pools], np.int64),
        "free_since": np.zeros(total, np.int64),
        "token_limit": np.full(machine.engines, limit, np.int64),
        **{n: np.zeros(machine.engines, np.int64) for n in ("live", "full_from", "full_until")},
    }


class BankColumns(NamedTuple):
    """(instances, 2): what each uses of L1 and of L2."""

    first: Column  # bank of the memory
    used: Column  # as bits
    cycles: Column  # on each of them


def bank_columns(instances: Instances, figures: Figures) -> BankColumns:
    """The banks that instances use."""
    made = BankColumns(*(np.zeros((instances.count, 2), np.int64) for _ in range(3)))
    _use_banks(instances, range(len(instances.blocks)), figures, made)
    return made


def replace_banks(
    instances: Instances, changed: Sequence[int], figures: Figures, before: BankColumns
) -> BankColumns:
    """The banks of instances of which only some blocks are others than those of `before`."""
    made = BankColumns(*(column.copy() for column in before))
    for at in changed:
        for column in made:
            column[instances.numbers[at]] = 0
    _use_banks(instances, changed, figures, made)
    return made


def _use_banks(
    instances: Instances, blocks: Iterable[int], figures: Figures, made: BankColumns
) -> None:
    machine, kinds = instances.image.machine, bank_kinds(figures)
    l1_banks = min(kinds[0].banks, MOST_BANKS)
    for at in blocks:
        placed, rows = instances.blocks[at], instances.numbers[at]
        for memory, (level, kind) in enumerate(zip(("L1", "L2"), kinds, strict=True)):
            use = bank_use(placed, level, kind)
            if use is not None:
                home = machine.engines if level == "L2" else use.engine
                made.first[rows, memory] = home * l1_banks
                made.used[rows, memory], made.cycles[rows, memory] = use.banks, use.cycles


def _banks(instances: Instances, banks: BankColumns, figures: Figures) -> Arrays:
    kinds = bank_kinds(figures)
    return {
        "bank_first": banks.first.reshape(-1),
        "bank_set": banks.used.reshape(-1),
        "bank_cycles": banks.cycles.reshape(-1),
        "bank_users": np.zeros(bank_total(instances.image.machine, kinds), np.int64),
        "bank_ports": np.array([kind.ports for kind in kinds], np.int64),
    }


def _lanes(instances: Instances, units: UnitColumns) -> Arrays:
    """The instances of each stream, and of each stream those for one kind of unit, in order."""
    stream = _stream_numbers(instances)
    streams = len(instances.image.streams)
    pools = max(1, len(units.pools))
    unit = units.pool[:, 0]
    lane = np.where(unit >= 0, stream * pools + unit, NONE)
    stream_order = np.argsort(stream, kind="stable")
    lane_order = np.argsort(lane, kind="stable")[int((lane < 0).sum()) :]
    stream_first = np.searchsorted(stream[stream_order], np.arange(streams + 1))
    lane_first = np.searchsorted(lane[lane_order], np.arange(streams * pools + 1))
    place, lane_place = np.zeros(stream.size, np.int64), np.zeros(stream.size, np.int64)
    place[stream_order] = np.arange(stream.size) - stream_first[stream[stream_order]]
    lane_place[lane_order] = np.arange(lane_order.size) - lane_first[lane[lane_order]]
    by_lane = ("lane_head", "lane_issued", "lane_blocked", "lane_since")
    return {
        "stream": stream,
        "place": place,
        "lane": lane,
        "lane_place": lane_place,
        "stream_first": stream_first,
        "stream_next": np.zeros(streams, np.int64),
        "stream_instance": stream_order,
        "lane_first": lane_first,
        "lane_instance": lane_order,
        **{name: np.zeros(streams * pools, np.int64) for name in by_lane},
    }


def _scratch(
    instances: Instances, units: UnitColumns, arrays: Arrays, depth: int, figures: Figures
) -> Arrays:
    """Room for the loop, and where it begins."""
    arrays["open_waits"][arrays["producer"] >= 0] += 1  # for what streams into it
    free = np.flatnonzero(arrays["open_waits"] == 0)
    stack = np.zeros(instances.count + 1, np.int64)
    counts = np.zeros(COUNTS, np.int64)
    if depth == 0:  # else streams hand them out
        stack[: free.size] = free[::-1]
        counts[TOP] = free.size
    ready = np.full(instances.count, NONE, np.int64)
    ready[free] = 0
    counts[STEPS], counts[STREAMS] = instances.count, len(instances.image.streams)
    counts[DEPTH] = depth
    in_turn = figures.word("arbitration.rule") == "round_robin"
    counts[RIVALRY] = 2 if in_turn else int(figures.count("arbitration.classes") > 1)
    alone = int(((units.pool < 0).all(axis=1) & (instances.kinds != JOIN)).sum())
    chains = int((arrays["consumer"] >= 0).sum())
    return {
        "ready": ready,
        "stack": stack,
        "counts": counts,
        "heaps": np.zeros(instances.count + 1, np.int64),
        "active": np.zeros(arrays["heap_size"].size + 1, np.int64),
        "events": np.zeros(sum(p.count for p in units.pools) + alone + chains + 2, np.int64),
    }
