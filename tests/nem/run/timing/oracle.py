"""A slow second opinion on time, written straight from the words of the definition.

It walks from one completion to the next. At each time first everything that ends then is complete;
then all statements that have not started are looked at in program order and those start that can,
again and again until nothing starts. Whether a statement is reached, an iteration admitted, a
token alive is worked out from its definition each time. Nothing is shared with the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.nem.run.timing.oracle_costs import cost, ways_of
from tests.nem.run.timing.sketches import Item, Loop, Machine, Task, Wait

DEVICE_UNITS = ("sDMA",)


@dataclass(eq=False)
class Step:
    """A task or a wait in one iteration."""

    item: Task | Wait
    iteration: tuple[int, ...]
    body: Body
    names: list[Step]  # whose tokens it names
    named_by: list[Step] = field(default_factory=list)
    engine: int = 0
    units: list[tuple[str, int | None]] = field(default_factory=list)  # with the instance, if bound
    cycles: int = 0
    was_reached: bool = False
    ready: int | None = None
    start: int | None = None
    end: int | None = None
    is_complete: bool = False
    places: list[str] = field(default_factory=list)
    lacked_token_until: int = 0

    @property
    def name(self) -> str:
        item = self.item
        base = (item.token or item.op) if isinstance(item, Task) else "wait"
        return base + (f"[{','.join(map(str, self.iteration))}]" if self.iteration else "")

    def is_over(self) -> bool:
        return self.is_complete if isinstance(self.item, Task) else self.start is not None

    def holds_up(self) -> bool:
        """Whether later statements of its body wait for it."""
        return self.item.is_sync if isinstance(self.item, Task) else True


@dataclass(eq=False)
class Nest:
    """A loop in one iteration of what is around it."""

    body: Body
    window: int
    iterations: list[Body] = field(default_factory=list)

    def is_over(self) -> bool:
        return all(inner.is_over() for inner in self.iterations)

    def holds_up(self) -> bool:
        return True


@dataclass(eq=False)
class Body:
    """One iteration of a loop, or the top level."""

    nest: Nest | None
    ordinal: int = 0
    entries: list[Step | Nest] = field(default_factory=list)
    admitted_at: int | None = None
    was_over: bool = False

    def is_over(self) -> bool:
        self.was_over = self.was_over or all(entry.is_over() for entry in self.entries)
        return self.was_over


@dataclass(frozen=True)
class Stall:
    window: int
    dependence: int
    token: int
    unit: int


class Oracle:
    """Times a program."""

    def __init__(self, items: tuple[Item, ...], machine: Machine) -> None:
        self.machine = machine
        self.now = 0
        self.steps: list[Step] = []
        self.turns = 0
        self.top = Body(None)
        self._expand(items, self.top, {}, {}, ())
        self.free_since = {
            place: 0
            for unit in ("NMU", "CSTL", "DMA", "VPU", "sDMA")
            for engine in range(machine.engines)
            for place in self._instances(unit, engine)
        }
        self._run()

    # What there is to do

    def _expand(
        self,
        items: tuple[Item, ...],
        body: Body,
        env: dict[str, int],
        visible: dict[str, Step],
        iteration: tuple[int, ...],
    ) -> None:
        tokens = dict(visible)
        for item in items:
            if isinstance(item, Loop):
                nest = Nest(body, item.window or 1)
                body.entries.append(nest)
                for ordinal, value in enumerate(range(item.first, item.last + 1)):
                    inner = Body(nest, ordinal)
                    nest.iterations.append(inner)
                    deeper = {**env, item.variable: value}
                    self._expand(item.body, inner, deeper, tokens, (*iteration, value))
                continue
            names = item.deps if isinstance(item, Task) else item.tokens
            step = Step(item, iteration, body, [tokens[name] for name in names])
            for named in step.names:
                named.named_by.append(step)
            body.entries.append(step)
            self.steps.append(step)
            if isinstance(item, Task):
                self._place(step, item, env)
                if item.token is not None:
                    tokens[item.token] = step

    def _place(self, step: Step, task: Task, env: dict[str, int]) -> None:
        in_l1 = [level for level in (task.source, task.target) if level.startswith("L1")]
        if in_l1:
            step.engine = int(in_l1[0][3:-1])
        elif task.seq_engine is not None:
            step.engine = task.seq_engine
        else:
            step.engine = self.turns % self.machine.engines
            self.turns += 1
        ways = ways_of(task)
        asked = task.resource[0] if task.resource else None
        way = next((way for way in ways if asked in way), ways[0])
        for unit in way:
            bound = None
            if task.resource is not None and unit == asked:
                bound = task.resource[1].value(env) % self.machine.count(unit)
            step.units.append((unit, bound))
        step.cycles = max(cost(task, unit, env, self.machine) for unit in way)

    # When it runs

    def _run(self) -> None:
        while True:
            self._scan()
            ends = [s.end for s in self.steps if s.end is not None and not s.is_complete]
            if not ends:
                return
            following = min(ends)
            for step in self.steps:
                if step.start is None and step.ready is not None and self._lacks_token(step):
                    step.lacked_token_until = following
            self.now = following
            for step in self.steps:
                if step.end == self.now and not step.is_complete:
                    step.is_complete = True
                    self.free_since.update(dict.fromkeys(step.places, self.now))

    def _scan(self) -> None:
        started = True
        while started:
            started = False
            for step in self.steps:
                if step.start is None and self._can_start(step):
                    self._start(step)
                    started = True

    def _can_start(self, step: Step) -> bool:
        if not self._is_reached(step) or not all(named.is_complete for named in step.names):
            return False
        if step.ready is None:
            step.ready = self.now
        if isinstance(step.item, Wait):
            return True
        return not self._lacks_token(step) and all(
            self._free(unit, bound, step.engine) for unit, bound in step.units
        )

    def _start(self, step: Step) -> None:
        step.start = self.now
        if isinstance(step.item, Wait):
            return
        step.end = self.now + step.cycles
        for unit, bound in step.units:
            free = self._free(unit, bound, step.engine)
            place = min(free, key=lambda p: (self.free_since[p], free.index(p)))
            step.places.append(place)
            del self.free_since[place]

    def _is_reached(self, entry: Step | Nest) -> bool:
        if isinstance(entry, Step) and entry.was_reached:
            return True
        if not self._is_admitted(entry.body):
            return False
        before = entry.body.entries[: entry.body.entries.index(entry)]
        reached = all(e.is_over() for e in before if e.holds_up())
        if isinstance(entry, Step):
            entry.was_reached = reached
        return reached

    def _is_admitted(self, body: Body) -> bool:
        if body.admitted_at is not None:
            return True
        if body.nest is not None:
            earlier = body.nest.iterations[: max(0, body.ordinal - body.nest.window + 1)]
            if not self._is_reached(body.nest) or not all(b.is_over() for b in earlier):
                return False
        body.admitted_at = self.now
        return True

    def _lacks_token(self, step: Step) -> bool:
        """Whether its engine has no token to give, even if the step first lets go of its own."""
        if self.machine.tokens is None or not has_token(step):
            return False
        alive = [s for s in self.steps if s.engine == step.engine and is_alive(s, step)]
        return len(alive) >= self.machine.tokens

    def _instances(self, unit: str, engine: int) -> list[str]:
        where = "" if unit in DEVICE_UNITS else f"@{engine}"
        return [f"{unit}[{i}]{where}" for i in range(self.machine.count(unit))]

    def _free(self, unit: str, bound: int | None, engine: int) -> list[str]:
        every = self._instances(unit, engine)
        wanted = every if bound is None else [every[bound]]
        return [place for place in wanted if place in self.free_since]

    # What it says

    @property
    def cycles(self) -> int:
        return max((s.end for s in self.steps if s.end is not None), default=0)

    @property
    def tasks(self) -> list[Step]:
        return [step for step in self.steps if isinstance(step.item, Task)]

    @property
    def waiting(self) -> list[Step]:
        return [step for step in self.steps if step.start is None]

    def stall(self, step: Step) -> Stall:
        """From when it would be reached without windows and waits, cause after cause."""
        assert step.start is not None
        assert step.ready is not None
        base, window = reached_without_waiting(step)
        token = max(0, step.lacked_token_until - step.ready)
        return Stall(window, step.ready - base - window, token, step.start - step.ready - token)


def has_token(step: Step) -> bool:
    return isinstance(step.item, Task) and step.item.token is not None


def is_alive(step: Step, starting: Step | None = None) -> bool:
    """From start until the task is complete and whatever names its token has started."""
    if not has_token(step) or step.start is None:
        return False
    unnamed = [s for s in step.named_by if s.start is None and s is not starting]
    return not step.is_complete or bool(unnamed)


def reached_without_waiting(step: Step) -> tuple[int, int]:
    """When the joins before it let a statement be reached, and how long windows then held it."""
    way: list[Step | Nest] = [step]
    while (nest := way[0].body.nest) is not None:
        way.insert(0, nest)
    base = window = 0
    for entry in way:
        body = entry.body
        if body.nest is not None:
            first = body.nest.iterations[0].admitted_at
            assert body.admitted_at is not None
            assert first is not None
            window += body.admitted_at - first
        for before in body.entries[: body.entries.index(entry)]:
            if isinstance(before, Nest):
                base, window = max(base, joined_at(before)), 0
    return base, window


def joined_at(nest: Nest) -> int:
    """When its last iteration was over."""
    return max(_times(nest))


def _times(nest: Nest) -> Iterator[int]:
    for body in nest.iterations:
        for entry in body.entries:
            if isinstance(entry, Nest):
                yield from _times(entry)
            else:
                assert entry.start is not None
                yield entry.start if entry.end is None else entry.end
