"""The machine, instruction by instruction, against NumPy and plain Python."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.nac.mep import Machine, assemble
from nacre.nac.mep.program import program_of
from nacre.nac.rules.running import NAC46
from tests.nac.mep.running import Alphabet, Successor, refused, returned, run

X = np.array([[1.5, -2, 0.25], [4, 4, -1]], np.float32)


# Sources


def test_prompts_are_answered_by_name_or_in_order() -> None:
    text = """
        src_user_prompt %a, str, "a"
        src_user_prompt %b, int, "b"
        src_user_prompt %c, float, "c"
        src_user_prompt %d, str, "a"
        return [%a, %b, %c, %d]
    """
    assert run(text, {"a": "x", "b": "12", "c": 3}) == ["x", 12, 3.0, "x"]
    assert run(text, ["x", 12.0, "2.5", "y"]) == ["x", 12, 2.5, "y"]
    assert run(text, [7, np.array([12]), np.float32(0.5), None]) == ["7", 12, 0.5, None]
    machine = Machine(assemble(text))
    assert [(p.text, p.type) for p in machine.prompts] == [
        ("a", "str"),
        ("b", "int"),
        ("c", "float"),
    ]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"b": 1}, "the plan never asks for `b`"),
        ({}, "`src_user_prompt`: there is no answer to `a`"),
        (None, "`src_user_prompt`: there is no answer to `a`"),
        ({"a": "x"}, "the answer to `a` is `x`, expected a whole number of 64 bits"),
        ({"a": 2**70}, "the answer to `a` is an integer of more than 64 bits"),
        ({"a": np.array([1, 2**63], np.uint64)}, "has 9223372036854775808, an integer of more"),
        ({"a": str(2**70)}, "expected a whole number of 64 bits"),
        ({"a": "9" * 5000}, "expected a whole number of 64 bits"),
        ({"a": 1.5}, "the answer to `a` is the number 1.5, expected a whole number of 64 bits"),
        ({"a": math.nan}, "the answer to `a` is the number nan, expected a whole number"),
        ({"a": np.ones(2)}, "is an array of float64 with shape [2], expected a whole number"),
        ({"a": object()}, "the answer to `a` is an array of object, expected numbers or texts"),
        ({"a": [[1], [2, 3]]}, "the answer to `a` is a list, which is no array: ValueError"),
        ("text", "the inputs are a str, expected answers by prompt or a list"),
        (3, "the inputs are a int, expected answers by prompt or a list"),
    ],
)
def test_answers_that_are_none(inputs: Any, message: str) -> None:  # noqa: ANN401
    found = refused('src_user_prompt %a, int, "a"', inputs)
    assert found.code == "NAC96"
    assert message in found.message


@pytest.mark.parametrize("value", [1, -2.5, True, None, "a text", (1, 2), (0.5, 1.0), ()])
def test_constants(value: Any) -> None:  # noqa: ANN401
    literal = json.dumps(value)
    assert returned(f"src_constant %out, {literal}") == value
    assert returned(f"res_load_extern %out, constant, {literal}") == value


def test_the_mode_and_arrays_of_the_caller() -> None:
    assert returned("src_exec_mode %out") == "infer"
    made = returned('res_load_array %out, "w"', arrays={"w": X})
    np.testing.assert_array_equal(made, X)
    made[0, 0] = 9
    assert X[0, 0] == 1.5
    assert refused('res_load_array %a, "v"', arrays={"w": X}).code == "NAC96"


# Arithmetic

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
          "pow": np.power, "max": np.maximum, "min": np.minimum}  # fmt: skip


@pytest.mark.parametrize("word", BINARY)
def test_of_two_arrays(word: str) -> None:
    y = np.array([[2], [0.5]], np.float32)
    with np.errstate(all="ignore"):
        wanted = BINARY[word](X, y)
    made = returned(f"math_binary {word}, %out, %x, %y", arrays={"x": X, "y": y})
    np.testing.assert_array_equal(made, wanted)
    assert made.dtype == np.float32


@pytest.mark.parametrize("word", ["add", "sub", "mul", "max", "min"])
@given(a=st.integers(-(2**31), 2**31), b=st.integers(-(2**31), 2**31))
def test_of_two_integers(word: str, a: int, b: int) -> None:
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "max": max(a, b), "min": min(a, b)}[word]
    assert returned(f"src_constant %a, {a}", f"src_constant %b, {b}",
                    f"math_binary {word}, %out, %a, %b") == exact  # fmt: skip


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("div, %out, %seven, %two", 3.5), ("div, %out, %seven, %zero", math.inf),
        ("pow, %out, %two, %seven", 128), ("pow, %out, %seven, %half", math.sqrt(7)),
        ("mul, %out, %yes, %seven", 7), ("sub, %out, %yes, %yes", 0),
        ("pow, %out, %two, %minus", 0.5),
    ],
)  # fmt: skip
def test_of_two_numbers(line: str, wanted: float) -> None:
    names = {"seven": "7", "two": "2", "zero": "0", "half": "0.5", "yes": "true", "minus": "-1"}
    lines = [f"src_constant %{name}, {value}" for name, value in names.items()]
    assert returned(*lines, f"math_binary {line}") == wanted


def test_a_number_takes_the_type_of_the_array_beside_it() -> None:
    for values, number, wanted in ((X, "0.5", np.float32), (np.arange(3), "2", np.int64)):
        made = returned(f"src_constant %n, {number}", "math_binary mul, %out, %x, %n",
                        arrays={"x": values})  # fmt: skip
        np.testing.assert_array_equal(made, values * wanted(float(number)))
        assert made.dtype == wanted


@pytest.mark.parametrize(
    ("a", "b", "word", "message"),
    [
        ("9223372036854775807", "1", "add", "the result does not fit in 64 bits"),
        ("10", "1000000000", "pow", "10 to the power of 1000000000 does not fit in 64 bits"),
        ('"a"', '"b"', "add", "`a` is a text of 1 characters, expected a tensor"),
        ("[1, 2]", "[1, 2, 3]", "add", "shapes [2] and [3] do not broadcast"),
        ("null", "1", "mul", "`a` is nothing, expected a tensor"),
    ],
)
def test_arithmetic_that_is_refused(a: str, b: str, word: str, message: str) -> None:
    found = refused(f"src_constant %a, {a}\nsrc_constant %b, {b}\nmath_binary {word}, %c, %a, %b")
    assert (found.code, found.data and found.data["instruction"]) == ("NAC91", 2)
    assert message in found.message


UNARY = {"sqrt": np.sqrt, "abs": np.abs, "neg": np.negative, "exp": np.exp,
         "reciprocal": np.reciprocal}  # fmt: skip


@pytest.mark.parametrize("word", UNARY)
def test_of_each_element(word: str) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            returned(f"math_unary {word}, %out, %x", arrays={"x": X}), UNARY[word](X)
        )
        made = returned(f"math_unary {word}, %out, %x", arrays={"x": np.array([4, 9])})
        np.testing.assert_array_equal(
            made, UNARY[word](np.array([4, 9], np.int64 if word in ("abs", "neg") else np.float32))
        )
        assert returned("src_constant %x, 4", f"math_unary {word}, %out, %x") == UNARY[word](4.0)
    if word in ("abs", "neg"):
        text = f"src_constant %x, -9223372036854775808\nmath_unary {word}, %y, %x"
        assert refused(text).code == "NAC91"


def test_softmax() -> None:
    powers = np.exp(X.astype(np.float64))
    wanted = powers / powers.sum(1, keepdims=True)
    made = returned("math_unary softmax, %out, %x", arrays={"x": X})
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    far = returned("math_unary softmax, %out, %x", arrays={"x": np.array([1000, 0])})
    np.testing.assert_array_equal(far, np.array([1, 0], np.float32))


def test_comparisons() -> None:
    for word, do in (("eq", np.equal), ("neq", np.not_equal), ("gt", np.greater), ("lt", np.less)):
        made = returned(
            "src_constant %n, 4", f"logic_compare {word}, %out, %x, %n", arrays={"x": X}
        )
        np.testing.assert_array_equal(made, do(X, 4))
    assert returned('src_constant %a, "x"', "logic_compare eq, %out, %a, %a") is True
    assert returned("src_constant %a, 2", "logic_compare neq, %out, %a, %a") is False
    assert refused('src_constant %a, "x"\nlogic_compare gt, %b, %a, %a').code == "NAC91"


# The largest


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.data())
def test_the_largest_elements(values: list[int], data: Any) -> None:  # noqa: ANN401
    k = data.draw(st.integers(1, len(values)))
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    x = np.array([values, values], np.float32)
    indices, best, first = run(
        f'res_load_array %x, "x"\nsrc_constant %k, {k}\nanalysis_top_k %x, %k, %i, %v\n'
        "math_aggregate argmax, %a, %x\nreturn [%i, %v, %a]",
        arrays={"x": x},
    )
    assert indices.tolist() == [order[:k]] * 2
    assert best.tolist() == [[values[i] for i in order[:k]]] * 2
    assert first.tolist() == [order[0]] * 2


SAMPLE = """
    res_load_array %x, "x"
    src_constant %t, {temperature}
    src_constant %k, {k}
    src_constant %all, {draws}
    src_constant %out, ""
    loop_start %all
    next: analysis_sample %x, %t, %k, %i
    string_format %out, "{{}}{{}}", [%out, %i]
    loop_end next
    return [%out]
