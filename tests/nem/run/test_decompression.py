"""Transfers that decompress: against naive loops, from bytes of strangers, and in time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.compression_forms import CompressionForm, size_bounds
from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.weight_compression import compress
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.base.naive_compression import naive_decompress
from tests.effort import scaled
from tests.nem.run.timing.timed import timed

SIZE = 4096
HEAD = f"""include "npm_pro.nem"
device npm_pro
buffer A : DDR (size={SIZE})
buffer B : L2 (size={SIZE})
buffer C : L1[0] (size={SIZE})
"""
SPARSE = CompressionForm("sparse")


def spelt(form: CompressionForm) -> str:
    return "sparse" if form.name == "sparse" else f"palette(bits={form.bits}, tables={form.tables})"


def started(text: str, given: bytes) -> Session:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(text))
    session.write_buffer("A@0", given)
    return session


def contents(session: Session, name: str) -> bytes:
    return bytes(session.memory.storage(session.memory.buffers[name]).data)


def source(elem: str, shape: list[int], form: CompressionForm, extent: int, name: str = "A") -> str:
    letters = "C" if len(shape) == 1 else "MN"
    where = f"region({name}, 0, {extent}) elem={elem}, shape={shape}, layout={letters}"
    return f"{where}, compressed={spelt(form)}"


@st.composite
def transfers(draw: st.DrawFn) -> tuple[str, list[int], CompressionForm, bool]:
    elem = draw(st.sampled_from(list(ELEMENT_TYPES)))
    form = SPARSE
    if draw(st.booleans()):
        form = CompressionForm("palette", draw(st.integers(1, 5)), draw(st.integers(1, 2)))
    rows = draw(st.integers(1, 4)) * form.tables
    return elem, [rows, draw(st.integers(1, 9))], form, draw(st.booleans())


@settings(max_examples=scaled(40))
@given(transfers(), st.integers(0, 1 << 32))
def test_elements_are_those_that_naive_loops_read(
    case: tuple[str, list[int], CompressionForm, bool], seed: int
) -> None:
    elem, shape, form, is_strided = case
    element, count = ELEMENT_TYPES[elem], shape[0] * shape[1]
    rng = np.random.default_rng(seed)
    least, most = size_bounds(form, count, element.bits)
    stored = rng.integers(0, 256, most, np.uint8)
    if form.name == "sparse" and count % 8:
        stored[least - 1] &= (1 << count % 8) - 1
    codes = naive_decompress(stored.tobytes(), count, element.bits, form)
    assert codes is not None
    size = bytes_needed(count, element)
    target = f"region(B, 0, {size})"
    if is_strided and element.bits >= 8:
        row = shape[1] + 3
        extent = ((shape[0] - 1) * row + shape[1]) * element.bits // 8
        target = f"region(B, 0, {extent}) elem={elem}, shape={shape}, strides=[{row}, 1]"
    text = f"{HEAD}t = transfer.sync(dst={target}, src={source(elem, shape, form, most)})\n"
    session = started(text, stored.tobytes())
    session.run()
    found = contents(session, "B")
    for index, code in enumerate(codes):
        if is_strided and element.bits >= 8:
            place = index // shape[1] * (shape[1] + 3) + index % shape[1]
        else:
            place = index
        whole = int.from_bytes(found[: SIZE // 2], "little")
        assert whole >> place * element.bits & ((1 << element.bits) - 1) == code


def test_a_loop_of_tiles_has_tables_of_its_own() -> None:
    rng = np.random.default_rng(3)
    form = CompressionForm("palette", 2)
    tiles = [rng.choice(rng.integers(-128, 128, 4), 64).astype(np.int8) for _ in range(4)]
    made = [compress(tile.view(np.uint8), 64, 8, form) for tile in tiles]
    stored = b"".join(tile.tobytes() for tile in made if tile is not None)
    text = f"""{HEAD}t = transfer.sync(dst=region(B, 0, 80), src=region(A, 0, 80))
loop i in [0..3]:
    u = transfer.sync(dst=region(C, i * 64, 64),
        src=region(B, i * 20, 20) elem=i8, shape=[64], layout=C, compressed=palette(bits=2))
endloop
"""
    session = started(text, stored)
    session.run()
    assert contents(session, "C")[:256] == b"".join(tile.tobytes() for tile in tiles)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b"\x0f\x01\x02", "the mask keeps 4 of 4 elements, which end at byte 5, found 3"),
        (b"\x10\x01\x02", "the mask has elements beyond the 4 that there are"),
    ],
)
def test_run13_what_is_no_compressed_element_stops_the_run(stored: bytes, message: str) -> None:
    text = f"""{HEAD}s = transfer.sync(dst=region(B, 8, 1), src=region(A, 0, 1))
