"""Which steps may run next: the event graph, walked node by node, forwards and backwards."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from nacre.nem.run.sessions.steps import Steps


class Frontier:
    """The steps that nothing holds back, in program order.

    Nodes of the graph that are no steps (gates, the starts and ends of iterations) complete by
    themselves as soon as everything before them has.
    """

    def __init__(self, steps: Steps) -> None:
        graph = steps.graph
        waits_for = np.bincount(graph.targets, minlength=graph.size)
        self._after = graph.after
        self._open: list[int] = waits_for.tolist()
        self._step_of: list[int] = steps.step_of_node.tolist()
        self._node: list[int] = steps.node.tolist()
        self._done = bytearray(graph.size)
        self.ready: list[int] = []
        self._complete_nodes(np.flatnonzero(waits_for == 0).tolist())

    def is_ready(self, step: int) -> bool:
        """Whether a step may run now."""
        at = bisect_left(self.ready, step)
        return at < len(self.ready) and self.ready[at] == step

    def is_done(self, node: int) -> bool:
        """Whether a node of the graph is complete."""
        return bool(self._done[node])

    def complete(self, step: int) -> list[int]:
        """Take a ready step; the nodes that are complete by it, for `undo` and for watchers."""
        del self.ready[bisect_left(self.ready, step)]
        return self._complete_nodes([self._node[step]], step)

    def _complete_nodes(self, nodes: list[int], taken_step: int = -1) -> list[int]:
        """Complete nodes, and those that then hold nothing back; steps become ready instead."""
        completed: list[int] = []
        stack = nodes[::-1]
        while stack:
            node = stack.pop()
            step = self._step_of[node]
            if step >= 0 and step != taken_step:
                insort(self.ready, step)
                continue
            self._done[node] = 1
            completed.append(node)
            for target in self._after.of(node):
                self._open[target] -= 1
                if not self._open[target]:
                    stack.append(target)
        return completed

    def undo(self, step: int, completed: list[int]) -> None:
        """Put a step back: the reverse of `complete`."""
        for node in reversed(completed):
            self._done[node] = 0
            for target in self._after.of(node):
                blocked = self._step_of[target]
                if not self._open[target] and blocked >= 0:
                    del self.ready[bisect_left(self.ready, blocked)]
                self._open[target] += 1
        insort(self.ready, step)
