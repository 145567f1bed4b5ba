"""The text form: what is read is what was printed, and every mistake is reported with its place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import CoreOperation, Module, State, TensorType
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.values import Custom, Word, attributes
from tests.core.modules import modules

F32 = TensorType("f32")

words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda text: text not in ("true", "false", "inf", "nan", "Custom")
)
numbers = st.one_of(
    st.booleans(),
    st.integers(-(10**39), 10**39),
    st.floats(allow_nan=False),
    st.just(math.nan),
)
lists = st.recursive(
    st.one_of(numbers, words.map(Word), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)
pads = st.tuples(st.integers(0, 9), st.integers(0, 9))
any_value = st.one_of(lists, st.tuples(pads, pads).map(Custom))
types = st.builds(
    TensorType,
    st.sampled_from(list(GRAPH_TYPES)),
    st.lists(st.integers(-3, 10**17), max_size=4).map(tuple),
)
ids = st.integers(0, 10**18 - 1)
operations = st.builds(
    CoreOperation,
    ids,
    words.filter(lambda text: text not in ("Add", "Sub", "Mul", "ConstTensor")),
    st.lists(ids, max_size=3).map(tuple),
    st.dictionaries(words, any_value, max_size=3).map(attributes),
    types,
)


def line(*given: str) -> str:
    """A module of these operations; the first value is its output."""
    return "\n".join([*given, "outputs: %0", ""])


def findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        parse(text)
    return caught.value.diagnostics


@given(modules())
def test_a_module_reads_back_as_it_was_printed(module: Module) -> None:
    text = print_module(module)
    again = parse(text)
    assert again == module
    assert print_module(again) == text
    assert hash(again.operations) == hash(module.operations)


@given(st.lists(operations, max_size=4).map(tuple), st.lists(ids, max_size=3).map(tuple))
def test_any_operation_reads_back_whether_or_not_it_makes_sense(
    made: tuple[CoreOperation, ...], outputs: tuple[int, ...]
) -> None:
    text = print_module(Module(made, outputs))
    again = parse(text)
    assert print_module(again) == text
    assert [op.opcode for op in again] == [op.opcode for op in made]
    assert [op.operands for op in again] == [op.operands for op in made]
    assert [op.type for op in again] == [op.type for op in made]
    assert again.outputs == outputs
    for ours, theirs in zip(again, made, strict=True):
        if ours.opcode not in ("ConstF32", "ConstF64"):
            assert repr(ours.attributes) == repr(theirs.attributes)


@given(st.text(), st.text())
def test_names_hold_any_character(name: str, other: str) -> None:
    op = CoreOperation(0, "Input", (), attributes({"name": name}), F32)
    module = Module((op,), (0,), (State(other, 0, 0), State(name, 0, 0)))
    text = print_module(module)
    assert parse(text) == module
    assert len(text.splitlines()) == 4  # nothing ends a line but the end of a line
    text.encode()  # lone surrogates are escaped


@pytest.mark.parametrize(
    "name",
    [
        '} : tensor<f32[2]> # "',
        "a\\n",
        "a\\\\n\n",
        "# no comment",
        "{x=1}",
        "\r\n\0\u2028",
        "\ud800",
    ],
)
def test_punctuation_in_a_name_means_nothing(name: str) -> None:
    op = CoreOperation(0, "Input", (), attributes({"name": name}), F32)
    module = Module((op,), (0,), (State(name, 0, 0),))
    assert parse(print_module(module)) == module


@pytest.mark.parametrize("opcode", ["Add", "Sub", "Mul"])
def test_short_names_are_read_as_binop(opcode: str) -> None:
    start = '%0 = Input () {name="x"} : tensor<f32[]>'
    canonical = line(start, f"%1 = BinOp (%0, %0) {{op={opcode}}} : tensor<f32[]>")
    short = line(start, f"%1 = {opcode} (%0, %0) : tensor<f32[]>")
    braced = line(start, f" %1={opcode}(%0,%0){{}} : tensor<f32[]> # none")
    assert parse(short) == parse(braced) == parse(canonical)
    assert print_module(parse(short)) == canonical


def test_empty_braces_are_read_and_never_printed() -> None:
    start = '%0 = Input () {name="x"} : tensor<f32[]>'
    plain = line(start, "%1 = Relu (%0) : tensor<f32[]>")
    for braces in ("{}", "{ }"):
        text = line(start, f"%1 = Relu (%0) {braces} : tensor<f32[]>")
        assert print_module(parse(text)) == plain


def test_nothing_but_states_stands_behind_the_outputs() -> None:
    text = line('%0 = Input () {name="x"} : tensor<f32[2]>')
    more = "%1 = Relu (%0) : tensor<f32[2]>"
    for behind in (more, f"  {more}", more.replace(" : ", " {} : "), f"# so\n{more}  # told"):
        (found,) = findings(f"{text}{behind}\n")
        assert (found.code, found.location.line) == ("TXT02", 3 + behind.count("\n"))


CANONICAL = """%0 = Input () {name="x"} : tensor<f32[1, 4, 4, 2]>
%1 = Input () {name="w"} : tensor<f32[3, 3, 2, 1]>
%2 = Conv2d (%0, %1) {padding=Custom([[1, 1], [0, 0]]), strides=[1, 1]} : tensor<f32[1, 4, 2, 1]>
%3 = Sum (%2) {axes=[1], keepdims=false} : tensor<f32[1, 2, 1]>
outputs: %3, %2
state: "x" <- %0 = %0
"""
ODD = """
# a comment
   %0=Input(){ name = "x" }:tensor<f32[1,4,4,2]>   # another: "quoted" } : tensor<f32[]>
