"""Plans of strangers: cut anywhere, any byte another, loops without end, memory without bounds."""

from __future__ import annotations

import random
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes as model_bytes
from nacre.nac.format.values import Plan, constant
from nacre.nac.mep import Machine, assemble, disassemble, plan_names, shipped_plan
from nacre.nac.mep.program import to_bytes
from nacre.nac.program.lower import lower
from nacre.nac.run.model import NacModel, load
from tests.clock import in_time
from tests.effort import every
from tests.nac.mep.programs import plans, runnable_plans
from tests.nac.mep.running import Alphabet, Successor, refused, run

pytestmark = pytest.mark.sampled(2)  # together they take long

WEIGHTS = np.array([[1, 0, 2], [0, 1, -1]], np.float32)
MOST_SECONDS = 1.0
MOST_BYTES = 64 * 2**20
ANSWERS: dict[str, Any] = {
    "text": "abc", "tokens": 4, "window": 0, "end": -1, "temperature": 1.0, "k": 2, "n": 2,
    "image": np.zeros((1, 3, 224, 224), np.float32), "labels": ["a", "b", "c", "d"],
    "inputs": np.ones((2, 3), np.float32), "classes": np.array([1, 0]), "steps": 2, "rate": 0.5,
    "path": "", "mask": 1, "ahead": 2, "start": 1,
}  # fmt: skip


class Classifier:
    inputs = ("image",)

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        return [np.array([[1, 3, 2, 0]], np.float32)]


class Remembering(Successor):
    """A model that is told where each token stands."""

    inputs = ("ids", "position")


@cache
def layer() -> NacModel:
    """A model that can be trained."""
    made = Builder()
    x = made.input("x", "f32", (2, 3))
    return load(model_bytes(lower(made.module(made.add("Linear", x, made.constant(WEIGHTS))))))


class Answering(Successor):
    """A decoder, which is given what an encoder has seen."""

    inputs = ("ids", "seen")


class Encoder:
    inputs = ("asked",)

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        return [np.ones((1, 4), np.float32)]


def _models(raw: bytes) -> dict[str, Any]:
    """The models that a plan of the package expects."""
    if b"encoder" in raw:
        return {"model": Answering(), "encoder": Encoder()}
    if b"labels" in raw:
        return {"model": Classifier()}
    if b"classes" in raw:
        return {"model": layer()}
    is_plain = b"window" in raw or b"mask" in raw
    return {"model": Successor() if is_plain else Remembering(), "draft": Successor()}


@in_time(MOST_SECONDS)
def tried(raw: bytes | Plan, root: Path | None = None) -> list[str]:
    """Disassemble and run: nothing but our codes may come of it, in little time."""
    codes = []
    try:
        disassemble(raw)
        machine = Machine(
            raw, models=_models(bytes_of(raw)),
            tokenizer=Alphabet(), root=root, max_steps=20_000, max_bytes=2**24, may_write=True,
            arrays={"w": np.ones(3)},
        )  # fmt: skip
        machine.run({p.text: ANSWERS.get(p.text, "12") for p in machine.prompts})
        assert machine.steps <= 20_000
        assert machine.peak_bytes <= 2**24
    except InputError as error:
        codes = [d.code for d in error.diagnostics]
        assert all(code.startswith("NAC") for code in codes)
        assert codes
    return codes


def bytes_of(raw: bytes | Plan) -> bytes:
    return raw if isinstance(raw, bytes) else to_bytes(raw)


@pytest.mark.parametrize("name", plan_names())
def test_a_plan_that_is_cut_short(name: str) -> None:
    raw = shipped_plan(name)
    assert tried(raw) == []
    for size in range(len(raw)):
        assert tried(raw[:size])


@pytest.mark.parametrize("name", plan_names())
def test_a_plan_with_any_byte_another(name: str, tmp_path: Path) -> None:
    raw = bytearray(shipped_plan(name))
    chance = random.Random(7)
    for place in every(3, range(len(raw))):
        mask = chance.choice((0x01, 0x80, 0xFF, chance.randrange(1, 256)))
        raw[place] ^= mask
        tried(bytes(raw), tmp_path)
        raw[place] ^= mask


@pytest.mark.fuzz
@given(plans() | runnable_plans())
def test_any_plan_ends(plan: Plan) -> None:
    tried(plan)


# Time


