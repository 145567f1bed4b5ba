"""Files of strangers: cut anywhere, any byte another, records that promise the world."""

from __future__ import annotations

import os
import random
import struct
import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from msgspec import structs

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import examine, read, to_bytes
from nacre.nac.format.header import read as read_header
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.mep.model_machine import machine_of
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.interface import InputType, Interface, encode_record
from nacre.nac.run.model import load
from nacre.nac.verify import verify
from tests.clock import in_time
from tests.nac.files import FIXTURES, FOLDER, small
from tests.nac.mep.carrying import carrying
from tests.nac.strategies import files

pytestmark = pytest.mark.sampled(2)  # together they take long

SMALLEST = FOLDER / "cnn.none.v16.shim.nac"
MOST_SECONDS = 1.0
# All bytes of all fixtures take hours, which `make fuzz` has; 17 meets every place in a record.
STEP = 1 if os.environ.get("NACRE_HYPOTHESIS_PROFILE") == "fuzz" else 17


def _checked(found: list[Diagnostic] | tuple[Diagnostic, ...]) -> None:
    assert all(d.code.startswith("NAC") for d in found), [str(d) for d in found]


@in_time(MOST_SECONDS)
def _tried(raw: bytes, inputs: dict[str, np.ndarray] | None) -> list[Diagnostic]:
    """Verify, load and run; nothing but findings with our codes may come of it."""
    found = verify(raw)
    _checked(found)
    try:
        model = load(raw)
        if inputs is not None:
            model.session(max_bytes=64 * 2**20 + 10 * len(raw)).run(inputs)
    except InputError as refused:
        _checked(refused.diagnostics)
    return found


def _inputs(path: Path) -> dict[str, np.ndarray]:
    name = "x" if path.name.startswith("cnn") else "input"
    return {name: np.load(path.with_suffix(".npz"))["in0"]}


def require_refused_cuts(path: Path, places: list[int]) -> None:
    raw = path.read_bytes()
    for size in places:
        found = _tried(raw[:size], None)
        assert any(d.severity == "error" for d in found), size


def require_findings_alone(path: Path, places: list[int], masks: tuple[int, ...]) -> None:
    raw, inputs = bytearray(path.read_bytes()), _inputs(path)
    for place in places:
        # Another element of a weight changes a result, not what can go wrong.
        given = inputs if place < _head(path) else None
        for mask in masks:
            raw[place] ^= mask
            _tried(bytes(raw), given)
            raw[place] ^= mask


@cache
def _head(path: Path) -> int:
    """Where the weights begin: what comes before says what the file is."""
    return path.read_bytes().index(b"DATA") + 500


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_that_is_cut_short(path: Path) -> None:
    size = path.stat().st_size
    random_places = random.Random(3).sample(range(size), 60)
    require_refused_cuts(path, [*range(0, 100, 7), *range(size - 20, size), *random_places])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_with_another_byte(path: Path) -> None:
    head = _head(path)
    places = random.Random(5).sample(range(head), 80)
    require_findings_alone(path, places, (0xFF, 0x01))


@pytest.mark.full
def test_a_small_file_with_any_byte_another() -> None:
    raw = bytearray(to_bytes(small()))
    inputs = {"x": np.ones((2, 3), np.float32)}
    for place in range(len(raw)):
        for mask in (0xFF, 0x01):
            raw[place] ^= mask
            _tried(bytes(raw), inputs)
            raw[place] ^= mask
        if place:
            assert _tried(bytes(raw[:place]), None)


@in_time(MOST_SECONDS)
def _plan_tried(raw: bytes) -> None:
    """Run the plan of a file, if it has one still."""
    try:
        machine = machine_of(load(raw), max_steps=20_000, max_bytes=64 * 2**20)
        machine.run(["abc", 3, 8, -1])
    except InputError as refused:
        _checked(refused.diagnostics)


