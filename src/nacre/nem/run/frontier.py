"""Which steps may run next: the event graph, walked node by node, forwards and backwards."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from nacre.nem.run.steps import Steps


class Frontier:
    """The steps that nothing holds back, in program order.

    Nodes of the graph that are no steps (gates, the starts and ends of iterations) complete by
    themselves as soon as everything before them has.
    """

    def __init__(self, steps: Steps) -> None:
        graph = steps.graph
        order = np.argsort(graph.sources, kind="stable")
        self._targets = graph.targets[order]
        self._first = np.searchsorted(graph.sources[order], np.arange(graph.size + 1)).tolist()
        self._open: list[int] = np.bincount(graph.targets, minlength=graph.size).tolist()
        step_of = np.full(graph.size, -1, np.int64)
        step_of[steps.node] = np.arange(steps.count)
        self._step_of: list[int] = step_of.tolist()
        self._node: list[int] = steps.node.tolist()
        self._done = bytearray(graph.size)
        self.ready: list[int] = []
        roots = np.flatnonzero(np.bincount(graph.targets, minlength=graph.size) == 0)
        self._settle(roots.tolist())

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
        return self._settle([self._node[step]], step)

    def _settle(self, nodes: list[int], taken: int = -1) -> list[int]:
        """Complete nodes, and those that then hold nothing back; steps become ready instead."""
        completed: list[int] = []
        stack = nodes[::-1]
        while stack:
            node = stack.pop()
            step = self._step_of[node]
            if step >= 0 and step != taken:
                insort(self.ready, step)
                continue
            self._done[node] = 1
            completed.append(node)
            for target in self._after(node):
                self._open[target] -= 1
                if not self._open[target]:
                    stack.append(target)
        return completed

    def _after(self, node: int) -> list[int]:
        found: list[int] = self._targets[self._first[node] : self._first[node + 1]].tolist()
        return found

    def undo(self, step: int, completed: list[int]) -> None:
        """Put a step back: the reverse of `complete`."""
        for node in reversed(completed):
            self._done[node] = 0
            for target in self._after(node):
                held = self._step_of[target]
                if not self._open[target] and held >= 0:
                    del self.ready[bisect_left(self.ready, held)]
                self._open[target] += 1
        insort(self.ready, step)
