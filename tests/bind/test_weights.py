"""Weights through the WDM: what is compressed, why not, and that naive loops get the same bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace

import nacre
from nacre.base.compression_forms import CompressionForm
from nacre.base.source import Source
from nacre.bind.memory import weight_trials
from nacre.bind.pipeline import bind_plan
from nacre.bind.report import BindReport
from nacre.bind.request import BindOptions, Bound, Host, HostPort
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.core.builder import Builder
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import Block, Constant, Image
from nacre.tcb.machine.run import run_image
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from neminterp import NemInterpreter
from tests.base.naive_compression import naive_decompress
from tests.effort import scaled

HEAD = """include "npm_pro.nem"
device npm_pro
program p:
buffer W : DDR (size=4096)
buffer X : DDR (size=4096)
buffer L : L2 (size=8192)
buffer A : L1 (size=8192)
"""
SIZE = 4096
ALL = "palette, sparse"


def uarch(modes: str = ALL, ways: str = "DDR_L2, L2_L1, DDR_L1", more: str = "") -> Uarch:
    text = f"uarch u {{ wdm {{ modes = [{modes}] ways = [{ways}] {more} }} }}"
    result = read_uarch(Source("u.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


def loaded(text: str) -> LoadedProgram:
    program = NemInterpreter().load_string(HEAD + text)
    program.require_runnable()
    return program


def host(weights: bytes, observed: tuple[str, ...] = ()) -> Host:
    return Host((HostPort("X", "inout", "X"),), (("W", weights),), observed)


def bound(text: str, weights: bytes, described: Uarch | None = None) -> tuple[LoadedProgram, Bound]:
    program = loaded(text)
    options = BindOptions(uarch() if described is None else described)
    return program, bind_plan(program.plan, "p", program.device, options, host(weights))


def blocks(image: Image) -> dict[str, Block]:
    names = {origin.position: origin.name for origin in image.origins}
    found = [block for stream in image.streams for block, _ in stream.blocks()]
    return {names[block.position]: block for block in found if block.kind == "task"}


FEW = bytes(random.Random(1).choices((3, 7, 200, 201), k=SIZE))
ZEROS = bytes(random.Random(2).choices((*range(256), *[0] * 1000), k=SIZE))
ALIKE = np.array([1.5, -2.0, 0.25], "<f2")[np.arange(SIZE // 2) % 3].tobytes()
NOISE = random.Random(3).randbytes(SIZE)
COPY = "t = transfer.async(dst=region(L, 0, 1024), src=region(W, 0, 1024))\n"


@pytest.mark.parametrize(
    ("weights", "modes", "form", "elem", "size"),
    [
        (FEW, ALL, CompressionForm("palette", 2), "u8", 4 + 256),
        (FEW, "palette", CompressionForm("palette", 2), "u8", 4 + 256),
        (ALIKE, ALL, CompressionForm("palette", 2), "u16", 8 + 128),
        (ZEROS, "sparse", CompressionForm("sparse"), "u8", None),
    ],
)
def test_the_mode_with_the_fewest_bytes(
    weights: bytes, modes: str, form: CompressionForm, elem: str, size: int | None
) -> None:
    program, found = bound(COPY, weights, uarch(modes))
    (one,) = found.weights.compressed
    assert (one.form, one.elem) == (form, elem)
    assert size is None or one.compressed_bytes == size
    block = blocks(found.image)["t"]
    assert block.inputs[0] is not None
    assert block.inputs[0].compression == form
    assert [use.unit for use in block.units] == ["sDMA", "WDM"]
    assert len(found.image.constants[0].data) == one.compressed_bytes
    assert verify_image(program.plan, found.image, {"W": weights}) == []


REFUSED = {
    "larger": (COPY, NOISE),
    "way": ("t = transfer.async(dst=region(A, 0, 1024), src=region(W, 0, 1024))\n", FEW),
    "cuts": (COPY + "u = transfer.async(dst=region(L, 2048, 512), src=region(W, 512, 512))\n", FEW),
    "written": (COPY + "u = transfer.async(dst=region(W, 8, 8), src=region(X, 0, 8), deps=[t])\n",
                FEW),
    "read": (COPY + "u = transfer.async(dst=region(X, 0, 64), src=region(W, 512, 64), deps=[t])\n",
             FEW),
    "apart": ("t = transfer.async(dst=region(L, 0, 64) elem=u8, shape=[8, 8], layout=MN, "
              "src=region(W, 0, 120) elem=u8, shape=[8, 8], strides=[16, 1])\n", FEW),
    "varies": ("loop i in [0..3]:\nt = transfer.async(dst=region(L, 0, 64 * (i + 1)), "
               "src=region(W, 1024 * i, 64 * (i + 1)))\nwait(t)\nendloop\n", FEW),
    "unknown": ("t = transfer.async(dst=region(L, 0, 1024), src=region(W, 3072, 1024))\n",
                FEW[:4000]),
    "compressed": ("t = transfer.async(dst=region(L, 0, 128), src=region(W, 0, 72) elem=i8, "
                   "shape=[128], layout=C, compressed=sparse)\n", FEW),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_a_reason_for_every_transfer_that_stays_as_it_is(reason: str) -> None:
    text, weights = REFUSED[reason]
    program, found = bound(text, weights, uarch(ways="DDR_L2, L2_L1"))
    assert found.weights.compressed == ()
    one = next(one for one in found.weights.plain if one.task.name == "t")
    assert (one.reason, bool(one.sentence)) == (reason, True)
    assert found.image.constants == (Constant("DDR", 0, weights),)
    assert verify_image(program.plan, found.image, {"W": weights}) == []
    report = BindReport(found, program.plan.program)
    assert one.sentence in report.decisions
    assert "plain" in report.summary


def test_what_the_host_sees_stays_as_it_is() -> None:
    program = loaded(COPY)
    for of_host in (host(FEW, observed=("W",)), Host((), (("W", FEW),))):
        found = bind_plan(program.plan, "p", program.device, BindOptions(uarch()), of_host)
        assert {one.reason for one in found.weights.plain} == {"host"}


def test_hardware_without_it_and_turning_it_off() -> None:
    program = loaded(COPY)
    plain = BindOptions(uarch(), wdm=False)
    for options in (plain, BindOptions()):
        found = bind_plan(program.plan, "p", program.device, options, host(FEW))
        assert found.weights.absent
        assert found.weights.absent in BindReport(found, program.plan.program).summary
        assert blocks(found.image)["t"].inputs[0].compression is None  # type: ignore[union-attr]


def test_compressed_bytes_are_what_memory_moves() -> None:
    _, found = bound(COPY, FEW, uarch(more="rate = 32"))
    program = loaded(COPY)
    plain = bind_plan(program.plan, "p", program.device, BindOptions(uarch(), wdm=False), host(FEW))
    before, after = blocks(plain.image)["t"], blocks(found.image)["t"]
    assert after.units[0].work == -(-260 * before.units[0].work // 1024)
    assert after.units[1].work == 1024 // 32
    (one,) = found.weights.compressed
    assert (one.plain_cycles, one.cycles) == (before.cycles, after.cycles)
    assert time_image(found.image).cycles == after.cycles


def test_a_transfer_that_would_hold_its_units_longer_stays_as_it_is() -> None:
    program, found = bound(COPY, FEW, uarch(more="rate = 1"))
    (one,) = found.weights.plain
    assert (one.reason, one.detail) == ("slower", "1,032 cycles, not 48")
    assert found.weights.compressed == ()
    report = BindReport(found, program.plan.program)
    assert "weights: plain, all 1 transfer" in report.summary
    assert "1,032 cycles, not 48" in report.decisions


# Transfers that go side by side on more DMAs than there are WDMs.
CROWD = HEAD.replace("npm_pro", "npm16k") + "".join(
    f"t{n} = transfer.async(dst=region(L, {n * 1024}, 1024), src=region(W, {n * 1024}, 1024))\n"
    for n in range(4)
)


def bind_crowd(**options: bool) -> tuple[LoadedProgram, Bound]:
    program = NemInterpreter().load_string(CROWD)
    program.require_runnable()
    asked = BindOptions(uarch(), **options)
    return program, bind_plan(program.plan, "p", program.device, asked, host(FEW))


def test_no_image_takes_longer_because_of_the_wdm() -> None:
    program, found = bind_crowd()
    cycles = time_image(found.image).cycles
    plain = time_image(bind_crowd(wdm=False)[1].image).cycles
    assert found.weights.timed == (plain, cycles)
    assert cycles <= plain
    assert {one.reason for one in found.weights.plain} == {"contended"}
    assert verify_image(program.plan, found.image, {"W": FEW}) == []
    report = BindReport(found, program.plan.program)
    assert "less" not in report.summary
    assert "too few WDMs" in report.decisions


def test_large_images_keep_what_the_wdms_have_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_trials, "MOST_TIMED", 0)
    program, found = bind_crowd()
    assert found.weights.timed is None
    assert {one.reason for one in found.weights.plain} == {"contended"}
    plain = blocks(bind_crowd(wdm=False)[1].image).values()
    held = sum(one.cycles for one in found.weights.compressed) / program.device.count("WDM")
    assert 0 < held <= sum(block.cycles for block in plain) / program.device.count("sDMA")
    assert "cycles less" in BindReport(found, program.plan.program).summary


@pytest.mark.parametrize("at", [0, 100, 259])
def test_another_byte_of_compressed_weights_is_found(at: int) -> None:
    program, found = bound(COPY, FEW)
    first = found.image.constants[0]
    data = bytearray(first.data)
    data[at] ^= 1
    broken = replace(found.image, constants=(replace(first, data=bytes(data)),
                                             *found.image.constants[1:]))  # fmt: skip
    assert [d.code for d in verify_image(program.plan, broken, {"W": FEW})] == ["TCB88"]


def test_what_cannot_be_known_is_not_proved() -> None:
    program, found = bound(COPY, FEW)
    assert [d.code for d in verify_image(program.plan, found.image)] == ["TCB81"]


# Random programs


class Copy(Struct, frozen=True):
    """A transfer of constants, its line, and the parts that it reads."""

    name: str
    line: str
    starts: tuple[int, ...]
    size: int
    is_typed: bool


def draw_weights(rng: random.Random) -> bytes:
    kinds = (NOISE, FEW, ZEROS, ALIKE)
    cuts = sorted(rng.sample(range(0, SIZE, 64), 4))
    parts = [(a, b, rng.choice(kinds)) for a, b in zip([0, *cuts], [*cuts, SIZE], strict=True)]
    return b"".join(kind[a:b] for a, b, kind in parts)


def draw_copies(rng: random.Random) -> Iterator[Copy]:
    for number in range(rng.randint(1, 6)):
        size = rng.choice((64, 128, 256))
        target = f"region({rng.choice('LA')}, {number * 1024}, {size})"
        start = rng.randrange(0, SIZE // 2, 128)
        count = rng.choice((1, 1, 1, 3))
        name = f"t{number}"
        is_typed = count == 1 and rng.random() < 0.2
        source = f"region(W, {start} + i * {size}, {size})" if count > 1 else (
            f"region(W, {start}, {size})")  # fmt: skip
        if is_typed:
            source += f" elem=f16, shape=[{size // 32}, 16], layout=MN"
            span = (size // 32 - 1) * 48 + 32
            target = (f"region(L, {number * 1024}, {span}) elem=f16, shape=[{size // 32}, 16], "
                      "strides=[24, 1]")  # fmt: skip
        line = f"{name} = transfer.async(dst={target}, src={source})\n"
        if count > 1:
            line = f"loop i in [0..{count - 1}]:\n{line}wait({name})\nendloop\n"
        yield Copy(name, line, tuple(start + i * size for i in range(count)), size, is_typed)


def naive_best(parts: list[bytes], is_typed: bool) -> int:
    """The fewest bytes of the longest part in any mode, by counting."""
    best = len(parts[0])
    for width in (2,) if is_typed else (1, 2):
        elements = [[p[i : i + width] for i in range(0, len(p), width)] for p in parts]
        count = len(elements[0])
        kept = max(sum(1 for e in row if any(e)) for row in elements)
        sizes = [-(-count // 8) + kept * width]
        for tables in (1, 2):
            step = count // tables
            pieces = [row[at : at + step] for row in elements for at in range(0, count, step)]
            most = max(len(set(piece)) for piece in pieces)
            bits = next(b for b in range(1, 17) if 1 << b >= most)
            if bits <= 5 and count % tables == 0:
                sizes.append(tables * width * (1 << bits) + -(-count * bits // 8))
        best = min(best, *sizes)
    return best


@pytest.mark.parametrize("number", range(scaled(80)))
def test_random_programs_move_the_same_bytes(number: int) -> None:
    rng = random.Random(number)
    weights, copies = draw_weights(rng), list(draw_copies(rng))
    text = "".join(copy.line for copy in copies)
    if rng.random() < 0.3:
        at = rng.randrange(0, SIZE, 64)
        text = f"w = transfer.sync(dst=region(W, {at}, 8), src=region(X, 0, 8))\n{text}"
        copies.append(Copy("w", "", (at,), 8, False))
    program, found = bound(text, weights)
    assert verify_image(program.plan, found.image, {"W": weights}) == []
    require_naive_choice(found, copies, weights)
    require_naive_bytes(found, copies, weights)
    given = {"X": rng.randbytes(SIZE)}
    result = NemInterpreter().run(program, {"W": weights, **given})
    assert result.session is not None
    for order in (None, number):
        ran = run_image(found.image, given, seed=order)
        assert ran.status == "completed", ran.diagnostics
        for name in ("L", "A"):
            assert ran.read(name) == result.session.read_buffer(name)


def require_naive_choice(found: Bound, copies: list[Copy], weights: bytes) -> None:
    """Compressed is what nobody else touches in another way, and only if it is smaller."""
    made = {one.task.name: one for one in found.weights.compressed}
    slow = ("slower", "contended")
    unpaid = {one.task.name for one in found.weights.plain if one.reason in slow}
    for copy in copies:
        mine = {byte for start in copy.starts for byte in range(start, start + copy.size)}
        others = [
            other for other in copies
            if other is not copy
            and any(byte in mine for start in other.starts
                    for byte in range(start, start + other.size))
        ]  # fmt: skip
        if not others and copy.name != "w":
            parts = [weights[start : start + copy.size] for start in copy.starts]
            best = naive_best(parts, copy.is_typed)
            assert (copy.name in made) == (best < copy.size and copy.name not in unpaid)
            if copy.name in made:
                assert made[copy.name].compressed_bytes == best
        if any(other.size != copy.size for other in others):
            assert copy.name not in made


def require_naive_bytes(found: Bound, copies: list[Copy], weights: bytes) -> None:
    memory = bytearray(SIZE)
    for constant in found.image.constants:
        memory[constant.address : constant.address + len(constant.data)] = constant.data
    made = {one.task.name: one for one in found.weights.compressed}
    for copy in copies:
        one = made.get(copy.name)
        for start in copy.starts:
            if one is not None:
                width = 16 if one.elem in ("u16", "f16") else 8
                stored = bytes(memory[start : start + one.compressed_bytes])
                codes = naive_decompress(stored, copy.size * 8 // width, width, one.form)
                assert codes is not None
                plain = b"".join(code.to_bytes(width // 8, "little") for code in codes)
                assert plain == weights[start : start + copy.size]
            elif copy.name != "w":
                assert (
                    bytes(memory[start : start + copy.size]) == weights[start : start + copy.size]
                )


def test_a_bundle_runs_to_the_same_bits_with_fewer_bytes() -> None:
    build = Builder()
    x = build.input("x", "f32", (64, 64))
    rng = np.random.default_rng(0)
    weights = rng.integers(-2, 3, (64, 64)).astype(np.float32)
    out = build.add("ReluNan", build.add("Linear", x, build.constant(weights)))
    bundle = nacre.compile(build.module(out), "npm16k")
    image, plain = nacre.bind(bundle), nacre.bind(bundle, wdm=False)
    assert image.verify(bundle) == plain.verify(bundle) == []
    assert image.bound is not None
    assert image.bound.weights.compressed
    sizes = [sum(len(c.data) for c in one.image.constants) for one in (image, plain)]
    assert sizes[0] * 4 < sizes[1] == len(bundle.weights)
    given = {"x": rng.normal(size=(64, 64)).astype(np.float16)}
    expected = plain.run(given).outputs["output0"]
    for seed in (None, 1):
        assert np.array_equal(image.run(given, seed=seed).outputs["output0"], expected)
    ideal = nacre.bind(bundle, "ideal")
    assert ideal.image.constants == plain.image.constants
