"""The columns that the event loop reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from nacre.base.loops.column_heaps import Ints

NEVER = 1 << 62

TASK, WAIT, JOIN = range(3)
MOST_UNITS = 3  # that a block occupies together

# Places in `Columns.counts`: the state of the loop, then what it goes by.
NOW, EVENTS, ACTIVE, STARTED, COMPLETED, TOP, LACKED, SHARED_BUSY = range(8)
STEPS = 8
STREAMS = 9
DEPTH = 10  # of a unit's queue for a stream; 0: units take what is ready, in any order
RIVALRY = 11  # 0: in the order of the program; 1: by class; 2: by class, then streams in turn
COUNTS = 12


class Columns(NamedTuple):
    """Columns over instances, unless they say otherwise.

    A group holds instances that ask for the same units, tokens and turn; a lane those that one
    stream sends to one kind of unit, in their order.
    """

    kind: Ints
    duration: Ints
    shared: Ints  # cycles for which it holds the one resource that all share; 0: none
    group: Ints
    has_token: Ints
    first_name: Ints
    name: Ints  # instances whose tokens an instance names
    namers_left: Ints  # of an instance's token
    namers_mixed: Ints  # the exclusive or of the numbers of those left: the last one's own
    open_waits: Ints
    signal: Ints
    first_raise: Ints
    raise_tag: Ints
    raise_count: Ints
    raise_value: Ints
    ready: Ints  # when its waits held
    candidate_at: Ints  # when it could start but for units and tokens
    blocked: Ints  # cycles for which queues held it back
    token_at: Ints  # since when it could have had a token; 0 where it did not wait
    passed_at: Ints  # when another was preferred; -1: never
    bank_wait: Ints
    chain_wait: Ints
    start: Ints
    end: Ints
    unit: Ints  # instances of units, MOST_UNITS each
    releaser_from: Ints  # 1 + token_since as it came to release a token itself; 0: it does not
    producer: Ints  # what streams into it; -1: nothing
    consumer: Ints
    first_output: Ints  # cycles until something streams out of it
    bank_first: Ints  # two memories each: the first of its banks
    bank_set: Ints  # those that it uses, as bits
    bank_cycles: Ints  # that it takes one port of each of them
    stream: Ints
    place: Ints  # in its stream
    lane: Ints  # -1: none
    lane_place: Ints
    # By tag, and by wait
    tag_count: Ints
    next_wait: Ints
    end_wait: Ints
    wait_value: Ints
    wait_instance: Ints
    # By group
    pool: Ints  # MOST_UNITS each; -1: none
    bound: Ints  # the instance of each that it must have; -1: any
    engine: Ints  # whose tokens it takes; -1: none
    shares: Ints  # whether it needs the shared resource
    rank: Ints  # 0 goes first
    group_stream: Ints
    heap_base: Ints
    heap_size: Ints
    releasers: Ints
    # By pool, unit, engine
    pool_first: Ints
    last_stream: Ints  # that had one of its units
    free_count: Ints
    free_since: Ints  # -1: busy
    token_limit: Ints
    live: Ints
    full_from: Ints
    full_until: Ints
    # By stream and lane, and the instances that they have
    stream_first: Ints
    stream_next: Ints
    stream_instance: Ints
    lane_first: Ints
    lane_head: Ints  # how many have started
    lane_issued: Ints  # how many were handed out
    lane_blocked: Ints  # cycles for which the first one could not start
    lane_since: Ints  # when that began; -1: it can
    lane_instance: Ints
    # By bank
    bank_users: Ints
    bank_ports: Ints
    # Scratch
    heaps: Ints
    active: Ints  # groups that hold something
    events: Ints  # a heap: time * (2 * steps + 1) + what happens; `steps` frees what is shared
    stack: Ints  # instances that wait for nothing any more
    counts: Ints
