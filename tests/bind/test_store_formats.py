"""Conversions on the store path: one block for two tasks, the same bits, and what is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.base.source import Source
from nacre.bind.pipeline import bind_plan
from nacre.bind.report import BindReport
from nacre.bind.request import BindOptions, Bound
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import STREAM, Block, Image
from nacre.tcb.machine.run import run_image
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from neminterp import NemInterpreter
from tests.bind.test_fusion import LINKS, change
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

HEAD = """include "npm4k.nem"
device npm4k
program p:
buffer D : DDR (size=65536)
buffer L : L2 (size=65536)
buffer A : L1 (size=65536)
"""
F16 = "elem=f16, shape=[16, 16], layout=MN"
I8 = "elem=i8, shape=[16, 16], layout=MN"
QUANT = "quant=per_tensor(scale=0.25, zero_point=3)"
BODY = f"""loop i in [0..3]:
    let X = region(A, (i mod 2) * 2048, 512) {F16}
    let Q = region(A, 16384 + (i mod 2) * 2048, 256) {I8}, {QUANT}
    x = transfer.async(dst=X, src=region(D, i * 512, 512))
    q = quantize.async in X out Q deps=[x]
    s = store.async(dst=region(L, i * 256, 256), src=Q, deps=[q])
endloop
"""


def uarch(formats: str = "raw, i8, f16, bf16", links: tuple[str, ...] = ()) -> Uarch:
    chain = f"chain {{ links = [{', '.join(links)}] depth = 3 }}"
    text = f"uarch u {{ store {{ formats = [{formats}] }} {chain} }}"
    result = read_uarch(Source("u.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


def bound(text: str, described: Uarch | None = None) -> tuple[LoadedProgram, Bound]:
    program = NemInterpreter().load_string(HEAD + text)
    program.require_runnable()
    options = BindOptions(uarch() if described is None else described, may_serialise=True)
    return program, bind_plan(program.plan, "p", program.device, options)


def blocks(image: Image) -> dict[str, Block]:
    names = {origin.position: origin.name for origin in image.origins}
    found = [block for stream in image.streams for block, _ in stream.blocks()]
    return {names[block.position]: block for block in found if block.kind == "task"}


def require_same_bytes(program: LoadedProgram, image: Image, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    given = {"D": (rng.normal(size=32768) * 8).astype(np.float16).tobytes()}
    result = NemInterpreter().run(program, dict(given))
    assert result.session is not None
    for order in (None, seed):
        ran = run_image(image, given, seed=order)
        assert ran.status == "completed", ran.diagnostics
        assert ran.read("L") == result.session.read_buffer("L")


def test_a_quantize_and_its_store_are_one_block() -> None:
    program, found = bound(BODY)
    made = blocks(found.image)
    assert set(made) == {"x", "s"}
    store = made["s"]
    assert (store.format, store.outputs[0].elem, store.outputs[0].dims) == ("i8", "i8", (16, 16))
    assert store.outputs[0].quant is not None
    assert store.inputs[0] is not None
    assert (store.inputs[0].elem, store.inputs[0].memory) == ("f16", "L1[0]")
    assert {use.unit for use in store.units} == {"CSTL"}
    assert verify_image(program.plan, found.image) == []
    require_same_bytes(program, found.image)
    report = BindReport(found, program.plan.program)
    assert "stores: 1 conversion on the store path" in report.summary
    assert "Stores that convert" in report.decisions
    (told,) = report.as_json()["conversions"]
    assert (told["task"], told["store"], told["format"]) == ("q", "s", "i8")


CAST = BODY.replace("quantize.async in X out Q", "cast.async in X out Q")
F32 = "elem=f32, shape=[8, 16], layout=MN"
NARROW = (
    BODY.replace(F16, F32)
    .replace(f"{I8}, {QUANT}", "elem=f16, shape=[8, 16], layout=MN")
    .replace("quantize.async in X", "cast.async in X")
)


@pytest.mark.parametrize(("text", "format_"), [(CAST, "i8"), (NARROW, "f16")])
def test_a_cast_looks_at_no_scales(text: str, format_: str) -> None:
    program, found = bound(text)
    store = blocks(found.image)["s"]
    assert (store.format, store.outputs[0].quant) == (format_, None)
    assert verify_image(program.plan, found.image) == []
    require_same_bytes(program, found.image)


def test_a_product_streams_into_the_store_that_converts() -> None:
    text = BODY.replace(
        "    q = quantize.async in X out Q deps=[x]",
        f"""
    let W = region(A, 8192, 512) {F16}
    let Y = region(A, 32768 + (i mod 2) * 2048, 512) {F16}
    w = transfer.async(dst=region(A, 8192, 512), src=region(D, 8192, 512), deps=[x])
    c = gemm.async in X, W out Y deps=[w] accum_type=f32
    r = relu.async in Y out Y deps=[c]
    q = quantize.async in Y out Q deps=[r]""",
    ).replace("layout=KN", "layout=MN")
    program, found = bound(text, uarch(links=LINKS))
    made = blocks(found.image)
    assert set(made) == {"x", "w", "c", "r", "s"}
    assert [made[name].is_chained for name in "crs"] == [True, True, False]
    assert made["s"].inputs[0] is not None
    assert made["s"].inputs[0].memory == STREAM
    assert made["s"].format == "i8"
    assert verify_image(program.plan, found.image) == []
    require_same_bytes(program, found.image)


READER = "    z = transfer.async(dst=region(L, 8192 + i * 256, 256), src=Q, deps=[q])\n    s = "
LATER = "    k = transfer.async(dst=region(A, 60000, 64), src=region(D, 0, 64), deps=[q])\n    s = "
REFUSED = {
    "format": (BODY, "raw, f16", "`store.formats` has no i8"),
    "rounds": (CAST.replace("deps=[x]", "deps=[x] rounding=floor"), "raw, i8", "nearest even"),
    "resource": (BODY.replace("deps=[x]\n", "deps=[x] @resource(VPU[0])\n", 1).replace(
        "512))\n", "512))\n", 1), "raw, i8", "@resource"),
    "readers": (BODY.replace("    s = ", READER), "raw, i8", "other readers"),
    "materialized": (BODY.replace(QUANT + "\n", QUANT + " @materialized\n"), "raw, i8",
                     "`@materialized` forbids it"),
    "token": (BODY.replace("deps=[q])", "deps=[k])").replace("    s = ", LATER), "raw, i8",
              "their units do not chain"),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_refused_says_why(reason: str) -> None:
    text, formats, told = REFUSED[reason]
    program, found = bound(text, uarch(formats))
    assert found.fused.conversions == ()
    assert {"q", "s"} <= set(blocks(found.image))
    assert told in BindReport(found, program.plan.program).decisions
    assert verify_image(program.plan, found.image) == []
    require_same_bytes(program, found.image)


def test_ideal_hardware_stores_raw_elements() -> None:
    program = NemInterpreter().load_string(HEAD + BODY)
    image = bind_plan(program.plan, "p", program.device).image
    assert set(blocks(image)) == {"x", "q", "s"}
    fused = bind_plan(program.plan, "p", program.device, BindOptions(uarch(), fuse=False)).image
    assert set(blocks(fused)) == {"x", "q", "s"}
    assert time_image(image).cycles == time_image(fused).cycles


# Broken on purpose


def broken_stores(image: Image) -> dict[str, Image]:
    store = blocks(image)["s"]
    output, source = store.outputs[0], store.inputs[0]
    assert output.quant is not None
    assert source is not None
    other = replace(output.quant, scales=(0.5,))
    return {
        "scale": change(image, "s", outputs=(replace(output, quant=other),)),
        "no quant": change(image, "s", outputs=(replace(output, quant=None),)),
        "format": change(image, "s", format="u8"),
        "raw": change(image, "s", format="raw"),
        "order": change(image, "s", outputs=(replace(output, strides=(1, 16)),)),
        "source": change(image, "s", inputs=(replace(source, elem="bf16"),)),
        "address": change(image, "s", inputs=(replace(source, address=64),)),
        "operation": change(image, "s", op="transfer"),
        "waits": change(image, "s", waits=()),
    }


@pytest.mark.parametrize("what", ["scale", "no quant", "format", "raw", "order", "source",
                                  "address", "operation", "waits"])  # fmt: skip
def test_a_wrong_conversion_is_found(what: str) -> None:
    program, found = bound(BODY)
    broken = broken_stores(found.image)[what]
    codes = {finding.code for finding in verify_image(program.plan, broken)}
    assert codes
    assert codes <= {"TCB80", "TCB81", "TCB82", "TCB84"}


def merged_by_hand(between: str) -> tuple[LoadedProgram, Image]:
    """The store does a conversion although a task stands between them that must not."""
    program, found = bound(BODY.replace("    s = ", f"{between}\n    s = "))
    _, right = bound(BODY)
    made, other = blocks(found.image), blocks(right.image)["s"]
    assert "q" in made
    image = change(found.image, "s", inputs=made["q"].inputs, outputs=other.outputs, format="i8",
                   waits=(*made["q"].waits, *made["s"].waits))  # fmt: skip
    names = {origin.name: origin.position for origin in image.origins}

    def without(block: Block) -> bool:
        return block.position != names["q"] or block.kind != "task"

    def walk(items: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(
            item if isinstance(item, Block) else replace(item, items=walk(item.items))  # type: ignore[type-var, attr-defined]
            for item in items
            if not isinstance(item, Block) or without(item)
        )

    streams = tuple(replace(stream, items=walk(stream.items)) for stream in image.streams)
    return program, replace(image, streams=streams)


@pytest.mark.parametrize(
    "between",
    [
        "    z = transfer.async(dst=region(L, 8192 + i * 256, 256), src=Q, deps=[q])",
        "    z = transfer.async(dst=X, src=region(D, 0, 512), deps=[q])",
    ],
)
def test_the_proof_does_not_rest_on_the_search(between: str) -> None:
    """Another task reads the value, or writes what the conversion reads, before the store."""
    program, image = merged_by_hand(between)
    assert verify_image(program.plan, image)


# Random programs


def draw_text(rng: random.Random) -> str:
    lines = ["loop i in [0..3] @max_in_flight(2):"] if rng.random() < 0.7 else ["let i = 1"]
    at = 0
    slot = "(i mod 2) * 512"
    for number in range(rng.randint(1, 4)):
        n = str(number)
        op = rng.choice(("quantize", "cast", "cast16"))
        source, target, size = (F16, f"{I8}, {QUANT}", 256)
        if op == "cast16":
            source, target, size = (F32, "elem=f16, shape=[8, 16], layout=MN", 256)
        mark = " @materialized" if rng.random() < 0.15 else ""
        lines += [
            f"let X{n} = region(A, {at} + {slot}, 512) {source}",
            f"let Q{n} = region(A, {at + 1024} + {slot}, {size}) {target}{mark}",
            f"x{n} = transfer.async(dst=X{n}, src=region(D, {number * 2048} + i * 512, 512))",
        ]
        if rng.random() < 0.4 and op != "cast16":
            lines.append(f"r{n} = relu.async in X{n} out X{n} deps=[x{n}]")
        before = f"r{n}" if lines[-1].startswith("r") else f"x{n}"
        name = "cast" if op == "cast16" else op
        lines.append(f"q{n} = {name}.async in X{n} out Q{n} deps=[{before}]")
        deps = [f"q{n}"]
        if rng.random() < 0.2:
            target_ = f"region(L, {32768 + number * 2048} + i * 256, 256)"
            lines.append(f"z{n} = transfer.async(dst={target_}, src=Q{n}, deps=[q{n}])")
        if rng.random() < 0.2:
            lines.append(f"y{n} = transfer.async(dst=X{n}, src=region(D, 0, 512), deps=[q{n}])")
        if rng.random() < 0.2 and number:
            deps.append(f"q{number - 1}")
        out = f"region(L, {number * 4096} + i * 256, 256)"
        if rng.random() < 0.3:
            shape = "[8, 16]" if op == "cast16" else "[16, 16]"
            elem, rows = ("f16", 8) if op == "cast16" else ("i8", 16)
            span = ((rows - 1) * 20 + 16) * (2 if elem == "f16" else 1)
            out = (f"region(L, {number * 4096} + i * 768, {span}) elem={elem}, shape={shape}, "
                   "strides=[20, 1]")  # fmt: skip
        lines.append(f"s{n} = store.async(dst={out}, src=Q{n}, deps=[{', '.join(deps)}])")
        at += 2048
    return "\n".join([*lines, "endloop" if lines[0].startswith("loop") else "", ""])


@pytest.mark.parametrize("number", sorted({*range(scaled(80)), 73}))  # a chain full of tokens
def test_random_programs_store_the_same_bytes(number: int) -> None:
    rng = random.Random(number)
    links = rng.choice(((), LINKS))
    program, found = bound(draw_text(rng), uarch(links=links))
    assert verify_image(program.plan, found.image) == []
    require_same_bytes(program, found.image, number + 1)
    made = set(blocks(found.image))
    assert made == {t.name for t in program.plan.program.tasks} - {
        one.task.name for one in found.fused.conversions
    }
