"""Stores that quantise on their way: against naive loops, and `quantize` with a raw store."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.run.tensors import Case, cases, spread
from tests.nem.run.timing.timed import timed

SIZE = 4096
LAYOUTS = {1: "C", 2: "MK", 3: "NWC", 4: "NHWC"}
HEAD = f"""include "npm4k.nem"
device npm4k
buffer A : L1 (size={SIZE})
buffer B : L2 (size={SIZE})
buffer C : L1 (size={SIZE})
"""


@dataclass(frozen=True)
class Store:
    """A store of floats into integers."""

    source: Case
    target: Case
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    @property
    def quant(self) -> str:
        if self.axis is None:
            return f"per_tensor(scale={self.scales[0]!r}, zero_point={self.zero_points[0]})"
        return (
            f"per_channel(axis={self.axis}, scales=[{', '.join(map(repr, self.scales))}], "
            f"zero_points=[{', '.join(map(str, self.zero_points))}])"
        )

    def expected(self, index: tuple[int, ...], value: float) -> int:
        """One element, by the definition of `quantize`."""
        channel = 0 if self.axis is None else index[self.axis]
        if math.isnan(value):
            steps = 0.0
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                steps = float(np.float32(value) / np.float32(self.scales[channel]))
        if math.isinf(steps):
            return 127 if steps > 0 else -128
        return max(-128, min(127, round(steps) + self.zero_points[channel]))


@st.composite
def stores(draw: st.DrawFn) -> Store:
    drawn = draw(cases())
    source = replace(drawn, elem=draw(st.sampled_from(["f16", "f32"])), offset=4 * drawn.offset)
    strides = spread(draw, source.shape) if draw(st.booleans()) else None
    target = Case("i8", source.shape, strides, draw(st.integers(0, 7)))
    axis = draw(st.none() | st.integers(0, source.rank - 1))
    count = 1 if axis is None else source.shape[axis]
    scale = st.sampled_from([0.125, 0.1, 1.0, 3.7, 1024.0])
    zero = st.integers(-128, 127)
    return Store(
        source, target, axis,
        tuple(draw(scale) for _ in range(count)), tuple(draw(zero) for _ in range(count)),
    )  # fmt: skip


def region(name: str, case: Case, quant: str = "") -> str:
    order = f"strides={list(case.strides)}" if case.strides else f"layout={LAYOUTS[case.rank]}"
    place = f"region({name}, {case.offset}, {case.layout.span})"
    ending = f", quant={quant}" if quant else ""
    return f"{place} elem={case.elem}, shape={list(case.shape)}, {order}{ending}"


def started(text: str, given: bytes) -> Session:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(text))
    session.write_buffer("A@0", given)
    return session


def contents(session: Session, name: str) -> bytes:
    return bytes(session.memory.storage(session.memory.buffers[name]).data)


def random_floats(elem: str, seed: int) -> bytes:
    """Values around the scales, ends of the range, NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    dtype = np.float16 if elem == "f16" else np.float32
    values = (rng.normal(size=SIZE) * rng.choice([0.1, 1, 30, 1000], SIZE)).astype(dtype)
    values[rng.random(SIZE) < 0.05] = np.nan
    values[rng.random(SIZE) < 0.05] = np.inf
    return bytes(values.tobytes()[:SIZE])


@settings(max_examples=scaled(60))
@given(stores(), st.integers(0, 1 << 32))
def test_every_element_is_quantised_as_quantize_does(store: Store, seed: int) -> None:
    given_bytes = random_floats(store.source.elem, seed)
    text = (
        f"{HEAD}s = store.sync(dst={region('B', store.target, store.quant)}, "
        f"src={region('A', store.source)})\n"
    )
    session = started(text, given_bytes)
    assert session.run().status == "completed", session.diagnostics
    after = contents(session, "B")

    wanted = bytearray(contents(started(text, given_bytes), "B"))
    dtype = np.float16 if store.source.elem == "f16" else np.float32
    for index in store.source.indices:
        raw = bytes(given_bytes[byte] for byte in store.source.bytes_of(index))
        value = float(np.frombuffer(raw, dtype)[0])
        (place,) = store.target.bytes_of(index)
        wanted[place] = store.expected(index, value) & 0xFF
    assert after == bytes(wanted)

    dense = Case("i8", store.target.shape, None, 0)
    two = (
        f"{HEAD}q = quantize.sync in {region('A', store.source)} "
        f"out {region('C', dense, store.quant)}\n"
        f"s = store.sync(dst={region('B', store.target, store.quant)}, "
        f"src={region('C', dense, store.quant)})\n"
    )
    other = started(two, given_bytes)
    assert other.run().status == "completed", other.diagnostics
    assert contents(other, "B") == after


def test_what_was_never_written_stays_so() -> None:
    text = (
        f"{HEAD}s = store.sync("
        "dst=region(B, 0, 4) elem=i8, shape=[4], layout=C, "
        "quant=per_tensor(scale=1.0, zero_point=0), "
        "src=region(A, 0, 8) elem=f16, shape=[4], layout=C)\n"
    )
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(text))
    session.write_buffer("A@2", np.array([3, 4], np.float16).tobytes())
    assert session.run().status == "completed"
    storage = session.memory.storage(session.memory.buffers["B"])
    assert storage.written[:5].tolist() == [False, True, True, False, False]
    assert storage.data[1:3].tolist() == [3, 4]
    session.step_back()
    assert not storage.written[:4].any()


def test_the_shape_may_follow_a_loop() -> None:
    text = HEAD + (
        "loop i in [0..3]:\n"
        "  s = store.sync(dst=region(B, i * 4, i + 1) elem=i8, shape=[i + 1], layout=C, "
        "quant=per_tensor(scale=1.0, zero_point=1), "
        "src=region(A, i * 8, 2 * (i + 1)) elem=f16, shape=[i + 1], layout=C)\n"
        "endloop\n"
    )
    session = started(text, np.arange(16, dtype=np.float16).tobytes())
    assert session.run().status == "completed", session.diagnostics
    found = np.frombuffer(contents(session, "B"), np.int8)[:16].reshape(4, 4)
    for row in range(4):
        assert found[row, : row + 1].tolist() == [4 * row + n + 1 for n in range(row + 1)]


@pytest.mark.parametrize(("elem", "bits"), [("f16", 16), ("f32", 32)])
def test_it_costs_the_bytes_that_the_store_path_writes(elem: str, bits: int) -> None:
    size = 640 * bits // 8
    text = HEAD + (
        "s = store.sync(dst=region(B, 0, 640) elem=i8, shape=[640], layout=C, "
        "quant=per_tensor(scale=1.0, zero_point=0), "
        f"src=region(A, 0, {size}) elem={elem}, shape=[640], layout=C)\n"
    )
    profile = {"CSTL": {"store_bandwidth": 32, "store_latency": 4}}
    result = timed(text, profile)
    assert result.cycles == 4 + 640 // 32
    assert [task["unit"].split("[")[0] for task in result.tasks] == ["CSTL"]


def test_runs_apart_cost_the_bytes_that_are_written() -> None:
    """Eight runs of 40 elements: 40 bytes each, though 80 of f16 are read."""
    text = HEAD + (
        "s = store.sync(dst=region(B, 0, 488) elem=i8, shape=[8, 40], strides=[64, 1], "
        "quant=per_tensor(scale=1.0, zero_point=0), "
        "src=region(A, 0, 640) elem=f16, shape=[8, 40], layout=MK)\n"
    )
    profile = {"CSTL": {"store_bandwidth": 32, "store_latency": 4}}
    assert timed(text, profile).cycles == 4 + 8 * 2
