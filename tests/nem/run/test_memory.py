"""Memories: where buffers lie, what nobody wrote, what outlives a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nem.run.memory.memory import POISON, MemoryLevel, Storage, first_false_run
from neminterp import NemInterpreter

alignments = st.sampled_from([1, 2, 4, 16, 64, 256])


@given(st.lists(st.tuples(st.integers(1, 300), alignments), max_size=20))
def test_buffers_lie_one_after_the_other_where_their_alignment_lets_them(
    wanted: list[tuple[int, int]],
) -> None:
    level, end = MemoryLevel("L2", 1 << 20), 0
    for size, align in wanted:
        offset = level.allocate(size, align)
        assert offset % align == 0
        assert end <= offset < end + align
        end = offset + size
        assert level.allocated == end
    assert [a.size for a in level.allocations] == [size for size, _ in wanted]


def test_buffers_of_a_program_keep_apart_by_level_and_engine() -> None:
    text = (
        "buffer A : L2 (size=10, align=64)\n"
        "buffer B : L1 (size=3, align=64)\n"
        "buffer C : L2 (size=10, align=64)\n"
        "buffer D : L1 (size=5, align=4)\n"
        "buffer E : DDR (size=100, align=1)\n"
        "buffer F : DDR (size=1, align=32)\n"
    )
    interpreter = NemInterpreter(ddr_size=4096)
    session = interpreter.start(interpreter.load_string(text))
    memory = session.memory
    found = {name: memory.base(buffer) for name, buffer in memory.buffers.items()}
    assert found == {"A": 0, "B": 0, "C": 64, "D": 4, "E": 0, "F": 128}
    info = interpreter.ddr_info()
    assert (info.size, info.allocated, info.free) == (4096, 129, 4096 - 129)


def test_each_engine_has_an_l1_of_its_own() -> None:
    interpreter = NemInterpreter(device="npm_mid")
    program = interpreter.load_string("buffer A : L1[0] (size=16)\nbuffer B : L1[1] (size=16)\n")
    session = interpreter.start(program, {"A": b"a" * 16, "B": b"b" * 16})
    assert session.read_memory("L1", 0, 16, engine=0) == b"a" * 16
    assert session.read_memory("L1", 0, 16, engine=1) == b"b" * 16


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 5))
def test_the_first_run_of_false(flags: list[bool], start: int) -> None:
    expected = None
    if False in flags:
        low = flags.index(False)
        high = next((i for i in range(low, len(flags)) if flags[i]), len(flags))
        expected = (start + low, start + high)
    assert first_false_run(np.array(flags, np.bool_), start) == expected


writes = st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=12)), max_size=6)


@given(writes)
def test_bytes_that_nobody_wrote_read_as_poison(done: list[tuple[int, bytes]]) -> None:
    level, expected = MemoryLevel("DDR", 32), bytearray([POISON] * 32)
    for offset, data in done:
        level.write(offset, data)
        expected[offset : offset + len(data)] = data
    assert level.read(0, 32) == bytes(expected)


@given(writes)
def test_without_poison_they_read_as_zeros(done: list[tuple[int, bytes]]) -> None:
    level, expected = MemoryLevel("DDR", 32, poison=False), bytearray(32)
    for offset, data in done:
        level.write(offset, data)
        expected[offset : offset + len(data)] = data
    assert level.read(0, 32) == bytes(expected)


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (31, 2), (33, 0), (0, -1), (0, 33)])
def test_a_memory_ends_where_it_ends(offset: int, size: int) -> None:
    level = MemoryLevel("L2", 32)
    assert not level.contains(offset, size)
    with pytest.raises(IndexError):
        level.read(offset, size)


PROGRAM = """\
buffer D : DDR (size=16)
buffer L : L2 (size=16)
t0 = transfer.sync(dst=region(L, 8, 8), src=region(D, 0, 8))
t1 = transfer.sync(dst=region(D, 8, 8), src=region(L, 0, 8))
"""


def test_ddr_outlives_runs_and_l2_does_not() -> None:
    interpreter = NemInterpreter(ddr_size=4096)
    program = interpreter.load_string(PROGRAM)
    interpreter.ddr_write(0, b"abcdefgh")
    first = interpreter.run(program, {"L": b"0123456789abcdef"})
    assert first.read_buffer("L") == b"01234567abcdefgh"
    assert interpreter.ddr_read(0, 16) == b"abcdefgh01234567"
    session = interpreter.start(program)
    storage = session.memory.storage(session.memory.buffers["L"])
    assert storage.data.tobytes() == bytes([POISON] * 16)
    assert storage.missing == 16
    assert interpreter.ddr_read(0, 16) == b"abcdefgh01234567"
    session.run()
    # The second run copied poison over what the first one had left.
    assert interpreter.ddr_read(0, 16) == b"abcdefgh" + bytes([POISON] * 8)


def test_what_a_run_left_in_ddr_counts_as_written_in_the_next_one() -> None:
    interpreter = NemInterpreter(ddr_size=4096)
    program = interpreter.load_string("buffer D : DDR (size=16)\n")
    interpreter.start(program, {"D@4": b"xyz"})
    storage_of = interpreter.start(program).memory
    storage = storage_of.storage(storage_of.buffers["D"])
    assert storage.missing == 13
    assert storage.data.tobytes() == bytes([POISON] * 4) + b"xyz" + bytes([POISON] * 9)


def test_another_interpreter_has_another_ddr() -> None:
    first, second = NemInterpreter(ddr_size=64), NemInterpreter(ddr_size=64)
    first.ddr_write(0, b"mine")
    assert second.ddr_read(0, 4) == bytes([POISON] * 4)


def test_memory_that_starts_as_zeros_lets_nothing_be_missing() -> None:
    interpreter = NemInterpreter(ddr_size=4096, uninitialized="zero")
    session = interpreter.start(interpreter.load_string(PROGRAM))
    result = session.run()
    assert (result.status, result.diagnostics) == ("completed", ())
    assert session.read_buffer("L") == bytes(16)
    assert interpreter.ddr_read(0, 16) == bytes(16)


def test_an_unknown_choice_of_initial_contents_is_refused() -> None:
    with pytest.raises(InputError, match="expected `poison` or `zero`"):
        NemInterpreter(uninitialized="random")  # type: ignore[arg-type]


def storages() -> tuple[Storage, Storage]:
    program = NemInterpreter().load_string("buffer A : L1 (size=24)\nbuffer B : L1 (size=24)\n")
    level = MemoryLevel("L1[0]", 64)
    a, b = program.plan.program.buffers
    return Storage(a, level, 0), Storage(b, level, 32)


spans = st.tuples(st.integers(0, 11), st.integers(1, 12))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("mark"), spans, spans),
        st.tuples(st.just("copy"), spans, spans),
        st.tuples(st.just("within"), spans, spans),
    ),
    max_size=12,
)


@given(moves)
def test_masks_and_counts_follow_marks_and_copies(
    done: list[tuple[str, tuple[int, int], tuple[int, int]]],
) -> None:
    a, b = storages()
    naive = {id(a): [False] * 24, id(b): [False] * 24}
    for kind, (low, size), (start, _) in done:
        if kind == "mark":
            a.mark_written(low, low + size)
            naive[id(a)][low : low + size] = [True] * size
            continue
        source, target = (a, b) if kind == "copy" else (a, a)
        target.mark_copied(low, source, start, size)
        naive[id(target)][low : low + size] = naive[id(source)][start : start + size]
        for storage in (a, b):
            assert storage.written.tolist() == naive[id(storage)]
            assert storage.missing == naive[id(storage)].count(False)
            gap = storage.first_gap(0, 24)
            assert (gap is None) == (storage.missing == 0)