t = transfer.sync(dst=region(B, 0, 4), src={source("i8", [4], SPARSE, 3)})
"""
    session = started(text, stored)
    session.run()
    assert [(d.code, d.severity) for d in session.diagnostics] == [("RUN13", "error")]
    assert message in session.diagnostics[0].message
    assert contents(session, "B")[:4] == b"\xff" * 4  # still poison
    assert contents(session, "B")[8] == stored[0]
    session.step_back()
    assert contents(session, "B")[8] == 0xFF


def test_bytes_that_nobody_wrote_make_all_elements_so() -> None:
    form = CompressionForm("palette", 1)
    text = f"""{HEAD}t = transfer.sync(dst=region(B, 0, 3), src=region(A, 0, 3))
u = transfer.sync(dst=region(C, 0, 16), src={source("i8", [16], form, 4, "B")})
"""
    session = started(text, b"\x01\x02\xff")
    session.run()
    storage = session.memory.storage(session.memory.buffers["C"])
    assert not storage.written[:16].any()
    assert bytes(storage.data[:16]) == b"\xff" * 16


def test_bytes_behind_a_sparse_region_may_be_anything() -> None:
    text = f"""{HEAD}t = transfer.sync(dst=region(B, 0, 2), src=region(A, 0, 2))
u = transfer.sync(dst=region(C, 0, 8), src={source("i8", [8], SPARSE, 9, "B")})
"""
    session = started(text, b"\x04\x07")
    session.run()
    assert not session.diagnostics
    assert contents(session, "C")[:8] == bytes([0, 0, 7, 0, 0, 0, 0, 0])
    assert session.memory.storage(session.memory.buffers["C"]).written[:8].all()


def test_a_compressed_region_is_bytes_to_the_host() -> None:
    text = f"""{HEAD}let w = {source("f16", [512], SPARSE, 70)}
t = transfer.sync(dst=region(B, 0, 1030), src=w)
"""
    session = started(text, bytes(64) + b"\x00\x3c" + bytes(4))
    assert session.read_region("w").shape == (70,)
    session.run()
    assert not session.diagnostics
    written = session.memory.storage(session.memory.buffers["B"]).written
    assert written[:1024].all()
    assert not written[1024:1030].any()
    runs = [(run.low, run.high) for run in session.who_wrote("B") if run.writer is not None]
    assert runs == [(0, 1024)]


def cycles(text: str, **figures: dict[str, int]) -> int:
    return int(timed(text, figures or None).cycles)


def test_the_slower_of_memory_and_unit_decides() -> None:
    form = CompressionForm("palette", 4)
    size = 16 + 512
    given_elements = source("i8", [1024], form, size)
    text = f"{HEAD}t = transfer.async(dst=region(B, 0, 1024), src={given_elements})\n"
    assert cycles(text) == 16 + -(-size // 32)
    assert cycles(text, WDM={"bandwidth": 8, "latency": 3}) == 3 + 1024 // 8
    assert cycles(text, DDR={"bandwidth": 4}) == -(-size // 4)
    plain = f"{HEAD}t = transfer.async(dst=region(B, 0, 1024), src=region(A, 0, 1024))\n"
    assert cycles(plain) == 16 + 1024 // 32


def test_a_device_has_so_many_units_and_no_more() -> None:
    form = CompressionForm("palette", 1)
    size = 2 + 8
    lines = [
        f"t{i} = transfer.async(dst=region(C, {i * 64}, 64), src=region(B, 0, {size}) "
        f"elem=i8, shape=[64], layout=C, compressed={spelt(form)})"
        for i in range(4)
    ]
    text = f"""include "npm_pro.nem"
device few extends npm_pro {{
    topology {{
        num_engines = 1 l2_size_bytes = 65536 device_units {{ sDMA = 1 WDM = 2 }}
        per_engine {{ NMU = 1 CSTL = 1 DMA = 4 VPU = 1 SEQ = 1 l1_size_bytes = 65536 }}
    }}
}}
program p:
buffer A : DDR (size=16)
buffer B : L2 (size=4096)
buffer C : L1[0] (size=4096)
t = transfer.sync(dst=region(B, 0, {size}), src=region(A, 0, {size}))
{chr(10).join(lines)}
"""
    one = 8 + 64 // 64
    assert cycles(text) == 16 + 1 + 2 * one
