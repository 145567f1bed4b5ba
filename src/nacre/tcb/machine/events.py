"""The event loop of the timed machine, on columns of integers alone.

Plain Python runs it on lists; with the extra `fast`, the same source is compiled and runs on
arrays. So it keeps to what both understand: integers, indexing, loops. Heaps lie in columns too.

At each time all completions come first, and joins complete by themselves as tags rise. Then those
that may start are scanned in the order of the program, and start if they find their units free and
a token to take; the scan is repeated as long as something started that others may have gained from.
What queues, banks, chains and arbiters add stands in `hardware_events.py`.
"""

from __future__ import annotations

from nacre.base.loops.column_heaps import pop, push
from nacre.tcb.machine.event_columns import (
    ACTIVE,
    COMPLETED,
    DEPTH,
    EVENTS,
    JOIN,
    LACKED,
    MOST_UNITS,
    NEVER,
    NOW,
    RIVALRY,
    SHARED_BUSY,
    STARTED,
    STEPS,
    STREAMS,
    TOP,
    WAIT,
    Columns,
)
from nacre.tcb.machine.hardware_events import (
    ask_banks,
    blocked_until_now,
    candidate_key,
    could_start,
    dispatch,
    is_candidate,
    leave_banks,
    mark_passed,
    move_on,
    note_candidate,
    note_ready,
    release_if_ready,
)


def count_up(c: Columns, tag: int) -> None:
    """A tag has risen: those that then wait for nothing go on the stack."""
    at, value = c.next_wait[tag], c.tag_count[tag]
    while at < c.end_wait[tag] and c.wait_value[at] <= value:
        satisfy(c, c.wait_instance[at])
        at += 1
    c.next_wait[tag] = at


def satisfy(c: Columns, instance: int) -> None:
    """An instance waits for one thing less."""
    c.open_waits[instance] -= 1
    if c.open_waits[instance] > 0:
        return
    counts = c.counts
    if counts[DEPTH] == 0:
        c.ready[instance] = counts[NOW]
    else:
        note_ready(c, instance)
        if not is_candidate(c, instance):
            return
    c.stack[counts[TOP]] = instance
    counts[TOP] += 1


def complete(c: Columns, instance: int) -> None:
    """An instance is complete: it raises its tags."""
    c.counts[COMPLETED] += 1
    first, last = c.first_raise[instance], c.first_raise[instance + 1]
    if first < last:
        raise_tags(c, first, last)
    tag = c.signal[instance]
    if tag >= 0:
        c.tag_count[tag] += 1
        at = c.next_wait[tag]
        if at < c.end_wait[tag] and c.wait_value[at] <= c.tag_count[tag]:
            count_up(c, tag)


def raise_tags(c: Columns, first: int, last: int) -> None:
    """Some tags are raised to values that others need not have reached by counting."""
    for j in range(first, last):
        for tag in range(c.raise_tag[j], c.raise_tag[j] + c.raise_count[j]):
            if c.tag_count[tag] < c.raise_value[j]:
                c.tag_count[tag] = c.raise_value[j]
                count_up(c, tag)


def settle(c: Columns) -> None:
    """Empty the stack: what is over raises tags, joins at once; the others wait for their turn."""
    counts = c.counts
    while counts[TOP] > 0:
        counts[TOP] -= 1
        at = c.stack[counts[TOP]]
        if c.kind[at] == JOIN:
            c.start[at] = counts[NOW]
            c.end[at] = counts[NOW]
            counts[STARTED] += 1
        if c.start[at] >= 0:
            complete(c, at)
        else:
            enqueue(c, at)


def enqueue(c: Columns, step: int) -> None:
    """A step may start."""
    note_candidate(c, step)
    g = c.group[step]
    size = c.heap_size[g]
    if size == 0:
        c.active[c.counts[ACTIVE]] = g
        c.counts[ACTIVE] += 1
    c.heap_size[g] = push(c.heaps, c.heap_base[g], size, step)
    for j in range(c.first_name[step], c.first_name[step + 1]):
        if c.namers_left[c.name[j]] == 1:
            mark_releaser(c, c.name[j], step)


def mark_releaser(c: Columns, token: int, step: int) -> None:
    """A step that may start is the last to name a token: it takes its place if need be."""
    g = c.group[step]
    same_engine = c.engine[c.group[token]] == c.engine[g]
    if same_engine and c.has_token[token] and not c.releaser_from[step]:
        c.releaser_from[step] = 1 + token_since(c, step, c.engine[g])
        c.releasers[g] += 1


