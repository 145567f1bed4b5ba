"""Random programs as plain data, their NEM text, and a naive reading of them.

The reading enumerates every instance and every byte and closes the happens-before relation by
brute force. It shares nothing with the checker but the definition of the language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st

BUFFERS = ("A", "B", "C")
SIZE = 256


@dataclass(frozen=True)
class Offset:
    """`base + sum of variable * step`, each variable perhaps taken modulo something."""

    base: int
    parts: tuple[tuple[str, int, int | None], ...] = ()  # variable, step, modulus

    def text(self) -> str:
        terms = [f"({v} mod {m}) * {s}" if m else f"{v} * {s}" for v, s, m in self.parts]
        return " + ".join([*terms, str(self.base)])

    def value(self, env: dict[str, int]) -> int:
        return self.base + sum((env[v] % m if m else env[v]) * s for v, s, m in self.parts)

    @property
    def is_ring(self) -> bool:
        return any(m for _, _, m in self.parts)


@dataclass(frozen=True)
class Place:
    """An operand: contiguous bytes, or `rows` runs of `width` bytes that are `pitch` apart."""

    buffer: str
    offset: Offset
    width: int
    rows: int = 1
    pitch: int = 0

    @property
    def extent(self) -> int:
        return (self.rows - 1) * self.pitch + self.width

    def touched(self, env: dict[str, int]) -> set[tuple[str, int]]:
        start = self.offset.value(env)
        return {
            (self.buffer, start + row * self.pitch + byte)
            for row in range(self.rows)
            for byte in range(self.width)
        }

    def text(self, typed: bool) -> str:
        region = f"region({self.buffer}, {self.offset.text()}, {self.extent})"
        if not typed:
            return region
        if self.rows == 1:
            return f"{region} elem=i8, shape=[{self.width}], layout=C"
        shape = f"shape=[{self.rows}, {self.width}], strides=[{self.pitch}, 1]"
        return f"{region} elem=i8, {shape}"


@dataclass(frozen=True)
class Task:
    token: str
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    deps: tuple[str, ...] = ()
    is_sync: bool = False
    is_compute: bool = False


@dataclass(frozen=True)
class Wait:
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    variable: str
    first: int
    last: int
    window: int
    body: tuple[Task | Wait | Loop, ...]


Item = Task | Wait | Loop


def text_of(items: tuple[Item, ...], indent: str = "") -> Iterator[str]:
    """The program as NEM."""
    for item in items:
        if isinstance(item, Wait):
            yield f"{indent}wait({', '.join(item.tokens)})"
        elif isinstance(item, Loop):
            head = f"loop {item.variable} in [{item.first}..{item.last}]"
            yield f"{indent}{head} @max_in_flight({item.window}):"
            yield from text_of(item.body, indent + "    ")
            yield f"{indent}endloop"
        else:
            yield indent + _task_text(item)


def _task_text(task: Task) -> str:
    form = "sync" if task.is_sync else "async"
    deps = f"deps=[{', '.join(task.deps)}]" if task.deps else ""
    if not task.is_compute:
        comma = f", {deps}" if deps else ""
        dst, src = task.writes[0].text(False), task.reads[0].text(False)
        return f"{task.token} = transfer.{form}(dst={dst}, src={src}{comma})"
    inputs = ", ".join(place.text(True) for place in task.reads)
    outputs = ", ".join(place.text(True) for place in task.writes)
    return f"{task.token} = add.{form} in {inputs} out {outputs} {deps}".rstrip()


def program_text(items: tuple[Item, ...]) -> str:
    """A whole program."""
    buffers = [f"buffer {name} : L1 (size={SIZE})" for name in BUFFERS]
    return "\n".join([*buffers, *text_of(items)]) + "\n"


@dataclass
class Instance:
    """A task in one iteration."""

    task: Task
    position: int
    env: dict[str, int]
    ordinals: tuple[int, ...]
    loops: tuple[int, ...]  # positions of the loops around it
    node: int


@dataclass
class Reading:
    """Every instance, and the closed happens-before relation as sets of nodes."""

    instances: list[Instance] = field(default_factory=list)
    edges: list[set[int]] = field(default_factory=list)
    after: list[int] = field(default_factory=list)  # bit sets
    positions: int = 0

    def new_node(self, *before: int) -> int:
        node = len(self.edges)
        self.edges.append(set())
        for b in before:
            self.edges[b].add(node)
        return node

    def close(self) -> None:
        """Nodes are made after those before them, so one backward pass closes the relation."""
        self.after = [0] * len(self.edges)
        for node in reversed(range(len(self.edges))):
            for target in self.edges[node]:
                self.after[node] |= (1 << target) | self.after[target]

    def is_before(self, a: Instance, b: Instance) -> bool:
        return bool(self.after[a.node] >> b.node & 1)


def read(items: tuple[Item, ...]) -> Reading:
    """Enumerate everything."""
    reading = Reading()
    numbers: dict[int, int] = {}
    _number(items, numbers, reading)
    start = reading.new_node()
    _read_body(items, reading, numbers, start, {}, {}, (), ())
    reading.close()
    return reading


def _number(items: tuple[Item, ...], numbers: dict[int, int], reading: Reading) -> None:
    for item in items:
        numbers[id(item)] = reading.positions
        reading.positions += 1
        if isinstance(item, Loop):
            _number(item.body, numbers, reading)
            reading.positions += 1  # `endloop`


def _read_body(
    items: tuple[Item, ...],
    reading: Reading,
    numbers: dict[int, int],
    gate: int,
    env: dict[str, int],
    tokens: dict[str, int],
    ordinals: tuple[int, ...],
    loops: tuple[int, ...],
) -> list[int]:
    """Make the nodes of one iteration of a body; returns all of them."""
    made = [gate]
    tokens = dict(tokens)
    for item in items:
        if isinstance(item, Task):
            node = reading.new_node(gate, *(tokens[t] for t in item.deps))
            position = numbers[id(item)]
            reading.instances.append(Instance(item, position, dict(env), ordinals, loops, node))
            tokens[item.token] = node
            made.append(node)
            if item.is_sync:
                gate = reading.new_node(gate, node)
                made.append(gate)
        elif isinstance(item, Wait):
            gate = reading.new_node(gate, *(tokens[t] for t in item.tokens))
            made.append(gate)
        else:
            done: list[int] = []
            inner_loops = (*loops, numbers[id(item)])
            for ordinal, value in enumerate(range(item.first, item.last + 1)):
                ready = done[: max(0, ordinal - item.window + 1)]
                begin = reading.new_node(gate, *ready)
                inside = _read_body(
                    item.body,
                    reading,
                    numbers,
                    begin,
                    {**env, item.variable: value},
                    tokens,
                    (*ordinals, ordinal),
                    inner_loops,
                )
                done.append(reading.new_node(*inside))
            gate = reading.new_node(gate, *done)
            made.append(gate)
    return made


def hazards(items: tuple[Item, ...]) -> set[tuple[frozenset[int], str]]:
    """Unordered pairs of statements with the code that they break, by brute force."""
    reading = read(items)
    touched = [
        (
            set().union(*(p.touched(i.env) for p in i.task.reads)),
            set().union(*(p.touched(i.env) for p in i.task.writes)),
        )
        for i in reading.instances
    ]
    found = set()
    for m, u in enumerate(reading.instances):
        for n in range(m + 1, len(reading.instances)):
            v = reading.instances[n]
            if reading.is_before(u, v) or reading.is_before(v, u):
                continue
            found |= {
                (frozenset({u.position, v.position}), code)
                for code in _codes(u, touched[m], v, touched[n])
            }
    return found


Touched = tuple[set[tuple[str, int]], set[tuple[str, int]]]


def _codes(u: Instance, touched_u: Touched, v: Instance, touched_v: Touched) -> set[str]:
    (read_u, write_u), (read_v, write_v) = touched_u, touched_v
    across = any(
        a == b and i != j
        for a, b, i, j in zip(u.loops, v.loops, u.ordinals, v.ordinals, strict=False)
    )
    if across:
        return _codes_across(u, v)
    if u.position > v.position:
        (read_u, write_u), (read_v, write_v) = (read_v, write_v), (read_u, write_u)
    codes = set()
    if write_u & read_v:
        codes.add("HAZ01")
    if read_u & write_v:
        codes.add("HAZ02")
    if write_u & write_v:
        codes.add("HAZ03")
    return codes


def _codes_across(u: Instance, v: Instance) -> set[str]:
    codes = set()
    pairs = [
        (a, b)
        for xs, ys in (
            (u.task.writes, v.task.reads),
            (u.task.reads, v.task.writes),
            (u.task.writes, v.task.writes),
        )
        for a in xs
        for b in ys
    ]
    for a, b in pairs:
        if a.touched(u.env) & b.touched(v.env):
            codes.add("HAZ06" if a.offset.is_ring or b.offset.is_ring else "HAZ05")
    return codes


@st.composite
def sketches(draw: st.DrawFn, most_items: int = 5) -> tuple[Item, ...]:
    """Programs with nested loops, rings, waits, deps, sync forms and strided operands."""
    counter = iter(range(1000))
    return _items(draw, counter, [], (), most_items, 0)


def _items(
    draw: st.DrawFn,
    counter: Iterator[int],
    visible: list[str],
    variables: tuple[tuple[str, int], ...],
    most: int,
    depth: int,
) -> tuple[Item, ...]:
    items: list[Item] = []
    tokens = list(visible)
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["task"] * 5 + ["wait"] + ["loop"] * (2 if depth < 2 else 0)))
        if kind == "wait" and tokens:
            chosen = draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=2, unique=True))
            items.append(Wait(tuple(chosen)))
        elif kind == "loop":
            name = f"i{next(counter)}"
            first, trips = draw(st.integers(0, 2)), draw(st.integers(1, 4))
            window = draw(st.integers(1, 3))
            inner = (*variables, (name, first + trips - 1))
            body = _items(draw, counter, tokens, inner, 3, depth + 1)
            items.append(Loop(name, first, first + trips - 1, window, body))
        else:
            task = _task(draw, f"t{next(counter)}", tokens, variables)
            items.append(task)
            tokens.append(task.token)
    return tuple(items)


def _task(
    draw: st.DrawFn, token: str, tokens: list[str], variables: tuple[tuple[str, int], ...]
) -> Task:
    deps: tuple[str, ...] = ()
    if tokens:
        deps = tuple(draw(st.lists(st.sampled_from(tokens), max_size=2, unique=True)))
    is_compute = draw(st.booleans())
    reads = tuple(_place(draw, variables, is_compute) for _ in range(2 if is_compute else 1))
    writes = (_place(draw, variables, is_compute),)
    is_sync = draw(st.sampled_from([False, False, False, True]))
    return Task(token, reads, writes, deps, is_sync, is_compute)


def _place(draw: st.DrawFn, variables: tuple[tuple[str, int], ...], strided: bool) -> Place:
    parts = []
    for name, _ in variables:
        if draw(st.booleans()):
            modulus = draw(st.sampled_from([None, 2, 3]))
            parts.append((name, draw(st.sampled_from([1, 2, 4, 8])), modulus))
    buffer = draw(st.sampled_from(BUFFERS))
    rows = draw(st.integers(1, 3)) if strided else 1
    width, pitch = draw(st.integers(1, 4)), draw(st.integers(4, 6))
    return Place(buffer, Offset(draw(st.integers(0, 8)), tuple(parts)), width, rows, pitch)
