"""What states start as keeps every bit: in a file, in a run, in a module again, quantised."""

from __future__ import annotations

import numpy as np
import pytest

from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import Resource
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.interface import (
    STATES,
    InputType,
    Interface,
    StateRecord,
    StateTable,
    encode_record,
)
from nacre.nac.quantise.report import QuantisationReport

Array = np.ndarray
INITIAL = {
    "i64": np.array(2**60 + 1),
    "i64-least": np.full((2, 3), -(2**63)),
    "i64-several": np.array([2**60 + 1, -1]),
    "i32": np.full(2, 7, np.int32),
    "bool": np.full(3, True),
    "f32": np.full(2, 0.1, np.float32),
    "f64": np.full(2, 0.1),
    "f16": np.full(2, 65504, np.float16),
    "minus-zero": np.array([-0.0, -0.0], np.float32),
    "both-zeros": np.array([0.0, -0.0], np.float32),
    "nan": np.array([np.nan, np.nan], np.float32),
}


def _held(array: Array) -> Module:
    builder = Builder(profile="nacre-1")
    state = builder.input("s", core.builder.dtype_name(array.dtype), array.shape)
    builder.state("s", state, builder.constant(array))
    return builder.module(state)


def _same(one: Array, other: Array) -> None:
    assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize("name", INITIAL)
def test_a_state_starts_as_it_does_in_the_module(name: str) -> None:
    module = _held(INITIAL[name])
    model = nac.load(to_bytes(nac.build(module).file))
    assert nac.verify(to_bytes(model.file)) == []
    for _ in range(2):
        _same(model.session().run({})[0], INITIAL[name])
    _same(module.session().run({})[0], INITIAL[name])
    assert core.print_module(nac.lift(model)) == core.print_module(nac.canonical(module))
    assert nac.lift(model) == nac.canonical(module)


@pytest.mark.parametrize(
    "option", ["fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
def test_what_a_state_starts_as_is_not_quantised(option: str) -> None:
    first = np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32)
    builder = Builder(profile="nacre-1")
    x, state = builder.input("x", "f32", (4, 4)), builder.input("s", "f32", (4, 4))
    new = builder.add("MatMul", x, builder.constant(first[::-1].copy()))
    builder.state("s", new, builder.constant(first))
    reports: list[QuantisationReport] = []
    model = nac.build(builder.module(state), option, on_report=reports.append)
    assert sorted((row.stored == "kept", row.reason) for row in reports[0].weights) == [
        (False, ""),
        (True, "of a state"),
    ]
    for made in (model, nac.load(to_bytes(model.file))):
        _same(made.run({"x": first})[0], first)


def _fed(dtype: str, shape: tuple[int, ...]) -> bytes:
    """A state of f32[2], and what its record says it is."""
    made = Assembler()
    x = made.input("x")
    made.state(0, "s")
    made.output(made.call("nac.neg", x))
    table = StateTable((StateRecord(0, 0, dtype, shape, 0, "s"),))
    types = Interface({"x": InputType("f32", (2,))})
    given = [
        Resource(STATES, encode_record(table)),
        Resource("nacre.interface.json", encode_record(types)),
    ]
    return to_bytes(made.file(resources=given))


@pytest.mark.parametrize(("dtype", "shape"), [("i64", (2,)), ("f32", (3,)), ("f32", ())])
def test_a_state_has_the_type_of_what_feeds_it(dtype: str, shape: tuple[int, ...]) -> None:
    assert nac.verify(_fed("f32", (2,))) == []
    raw = _fed(dtype, shape)
    (found,) = nac.verify(raw)
    assert found.code == "NAC47"
    assert found.data is not None
    assert found.data["instruction"] == 3
    named = f"{np.dtype({'i64': 'int64', 'f32': 'float32'}[dtype])}{list(shape)}"
    assert found.message.endswith(f"output 0 is float32[2], and feeds state 0, which is {named}")
    with pytest.raises(InputError) as refused:
        nac.load(raw).run({"x": np.ones(2, np.float32)})
    assert list(map(str, refused.value.diagnostics)) == [str(found)]


def test_numbers_of_a_record_may_be_whole_floats() -> None:
    made = Assembler()
    state = made.state(0, "s")
    made.output(state)
    table = StateTable((StateRecord(0, 0, "i64", (2,), (2**60 + 1, 3.0), "s", True),))
    raw = to_bytes(made.file(resources=[Resource(STATES, encode_record(table))]))
    assert nac.verify(raw) == []
    _same(nac.load(raw).run({})[0], np.array([2**60 + 1, 3]))