@pytest.mark.parametrize(
    "text",
    [
        "src_constant %a, 1\nx: branch_if %a, x",
        "src_constant %a, 9223372036854775807\nloop_start %a\nx: loop_end x",
        "src_constant %n, 10000\nloop_start %n\na: loop_start %n\nb: loop_start %n\nc: loop_end c\n"
        "loop_end b\nloop_end a",
    ],
)
@in_time(MOST_SECONDS)
def test_a_plan_without_end_is_stopped(text: str) -> None:
    machine = Machine(assemble(text), max_steps=10_000)
    with pytest.raises(InputError) as caught:
        machine.run()
    assert caught.value.diagnostics[0].code == "NAC88"
    assert "all 10,000 steps are used up" in caught.value.diagnostics[0].message


@in_time(5 * MOST_SECONDS)
def test_work_on_large_values_costs_steps() -> None:
    text = """
        src_constant %n, 1000000
        tensor_create %x, float32, arange, %n
        loop_start %n
    a:  math_unary softmax, %y, %x
        loop_end a
    """
    assert refused(text, max_steps=100_000).code == "NAC88"


def test_models_are_not_run_for_ever() -> None:
    model = Successor()
    text = """
        res_load_model 0, "m"
        src_constant %a, 1
        tensor_create %x, int64, values, %a
    x:  model_run_static 0, [%x], [%y]
        branch_if %a, x
    """
    assert refused(text, models={"m": model}, max_steps=10_000).code == "NAC88"
    assert len(model.lengths) <= 100


def test_loops_are_not_entered_for_ever() -> None:
    text = """
        src_constant %a, 2
    x:  loop_start %a
        branch_if %a, x
    y:  loop_end y
    """
    found = refused(text)
    assert found.code == "NAC92"
    assert "the plan is in 64 loops already, at most 64" in found.message


# Memory

HUGE = [
    "src_constant %n, 1000000000000\ntensor_create %x, int64, arange, %n",
    "src_constant %n, [1000000, 1000000]\ntensor_create %x, float32, zeros, %n",
    "src_constant %n, [2147483647, 2147483647, 2147483647]\ntensor_create %x, int8, ones, %n",
    "src_constant %n, 1000000000000\nsrc_constant %v, [1]\ntensor_manipulate pad, %x, %v, %n, %n",
    # An outer product of vectors.
    "src_constant %n, 100000\nsrc_constant %z, 0\ntensor_create %x, float32, arange, %n\n"
    "src_constant %s, [100000, 1]\ntensor_create %y, float32, ones, %s\n"
    "math_binary mul, %p, %x, %y",
    # Doubling.
    'src_constant %t, "0123456789abcdef"\nsrc_constant %n, 60\nloop_start %n\n'
    'a: string_format %t, "{0}{0}", [%t]\nloop_end a',
    "src_constant %t, [1, 2]\nsrc_constant %n, 60\nsrc_constant %z, 0\nloop_start %n\n"
    "a: tensor_combine concat, %t, [%t, %t], %z\nloop_end a",
    # All slots full, and streams.
    "src_constant %n, 1000000\n"
    + "\n".join(f"tensor_create %x{i}, int64, arange, %n" for i in range(50)),
    'src_constant %t, "0123456789abcdef"\nsrc_constant %n, 12\nsrc_constant %m, 1000000\n'
    'loop_start %n\na: string_format %t, "{0}{0}", [%t]\nloop_end a\n'
    "loop_start %m\nb: io_write %t, stdout, %t, write\nloop_end b",
    "src_constant %n, 3000000\ntensor_create %x, float64, arange, %n\nserialize %y, %x, json",
]


@pytest.mark.parametrize("text", HUGE, ids=[str(i) for i in range(len(HUGE))])
@in_time(3 * MOST_SECONDS)
def test_memory_is_bounded(text: str) -> None:
    tracemalloc.start()
    found = refused(text, max_bytes=2**26)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.code in ("NAC89", "NAC91")
    assert "bytes are needed beside" in found.message or "has more than" in found.message
    assert peak < MOST_BYTES + 2**24