%1 = Input () {name="w"} : tensor< f32 [ 3 , 3,2, 1 ] >
\t%2 =  Conv2d ( %0 ,%1 )\t{strides=[1,1],padding=Custom( [ [1,1],[ 0,0]])}:tensor<f32[1, 4, 2, 1]>

%3 = Sum (%2) {keepdims=false, axes=[1]} : tensor<f32[1, 2, 1]>
 outputs : %3 ,%2 # the end
state:"x"<-%0=%0#kept
"""


def test_spaces_comments_and_the_order_of_attributes_mean_nothing() -> None:
    assert parse(ODD) == parse(CANONICAL)
    assert print_module(parse(ODD)) == CANONICAL


@pytest.mark.parametrize("text", [CANONICAL, ODD])
def test_lines_may_end_as_windows_ends_them(text: str) -> None:
    assert parse(text.replace("\n", "\r\n")) == parse(text)
    assert parse(text.rstrip("\n")) == parse(text)


def test_every_mistake_is_reported_at_once_with_line_and_column() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = Relu (0) : tensor<f32[2]>
%2 = Relu (%0) {a=} : tensor<f32[2]>
nonsense
%3 = Relu (%0) : tensor<f99[2]>
%4 = Relu (%0) : tensor<f32[2, x]>
%5 = Relu (%0) {a=1, a=2} : tensor<f32[2]>
%6 = Relu (%0) {a="open} : tensor<f32[2]>
%7 = Relu (%0) tensor<f32[2]>
outputs: %1 %2
outputs: %0
%8 = Relu (%0) : tensor<f32[2]>
outputs: %0
state: x <- %0 = %0
"""
    found = findings(text)
    places = [(f.location.line, f.location.column) for f in found]
    assert [at[0] for at in places] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14]
    assert places[0] == (2, 11)
    assert places[1] == (3, 19)
    assert places[5] == (7, 21)
    assert {f.code for f in found} == {"TXT02", "TXT05"}


@pytest.mark.parametrize(
    "wrong",
    [
        "%\u0661 = Relu () : tensor<f32[2]>",  # a digit, but none of ours
        "%0 = Relu (%\uff11) : tensor<f32[2]>",
        "%0 = Relu () {a=\u0662} : tensor<f32[2]>",
        "%0 = Relu () : tensor<f32[\u0663]>",
        "%0 = R\u00e9lu () : tensor<f32[2]>",
        "%0 = Relu () : tensor<f32[1_0]>",
        "%0 = Relu () : tensor<f32[2,]>",
        "%0 = Relu () : tensor<f32[?]>",
        "%0 = %1",
        "%0 = Relu () {a=[[1}} : tensor<f32[2]>",
        "%0 = Relu () {1=2} : tensor<f32[2]>",
        "%0 = Relu () {a=1 b=2} : tensor<f32[2]>",
        "%0 = Relu () {a=" + "[" * 100 + "]" * 100 + "} : tensor<f32[2]>",
        "%9999999999999999999 = Relu () : tensor<f32[2]>",
    ],
)
def test_a_malformed_line_is_refused(wrong: str) -> None:
    (found,) = findings(line(wrong))
    assert (found.code, found.location.line) == ("TXT05", 1)


def test_a_text_without_outputs_is_refused() -> None:
    for text in ("", "# nothing\n", '%0 = Input () {name="x"} : tensor<f32[2]>\n'):
        (found,) = findings(text)
        assert found.code == "TXT02"


def test_a_word_may_start_with_an_underscore() -> None:
    module = parse(line("%0 = Odd () {mode=_fast} : tensor<f32[2]>"))
    assert module.operations[0].attributes["mode"] == Word("_fast")


def test_no_outputs_are_printed_without_a_space() -> None:
    assert print_module(Module((), ())) == "outputs:\n"
    assert parse("outputs:\n") == Module((), ())


@given(st.text(alphabet=st.sampled_from('%0=Re ()[]{}"\\:,tensor<f32>#\n1.e-_a'), max_size=80))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    module = parsed(text)
    if module is not None:
        assert parse(print_module(module)) == module


def parsed(text: str) -> Module | None:
    try:
        return parse(text)
    except InputError:
        return None


@pytest.mark.parametrize(
    "value", [float("nan"), -float("nan"), np.float32("nan"), np.float64("nan")]
)
def test_every_nan_reads_back_as_the_same(value: float) -> None:
    given = attributes({"list": [1.0, value], "value": value})
    module = Module((CoreOperation(0, "Clip", (), given, F32),), (0,))
    assert parse(print_module(module)) == module
    assert hash(module.operations) == hash(parse(print_module(module)).operations)
