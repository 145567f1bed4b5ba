"""The event loop of the timed machine, on columns of integers alone.

Plain Python runs it on lists; with the extra `fast`, the same source is compiled and runs on
arrays. So it keeps to what both understand: integers, indexing, loops. Heaps lie in columns too.

At each time all completions come first. Then the ready steps are scanned in program order, and
those start that find their units free and a token to take; the scan is repeated as long as
something started that a waiting step may have gained from: a task that starts can release tokens.
"""

from __future__ import annotations

from typing import NamedTuple

from nacre.base.loops.column_heaps import Ints, pop, push

NEVER = 1 << 62

# Places in `Columns.counts`.
NOW, EVENTS, ACTIVE, STARTED, COMPLETED, TOP, LACKED, SHARED_BUSY = range(8)
COUNTS = 8


class Columns(NamedTuple):
    """What the loop reads and writes. Queues hold steps that ask for the same units and tokens."""

    # By step
    duration: Ints
    shared: Ints  # cycles for which it holds the one resource that all share; 0: none
    queue: Ints
    is_wait: Ints
    has_token: Ints
    node: Ints
    first_name: Ints
    name: Ints  # steps whose tokens a step names
    namers_left: Ints  # of a step's token
    namers_mixed: Ints  # the exclusive or of the numbers of those left: the last one's own
    ready: Ints
    token_at: Ints  # since when it could have had a token; 0 where it did not wait
    start: Ints
    end: Ints
    unit: Ints  # two instances a step
    releaser_from: Ints  # 1 + token_since as it came to release a token itself; 0: it does not
    # By node of the event graph
    step_of: Ints  # -1: the node completes by itself
    open_edges: Ints
    first_edge: Ints
    edge: Ints
    node_time: Ints
    # By queue
    pool: Ints  # two a queue; -1: none
    bound: Ints  # the instance of each that it must have; -1: any
    engine: Ints  # whose tokens it takes; -1: none
    shares: Ints  # whether its steps need the shared resource
    heap_base: Ints
    heap_size: Ints
    releasers: Ints
    # By pool, instance, engine
    pool_first: Ints
    free_count: Ints
    free_since: Ints  # -1: busy
    token_limit: Ints
    live: Ints
    full_from: Ints
    full_until: Ints
    # Scratch
    heaps: Ints
    active: Ints  # queues that hold something
    events: Ints  # a heap of end * (steps + 1) + step; the step `steps` frees what is shared
    stack: Ints  # nodes that are about to complete
    counts: Ints


def complete(c: Columns, at: int) -> None:
    """A node is complete; those that then wait for nothing go on the stack."""
    counts, open_edges, edge, stack = c.counts, c.open_edges, c.edge, c.stack
    c.node_time[at] = counts[NOW]
    top = counts[TOP]
    for j in range(c.first_edge[at], c.first_edge[at + 1]):
        target = edge[j]
        open_edges[target] -= 1
        if open_edges[target] == 0:
            stack[top] = target
            top += 1
    counts[TOP] = top


def settle(c: Columns) -> None:
    """Empty the stack: nodes complete by themselves, steps become ready."""
    counts, stack, step_of = c.counts, c.stack, c.step_of
    while counts[TOP] > 0:
        counts[TOP] -= 1
        at = stack[counts[TOP]]
        step = step_of[at]
        if step < 0:
            complete(c, at)
        else:
            enqueue(c, step)


def enqueue(c: Columns, step: int) -> None:
    """A step is ready."""
    c.ready[step] = c.counts[NOW]
    q = c.queue[step]
    size = c.heap_size[q]
    if size == 0:
        c.active[c.counts[ACTIVE]] = q
        c.counts[ACTIVE] += 1
        c.heaps[c.heap_base[q]] = step
        c.heap_size[q] = 1
    else:
        c.heap_size[q] = push(c.heaps, c.heap_base[q], size, step)
    for j in range(c.first_name[step], c.first_name[step + 1]):
        if c.namers_left[c.name[j]] == 1:
            mark_releaser(c, c.name[j], step)


def mark_releaser(c: Columns, token: int, step: int) -> None:
    """A ready step is the last to name a token: it takes the place of that token if need be."""
    q = c.queue[step]
    same_engine = c.engine[c.queue[token]] == c.engine[q]
    if same_engine and c.has_token[token] and not c.releaser_from[step]:
        c.releaser_from[step] = 1 + token_since(c, step, c.engine[q])
        c.releasers[q] += 1


def is_free(c: Columns, queue: int) -> bool:
    """Whether a queue finds the unit that it needs."""
    pool = c.pool[queue]
    if pool < 0:
        return True
    bound = c.bound[queue]
    if bound >= 0:
        return bool(c.free_since[c.pool_first[pool] + bound] >= 0)
    return bool(c.free_count[pool] > 0)


def later_in_queue(c: Columns, q: int, cursor: int, best: int, has_room: bool) -> int:
    """The first step of a queue after the cursor that can have a token, if it is before `best`."""
    base = c.heap_base[q]
    for j in range(base, base + c.heap_size[q]):
        key = c.heaps[j]
        is_candidate = cursor < key < best and c.start[key] < 0
        if is_candidate and (has_room or c.releaser_from[key]):
            best = key
    return best


