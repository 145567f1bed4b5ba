"""Schedules of memory: followed by a naive machine of the tests, and broken on purpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre import core, nac
from nacre.nac.format.values import Command, NacFile, Tick
from nacre.nac.run.model import model_of
from nacre.nac.spec.instructions import FORWARD, FREE, PRELOAD
from tests.nac.files import FIXTURES


@st.composite
def networks(draw: st.DrawFn) -> core.Module:
    """Sums of values and constants, some used often, some returned."""
    builder = core.Builder()
    values = [builder.input("x", "f32", (4,)), builder.input("y", "f32", (4,))]
    for at in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            values.append(builder.constant(np.full(4, at, np.float32)))
        a, b = (draw(st.sampled_from(values)) for _ in range(2))
        values.append(builder.add("BinOp", a, b, op=draw(st.sampled_from(["Add", "Mul"]))))
    return builder.module(*draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=3)))


def naive_peak(file: NacFile) -> int:
    """Every tick with a set of what is alive; all tensors have 16 bytes. KeyError: not there."""
    alive: set[int] = set()
    loading: set[int] = set()
    commands = {tick.tick: tick.commands for tick in file.schedule}
    forwarded: dict[int, list[int]] = {}
    most = 0
    for index, instruction in enumerate(file.instructions):
        for offset in instruction.d:
            if offset:
                assert index + offset in alive, f"{index} uses {index + offset}"
        loading.discard(index)
        alive.add(index)
        most = max(most, len(alive | loading) - (instruction.op == 3))
        for gone in forwarded.get(index, ()):
            alive.remove(gone)
        for command in sorted(commands.get(index, ()), key=lambda c: c.action != FREE):
            if command.action == FREE:
                alive.remove(command.target)
            elif command.action == FORWARD:
                forwarded.setdefault(command.target, []).append(index)
            elif command.action == PRELOAD and command.target > index:
                loading.add(command.target)
                most = max(most, len(alive | loading) - (instruction.op == 3))
    end = len(file.instructions) - 1
    assert alive - {end} == {end + offset for offset in file.instructions[-1].d}
    return 16 * most


@given(networks())
def test_our_schedules_are_right(module: core.Module) -> None:
    model = nac.build(module)
    found = nac.memory_map(model)
    assert found.is_sound
    assert found.is_complete, str(found)
    assert found.peak_bytes == naive_peak(model.file)
    assert 0 < found.least_bytes <= found.peak_bytes


def broken(change: dict[int, tuple[Command, ...]]) -> nac.NacModel:
    """-((x + x) + x) with other commands at some ticks: 0 is x, 1 and 2 the sums, 3 the result."""
    builder = core.Builder()
    x = builder.input("x", "f32", (4,))
    total = builder.add("BinOp", builder.add("BinOp", x, x, op="Add"), x, op="Add")
    file = nac.build(builder.module(builder.add("Neg", total))).file
    kept = {tick.tick: tick.commands for tick in file.schedule} | change
    schedule = tuple(Tick(tick, commands) for tick, commands in sorted(kept.items()) if commands)
    return model_of(NacFile(file.header, {**file.sections, "MMAP": schedule}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: (Command(FREE, 0),), 3: ()}, "freed at tick 1, and instruction 2 uses it"),
        ({4: (Command(FREE, 0),)}, "freed at tick 4, but was freed at tick 3"),
        ({3: (Command(FREE, 1), Command(FREE, 0))}, "freed at tick 3, but was forwarded at tick 2"),
    ],
)
def test_a_wrong_schedule_is_found(change: dict[int, tuple[Command, ...]], message: str) -> None:
    model = broken(change)
    found = nac.memory_map(model)
    assert not found.is_sound
    assert message in str(found)
    assert [d.code for d in nac.verify(nac.to_bytes(model.file))] == ["NAC35"]


def test_what_a_schedule_leaves_out_is_told() -> None:
    found = nac.memory_map(broken({1: (), 3: ()}))
    assert found.is_sound
    assert not found.is_complete
    assert found.never_freed == (0, 1)
    assert found.not_kept == (1, 3)
    assert "never freed: 0, 1" in str(found)


def test_the_reference_compiler_loses_commands() -> None:
    """As its notes say: what falls on the tick of a weight is dropped, and inputs stay."""
    path = next(path for path in FIXTURES if path.name == "mlp.none.v16.nac")
    model = nac.load(path)
    x = np.load(path.with_suffix(".npz"))["in0"]
    types = {model.inputs[0].name: core.TensorType("f32", x.shape)}
    theirs = nac.memory_map(model, types)
    assert theirs.is_sound
    assert theirs.not_preloaded == (5, 6)
    assert theirs.never_freed == (0,)
    ours = nac.memory_map(nac.build(nac.lift(model, types)))
    assert ours.is_complete
    assert ours.peak_bytes <= theirs.peak_bytes
    assert ours.least_bytes == theirs.least_bytes


def test_commands_that_are_too_many_for_a_tick_wait() -> None:
    builder = core.Builder()
    total = builder.input("x", "f32", (1,))
    for start in (0, 200):  # the ones go and the others come at one tick
        many = [builder.constant(np.array([start + at], np.float32)) for at in range(200)]
        total = builder.add("Neg", builder.add("Concat", total, *many, axis=0))
    model = nac.build(builder.module(total))
    found = nac.memory_map(model)
    assert found.is_sound
    assert found.is_complete, str(found)
    assert max(len(tick.commands) for tick in model.file.schedule) == 255
    assert nac.verify(nac.to_bytes(model.file)) == []
