"""The canonical form as a whole: values, idempotence, validity, size."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.canonical import canonicalise
from nacre.core.module import Labels, Module
from nacre.core.passes.runner import PIPELINE
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from tests.core.modules import inputs_of, interpret, modules, same_bits

pytestmark = pytest.mark.sampled(2)  # together they take long


@given(made=modules(most_operations=25), seed=st.integers(0, 1000))
def test_values_are_kept_bit_for_bit(made: Module, seed: int) -> None:
    inputs = inputs_of(made, seed)
    pairs = zip(interpret(made, inputs), interpret(canonicalise(made), inputs), strict=True)
    assert all(same_bits(before, after) for before, after in pairs)


@given(made=modules(most_operations=25, is_further=True), seed=st.integers(0, 1000))
def test_values_of_further_operations_are_kept_too(made: Module, seed: int) -> None:
    inputs = inputs_of(made, seed)
    expected = interpret(made, inputs)
    found = interpret(canonicalise(made), inputs)
    assert all(map(same_bits, found, expected))


@given(made=modules(most_operations=25, is_further=True))
def test_twice_is_once(made: Module) -> None:
    once = canonicalise(made)
    assert canonicalise(once) == once
    assert all(one.run(once) is once for one in PIPELINE)


@given(made=modules())
def test_the_argument_stays_and_the_result_is_valid_new_and_no_larger(made: Module) -> None:
    text = print_module(made)
    after = canonicalise(made)
    assert print_module(made) == text
    assert after is not made
    assert verify(after, "core-v1") == []
    assert after.input_types == made.input_types
    assert len(after) <= len(made)


@given(made=modules(has_late_inputs=True), seed=st.integers(0, 1000))
def test_late_inputs_are_hoisted_and_values_kept(made: Module, seed: int) -> None:
    assert {d.code for d in verify(made)} <= {"MOD06"}
    after, inputs = canonicalise(made), inputs_of(made, seed)
    assert verify(after) == []
    assert after.input_types == made.input_types
    pairs = zip(interpret(made, inputs), interpret(after, inputs), strict=True)
    assert all(same_bits(before, now) for before, now in pairs)


@given(made=modules())
def test_operands_of_add_and_mul_ascend(made: Module) -> None:
    for op in canonicalise(made):
        if op.attributes.get("op") in ("Add", "Mul"):
            assert op.operands[0] <= op.operands[1]


def test_a_canonical_module_keeps_its_places() -> None:
    made = parse('%0 = Input () {name="x"} : tensor<f32[2]>\noutputs: %0\n')
    after = canonicalise(made)
    assert after == made
    assert after is not made
    assert after.source_spans is made.source_spans


def test_a_module_that_is_not_valid_is_refused() -> None:
    made = parse("%0 = Relu (%9) : tensor<f32[2]>\noutputs: %0\n")
    with pytest.raises(InputError) as caught:
        canonicalise(made)
    assert [d.code for d in caught.value.diagnostics] == ["MOD01"]


def test_the_form_before_and_after(golden_pair: tuple[str, str]) -> None:
    before, after = golden_pair
    assert print_module(canonicalise(parse(before))) == after


@pytest.fixture
def golden_pair() -> tuple[str, str]:
    before = """\
%0 = ConstF32 () {value=1.0} : tensor<f32[]>
%1 = Input () {name="x"} : tensor<f32[2, 3]>
%2 = Input () {name="w"} : tensor<f32[4, 3]>
%3 = BinOp (%1, %0) {op=Mul} : tensor<f32[2, 3]>
%4 = Transpose (%2) {permutation=[1, 0]} : tensor<f32[3, 4]>
%5 = MatMul (%3, %4) : tensor<f32[2, 4]>
%6 = ConstTensor () {data=[1.0, 2.0, 3.0, 4.0], dtype=f32, shape=[4]} : tensor<f32[4]>
%7 = BinOp (%6, %0) {op=Add} : tensor<f32[4]>
%8 = BinOp (%7, %5) {op=Add} : tensor<f32[2, 4]>
%9 = Relu (%8) : tensor<f32[2, 4]>
%10 = Relu (%9) : tensor<f32[2, 4]>
%11 = MatMul (%1, %4) : tensor<f32[2, 4]>
%12 = BinOp (%10, %11) {op=Sub} : tensor<f32[2, 4]>
outputs: %12
"""
    after = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Input () {name="w"} : tensor<f32[4, 3]>
%4 = Transpose (%1) {permutation=[1, 0]} : tensor<f32[3, 4]>
%5 = MatMul (%0, %4) : tensor<f32[2, 4]>
%7 = ConstTensor () {data=[2.0, 3.0, 4.0, 5.0], dtype=f32, shape=[4]} : tensor<f32[4]>
%8 = BinOp (%5, %7) {op=Add} : tensor<f32[2, 4]>
%9 = Relu (%8) : tensor<f32[2, 4]>
%12 = BinOp (%9, %5) {op=Sub} : tensor<f32[2, 4]>
outputs: %12
"""
    return before, after


def chain(count: int) -> Module:
    opcodes = ("Exp", "Neg", "Neg", "Relu", "Neg")
    lines = ['%0 = Input () {name="x"} : tensor<f32[4]>']
    lines += [f"%{i} = {opcodes[i % 5]} (%{i - 1}) : tensor<f32[4]>" for i in range(1, count)]
    return parse("\n".join([*lines, f"outputs: %{count - 1}"]))


def test_deep_chains_take_time_in_proportion() -> None:
    canonicalise(chain(1000))
    made = chain(30_000)
    start = time.process_time()
    after = canonicalise(made)
    assert time.process_time() - start < 10  # about a second
    assert len(after) < 20_000


def test_names_of_the_model_stay_with_their_values() -> None:
    text = (
        '%0 = Input () {name="a"} : tensor<f32[2]>\n'
        "%1 = Neg (%0) : tensor<f32[2]>\n"
        '%2 = Input () {name="b"} : tensor<f32[2]>\n'
        "%3 = BinOp (%1, %2) {op=Add} : tensor<f32[2]>\n"
        "outputs: %3\n"
    )
    labels = Labels(("sum",), {1: "minus", 3: "plus"})
    made = canonicalise(replace(parse(text), labels=labels))
    assert made.output_names == ("sum",)
    assert made.labels is not None
    assert {made.by_id[value].opcode: name for value, name in made.labels.nodes.items()} == {
        "Neg": "minus",
        "BinOp": "plus",
    }


def test_outputs_without_names_are_numbered_and_equal_names_told_apart() -> None:
    module = parse('%0 = Input () {name="a"} : tensor<f32[2]>\noutputs: %0, %0, %0\n')
    assert module.output_names == ("output0", "output1", "output2")
    named = replace(module, labels=Labels(("y", "y")))
    assert named.output_names == ("y", "y.1", "output2")
