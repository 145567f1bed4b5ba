"""What an evaluation refuses, where it says so, what it remembers and how much memory it takes."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession, evaluate, evaluate_with_peak
from nacre.core.module import CoreOperation, Module, State, TensorType
from nacre.core.text.reader import parse
from nacre.core.values import NO_ATTRIBUTES, Word, attributes

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]
ADDING = """# two inputs
%0 = Input () {name="x"} : tensor<f32[2]>
%1 = Input () {name="bias"} : tensor<f32[]>

%2 = Add (%0, %1) : tensor<f32[2]>
outputs: %2
"""
X, BIAS = np.ones(2, np.float32), np.float32(2.0)


def findings(module: Module, inputs: dict[str, Any]) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        evaluate(module, inputs)
    return caught.value.diagnostics


def test_a_missing_input_is_named_at_its_line() -> None:
    (found,) = findings(parse(ADDING), {"x": X})
    assert (found.code, found.location.line) == ("EVL01", 3)
    assert found.message == "input `bias` is missing, expected tensor<f32[]>"


def test_an_extra_input_is_refused_with_a_hint() -> None:
    (found,) = findings(parse(ADDING), {"x": X, "bias": BIAS, "bais": BIAS})
    assert found.code == "EVL02"
    assert "no input `bais`" in found.message
    assert "`bias`" in found.message


@pytest.mark.parametrize(
    ("given", "described"),
    [
        (np.ones(3, np.float32), "an array of float32 with shape [3]"),
        (np.ones((2, 1), np.float32), "an array of float32 with shape [2, 1]"),
        (np.ones(2), "an array of float64 with shape [2]"),
        (np.ones(2, ">f4"), "an array of float32 in the byte order of other machines"),
        (np.ones(2, np.int32), "an array of int32 with shape [2]"),
        ([1.0, 2.0], "an array of float64 with shape [2]"),
        ([[1.0], [1.0, 2.0]], "no array"),
        ("text", "an array of str"),
        (None, "an array of object with shape []"),
    ],
)
def test_nothing_is_converted_or_broadcast_in_silence(given: object, described: str) -> None:
    (found,) = findings(parse(ADDING), {"x": given, "bias": BIAS})
    assert (found.code, found.location.line) == ("EVL03", 2)
    assert described in found.message
    assert found.message.endswith("expected tensor<f32[2]>")


def test_everything_wrong_with_the_inputs_is_said_at_once() -> None:
    found = findings(parse(ADDING), {"x": np.ones(5), "other": BIAS})
    assert [f.code for f in found] == ["EVL03", "EVL01", "EVL02"]


def test_an_index_out_of_range_names_operation_id_and_value() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[4, 2]>
%1 = Input () {name="i"} : tensor<i64[3]>
%5 = Gather (%0, %1) : tensor<f32[3, 2]>
outputs: %5
"""
    table = np.zeros((4, 2), np.float32)
    for bad in (4, -1, 2**62):
        (found,) = findings(parse(text), {"x": table, "i": np.array([0, bad, 1])})
        assert (found.code, found.location.line) == ("EVL04", 3)
        assert found.message == (
            f"`Gather` %5: index is {bad}, expected 0 to 3 along axis 0, at [1]"
        )