@pytest.mark.full
@pytest.mark.parametrize("mask", [0xFF, 0x01])
def test_a_file_with_a_plan_and_a_tokenizer_with_another_byte(mask: int) -> None:
    raw = bytearray(carrying())
    assert verify(bytes(raw)) == []
    for place in range(mask % 7, len(raw), 7):
        raw[place] ^= mask
        _checked(verify(bytes(raw)))
        _plan_tried(bytes(raw))
        raw[place] ^= mask


@pytest.mark.full
@pytest.mark.fuzz
def test_a_file_with_a_plan_and_a_tokenizer_with_any_byte_another() -> None:
    raw = bytearray(carrying())
    for place in range(len(raw)):
        for mask in (0xFF, 0x01, 0x10):
            raw[place] ^= mask
            _checked(verify(bytes(raw)))
            _plan_tried(bytes(raw))
            raw[place] ^= mask
        found = verify(bytes(raw[:place]))
        _checked(found)
        assert found


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_cut_at_every_byte(path: Path) -> None:
    require_refused_cuts(path, list(range(0, path.stat().st_size, STEP)))


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_with_every_byte_another(path: Path) -> None:
    require_findings_alone(path, list(range(0, path.stat().st_size, STEP)), (0xFF,))


PROMISES = {
    "records": (b"CNST", struct.pack("<I", 2**32 - 1)),
    "instructions": (b"OPS ", struct.pack("<I", 2**32 - 1)),
    "names": (b"DATA", struct.pack("<I", 2**31)),
    "bytecode": (b"ORCH", struct.pack("<I", 2**32 - 1)),
}


