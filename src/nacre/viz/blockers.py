"""What let each task become ready: the task whose completion it waited for last."""

from __future__ import annotations

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.run.timing.timeline import Timeline

NONE = -1


def blockers(timeline: Timeline) -> Column:
    """By step: the task that ended as this one became ready; -1 where nothing held it back."""
    steps = timeline.steps
    size = steps.graph.size
    is_task = np.array([isinstance(steps.statements[int(p)], Task) for p in steps.position], bool)
    step_of = np.full(size + 1, NONE, np.int64)
    step_of[steps.node[is_task]] = np.flatnonzero(is_task)
    before = _latest_predecessor(timeline, step_of)
    # Gates and iterations complete by themselves: follow them back to a task, twice as far in
    # each round, because the completions of iterations form long chains.
    reach = np.where(step_of >= 0, np.arange(size + 1), before)
    while not np.array_equal(further := reach[reach], reach):
        reach = further
    blocker = step_of[reach[before[steps.node]]]
    has_waited = (timeline.ready > 0) & (timeline.start >= 0) & (blocker != NONE)
    return np.where(has_waited & (timeline.end[blocker] == timeline.ready), blocker, NONE)


def _latest_predecessor(timeline: Timeline, step_of: Column) -> Column:
    """By node: the latest of the nodes that it waits for, tasks preferred; `size` for none."""
    graph = timeline.steps.graph
    is_task = step_of[graph.sources] >= 0
    order = np.lexsort((is_task, timeline.node_time[graph.sources], graph.targets))
    targets = graph.targets[order]
    is_last = np.append(targets[1:] != targets[:-1], True)[: targets.size]
    before = np.full(graph.size + 1, graph.size, np.int64)
    before[targets[is_last]] = graph.sources[order][is_last]
    return before