"""


def drawn(logits: list[float], seed: int, *, temperature: float, k: int, draws: int = 1000) -> str:
    text = SAMPLE.format(temperature=temperature, k=k, draws=draws)
    (made,) = run(text, arrays={"x": np.array([logits], np.float32)}, seed=seed)
    return str(made)


def test_chance_follows_the_seed_and_the_distribution() -> None:
    logits = [0.0, 1.0, 2.0, -1.0]
    for temperature, k in ((1.0, 0), (0.5, 0), (2.0, 2), (1.0, 9)):
        made = drawn(logits, 3, temperature=temperature, k=k)
        assert made == drawn(logits, 3, temperature=temperature, k=k)
        assert made != drawn(logits, 4, temperature=temperature, k=k)
        weights = np.exp(np.array(logits) / temperature)
        weights[np.argsort(weights)[: max(0, 4 - k) if k else 0]] = 0
        for index, share in enumerate(weights / weights.sum()):
            # Four deviations of a count of a thousand draws.
            slack = 4 * math.sqrt(1000 * share * (1 - share))
            assert abs(made.count(str(index)) - 1000 * share) <= slack


def test_no_chance_at_no_temperature_and_ties_are_kept() -> None:
    assert drawn([0, 2, 2], 1, temperature=0, k=0, draws=20) == "1" * 20
    assert set(drawn([2, 0, 2], 1, temperature=1, k=1, draws=60)) == {"0", "2"}
    assert set(drawn([1e30, 1e30, 0], 1, temperature=1e-30, k=0, draws=60)) == {"0", "1"}


@pytest.mark.parametrize(
    ("logits", "temperature", "message"),
    [
        ([1.0, math.nan], "1.0", "`logits` has elements that are not a number"),
        ([-math.inf], "1.0", "the largest of `logits` is -inf, expected a finite number"),
        ([1.0], "-1.0", "`temperature` is -1.0, expected 0 or more"),
        ([1.0], "inf", "`temperature` is inf, expected a finite number"),
        ([[1.0], [2.0]], "1.0", "expected one row"),
        (3.0, "1.0", "expected elements along an axis"),
    ],
)
def test_sampling_that_is_refused(logits: Any, temperature: str, message: str) -> None:  # noqa: ANN401
    found = refused(SAMPLE.format(temperature=temperature, k=0, draws=1), arrays={"x": logits})
    assert found.code == "NAC91"
    assert message in found.message


# Tensors


def test_tensors_are_made() -> None:
    made = returned("src_constant %v, [3, 4]", "tensor_create %out, float32, values, %v")
    assert (made.dtype, made.tolist()) == (np.float32, [[3, 4]])
    made = returned("src_constant %v, 3", "tensor_create %out, int8, arange, %v")
    assert (made.dtype, made.tolist()) == (np.int8, [[0, 1, 2]])
    for kind, value in (("ones", 1), ("zeros", 0)):
        made = returned("src_constant %v, [2, 3]", f"tensor_create %out, float64, {kind}, %v")
        assert (made.dtype, made.tolist()) == (np.float64, [[value] * 3] * 2)
    made = returned("tensor_create %out, int64, values, %x",
                    arrays={"x": np.array([True, False])})  # fmt: skip
    assert (made.dtype, made.tolist()) == (np.int64, [[1, 0]])
    made = returned("src_constant %v, [0.1]", "tensor_create %out, bfloat16, values, %v")
    assert (made.dtype.name, float(made[0, 0])) == ("bfloat16", 0.10009765625)


def test_tensors_are_padded_joined_and_shaped() -> None:
    lines = ("src_constant %n, 2", "src_constant %v, 7", "tensor_manipulate pad, %out, %x, %n, %v")
    np.testing.assert_array_equal(
        returned(*lines, arrays={"x": X}), np.pad(X, ((0, 0), (2, 0)), constant_values=7)
    )
    joined = returned("src_constant %a, -1", "tensor_combine concat, %out, [%x, %y, %x], %a",
                      arrays={"x": X, "y": X[:, :1]})  # fmt: skip
    np.testing.assert_array_equal(joined, np.concatenate([X, X[:, :1], X], 1))
    wide = returned(
        "src_constant %a, 1", "tensor_manipulate unsqueeze, %out, %x, %a", arrays={"x": X}
    )
    assert wide.shape == (2, 1, 3)
    flat = returned("src_constant %a, -1", "tensor_manipulate squeeze, %out, %x, %a",
                    arrays={"x": X[:, :1]})  # fmt: skip
    np.testing.assert_array_equal(flat, X[:, 0])


def test_tensors_are_looked_at() -> None:
    assert returned("tensor_info shape, %out, %x", arrays={"x": X}) == (2, 3)
    assert returned("src_constant %d, -1", "tensor_info size, %out, %x, %d", arrays={"x": X}) == 3
    assert returned("tensor_info item, %out, %x", arrays={"x": X[:1, :1]}) == 1.5
    assert (
        refused('res_load_array %x, "x"\ntensor_info item, %y, %x', arrays={"x": X}).code == "NAC91"
    )


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_tensors_are_taken_apart(rank: int) -> None:
    x = np.arange(2**rank, dtype=np.float32).reshape([2] * rank)
    made = returned("src_constant %i, 1", "tensor_extract %out, %x, %i", arrays={"x": x})
    np.testing.assert_array_equal(made, x[1] if rank == 1 else x[0, 1])
    last = returned("src_constant %i, -1", "tensor_extract %out, %x, %i", arrays={"x": x})
    np.testing.assert_array_equal(last, made)
    assert refused('src_constant %i, 2\nres_load_array %x, "x"\ntensor_extract %y, %x, %i',
                   arrays={"x": x}).code == "NAC91"  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("src_constant %v, [0.5]\ntensor_create %t, int64, values, %v", "a value is no int64"),
        ("src_constant %v, 9223372036854775807.0\ntensor_create %t, int64, values, %v",
         "a value is no int64"),
        ("src_constant %v, [300]\ntensor_create %t, uint8, values, %v", "a value is no uint8"),
        ("src_constant %v, -1\ntensor_create %t, int64, arange, %v", "the end is -1"),
        ("src_constant %v, [2, -1]\ntensor_create %t, int64, ones, %v", "of the shape is -1"),
        ("src_constant %v, 1\ntensor_manipulate squeeze, %t, %v, %v", "expected one with an axis"),
        ("src_constant %v, [1, 2]\nsrc_constant %a, 0\ntensor_manipulate squeeze, %t, %v, %a",
         "axis 0 has size 2, expected 1"),
        ("src_constant %a, 0\ntensor_combine concat, %t, [], %a", "there is nothing to join"),
        ("src_constant %a, 0\nsrc_constant %b, [1]\nsrc_constant %c, [0.5]\n"
         "tensor_combine concat, %t, [%b, %c], %a", "value 1 is an array of float32"),
        ("src_constant %a, 0.5\nloop_start %a\nx: loop_end x", "expected a whole number"),
        ("src_constant %a, [1, 2]\nbranch_if %a, x\nx: serialize %b, %a, png", "the image is"),
    ],
)  # fmt: skip
def test_tensors_that_are_refused(lines: str, message: str) -> None:
    found = refused(lines)
    assert found.code == "NAC91"
    assert message in found.message


# Control


def test_loops_nest_and_are_left() -> None:
    text = """
        src_user_prompt %n, int, "n"
        src_constant %m, 3
        src_constant %sum, 0
        src_constant %one, 1
        src_constant %limit, 10
        loop_start %n
    a:  loop_start %m
    b:  math_binary add, %sum, %sum, %one
        logic_compare eq, %stop, %sum, %limit
        branch_if %stop, out
        loop_end b
        loop_end a
    out: return [%sum]
    """
    assert [run(text, {"n": n}) for n in (-1, 0, 1, 2, 3, 9)] == [[0], [0], [3], [6], [9], [10]]


def test_a_branch_out_of_a_loop_leaves_it() -> None:
    text = """
        src_constant %two, 2
        src_constant %n, 0
        src_constant %one, 1
        loop_start %two
    a:  loop_start %two
    b:  branch_if %one, c
        loop_end b
    c:  math_binary add, %n, %n, %one
        loop_end a
        return [%n]
    """
    assert run(text) == [2]


def test_breaking_a_loop() -> None:
    text = """
        src_constant %many, 100
        src_constant %i, 0
        src_constant %one, 1
        src_constant %five, 5
        loop_start %many
    a:  math_binary add, %i, %i, %one
        logic_compare eq, %stop, %i, %five
        break_loop_if %stop, out
        loop_end a
    out: return [%i]
    """
    assert run(text) == [5]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x: loop_end x", "NAC92"),
        ("src_constant %a, 1\nbreak_loop_if %a, x\nx: halt", "NAC92"),
        ("sys_copy %a, %b", "NAC90"),
        ("src_constant %a, 1\nres_unload slot, %a\nreturn [%a]", "NAC90"),
        ("model_run_static 0, [], []", "NAC90"),
        ("res_unload model, 3", "NAC90"),
        ("src_constant %a, 1\npreproc_encode %a, %a, %b", "NAC91"),
    ],
)
def test_what_is_not_there(text: str, code: str) -> None:
    assert refused(text).code == code


def test_the_end() -> None:
    assert run("") == []
    assert run("src_constant %a, 1\nhalt\nreturn [%a]") == []
    assert run("src_constant %a, 1\nreturn [%a, %a]") == [1, 1]
    assert run("src_constant %a, 1") == []


# Texts


@pytest.mark.parametrize(
    ("template", "values", "wanted"),
    [
        ("{} {}", ('"a"', "2"), "a 2"), ("{1}{0}{1}", ('"a"', '"b"'), "bab"),
        ("{{{0:.2f}}}", ("0.125",), "{0.12}"), ("{:>5}|{:<5}|{:^5}", ('"a"', '"b"', '"c"'),
        "    a|b    |  c  "), ("{:05d}", ("42",), "00042"), ("{:,.1%}", ("12.5",), "1,250.0%"),
        ("{}", ("[1, 2]",), "[1, 2]"), ("{}", ("null",), "None"), ("", (), ""),
    ],
)  # fmt: skip
def test_templates(template: str, values: tuple[str, ...], wanted: str) -> None:
    lines = [f"src_constant %v{i}, {value}" for i, value in enumerate(values)]
    slots = ", ".join(f"%v{i}" for i in range(len(values)))
    assert returned(*lines, f"string_format %out, {json.dumps(template)}, [{slots}]") == wanted


@pytest.mark.parametrize(
    "template",
    ["{0.__class__}", "{0[0]}", "{0!r}", "{", "}", "{0", "{a}", "{0:{0}}", "{0:1000000000}", "{3}",
     "{}{0}", "{0:.9999f}", "{:n}", "{:c}", "{ }", "{-1}", "{0:d}", "{\uff10}",
     "{0:\u0664\u0664d}"],
)  # fmt: skip
def test_templates_that_reach_for_more(template: str) -> None:
    found = refused(f'src_constant %a, "x"\nstring_format %b, {json.dumps(template)}, [%a]')
    assert found.code == "NAC93"


def test_values_as_text_and_json() -> None:
    assert returned("src_constant %v, [1, 2]", "serialize %out, %v, text") == "[1, 2]"
    assert json.loads(returned("serialize %out, %x, json", arrays={"x": X})) == X.tolist()
    assert returned('src_constant %v, "é\\n"', "serialize %out, %v, json") == '"é\\n"'
    assert returned("src_constant %v, null", "serialize %out, %v, json") == "null"
    assert refused("src_constant %v, nan\nserialize %b, %v, json").code == "NAC91"
    long = returned("src_constant %n, 100000", "tensor_create %v, int64, arange, %n",
                    "serialize %out, %v, text")  # fmt: skip
    assert len(long) < 200


def test_streams_are_collected() -> None:
    machine = Machine(
        assemble("""
        src_constant %a, "x"
        src_constant %n, 1.5
        io_write %a, stdout, %n, write
        io_write %n, stderr, %n, plain
        sys_debug_print %a, "a = "
        """)
    )
    assert machine.run() == []
    assert [(w.stream, w.text) for w in machine.written] == [
        ("stdout", "x\n"), ("stderr", "1.5"), ("debug", "a = x\n"),
    ]  # fmt: skip


# Models and tokenizers

CALL = """
    res_load_model 3, "m"
    res_load_extern %t, tokenizer, 3
    src_constant %text, "abc"
    preproc_encode %t, %text, %ids
    preproc_get_id %t, "c", %c
    preproc_decode %t, %ids, %again
    preproc_decode %t, %c, %one
    tensor_create %x, int64, values, %ids
    model_run_static 3, [%x], [%y]
    return [%ids, %c, %again, %one, %y]