def test_a_static_index_out_of_range_is_a_fault_of_the_run() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[4]>
%1 = Index (%0) {indices=[4]} : tensor<f32[]>
outputs: %1
"""
    (found,) = findings(parse(text), {"x": np.zeros(4, np.float32)})
    assert (found.code, found.location.line) == ("EVL04", 2)
    assert found.message == "`Index` %1: index is 4, expected 0 to 3 along axis 0"


def test_a_module_that_was_built_is_placed_in_its_canonical_text() -> None:
    build = Builder()
    x, i = build.input("x", "f32", (2,)), build.input("i", "i32", ())
    module = build.module(build.add("Gather", x, i))
    (found,) = findings(module, {"x": X, "i": np.array(9, np.int32)})
    assert (found.location.line, found.location.column) == (3, 1)
    assert found.span.source.line_text(3) == "%2 = Gather (%0, %1) : tensor<f32[]>"


def test_what_the_verifier_refuses_is_not_run() -> None:
    module = parse('%0 = Input () {name="x"} : tensor<f32[2]>\noutputs: %7\n')
    (found,) = findings(module, {"x": X})
    assert found.code == "MOD03"


def test_values_beyond_the_memory_of_the_machine_are_refused_before_they_are_made() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[1048576, 1]>
%1 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[1, 1048576]>
%2 = Add (%0, %1) : tensor<f32[1048576, 1048576]>
outputs: %2
"""
    (found,) = findings(parse(text), {"x": np.zeros((1 << 20, 1), np.float32)})
    assert found.code == "EVL05"


def chain(length: int, type_: TensorType) -> Module:
    first = CoreOperation(0, "Input", (), attributes({"name": "x"}), type_)
    rest = (CoreOperation(i, "Neg", (i - 1,), NO_ATTRIBUTES, type_) for i in range(1, length + 1))
    return Module((first, *rest), (length,))


