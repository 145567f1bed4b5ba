"""Lifted programs compute what the runtime computes, bit for bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.base.diagnostics import InputError
from nacre.core.module import TensorType
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import Resource
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.interface import InputType, Interface, StateRecord, StateTable, encode_record
from nacre.nac.program.lift import lift
from nacre.nac.program.lower import lower
from nacre.nac.run.model import NacModel, load
from tests.nac.files import FIXTURES, changed, small


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_is_a_module(path: Path) -> None:
    model = load(path)
    x = np.load(path.with_suffix(".npz"))["in0"]
    name = model.inputs[0].name
    module = lift(model, {name: TensorType("f32", x.shape)})
    assert core.verify(module, "nacre-1") == []
    written = model.session(optimise=False)
    (wanted,), (found,) = written.run({name: x}), core.evaluate(module, {name: x})
    np.testing.assert_array_equal(found, wanted)


def test_types_that_a_file_says_need_not_be_given() -> None:
    interface = Interface({"x": InputType("f32", (2, 3))}, ("sum", "total"))
    file = changed(small(), RSRC=(Resource("nacre.interface.json", encode_record(interface)),))
    module = lift(load(to_bytes(file)))
    assert module.input_types == {"x": TensorType("f32", (2, 3))}
    assert module.output_names == ("sum", "total")


def test_a_type_that_nobody_says_is_asked_for() -> None:
    with pytest.raises(InputError) as refused:
        lift(load(to_bytes(small())))
    (found,) = refused.value.diagnostics
    assert found.code == "NAC46"
    assert found.help is not None
    assert '"x"' in found.help


def test_state_is_state() -> None:
    made = Assembler()
    x, state = made.input("x"), made.state(0, "total")
    total = made.call("nac.add", state, x)
    made.output(made.call("nac.neg", total), total)
    resources = [
        Resource(
            "nacre.state.json",
            encode_record(StateTable((StateRecord(0, 1, "f32", (2,), (3.0, 4.0), "total"),))),
        ),
        Resource("nacre.interface.json", encode_record(Interface({"x": InputType("f32", (2,))}))),
    ]
    model = load(to_bytes(made.file(resources=resources)))
    ours, lifted = model.session(), lift(model).session()
    ones = np.ones(2, np.float32)
    for _ in range(3):
        (one,), (other,) = ours.run({"x": ones}), lifted.run({"x": ones})
        np.testing.assert_array_equal(one, other)


def test_sizes_are_folded_and_known_branches_taken() -> None:
    made = Assembler()
    x = made.input("x")
    rows = made.call("aten.sym_size.int", x, 0)
    flat = made.call("nac.view", x, made.call("floordiv", rows, 2), -1, codes="Tii")
    yes = made.lift_constant(True, "flag")
    chosen = made.branch(yes, 2, 2)
    made.end_branch(made.call("nac.neg", flat))
    made.end_branch(made.call("nac.clone", flat))
    made.output(chosen)
    module = lift(load(to_bytes(made.file())), {"x": TensorType("f32", (4, 3))})
    assert [op.opcode for op in module] == ["Input", "Reshape", "Neg"]
    assert module.output_types == (TensorType("f32", (2, 6)),)


def test_of_branches_that_elements_choose_both_are_computed() -> None:
    made = Assembler()
    x = made.input("x")
    chosen = made.branch(made.call("aten.any.default", made.call("nac.gt", x, 0.0)), 2, 3)
    made.end_branch(made.call("nac.neg", x))
    double = made.call("nac.add", x, x)
    made.end_branch(made.call("nac.add", double, 1.0))
    made.output(chosen)
    model = load(to_bytes(made.file()))
    module = lift(model, {"x": TensorType("f32", (3,))})
    assert [op.opcode for op in module].count("Where") == 1
    for x_ in (np.array([1, -2, 3], np.float32), np.array([-1, -2, -3], np.float32)):
        np.testing.assert_array_equal(core.evaluate(module, {"x": x_})[0], model.run({"x": x_})[0])


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i64", "u8"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_numbers_other_than_zero_choose_as_in_a_run(dtype: str, shape: tuple[int, ...]) -> None:
    made = Assembler()
    x, condition = made.input("x"), made.input("condition")
    chosen = made.branch(condition, 2, 2)
    made.end_branch(made.call("nac.neg", x))
    made.end_branch(made.call("nac.clone", x))
    made.output(chosen)
    model = load(to_bytes(made.file()))
    types = {"x": TensorType("f32", (3,)), "condition": TensorType(dtype, shape)}
    module = lift(model, types)
    x_ = np.array([1, -2, 3], np.float32)
    numbers = [0, 1, 7, *((-0.0, np.nan, -0.25) if dtype.startswith("f") else ())]
    for number in numbers:
        array = np.full(shape, number, types["condition"].element.dtype)
        given = {"x": x_, "condition": array}
        (found,) = core.evaluate(module, given)
        np.testing.assert_array_equal(found, -x_ if number else x_)
        np.testing.assert_array_equal(found, model.run(given)[0])


def choosing(call: str, *arguments: str) -> NacModel:
    """A call of `x` where an element of `x` is above 0, else `-x`."""
    made = Assembler()
    x = made.input("x")
    choice = made.branch(made.call("aten.any.default", made.call("nac.gt", x, 0)), 2, 2)
    others = [x if one == "x" else one for one in arguments]
    made.end_branch(made.call(call, x, *others))
    made.end_branch(made.call("nac.neg", x))
    made.output(choice)
    return load(to_bytes(made.file()))


@pytest.mark.parametrize(
    ("call", "type_", "words"),
    [
        (
            ("aten.sum.default", "int32"),
            TensorType("i32", (3,)),
            "its branches give tensor<i32[]> and tensor<i32[3]>",
        ),
        (
            ("aten.cholesky.default",),
            TensorType("f32", (2, 2)),
            "can fail where the other is meant",
        ),
    ],
)
def test_branches_that_cannot_both_be_computed(
    call: tuple[str, ...], type_: TensorType, words: str
) -> None:
    model = choosing(*call)
    with pytest.raises(InputError) as refused:
        lift(model, {"x": type_})
    (finding,) = refused.value.diagnostics
    assert finding.code == "NAC49"
    assert words in finding.message


def test_what_can_fail_in_a_branch_does_not_where_the_other_is_meant() -> None:
    model = choosing("aten.remainder.Tensor", "x")
    module = lift(model, {"x": TensorType("i32", (3,))})
    for x_ in ([1, -2, 3], [0, -2, 0], [-1, -2, -3]):
        given = {"x": np.array(x_, np.int32)}
        np.testing.assert_array_equal(core.evaluate(module, given)[0], model.run(given)[0])
    for run in (model.run, partial(core.evaluate, module)):
        with pytest.raises(InputError, match="integer division by zero"):
            run({"x": np.array([1, 0, 3], np.int32)})
    again = lift(load(to_bytes(lower(module))))
    assert [op.opcode for op in again] == [op.opcode for op in module]


def test_what_has_no_form_is_reported_at_once() -> None:
    made = Assembler()
    x = made.input("x")
    mask = made.call("nac.gt", x, 0.0)
    some = made.call("aten.index.Tensor", x, mask)
    merged = made.converge(x, 50, [2, 2])
    made.end_branch(made.call("nac.neg", x))
    made.end_branch(made.call("nac.clone", x))
    made.output(some, merged)
    model = load(to_bytes(made.file()))
    with pytest.raises(InputError) as refused:
        lift(model, {"x": TensorType("f32", (3,))})
    assert [d.code for d in refused.value.diagnostics] == ["NAC49", "NAC49"]
    found = model.run({"x": np.array([1, -2, 3], np.float32)})
    np.testing.assert_array_equal(found[0], [1, 3])