# What an instruction needs on `x` and `y`, which are 1,000 elements of f32 in a row and a column.
CHARGED = [
    ("math_binary add, %out, %x, %y", 8 * 1000 * 1000),
    ("logic_compare lt, %out, %x, %y", 8 * 1000 * 1000),
    ("math_unary exp, %out, %x", 2 * 8 * 1000),
    ("math_unary softmax, %out, %x", 4 * 8 * 1000),
    ("math_aggregate argmax, %out, %x", 4 * 1000),
    ("src_constant %n, 3\nanalysis_top_k %x, %n, %i, %v", 4 * 8 * 1000),
    ("src_constant %n, 3\nanalysis_sample %x, %n, %n, %i", 6 * 8 * 1000),
    ("tensor_create %out, float32, values, %x", 12 * 1000),
    ("src_constant %n, 1000\ntensor_create %out, float32, arange, %n", 12 * 1000),
    ("src_constant %n, [50, 20]\ntensor_create %out, float32, ones, %n", 4 * 1000),
    ("src_constant %n, 9\ntensor_manipulate pad, %out, %x, %n, %n", 4 * 1009),
    ("src_constant %n, 1\ntensor_combine concat, %out, [%x, %x], %n", 4 * 2000),
    ("serialize %out, %x, json", 512 * 1000),
    ("serialize %out, %x, png", 24 * 1000),
]


@pytest.mark.parametrize(("line", "bytes_"), CHARGED, ids=[row[0] for row in CHARGED])
def test_an_instruction_pays_before_it_works(line: str, bytes_: int) -> None:
    arrays = {"x": np.ones((1, 1000), np.float32), "y": np.ones((1000, 1), np.float32)}
    loads = 'res_load_array %x, "x"\nres_load_array %y, "y"\n'
    found = refused(loads + line, arrays=arrays, max_bytes=11_500)
    assert f"{bytes_:,} bytes are needed beside" in found.message


def test_a_text_has_the_room_that_is_left() -> None:
    text = 'res_load_array %x, "x"\nsrc_constant %t, "0123456789"\nstring_format %t, "{0}{0}", [%t]'
    found = refused(text, arrays={"x": np.ones(250, np.float32)}, max_bytes=1140)
    left = (1140 - 1000 - 4 * 10) // 8
    assert found.code == "NAC91"
    assert f"the text has more than {left} characters" in found.message


def test_values_that_share_memory_count_once() -> None:
    text = "src_constant %n, 1000000\ntensor_create %x, int64, arange, %n\n" + "\n".join(
        f"sys_copy %y{i}, %x" for i in range(20)
    )
    machine = Machine(assemble(text), max_bytes=2**25)
    assert machine.run() == []
    assert machine.peak_bytes <= 2**25
    again = "src_constant %n, 100000\nsrc_constant %m, 1000\nloop_start %m\n"
    assert run(again + "a: tensor_create %x, int64, arange, %n\nloop_end a", max_bytes=2**22) == []


# Sections


def test_promises_of_gigabytes_take_no_memory() -> None:
    for head in (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0\xff\xff\xff\xff", b"\xff" * 8):
        tracemalloc.start()
        with pytest.raises(InputError):
            Machine(b"ORCH" + head + bytes(50))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20


@pytest.mark.parametrize(
    ("raw", "codes"),
    [
        (b"", ["NAC05"]),
        (b"PROC" + bytes(8), ["NAC05"]),
        (b"ORCH" + bytes(9), ["NAC84"]),
        (to_bytes(Plan(b"\x04\x00", ())), ["NAC84"]),
        (to_bytes(Plan(b"\x00", ())), ["NAC82"]),
        (to_bytes(Plan(b"\x60\x09\x00\x00", ())), ["NAC83"]),
        (to_bytes(Plan(b"\x30\x00\x0a\x00\x00", ())), ["NAC83"]),
        (to_bytes(Plan(b"\x04\x00\x00\x00\x04\x00\x01\x00", ())), ["NAC86", "NAC86"]),
        (to_bytes(Plan(b"\x10\x00\x00\x00", (constant(0, 1),))), ["NAC86"]),
        (to_bytes(Plan(b"\xa8\x00\xff\xff", ())), ["NAC85"]),
        (to_bytes(Plan(b"\xa8\x00\x01\x00", ())), ["NAC85"]),
        (to_bytes(Plan(b"\xa0\x00", ())), ["NAC85"]),
        (to_bytes(Plan(b"\xff", (constant(0, 1), constant(0, 2)))), ["NAC14"]),
    ],
)
def test_what_is_wrong_with_a_section(raw: bytes, codes: list[str]) -> None:
    for use in (Machine, disassemble):
        with pytest.raises(InputError) as caught:
            use(raw)
        assert [d.code for d in caught.value.diagnostics] == codes