"""


def test_models_and_tokenizers_are_called() -> None:
    ids, c, again, one, y = run(CALL, models={"m": Successor()}, tokenizer=Alphabet())
    assert (ids, c, again, one) == ((0, 1, 2), 2, "abc", "c")
    assert y.argmax(-1).tolist() == [[1, 2, 3]]
    for name in ("token_id", "token_to_id"):
        named = type("Named", (Alphabet,), {name: lambda self, token: 7})()
        assert run(CALL, models={"m": Successor()}, tokenizer=named)[1] == 7
    by_model = run(CALL, models={"m": Successor()}, tokenizer={3: Alphabet()})
    assert by_model[:4] == [ids, c, again, one]


class Broken:
    inputs = ("ids",)

    def __init__(self, made: Any) -> None:  # noqa: ANN401
        self.made = made

    def _do(self, _: object) -> Any:  # noqa: ANN401
        if isinstance(self.made, Exception):
            raise self.made
        return self.made

    run = encode = decode = token_to_id = _do


@pytest.mark.parametrize("made", [ValueError("no\nway"), KeyError(), RecursionError(), None, 3, "x",
                                  object(), [object()], [2**80], [None]])  # fmt: skip
def test_callees_that_fail(made: Any) -> None:  # noqa: ANN401
    first = refused(CALL, models={"m": Broken(made)}, tokenizer=Alphabet())
    assert first.code in ("NAC97", "NAC91")
    assert "`model_run_static`" in first.message
    second = refused(CALL, models={"m": Successor()}, tokenizer=Broken(made))
    assert second.code == "NAC97"
    assert "`preproc_encode`" in second.message


def test_what_a_callee_finds_itself_follows() -> None:
    said = InputError([NAC46.at(whole_file("m.nac"), "input `x` is no array")])
    for model, tokenizer in ((Broken(said), Alphabet()), (Successor(), Broken(said))):
        with pytest.raises(InputError) as caught:
            run(CALL, models={"m": model}, tokenizer=tokenizer)
        assert [d.code for d in caught.value.diagnostics] == ["NAC97", "NAC46"]


def test_models_and_tokenizers_that_are_missing() -> None:
    assert refused(CALL).code == "NAC94"
    assert refused(CALL, models={"m": Successor()}).code == "NAC90"
    assert refused(CALL.replace("[%x]", "[%x, %x]"), models={"m": Successor()},
                   tokenizer=Alphabet()).code == "NAC91"  # fmt: skip
    assert refused(CALL.replace("[%y]", "[%y, %z]"), models={"m": Successor()},
                   tokenizer=Alphabet()).code == "NAC91"  # fmt: skip


class Counter:
    """A model with state: each run of a session counts on."""

    inputs = ()

    def session(self) -> Counter:
        return Counter()

    def __init__(self) -> None:
        self.runs = 0

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        self.runs += 1
        return [self.runs]


def test_a_session_lasts_for_one_run_of_the_plan() -> None:
    text = 'res_load_model 0, "m"\n' + "model_run_static 0, [], [%a]\n" * 3 + "return [%a]"
    machine = Machine(assemble(text), models={"m": Counter()})
    assert [machine.run(), machine.run()] == [[3], [3]]


@pytest.mark.parametrize(
    "line",
    ['model_train_step 0, mse, [%a], [%a], %b, %a, %0, "", ""', "model_save_weights 0, %t, none"],
)
def test_only_models_of_ours_are_trained(line: str) -> None:
    text = f'src_constant %a, 1\nsrc_constant %t, "m.nac"\nres_load_model 0, "m"\n{line}'
    assert refused(text, models={"m": Counter()}).code == "NAC87"


def test_a_finding_says_the_instruction_and_its_byte() -> None:
    raw = assemble("src_constant %a, 1\nsys_copy %b, %c")
    with pytest.raises(InputError) as caught:
        Machine(raw).run()
    (found,) = caught.value.diagnostics
    at = 12 + program_of(raw).starts[1]
    assert found.message == f"instruction 1 at byte {at}: `sys_copy`: nothing has written slot %2"
    assert found.data == {"offset": at, "section": "ORCH", "instruction": 1}
