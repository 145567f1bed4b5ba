"""What is made of a module knows where in the text its operations stood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.evaluation.run import operation_span, value_span
from nacre.core.module import Module
from nacre.core.passes.inference import optimise
from nacre.core.text.operations import operation_text
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from tests.core.modules import modules

LATE = """# a comment
%0 = Input () {name="x"} : tensor<i64[3]>
%1 = Neg (%0) : tensor<i64[3]>
%2 = Input () {name="i"} : tensor<i64[1]>

%3 = Neg (%1) : tensor<i64[3]>
%4 = Gather (%3, %2) : tensor<i64[1]>
outputs: %4
"""


def lines(module: Module) -> list[int]:
    return [operation_span(module, index).location.line for index in range(len(module))]


def test_the_canonical_form_points_into_the_text_that_was_read() -> None:
    module = canonicalise(parse(LATE, "m.core"))
    assert [op.opcode for op in module] == ["Input", "Input", "Gather"]
    assert lines(module) == [2, 4, 7]
    assert str(value_span(module, module.outputs[0]).location) == "m.core:7:1"
    with pytest.raises(InputError) as caught:
        evaluate(module, {"x": np.arange(3), "i": np.array([9])})
    assert str(caught.value.diagnostics[0].location) == "m.core:7:1"


@given(modules(has_late_inputs=True))
def test_an_operation_stands_where_the_one_did_that_it_was_made_of(made: Module) -> None:
    read = parse(print_module(made))
    canonical = canonicalise(read)
    assert canonical == canonicalise(made)
    is_hoisted = [op.opcode for op in read][: len(read.inputs)] == ["Input"] * len(read.inputs)
    for index, op in enumerate(canonical):
        at = operation_span(canonical, index)
        line = at.source.line_text(at.location.line)
        if op.opcode == "Input":
            assert line.partition(" = ")[2] == operation_text(op).partition(" = ")[2]
        elif is_hoisted:
            assert line.startswith(f"%{op.value_id} = ")
        else:
            assert line.startswith("%")


def test_rewrites_for_inference_keep_places_too() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = Input () {name="y"} : tensor<f32[2]>
%2 = Unary (%0) {op=Sigmoid} : tensor<f32[2]>
%3 = BinOp (%0, %2) {op=Mul} : tensor<f32[2]>
%4 = BinOp (%3, %1) {op=Add} : tensor<f32[2]>
outputs: %4
"""
    module = optimise(parse(text))
    assert [op.opcode for op in module] == ["Input", "Input", "Silu", "BinOp"]
    assert lines(module) == [1, 2, 4, 5]


def test_a_module_that_was_never_text_has_no_places() -> None:
    read = parse(LATE)
    assert canonicalise(Module(read.operations, read.outputs)).source_spans is None