def all_free(c: Columns, g: int) -> bool:
    """Whether a group finds all units that it needs."""
    for use in range(MOST_UNITS * g, MOST_UNITS * (g + 1)):
        pool = c.pool[use]
        if pool < 0:  # nor does it need those behind
            return True
        bound = c.bound[use]
        if bound < 0:
            if c.free_count[pool] == 0:
                return False
        elif c.free_since[c.pool_first[pool] + bound] < 0:
            return False
    return True


def later_in_group(c: Columns, g: int, cursor: int, best: int, has_room: bool) -> int:
    """The first step of a group after the cursor that can have a token, if before `best`."""
    base = c.heap_base[g]
    for j in range(base, base + c.heap_size[g]):
        key = candidate_key(c, g, c.heaps[j])
        can_start = cursor < key < best and c.start[c.heaps[j]] < 0
        if can_start and (has_room or c.releaser_from[c.heaps[j]]):
            best = key
    return best


def first_startable(c: Columns, cursor: int) -> int:
    """The key of the first step after the cursor that can start now."""
    counts, active, heaps, heap_size, start = c.counts, c.active, c.heaps, c.heap_size, c.start
    best = NEVER
    i = 0
    while i < counts[ACTIVE]:
        g = active[i]
        base = c.heap_base[g]
        size = heap_size[g]
        while size > 0 and start[heaps[base]] >= 0:  # started, perhaps out of turn
            size = pop(heaps, base, size) if size > 1 else 0
        heap_size[g] = size
        if size == 0:
            counts[ACTIVE] -= 1
            active[i] = active[counts[ACTIVE]]
            continue
        i += 1
        if not all_free(c, g):
            continue
        if c.shares[g] and counts[SHARED_BUSY]:
            continue
        engine = c.engine[g]
        has_room = engine < 0 or c.live[engine] < c.token_limit[engine]
        if not has_room:
            counts[LACKED] = 1
        key = candidate_key(c, g, heaps[base]) if counts[RIVALRY] else heaps[base]
        if has_room and key > cursor:
            best = key if key < best else best
        elif has_room or c.releasers[g] > 0:
            best = later_in_group(c, g, cursor, best, has_room)
    return best


def name_tokens(c: Columns, step: int) -> None:
    """A step that starts has named its tokens: those that nobody else will name are released."""
    for j in range(c.first_name[step], c.first_name[step + 1]):
        token = c.name[j]
        c.namers_left[token] -= 1
        c.namers_mixed[token] ^= step
        if c.namers_left[token] == 0 and c.has_token[token]:
            # Nobody names a token before its task is over, unless an image is wrong.
            if c.end[token] >= 0 and c.end[token] <= c.counts[NOW]:
                release(c, c.engine[c.group[token]])
        elif c.namers_left[token] == 1:
            last = c.namers_mixed[token]
            if c.candidate_at[last] >= 0 and c.start[last] < 0:
                mark_releaser(c, token, last)


def release(c: Columns, engine: int) -> None:
    """A token of an engine is free again."""
    if is_exhausted(c, engine):
        c.full_until[engine] = c.counts[NOW]
    c.live[engine] -= 1


def is_exhausted(c: Columns, engine: int) -> bool:
    """Whether an engine has had no token left for some time; a moment of this scan is none."""
    is_full = c.live[engine] == c.token_limit[engine]
    return bool(is_full and c.full_from[engine] < c.counts[NOW])


def token_since(c: Columns, step: int, engine: int) -> int:
    """Since when a step could have had a token: there was one, or it would release one itself."""
    if c.releaser_from[step]:  # from then on it lacks none, however full the engine gets
        return int(c.releaser_from[step] - 1)
    return int(c.counts[NOW] if is_exhausted(c, engine) else c.full_until[engine])


def occupy(c: Columns, step: int) -> None:
    """Take the units that a step needs: of each kind the one that has been free for longest."""
    g = c.group[step]
    for use in range(MOST_UNITS):
        pool = c.pool[MOST_UNITS * g + use]
        if pool < 0:
            return
        first, bound = c.pool_first[pool], c.bound[MOST_UNITS * g + use]
        chosen = first + bound
        if bound < 0:
            since = NEVER
            for instance in range(first, c.pool_first[pool + 1]):
                if 0 <= c.free_since[instance] < since:
                    since = c.free_since[instance]
                    chosen = instance
        c.free_since[chosen] = -1
        c.free_count[pool] -= 1
        c.unit[MOST_UNITS * step + use] = chosen


def take_tokens(c: Columns, step: int) -> None:
    """A step that starts releases tokens, and takes its own."""
    counts = c.counts
    g = c.group[step]
    if c.releaser_from[step]:
        c.releasers[g] -= 1
    engine = c.engine[g]
    if engine >= 0 and c.candidate_at[step] < counts[NOW]:  # else it did not wait
        c.token_at[step] = token_since(c, step, engine)
    if c.first_name[step] < c.first_name[step + 1]:
        name_tokens(c, step)
    if engine >= 0:
        c.live[engine] += 1
        if c.live[engine] == c.token_limit[engine]:
            c.full_from[engine] = counts[NOW]


