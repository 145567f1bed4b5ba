"""Weights on their way to L2, among the tasks of layers that run before those that need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.placement.fetching import Fetch, most_tokens_in_flight
from nacre.compile.placement.ports import L2, WEIGHTS
from nacre.compile.placement.stage import Placement
from nacre.compile.program import Affine, Arrived, Copy, Region
from nacre.compile.schedule.order import touch_of
from nacre.compile.schedule.task import Task
from nacre.compile.schedule.task_writer import TaskWriter
from nacre.compile.tiling.spaces import align_up


class FetchTasks:
    """Makes the tasks that bring weights to L2; engines take turns to keep their tokens."""

    def __init__(self, placement: Placement, options: Options) -> None:
        self._placement, self._engines = placement, options.device.num_engines
        self._most = most_tokens_in_flight(options)
        self._turn = 0
        self._pending = list(placement.fetches)
        self._on_way: dict[int, list[str]] = {}  # tokens, by the layer when they are done

    def write(
        self, index: int, writer: TaskWriter, layer: Layer | None = None, number: int = 0
    ) -> None:
        """What begins to travel while a layer runs, in its order.

        Where a round of the blocks of `layer`, which runs, is about to be computed, what rounds far
        behind it need waits: it would take the tokens of the tiles before.
        """
        for until in [until for until in self._on_way if until <= index]:
            writer.statements.append(Arrived(tuple(self._on_way.pop(until))))
        found: list[Fetch] = []
        for fetch in self._pending:
            is_own = layer is not None and fetch.layer == layer.name
            if fetch.at > index or (is_own and fetch.round > number + self._rounds_ahead(fetch)):
                break
            found.append(fetch)
        self._write(found, writer)

    def write_for(self, layer: Layer, writer: TaskWriter, number: int = 0) -> None:
        """What a layer needs for its rounds up to one, and found no earlier time for."""
        own = [f for f in self._pending if f.layer == layer.name and f.round <= number]
        self._write(own, writer)

    def are_written(self, layer: Layer) -> bool:
        """Whether all that a layer needs to begin is on its way."""
        return all(fetch.layer != layer.name or fetch.round > 0 for fetch in self._pending)

    def _rounds_ahead(self, fetch: Fetch) -> int:
        return max(1, self._most // fetch.parts)

    def _write(self, fetches: Sequence[Fetch], writer: TaskWriter) -> None:
        for fetch in fetches:
            self._pending.remove(fetch)
            for task in self._tasks(fetch):
                writer.task(task)
                self._on_way.setdefault(fetch.until, []).append(task.statement.token)

    def _tasks(self, fetch: Fetch) -> Iterator[Task]:
        step = align_up(-(-fetch.size // fetch.parts))
        for number, first in enumerate(range(0, fetch.size, step)):
            count = min(step, fetch.size - first)
            dst = Region(L2, Affine(fetch.offset + first), count)
            src = Region(WEIGHTS, Affine(fetch.source + first), count)
            engine = self._turn % self._engines if self._engines > 1 else None
            self._turn += 1
            token = f"{fetch.layer}_g{fetch.number}" + (f"p{number}" if number else "")
            copy = Copy(
                token, "transfer", dst, src, (), fetch.title, ahead=True, engine=engine,
                is_early=True,
            )  # fmt: skip
            yield Task(copy, (touch_of(dst, True), touch_of(src, False)))
