"""Random timed programs as plain data, with their own NEM text: devices, figures, statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

Figures = Mapping[str, Mapping[str, int]]
BUFFER_BYTES = 16384


@dataclass(frozen=True)
class Linear:
    """`base + variable * step`, perhaps modulo something."""

    base: int
    variable: str | None = None
    step: int = 0
    modulus: int | None = None

    def text(self) -> str:
        if self.variable is None:
            return str(self.base)
        total = f"{self.variable} * {self.step} + {self.base}"
        return total if self.modulus is None else f"({total}) mod {self.modulus}"

    def value(self, env: Mapping[str, int]) -> int:
        total = self.base + (env[self.variable] * self.step if self.variable else 0)
        return total if self.modulus is None else total % self.modulus


@dataclass(frozen=True)
class Task:
    """A task. Sizes: bytes of a copy, elements of an elementwise task; M, N, K of a product."""

    op: str  # transfer, store, relu, add, gemm
    source: str  # DDR, L2, or L1[k]
    target: str
    size: Linear = field(default_factory=lambda: Linear(32))
    token: str | None = None
    deps: tuple[str, ...] = ()
    is_sync: bool = False
    resource: tuple[str, Linear] | None = None
    seq_engine: int | None = None
    elem: str = "f16"
    rows: int = 0  # of a copy of elements, `size` bytes each; 0: a plain copy
    product: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True)
class Wait:
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    variable: str
    first: int
    last: int
    window: int | None
    body: tuple[Task | Wait | Loop, ...]


Item = Task | Wait | Loop


@dataclass(frozen=True)
class Machine:
    """A device, and a profile on top of it."""

    engines: int = 1
    counts: Mapping[str, int] = field(default_factory=dict)  # of units; the others are there once
    tokens: int | None = None
    characteristics: Figures = field(default_factory=dict)
    profile: Figures = field(default_factory=dict)

    def count(self, unit: str) -> int:
        return self.counts.get(unit, 1)

    def text(self) -> str:
        units = "\n".join(f"{u} = {self.count(u)}" for u in ("NMU", "CSTL", "DMA", "VPU"))
        figures = {unit: dict(entries) for unit, entries in self.characteristics.items()}
        if self.tokens is not None:
            figures.setdefault("SEQ", {})["max_active_tokens"] = self.tokens
        groups = "\n".join(
            f"{unit} {{\n" + "\n".join(f"{key} = {n}" for key, n in entries.items()) + "\n}"
            for unit, entries in figures.items()
        )
        return (
            'include "nem_baseline_1.0.nem"\n'
            "device sketch extends nem_baseline_1_0 {\n"
            f"topology {{\nnum_engines = {self.engines}\nl2_size_bytes = 4194304\n"
            f"device_units {{\nsDMA = {self.count('sDMA')}\nWDM = 0\n}}\n"
            f"per_engine {{\n{units}\nSEQ = 1\nl1_size_bytes = 1048576\n}}\n}}\n"
            + (f"unit_characteristics {{\n{groups}\n}}\n" if figures else "")
            + "opcode.extended {\ngemm.float<f32>.no_bias\n}\n}\n"
        )


Sketch = tuple[tuple[Item, ...], Machine]


def program_text(items: tuple[Item, ...], machine: Machine) -> str:
    """A whole program with its device."""
    levels = ["DDR", "L2", *(f"L1[{k}]" for k in range(machine.engines))]
    buffers = [
        f"buffer {_buffer(level, side)} : {level} (size={BUFFER_BYTES})"
        for level in levels
        for side in ("from", "to")
    ]
    head = [machine.text(), "program sketch:", *buffers]
    return "\n".join([*head, *_lines(items, "")]) + "\n"


def _buffer(level: str, side: str) -> str:
    return level.replace("[", "_").replace("]", "") + "_" + side


def _lines(items: tuple[Item, ...], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Wait):
            yield f"{indent}wait({', '.join(item.tokens)})"
        elif isinstance(item, Loop):
            window = "" if item.window is None else f" @max_in_flight({item.window})"
            yield f"{indent}loop {item.variable} in [{item.first}..{item.last}]{window}:"
            yield from _lines(item.body, indent + "    ")
            yield f"{indent}endloop"
        else:
            yield indent + _task_text(item)


def _task_text(task: Task) -> str:
    name = f"{task.token} = " if task.token else ""
    form = f"{task.op}.{'sync' if task.is_sync else 'async'}"
    decorators = ""
    if task.resource is not None:
        decorators += f" @resource({task.resource[0]}[{task.resource[1].text()}])"
    if task.seq_engine is not None:
        decorators += f" @seq_engine({task.seq_engine})"
    deps = f"deps=[{', '.join(task.deps)}]" if task.deps else ""
    if task.op in ("transfer", "store"):
        target, source = _copied(task, "to"), _copied(task, "from")
        comma = ", " if deps else ""
        return f"{name}{form}(dst={target}, src={source}{comma}{deps}){decorators}"
    inputs, output = _computed(task)
    accumulator = " accum_type=f32" if task.op == "gemm" else ""
    return f"{name}{form} in {inputs} out {output} {deps}{accumulator}{decorators}"


def _copied(task: Task, side: str) -> str:
    buffer = _buffer(task.source if side == "from" else task.target, side)
    size = task.size.text()
    if not task.rows:
        return f"region({buffer}, 0, {size})"
    # Rows lie 8 bytes apart at the source and close together at the target.
    pitch = f"({size}) + 8" if side == "from" else f"({size})"
    extent = f"{task.rows - 1} * ({pitch}) + {size}"
    shape = f"shape=[{task.rows}, {size}], strides=[{pitch}, 1]"
    return f"region({buffer}, 0, {extent}) elem=i8, {shape}"


def _computed(task: Task) -> tuple[str, str]:
    source, target = _buffer(task.source, "from"), _buffer(task.target, "to")
    width = 4 if task.elem == "f32" else 2
    if task.op == "gemm":
        m, n, k = task.product
        a = f"region({source}, 0, {m * k * width}) elem={task.elem}, shape=[{m}, {k}], layout=MK"
        b = f"region({source}, 0, {k * n * width}) elem={task.elem}, shape=[{k}, {n}], layout=KN"
        y = f"region({target}, 0, {m * n * width}) elem={task.elem}, shape=[{m}, {n}], layout=MN"
        return f"{a}, {b}", y
    size = task.size.text()
    form = f"elem={task.elem}, shape=[{size}], layout=C"
    x = f"region({source}, 0, ({size}) * {width}) {form}"
    y = f"region({target}, 0, ({size}) * {width}) {form}"
    return (x if task.op == "relu" else f"{x}, {x}"), y


@st.composite
def machines(draw: st.DrawFn, *, limited: bool = True) -> Machine:
    """Devices of one to three engines, with few units and few tokens."""
    counts = {
        "NMU": draw(st.integers(1, 2)),
        "CSTL": draw(st.integers(1, 3)),
        "DMA": draw(st.integers(1, 3)),
        "sDMA": draw(st.integers(1, 2)),
    }
    tokens = draw(st.sampled_from([None, None, 1, 2, 3, 4, 6])) if limited else None
    characteristics = draw(st.sampled_from(_CHARACTERISTICS))
    return Machine(
        draw(st.integers(1, 3)), counts, tokens, characteristics, draw(st.sampled_from(_PROFILES))
    )


_CHARACTERISTICS: tuple[Figures, ...] = (
    {},
    {"NMU": {"int8_macs": 512, "fp16_macs": 256}},
    {"NMU": {"int8_macs": 64}, "DMA": {"bandwidth": 16}, "CSTL": {"latency": 3}},
)
_NO_LATENCY = {unit: {"latency": 0} for unit in ("NMU", "CSTL", "DMA", "sDMA", "VPU")}
_PROFILES: tuple[Figures, ...] = (
    {},
    {},
    {**_NO_LATENCY, "CSTL": {"latency": 0, "store_latency": 0}},
    {"DMA": {"bandwidth": 8, "latency": 1, "burst": 2}, "sDMA": {"bandwidth": 64, "latency": 5}},
    {"NMU": {"mac_throughput": 100, "latency": 7}, "CSTL": {"eltwise_throughput": 16}},
    {"CSTL": {"store_bandwidth": 8}, "VPU": {"throughput": 8, "latency": 0}},
)


@st.composite
def programs(draw: st.DrawFn, machine: Machine, most: int = 6) -> tuple[Item, ...]:
    """Programs with nested loops, windows, waits, sync forms, bindings and all kinds of paths."""
    counter = iter(range(1000))
    return _items(draw, machine, counter, [], (), most, 0)


def _items(
    draw: st.DrawFn,
    machine: Machine,
    counter: Iterator[int],
    visible: list[str],
    variables: tuple[str, ...],
    most: int,
    depth: int,
) -> tuple[Item, ...]:
    items: list[Item] = []
    tokens = list(visible)
    for _ in range(draw(st.integers(1, most))):
        kinds = ["task"] * 6 + ["wait"] + ["loop"] * (2 if depth < 2 else 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "wait" and tokens:
            chosen = draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=2, unique=True))
            items.append(Wait(tuple(chosen)))
        elif kind == "loop":
            name = f"i{next(counter)}"
            first, trips = draw(st.integers(0, 2)), draw(st.integers(1, 4))
            window = draw(st.sampled_from([None, 1, 2, 2, 3, 5]))
            inner = (*variables, name)
            body = _items(draw, machine, counter, tokens, inner, 4, depth + 1)
            items.append(Loop(name, first, first + trips - 1, window, body))
        else:
            task = _task(draw, machine, f"t{next(counter)}", tokens, variables)
            items.append(task)
            if task.token is not None:
                tokens.append(task.token)
    return tuple(items)


def _task(
    draw: st.DrawFn, machine: Machine, token: str, tokens: list[str], variables: tuple[str, ...]
) -> Task:
    deps = draw(st.lists(st.sampled_from(tokens), max_size=3, unique=True)) if tokens else []
    op = draw(st.sampled_from(["transfer"] * 3 + ["store", "relu", "add", "gemm"]))
    l1 = f"L1[{draw(st.integers(0, machine.engines - 1))}]"
    source, target = draw(st.sampled_from(_ways(op, l1)))
    unit = draw(st.sampled_from([None, None, "DMA", "CSTL", "NMU", "VPU"]))
    is_free = "L1" not in source + target
    return Task(
        op,
        source,
        target,
        _linear(draw, variables, [32, 32, 64, 96, 300]),
        token if draw(st.integers(0, 4)) else None,
        tuple(deps),
        draw(st.integers(0, 5)) == 0,
        None if unit is None else (unit, _linear(draw, variables, [0, 1, 2, 5], step=1)),
        draw(st.sampled_from([None, 0, machine.engines - 1])) if is_free else None,
        draw(st.sampled_from(["f16", "f32"])) if op == "gemm" else "f16",
        draw(st.sampled_from([0, 0, 0, 2, 3])) if op in ("transfer", "store") else 0,
        draw(st.sampled_from([(1, 1, 1), (8, 8, 8), (4, 16, 32), (16, 16, 16)])),
    )


def _ways(op: str, l1: str) -> list[tuple[str, str]]:
    if op == "transfer":
        levels = ["DDR", "L2", l1]
        return [(a, b) for a in levels for b in levels]
    if op == "store":
        return [(l1, "L2")]
    return [(l1, l1), (l1, l1), ("L2", l1), ("L2", "L2")]


def _linear(
    draw: st.DrawFn, variables: tuple[str, ...], bases: list[int], step: int | None = None
) -> Linear:
    base = draw(st.sampled_from(bases))
    if not variables or draw(st.booleans()):
        return Linear(base)
    if step is None:
        return Linear(base, draw(st.sampled_from(variables)), draw(st.sampled_from([32, 64])))
    modulus = draw(st.sampled_from([None, 2, 3]))
    return Linear(base, draw(st.sampled_from(variables)), step, modulus)


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    """A program with its machine."""
    machine = draw(machines())
    return draw(programs(machine)), machine


@st.composite
def scarce(draw: st.DrawFn) -> Sketch:
    """Many tasks on one engine that has few tokens: who is late changes who is next."""
    counts = {"DMA": draw(st.integers(1, 3)), "CSTL": 2}
    machine = Machine(1, counts, draw(st.integers(2, 4)))
    return draw(programs(machine, 14)), machine


def changed(items: tuple[Item, ...], change: Callable[[Task], Task]) -> tuple[Item, ...]:
    """The same program with other tasks."""
    made: list[Item] = []
    for item in items:
        if isinstance(item, Loop):
            made.append(replace(item, body=changed(item.body, change)))
        else:
            made.append(change(item) if isinstance(item, Task) else item)
    return tuple(made)