def begin(c: Columns, step: int) -> None:
    """Start a step: it takes a token, and occupies its units."""
    counts = c.counts
    now, steps = counts[NOW], counts[STEPS]
    g = c.group[step]
    c.start[step] = now
    counts[STARTED] += 1
    take_tokens(c, step)
    if c.kind[step] == WAIT:
        c.end[step] = now
        c.stack[counts[TOP]] = step
        counts[TOP] += 1
        return
    occupy(c, step)
    end = now + c.duration[step]
    if c.bank_set[2 * step] or c.bank_set[2 * step + 1]:
        end += ask_banks(c, step)
    if c.producer[step] >= 0 and c.end[c.producer[step]] > end:  # it cannot end before
        c.chain_wait[step] = c.end[c.producer[step]] - end
        end = c.end[c.producer[step]]
    c.end[step] = end
    happens = 2 * steps + 1
    counts[EVENTS] = push(c.events, 0, counts[EVENTS], end * happens + step)
    if c.shares[g]:
        counts[SHARED_BUSY] = 1
        free = (now + c.shared[step]) * happens + steps
        counts[EVENTS] = push(c.events, 0, counts[EVENTS], free)
    if c.consumer[step] >= 0:
        first = min(now + c.first_output[step], end)
        key = first * happens + steps + 1 + c.consumer[step]
        counts[EVENTS] = push(c.events, 0, counts[EVENTS], key)
    if counts[DEPTH] > 0:
        move_on(c, step)
        dispatch(c, c.stream[step])


def finish(c: Columns, step: int) -> None:
    """A task is complete: its units are free, and its token if everybody has named it."""
    counts = c.counts
    g = c.group[step]
    if c.bank_set[2 * step] or c.bank_set[2 * step + 1]:
        leave_banks(c, step)
    for use in range(MOST_UNITS):
        chosen = c.unit[MOST_UNITS * step + use]
        if chosen < 0:
            break
        c.free_since[chosen] = counts[NOW]
        c.free_count[c.pool[MOST_UNITS * g + use]] += 1
    if c.has_token[step] and c.namers_left[step] == 0:
        release(c, c.engine[g])
    c.stack[counts[TOP]] = step
    counts[TOP] += 1


def scan(c: Columns) -> None:
    """Start everything that can start now."""
    counts = c.counts
    cursor = -1
    started = False
    counts[LACKED] = 0
    while True:
        if counts[TOP] > 0:
            settle(c)
        key = first_startable(c, cursor)
        if key != NEVER:
            step = key % counts[STEPS]
            if counts[RIVALRY]:
                mark_passed(c, step)
            begin(c, step)
            cursor = key if counts[RIVALRY] < 2 else -1
            started = True
        elif started and (counts[LACKED] or counts[DEPTH] > 0):
            cursor = -1
            started = False
            counts[LACKED] = 0
        else:
            return


def simulate(c: Columns) -> int:
    """Run to the end, or until nothing can start; how many instances completed."""
    counts, events = c.counts, c.events
    steps = counts[STEPS]
    happens = 2 * steps + 1
    for stream in range(counts[STREAMS] if counts[DEPTH] > 0 else 0):
        dispatch(c, stream)
    for tag in range(len(c.tag_count)):
        count_up(c, tag)
    while True:
        scan(c)
        if counts[EVENTS] == 0:
            return int(counts[COMPLETED])
        now = events[0] // happens
        counts[NOW] = now
        while counts[EVENTS] > 0 and events[0] // happens == now:
            happened = events[0] % happens
            counts[EVENTS] = pop(events, 0, counts[EVENTS])
            if happened == steps:
                counts[SHARED_BUSY] = 0
            elif happened > steps:
                satisfy(c, happened - steps - 1)
            else:
                finish(c, happened)


# What the compiler is given, callees first.
FUNCTIONS = (
    *(push, pop, is_candidate, blocked_until_now, note_ready, note_candidate, release_if_ready),
    *(candidate_key, could_start, mark_passed, ask_banks, leave_banks, move_on, dispatch),
    *(
        satisfy,
        count_up,
        raise_tags,
        complete,
        is_exhausted,
        token_since,
        mark_releaser,
        enqueue,
        settle,
    ),
    *(all_free, later_in_group, first_startable, release, name_tokens, occupy, take_tokens),
    *(begin, finish, scan, simulate),
)
