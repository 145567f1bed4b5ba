"""What real hardware adds to the event loop: queues, banks and arbiters.

The first of a lane may start, the others wait behind it. A stream hands blocks out in its order,
as far as queues have room; joins and waits take no room. On ideal hardware none of it has any
effect.
"""

from __future__ import annotations

from nacre.tcb.machine.event_columns import (
    ACTIVE,
    DEPTH,
    MOST_UNITS,
    NOW,
    RIVALRY,
    STEPS,
    STREAMS,
    TOP,
    Columns,
)


def is_candidate(c: Columns, instance: int) -> bool:
    """Whether queues let an instance start that waits for nothing."""
    if c.counts[DEPTH] == 0:
        return True
    lane = c.lane[instance]
    if lane < 0:
        return bool(c.place[instance] < c.stream_next[c.stream[instance]])
    place = c.lane_place[instance]
    return bool(place == c.lane_head[lane] and place < c.lane_issued[lane])


def blocked_until_now(c: Columns, lane: int) -> int:
    """For how long the first of a lane could not start, whichever was the first."""
    since = c.lane_since[lane]
    return int(c.lane_blocked[lane] + (c.counts[NOW] - since if since >= 0 else 0))


def note_ready(c: Columns, instance: int) -> None:
    """The waits of an instance hold."""
    c.ready[instance] = c.counts[NOW]
    if c.counts[DEPTH] > 0 and c.lane[instance] >= 0:
        c.blocked[instance] = blocked_until_now(c, c.lane[instance])


def note_candidate(c: Columns, instance: int) -> None:
    """Queues let an instance start."""
    c.candidate_at[instance] = c.counts[NOW]
    lane = c.lane[instance]
    if c.counts[DEPTH] > 0 and lane >= 0:
        c.lane_blocked[lane] = blocked_until_now(c, lane)
        c.lane_since[lane] = -1
        c.blocked[instance] = c.lane_blocked[lane] - c.blocked[instance]


def release_if_ready(c: Columns, instance: int) -> None:
    """Let an instance start that queues held back, if its waits hold."""
    if c.open_waits[instance] == 0 and is_candidate(c, instance):
        c.stack[c.counts[TOP]] = instance
        c.counts[TOP] += 1


def move_on(c: Columns, step: int) -> None:
    """A task has started: the next of its lane is the first."""
    lane = c.lane[step]
    if lane < 0:
        return
    c.lane_head[lane] += 1
    c.lane_since[lane] = c.counts[NOW]
    at = c.lane_first[lane] + c.lane_head[lane]
    if at < c.lane_first[lane + 1]:
        release_if_ready(c, c.lane_instance[at])


def dispatch(c: Columns, stream: int) -> None:
    """A stream hands blocks out, until one finds its queue full."""
    while c.stream_first[stream] + c.stream_next[stream] < c.stream_first[stream + 1]:
        instance = c.stream_instance[c.stream_first[stream] + c.stream_next[stream]]
        lane = c.lane[instance]
        if lane >= 0:
            if c.lane_issued[lane] - c.lane_head[lane] >= c.counts[DEPTH]:
                return
            c.lane_issued[lane] += 1
        c.stream_next[stream] += 1
        release_if_ready(c, instance)


def ask_banks(c: Columns, step: int) -> int:
    """Take banks; how many cycles longer it takes because others use them too."""
    needed = c.duration[step]
    for memory in range(2):
        bits = c.bank_set[2 * step + memory]
        bank = c.bank_first[2 * step + memory]
        most = 0
        while bits > 0:
            if bits & 1:
                users = c.bank_users[bank] + 1
                c.bank_users[bank] = users
                if users > most:
                    most = users
            bits >>= 1
            bank += 1
        turns = -(-most // c.bank_ports[memory])
        needed = max(needed, c.bank_cycles[2 * step + memory] * turns)
    c.bank_wait[step] = needed - c.duration[step]
    return int(c.bank_wait[step])


def leave_banks(c: Columns, step: int) -> None:
    """A task no longer uses its banks."""
    for memory in range(2):
        bits = c.bank_set[2 * step + memory]
        bank = c.bank_first[2 * step + memory]
        while bits > 0:
            c.bank_users[bank] -= bits & 1
            bits >>= 1
            bank += 1


def candidate_key(c: Columns, group: int, step: int) -> int:
    """What orders those that can start: class, turn, place in the program."""
    counts = c.counts
    if counts[RIVALRY] == 0:
        return step
    turn = c.rank[group]
    if counts[RIVALRY] == 2:
        pool = c.pool[MOST_UNITS * group]
        last = c.last_stream[pool] if pool >= 0 else -1
        behind = (c.group_stream[group] - last - 1) % counts[STREAMS]
        turn = turn * counts[STREAMS] + behind
    return int(turn * counts[STEPS] + step)


def could_start(c: Columns, group: int, pool: int) -> bool:
    """Whether a group that asks for a unit of a pool, one of which is free, could have it."""
    if c.pool[MOST_UNITS * group] != pool:
        return False
    bound = c.bound[MOST_UNITS * group]
    return bool(bound < 0 or c.free_since[c.pool_first[pool] + bound] >= 0)


def mark_passed(c: Columns, step: int) -> None:
    """An arbiter has chosen: those before it in the program that could start as well lose time."""
    pool = c.pool[MOST_UNITS * c.group[step]]
    if pool < 0:
        return
    for i in range(c.counts[ACTIVE]):
        other = c.active[i]
        first = c.heaps[c.heap_base[other]]
        is_older = c.heap_size[other] > 0 and first < step and c.start[first] < 0
        if is_older and c.passed_at[first] < 0 and could_start(c, other, pool):
            c.passed_at[first] = c.counts[NOW]
    c.last_stream[pool] = c.stream[step]