@pytest.mark.parametrize("length", [20_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_long_chain_of_operations_is_evaluated(length: int) -> None:
    found = evaluate_with_peak(chain(length, TensorType("i64", (2,))), {"x": np.array([3, -4])})
    assert found.outputs[0].tolist() == [3, -4]
    assert found.peak_bytes == 2 * 2 * 8


def test_values_are_freed_after_their_last_use() -> None:
    size = 1 << 20
    session = CoreSession(chain(30, TensorType("f32", (size // 4,))))
    x = np.zeros(size // 4, np.float32)
    tracemalloc.start()
    try:
        session.run({"x": x})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert session.peak_bytes == 2 * size
    assert peak < 3 * size


def test_the_peak_counts_what_is_alive_at_one_time() -> None:
    text = """%0 = Input () {name="x"} : tensor<f64[10]>
%1 = Exp (%0) : tensor<f64[10]>
%2 = Sum (%0) {axes=[]} : tensor<f64[]>
%3 = Neg (%1) : tensor<f64[10]>
%4 = Add (%3, %2) : tensor<f64[10]>
outputs: %4
"""
    # At %3: %1, %2 and %3; at %2: the input, %1 and %2; at %4: %3, %2 and %4.
    assert evaluate_with_peak(parse(text), {"x": np.zeros(10)}).peak_bytes == 168


def test_outputs_share_no_memory_with_inputs_or_constants_or_each_other() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = ConstTensor () {data=[1.0, 2.0], dtype=f32, shape=[2]} : tensor<f32[2]>
outputs: %0, %1, %0, %1
"""
    module = parse(text)
    x = X.copy()
    found = evaluate(module, {"x": x})
    for array in found:
        array += 1
    assert x.tolist() == [1.0, 1.0]
    assert [a.tolist() for a in found] == [[2.0, 2.0], [2.0, 3.0]] * 2
    assert evaluate(module, {"x": x})[1].tolist() == [1.0, 2.0]


def test_strided_inputs_are_taken_as_they_are() -> None:
    build = Builder()
    x = build.input("x", "f32", (2, 3))
    module = build.module(build.add("Reshape", x, new_shape=(6,)))
    given = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    assert evaluate(module, {"x": given})[0].tolist() == given.ravel().tolist()


COUNTING = """%0 = Input () {name="step"} : tensor<i64[]>
%1 = Input () {name="total"} : tensor<i64[]>
%2 = ConstI64 () {value=10} : tensor<i64[]>
%3 = Add (%0, %1) : tensor<i64[]>
%4 = Mul (%3, %2) : tensor<i64[]>
outputs: %4
state: "total" <- %3 = %2
"""
STEP = {"step": np.int64(5)}


def test_a_session_keeps_state_between_runs_and_plain_evaluation_does_not() -> None:
    module = parse(COUNTING)
    session = CoreSession(module)
    assert [int(session.run(STEP)[0]) for _ in range(3)] == [150, 200, 250]
    assert session.state["total"] == 25
    session.reset()
    assert int(session.run(STEP)[0]) == 150
    assert [int(evaluate(module, STEP)[0]) for _ in range(2)] == [150, 150]


def test_a_state_that_is_given_starts_from_there() -> None:
    session = CoreSession(parse(COUNTING))
    assert int(session.run({**STEP, "total": np.int64(0)})[0]) == 50
    assert int(session.run(STEP)[0]) == 100


def test_a_run_that_fails_leaves_the_state_as_it_was() -> None:
    text = """%0 = Input () {name="i"} : tensor<i64[]>
%1 = Input () {name="kept"} : tensor<i64[2]>
%2 = ConstTensor () {data=[1, 2], dtype=i64, shape=[2]} : tensor<i64[2]>
%3 = Add (%1, %2) : tensor<i64[2]>
%4 = Gather (%3, %0) : tensor<i64[]>
outputs: %4
state: "kept" <- %3 = %2
"""
    session = CoreSession(parse(text))
    assert int(session.run({"i": np.int64(0)})[0]) == 2
    with pytest.raises(InputError):
        session.run({"i": np.int64(2)})
    assert session.state["kept"].tolist() == [2, 4]
    assert int(session.run({"i": np.int64(1)})[0]) == 6


def test_a_state_must_start_from_a_constant() -> None:
    module = parse(COUNTING)
    wrong = Module(module.operations, module.outputs, (State("total", 3, 4),))
    (found,) = findings(wrong, STEP)
    assert found.code == "MOD15"


def test_constants_that_differ_in_the_sign_of_zero_are_not_confused() -> None:
    text = """%0 = ConstF64 () {value=0.0} : tensor<f64[]>
%1 = ConstF64 () {value=-0.0} : tensor<f64[]>
outputs: %0, %1
"""
    assert [bool(np.signbit(a)) for a in evaluate(parse(text))] == [False, True]


def test_operations_that_differ_in_an_attribute_are_bound_apart() -> None:
    build = Builder()
    x = build.input("x", "i64", (2,))
    added = [build.add("BinOp", x, x, op=Word(op)) for op in ("Add", "Sub", "Mul")]
    found = evaluate(build.module(*added), {"x": np.array([3, 4])})
    assert [a.tolist() for a in found] == [[6, 8], [0, 0], [9, 16]]


def test_a_thousand_wrong_names_are_answered_at_once() -> None:
    build = Builder()
    values = [build.input(f"x{index}", "f32", (2,)) for index in range(1000)]
    session = CoreSession(build.module(*values))
    given = {f"w_x{index}": np.zeros(2, np.float32) for index in range(1000)}
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        session.run(given)
    assert time.process_time() - began < 2
    assert len(caught.value.diagnostics) == 1000


def test_unknown_names_get_a_few_hints() -> None:
    build = Builder()
    module = build.module(*(build.input(f"weight{index}", "f32", ()) for index in range(20)))
    found = findings(module, {f"wieght{index}": np.float32(0) for index in range(20)})
    unknown = [d.message for d in found if d.code == "EVL02"]
    assert len(unknown) == 20
    assert sum("did you mean" in message for message in unknown) == 8


def test_a_masked_array_is_refused() -> None:
    build = Builder()
    module = build.module(build.input("x", "f32", (2,)))
    masked = np.ma.masked_array(np.ones(2, np.float32), [True, False])
    (found,) = findings(module, {"x": masked})
    assert (found.code, "is a masked array" in found.message) == ("EVL03", True)


def test_a_name_without_end_is_cut_in_messages() -> None:
    build = Builder()
    module = build.module(build.input("n" * 100_000, "f32", ()))
    (found,) = findings(module, {})
    assert found.code == "EVL01"
    assert len(found.message) < 200