def first_startable(c: Columns, cursor: int) -> int:
    """The first step after the cursor, in program order, that can start now."""
    counts, active, heaps, heap_size, start = c.counts, c.active, c.heaps, c.heap_size, c.start
    pool, free_count = c.pool, c.free_count
    best = NEVER
    i = 0
    while i < counts[ACTIVE]:
        q = active[i]
        base = c.heap_base[q]
        size = heap_size[q]
        while size > 0 and start[heaps[base]] >= 0:  # started, perhaps out of turn
            size = pop(heaps, base, size) if size > 1 else 0
        heap_size[q] = size
        if size == 0:
            counts[ACTIVE] -= 1
            active[i] = active[counts[ACTIVE]]
            continue
        i += 1
        first = pool[2 * q]
        if first >= 0 and free_count[first] == 0:  # the quickest of the questions
            continue
        if c.bound[2 * q] >= 0 and not is_free(c, 2 * q):
            continue
        if pool[2 * q + 1] >= 0 and not is_free(c, 2 * q + 1):
            continue
        if c.shares[q] and counts[SHARED_BUSY]:
            continue
        engine = c.engine[q]
        has_room = engine < 0 or c.live[engine] < c.token_limit[engine]
        if not has_room:
            counts[LACKED] = 1
        if has_room and heaps[base] > cursor:
            best = min(best, heaps[base])
        elif has_room or c.releasers[q] > 0:
            best = later_in_queue(c, q, cursor, best, has_room)
    return best


def name_tokens(c: Columns, step: int) -> None:
    """A step that starts has named its tokens: those that nobody else will name are released."""
    namers_left, queue = c.namers_left, c.queue
    for j in range(c.first_name[step], c.first_name[step + 1]):
        token = c.name[j]
        namers_left[token] -= 1
        c.namers_mixed[token] ^= step
        if namers_left[token] == 0 and c.has_token[token]:
            release(c, c.engine[queue[token]])  # its task is complete, or the step would wait
        elif namers_left[token] == 1:
            last = c.namers_mixed[token]
            if c.ready[last] >= 0 and c.start[last] < 0:
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


def occupy(c: Columns, queue: int) -> int:
    """Take a unit: the one that has been free for longest; -1: none is needed."""
    pool = c.pool[queue]
    if pool < 0:
        return -1
    bound = c.bound[queue]
    first = c.pool_first[pool]
    chosen = first + bound
    if bound < 0:
        since = NEVER
        for instance in range(first, c.pool_first[pool + 1]):
            if 0 <= c.free_since[instance] < since:
                since = c.free_since[instance]
                chosen = instance
    c.free_since[chosen] = -1
    c.free_count[pool] -= 1
    return int(chosen)


def begin(c: Columns, step: int, steps: int) -> None:
    """Start a step: it releases tokens, takes its own, and occupies its units."""
    counts = c.counts
    now = counts[NOW]
    q = c.queue[step]
    c.start[step] = now
    counts[STARTED] += 1
    if c.releaser_from[step]:
        c.releasers[q] -= 1
    engine = c.engine[q]
    if engine >= 0 and c.ready[step] < now:  # else it did not wait
        c.token_at[step] = token_since(c, step, engine)
    if c.first_name[step] < c.first_name[step + 1]:
        name_tokens(c, step)
    if engine >= 0:
        c.live[engine] += 1
        if c.live[engine] == c.token_limit[engine]:
            c.full_from[engine] = now
    c.unit[2 * step] = occupy(c, 2 * q)
    if c.pool[2 * q + 1] >= 0:
        c.unit[2 * step + 1] = occupy(c, 2 * q + 1)
    if c.is_wait[step]:
        c.end[step] = now
        counts[COMPLETED] += 1
        complete(c, c.node[step])
    else:
        c.end[step] = now + c.duration[step]
        counts[EVENTS] = push(c.events, 0, counts[EVENTS], c.end[step] * (steps + 1) + step)
        if c.shares[q]:
            counts[SHARED_BUSY] = 1
            free = (now + c.shared[step]) * (steps + 1) + steps
            counts[EVENTS] = push(c.events, 0, counts[EVENTS], free)


def finish(c: Columns, step: int) -> None:
    """A task is complete: its units are free, and its token if everybody has named it."""
    counts = c.counts
    q = c.queue[step]
    counts[COMPLETED] += 1
    chosen = c.unit[2 * step]
    if chosen >= 0:
        c.free_since[chosen] = counts[NOW]
        c.free_count[c.pool[2 * q]] += 1
    chosen = c.unit[2 * step + 1]
    if chosen >= 0:
        c.free_since[chosen] = counts[NOW]
        c.free_count[c.pool[2 * q + 1]] += 1
    if c.has_token[step] and c.namers_left[step] == 0:
        release(c, c.engine[q])
    complete(c, c.node[step])


def scan(c: Columns, steps: int) -> None:
    """Start everything that can start now."""
    counts = c.counts
    cursor = -1
    started = False
    counts[LACKED] = 0
    while True:
        step = first_startable(c, cursor)
        if step != NEVER:
            begin(c, step, steps)
            if counts[TOP] > 0:  # a wait has passed, and let steps further down become ready
                settle(c)
            cursor = step
            started = True
        elif started and counts[LACKED]:
            cursor = -1
            started = False
            counts[LACKED] = 0
        else:
            return


def simulate(c: Columns, steps: int) -> int:
    """Run to the end, or until nothing can start; how many steps completed."""
    counts, events = c.counts, c.events
    settle(c)
    scan(c, steps)
    while counts[EVENTS] > 0:
        now = events[0] // (steps + 1)
        counts[NOW] = now
        while counts[EVENTS] > 0 and events[0] // (steps + 1) == now:
            step = events[0] % (steps + 1)
            counts[EVENTS] = pop(events, 0, counts[EVENTS])
            if step == steps:
                counts[SHARED_BUSY] = 0
            else:
                finish(c, step)
        settle(c)
        scan(c, steps)
    return int(counts[COMPLETED])


# What the compiler is given, callees first.
FUNCTIONS = (
    *(push, pop, complete, is_exhausted, token_since, mark_releaser, enqueue, settle, is_free),
    *(later_in_queue, first_startable, release, name_tokens, occupy, begin, finish, scan),
    simulate,
)