@pytest.mark.parametrize("what", PROMISES)
def test_a_promise_of_gigabytes_takes_no_memory(what: str) -> None:
    raw = SMALLEST.read_bytes()
    tag, count = PROMISES[what]
    at = raw.index(tag) + 4
    hostile = raw[:at] + count + raw[at + 4 :]
    tracemalloc.start()
    found = _tried(hostile, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found
    assert peak < 64 * 2**20 + 10 * len(hostile)


@given(files())
def test_a_promise_of_any_section_takes_no_memory(file: NacFile) -> None:
    """The first number behind each tag, whatever it counts, is as large as can be."""
    raw = to_bytes(file)
    _, offsets = read_header(memoryview(raw))
    for at in offsets.values():
        tracemalloc.start()
        found = examine(raw[: at + 4] + b"\xff" * 4 + raw[at + 8 :]).findings
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        _checked(found)
        assert peak < 2**20 + 10 * len(raw)


@pytest.mark.parametrize("name", ["mlp.none.v16", "mlp.FP16.v16", "cnn.none.v16.shim"])
@pytest.mark.parametrize("bits", [0x7F800001, 0xFF800000, 0x7FC00000], ids=["signal", "inf", "nan"])
@pytest.mark.parametrize("rows", [1, 2])
def test_weights_that_are_no_numbers_print_nothing(name: str, bits: int, rows: int) -> None:
    """Warnings are errors in tests. A NaN that signals is no more than one that is quiet."""
    path = FOLDER / f"{name}.nac"
    file = read(path)
    halves = struct.pack("<2H", 0x7D01, 0xFC00)
    odd = halves if file.header.quant else struct.pack("<I", bits)
    tensors = tuple(
        structs.replace(t, data=odd * (len(t.data) // 4) + bytes(t.data[: len(t.data) % 4]))
        for t in file.data.tensors
    )
    data = structs.replace(file.data, tensors=tensors)
    model = load(to_bytes(NacFile(file.header, {**file.sections, "DATA": data}, file.gaps)))
    ((key, array),) = _inputs(path).items()
    given = np.concatenate([array[:1]] * rows) if name.startswith("mlp") else array
    (found, *_) = model.run({key: given})
    assert not np.isfinite(found).all()
    model.run({key: given})


@pytest.mark.parametrize("rows", [1, 2])
def test_weights_of_a_module_that_are_no_numbers_print_nothing(rows: int) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (rows, 3))
    odd = np.array([[0x7F800001, 0x7F800000, 0x7FC00000]] * 2, np.uint32).view(np.float32)
    session = builder.module(builder.add("Linear", x, builder.constant(odd))).session()
    for _ in range(2):
        assert np.isnan(session.run({"x": np.ones((rows, 3), np.float32)})[0]).all()


def attributes() -> bytes:
    """A file whose constants are sizes of all kinds; every call is of the one input."""
    made = Assembler()
    x = made.input("x")
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("aten.constant_pad_nd.default", ((1, 2), 0.0)),
        ("aten.max_pool2d.default", ((2, 2), (1, 1), (1, 1), (1, 1), False)),
        ("aten.avg_pool2d.default", ((3, 3), (1, 1), (1, 1), False, True, None)),
        ("aten.repeat.default", ((1, 2, 1, 1),)),
        ("aten.expand.default", ((5, 1, 4, 4), False)),
        ("core.Resize", ((1, 1, 6, 6), "nearest", "asymmetric", "floor")),
        ("aten.roll.default", ((1,), (2,))),
        ("aten.topk.default", (2, 3, True, True)),
        ("aten.adaptive_avg_pool2d.default", ((3, 3),)),
        ("aten.split.Tensor", (2, 3)),
    ]
    results = [made.call(name, x, *given) for name, given in calls]  # type: ignore[arg-type]
    results[-1] = made.call("getitem", results[-1], 0)
    results.append(made.call("aten.arange.default", 5))
    results.append(made.call("aten.zeros.default", (3, 7)))
    made.output(*results)
    types = encode_record(Interface({"x": InputType("f32", (1, 1, 4, 4))}))
    return to_bytes(made.file(resources=[Resource("nacre.interface.json", types)]))


@pytest.mark.full
@pytest.mark.parametrize("mask", [0xFF, pytest.param(0x40, marks=pytest.mark.full)])
def test_sizes_with_any_byte_another_take_no_memory(mask: int) -> None:
    """With the limits that a run has of itself: nobody has to ask for them."""
    raw = bytearray(attributes())
    inputs = {"x": np.ones((1, 1, 4, 4), np.float32)}
    assert verify(bytes(raw)) == []
    load(bytes(raw)).run(inputs)
    most = 64 * 2**20 + 10 * len(raw)
    refused = 0
    for place in range(raw.index(b"CNST") + 8, raw.index(b"PERM")):
        raw[place] ^= mask
        peak, codes = _measured(bytes(raw), inputs)
        assert peak < most, place
        refused += bool(codes & {"NAC48", "NAC52"})
        raw[place] ^= mask
    assert refused > 10


@in_time(MOST_SECONDS)
def _measured(raw: bytes, inputs: dict[str, np.ndarray]) -> tuple[int, set[str]]:
    """The most bytes that verifying and running take, and the codes of what a run refuses."""
    codes: set[str] = set()
    tracemalloc.start()
    found = verify(raw)
    try:
        load(raw).run(inputs)
    except InputError as problem:
        _checked(problem.diagnostics)
        codes = {d.code for d in problem.diagnostics}
        assert found, codes  # whatever a run refuses is found without one
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    _checked(found)
    return peak, codes


def test_a_constant_that_asks_for_a_huge_tensor_is_refused() -> None:
    raw = SMALLEST.read_bytes()
    # The padding (1, 1) of both convolutions becomes two billion.
    hostile = raw.replace(
        struct.pack("<HBHii", 2, 5, 2, 1, 1), struct.pack("<HBHii", 2, 5, 2, 2**31 - 1, 1)
    )
    assert hostile != raw
    tracemalloc.start()
    _tried(hostile, _inputs(SMALLEST))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20 + 10 * len(hostile)
