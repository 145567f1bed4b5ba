"""Transfers and stores: raw bytes, elements between strides, nibbles, overlaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nacre.kernels.interface.shapes import dense_strides
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.run.tensors import Case, cases, spread

SIZE = 2048
LAYOUTS = {1: "C", 2: "MK", 3: "NWC"}
seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.filter_too_much])


def region(name: str, case: Case) -> str:
    order = f"strides={list(case.strides)}" if case.strides else f"layout={LAYOUTS[case.rank]}"
    place = f"region({name}, {case.offset}, {case.layout.span})"
    return f"{place} elem={case.elem}, shape={list(case.shape)}, {order}"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Case, Case]:
    """A tensor here and there, in different strides."""
    source = draw(cases())
    strides = spread(draw, source.shape) if draw(st.booleans()) else None
    target = replace(source, strides=strides, offset=draw(st.integers(0, 7)))
    usual = dense_strides(source.shape)
    assume((source.strides or usual) != (target.strides or usual))
    return source, target


def started(text: str, seed: int, share: float) -> tuple[Session, dict[str, bytes]]:
    """A session whose buffers hold random bytes, some of them never written."""
    rng = np.random.default_rng(seed)
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(text))
    for name, buffer in session.memory.buffers.items():
        size = session.memory.storage(buffer).data.size
        start = 0
        while start < size:
            length = min(int(rng.integers(1, 16)), size - start)
            if rng.random() < share:
                session.write_buffer(f"{name}@{start}", rng.bytes(length))
            start += length
    storages = {n: session.memory.storage(b) for n, b in session.memory.buffers.items()}
    return session, {name: storage.data.tobytes() for name, storage in storages.items()}


def masks(session: Session) -> dict[str, list[bool]]:
    memory = session.memory
    return {name: memory.storage(b).written.tolist() for name, b in memory.buffers.items()}


@few
@given(pairs(), seeds, st.sampled_from(["transfer", "store"]), st.sampled_from([0.5, 0.9, 1.0]))
def test_elements_move_one_by_one_between_strides(
    pair: tuple[Case, Case], seed: int, opcode: str, share: float
) -> None:
    require_element_copy(pair[0], pair[1], seed, opcode, share)


def require_element_copy(source: Case, target: Case, seed: int, opcode: str, share: float) -> None:
    text = (
        f"buffer A : L1 (size={SIZE})\nbuffer B : L2 (size={SIZE})\n"
        f"t0 = {opcode}.sync(dst={region('B', target)}, src={region('A', source)})\n"
    )
    session, data = started(text, seed, share)
    flags = masks(session)
    assert session.run().status == "completed", session.diagnostics
    storage = session.memory.storage(session.memory.buffers["B"])
    after = storage.data.tobytes()
    known = list(flags["B"])
    for byte in target.touched:
        known[byte] = True
    for index in source.indices:
        assert target.stored(index, after) == source.stored(index, data["A"])
        if not all(flags["A"][byte] for byte in source.bytes_of(index)):
            for byte in target.bytes_of(index):
                known[byte] = False
    untouched = set(range(SIZE)) - set(target.touched)
    assert all(after[byte] == data["B"][byte] for byte in untouched)
    assert storage.written.tolist() == known
    assert storage.missing == known.count(False)


@few
@given(cases(), st.integers(0, 9), seeds, st.sampled_from([0.5, 1.0]))
def test_equal_strides_leave_the_gaps_alone_too(
    case: Case, offset: int, seed: int, share: float
) -> None:
    assume(case.strides is not None)
    require_element_copy(case, replace(case, offset=offset), seed, "store", share)


@few
@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 100), st.integers(0, 100), seeds)
def test_bytes_without_type_are_copied_as_far_as_the_source_reaches(
    start: int, offset: int, size: int, more: int, seed: int
) -> None:
    text = (
        f"buffer A : L2 (size={SIZE})\nbuffer B : L1 (size={SIZE})\n"
        f"t0 = transfer.sync(dst=region(B, {offset}, {size + more}), "
        f"src=region(A, {start}, {size}))\n"
    )
    require_raw_copy(text, seed, 0.7, start, offset, size)


def require_raw_copy(
    text: str, seed: int, share: float, start: int, offset: int, size: int
) -> None:
    session, data = started(text, seed, share)
    flags = masks(session)
    assert session.run().status == "completed"
    expected, known = bytearray(data["B"]), flags["B"]
    expected[offset : offset + size] = data["A"][start : start + size]
    known[offset : offset + size] = flags["A"][start : start + size]
    storage = session.memory.storage(session.memory.buffers["B"])
    assert storage.data.tobytes() == bytes(expected)
    assert storage.written.tolist() == known
    assert storage.missing == known.count(False)


@few
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60), seeds)
def test_a_memmove_reads_everything_before_it_writes(
    start: int, offset: int, size: int, seed: int
) -> None:
    text = (
        f"buffer B : L1 (size={SIZE})\n"
        f"t0 = transfer.sync(dst=region(B, {offset}, {size}), src=region(B, {start}, {size})) "
        "@memmove\n"
    )
    session, data = started(text, seed, 0.6)
    known = masks(session)["B"]
    assert session.run().status == "completed"
    expected = bytearray(data["B"])
    expected[offset : offset + size] = data["B"][start : start + size]
    known[offset : offset + size] = known[start : start + size]
    storage = session.memory.storage(session.memory.buffers["B"])
    assert storage.data.tobytes() == bytes(expected)
    assert storage.written.tolist() == known
    assert storage.missing == known.count(False)


@pytest.mark.parametrize("elem", ["i4", "i8", "bf16", "i32"])
def test_a_memmove_between_strides_reads_everything_first(elem: str) -> None:
    source, target = Case(elem, (2, 3), (3, 1), 0), Case(elem, (2, 3), (1, 2), 1)
    text = (
        "buffer B : L1 (size=64)\n"
        f"t0 = transfer.sync(dst={region('B', target)}, src={region('B', source)}) @memmove\n"
    )
    session, data = started(text, 3, 1.0)
    assert session.run().status == "completed"
    after = session.read_buffer("B")
    for index in source.indices:
        assert target.stored(index, after) == source.stored(index, data["B"])


def test_a_dense_copy_of_an_odd_number_of_nibbles_clears_the_spare_one() -> None:
    text = (
        "buffer A : L1 (size=8)\nbuffer B : L1 (size=8)\n"
        "t0 = transfer.sync(dst=region(B, 0, 2) elem=i4, shape=[3], strides=[1], "
        "src=region(A, 0, 3) elem=i4, shape=[3], strides=[2])\n"
    )
    interpreter = NemInterpreter()
    inputs = {"A": bytes([0xA1, 0xB2, 0xC3, 0, 0, 0, 0, 0]), "B": b"\xee" * 8}
    result = interpreter.run(interpreter.load_string(text), inputs)
    assert result.read_buffer("B") == bytes([0x21, 0x03, *[0xEE] * 6])


def test_sizes_of_copies_may_differ_by_iteration() -> None:
    text = (
        "buffer A : L2 (size=16)\nbuffer B : L1 (size=16)\n"
        "loop i in [1..3]:\n"
        "    t0 = transfer.sync(dst=region(B, i * 4, i), src=region(A, 0, i))\n"
        "endloop\n"
    )
    interpreter = NemInterpreter()
    inputs = {"A": b"abcdefghijklmnop", "B": b"." * 16}
    result = interpreter.run(interpreter.load_string(text), inputs)
    assert result.read_buffer("B") == b"....a...ab..abc."
