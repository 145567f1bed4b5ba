"""Calibration data that does not fit, and data in the forms that are accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.options import Calibration
from nacre.compile.quantise.quantiser import quantise
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values
from tests.compile.quantise.networks import legal, mobile, numbers, samples, sqnr, stored_run

pytestmark = pytest.mark.sampled(2)  # together they take long

IMAGE = (1, 16, 16, 3)


def found(
    calibration: Any,  # noqa: ANN401 - whatever somebody gives
    module: Module | None = None,
    **given: Any,  # noqa: ANN401
) -> list[tuple[str, str]]:
    """Codes and messages."""
    source = mobile() if module is None else module
    with pytest.raises(InputError) as caught:
        quantise(legal(source), calibration, source=source, **given)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def test_without_data_it_says_how_to_give_it() -> None:
    source = mobile()
    with pytest.raises(InputError) as caught:
        quantise(legal(source), None, source=source)
    (told,) = caught.value.diagnostics
    assert told.code == "CMP08"
    assert told.help is not None
    assert "`calibration={name: array}`" in told.help
    assert "calibration=" in told.help


def constant_model() -> Module:
    builder = Builder()
    x = builder.constant(values((3, 8), 1))
    return builder.module(builder.add("Linear", x, builder.constant(values((4, 8), 2))))


def counter_model() -> Module:
    """What it gives follows from the runs before alone."""
    builder = Builder()
    state = builder.input("s", "f32", (2, 3))
    one = builder.constant(np.ones((2, 3), np.float32))
    following = builder.add("Unary", builder.add("BinOp", state, one, op="Sub"), op="Tanh")
    builder.state("s", following, one)
    return builder.module(following)


@pytest.mark.parametrize("model", [constant_model, counter_model])
@pytest.mark.parametrize("calibration", [None, {}, [{}]])
def test_a_model_without_inputs_needs_no_data(
    model: Callable[[], Module], calibration: Calibration | None
) -> None:
    module = model()
    bundle = nacre.compile(module, "npm4k", "i8", calibration=calibration)
    (made,), (wanted,) = bundle.run().values(), module.session().run()
    assert np.abs(made - wanted).max() <= 0.02 * np.abs(wanted).max()
    assert nacre.estimate(module, "npm4k", "i8").fits


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ([], "no sample"),
        ({}, "`image` is missing"),
        ("images", "is a str"),
        (7, "is a int"),
        ([5], "sample 0: a int"),
        ([{"imagee": np.zeros(IMAGE, np.float32)}], "no input `imagee`"),
        ([{"image": np.zeros((1, 16, 16, 4), np.float32)}], "shape [1, 16, 16, 4], expected"),
        ([{"image": np.zeros(IMAGE, np.float64)}], "elements of float64, expected float32"),
        ([{"image": [[1], [1, 2]]}], "is no array"),
        ({"image": np.zeros((0, *IMAGE), np.float32)}, "has no sample"),
        ({"image": np.zeros((3, 16, 16), np.float32)}, "shape [16, 16] a sample"),
        ({"image": np.float32(1)}, "no array with an axis of samples"),
        ({"image": np.full((2, *IMAGE), np.nan, np.float32)}, "has nan at [0, 0, 0, 0, 0]"),
    ],
)
def test_data_that_does_not_fit(calibration: object, message: str) -> None:
    told = found(calibration)
    assert {code for code, _ in told} == {"CMP09"}
    assert any(message in text for _, text in told), told


def test_everything_that_is_wrong_is_told_at_once() -> None:
    wrong = [{"image": np.zeros((2, 2), np.float64)}, {}, {"other": np.zeros(1)}]
    told = [message for _, message in found(wrong)]
    assert len(told) == 5
    assert [m for m in told if m.startswith("sample 1")] == [
        "sample 1: input `image` is missing, expected tensor<f32[1, 16, 16, 3]>"
    ]


def test_inputs_with_different_numbers_of_samples() -> None:
    builder = Builder()
    a, b = (builder.input(name, "f32", (4,)) for name in "ab")
    module = builder.module(builder.add("BinOp", a, b, op="Add"))
    told = found({"a": numbers(1, 2, 4), "b": numbers(1, 3, 4)}, module)
    assert told == [("CMP09", "inputs have different numbers of samples: `a` 2, `b` 3")]


def test_a_stack_a_stack_without_the_batch_and_a_list_are_the_same() -> None:
    source = mobile()
    listed = samples(source, 3)
    stack = np.stack([sample["image"] for sample in listed])
    made = [
        str(quantise(legal(source), given, source=source))
        for given in (listed, {"image": stack}, {"image": stack[:, 0]})
    ]
    assert made[0] == made[1] == made[2]


def test_an_observer_and_a_precision_that_do_not_exist() -> None:
    data = samples(mobile(), 1)
    ((code, message),) = found(data, observer="mean")
    assert (code, message[:20]) == ("CMP10", "no observer `mean`, ")
    told = found(data, precision_map={"conv_5": "f8", "nothing": "f16"})
    assert {code for code, _ in told} == {"CMP10"}
    assert any("no layer is called `nothing`" in m for _, m in told)
    assert any("is `f8`, expected `f16`" in m for _, m in told)


def test_data_of_integers_reaches_the_module_in_its_narrow_type() -> None:
    """A source in i64 whose legal form has i32: the host casts, and so does calibration."""
    builder = Builder()
    index = builder.input("index", "i64", (3,))
    table = builder.constant(numbers(4, 10, 8))
    source = builder.module(builder.add("Gather", table, index))
    narrow = Builder()
    value = narrow.input("index", "i32", (3,))
    made = narrow.add("Gather", narrow.constant(numbers(4, 10, 8)), value)
    data = [{"index": np.array([1, 2, 9])}]
    quantised = quantise(legal(narrow.module(made)), data, source=source)
    (port,) = quantised.inputs
    assert (port.dtype, port.elem, port.scale) == ("i64", "i32", None)
    (rows,) = stored_run(quantised, data[0])
    assert sqnr(numbers(4, 10, 8)[[1, 2, 9]], rows) > 60


def table_model() -> Module:
    """Rows of a table by indices of 64 bits, times a matrix."""
    builder = Builder()
    at = builder.input("at", "i64", (4,))
    rows = builder.add("GatherAxis", builder.constant(numbers(1, 10, 8)), at, axis=0)
    return builder.module(builder.add("Linear", rows, builder.constant(numbers(2, 6, 8))))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2**40, "sample 1: `at` has 1099511627776 at [2], and the device holds it in i32, up to"),
        (10, "sample 1: "),
    ],
)
def test_indices_that_no_run_could_take(index: int, message: str) -> None:
    indices = np.zeros((2, 4), np.int64)
    indices[1, 2] = index
    with pytest.raises(InputError) as caught:
        nacre.compile(table_model(), "npm4k", "i8", calibration={"at": indices})
    (told,) = caught.value.diagnostics
    assert told.code == "CMP09"
    assert told.message.startswith(message)


def test_arrays_of_the_other_byte_order_are_read_as_they_are() -> None:
    source = mobile()
    data = {"image": np.stack([sample["image"] for sample in samples(source, 2)])}
    swapped = {"image": data["image"].astype(">f4")}
    made, other = (quantise(legal(source), given, source=source) for given in (data, swapped))
    assert made.legal.module == other.legal.module


def _stream() -> Module:
    """Two convolutions over time, each with what it has seen last as state."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 10, 8))
    past = builder.input("past", "f32", (1, 4, 8))
    seen = builder.add("Concat", past, x, axis=1)
    rows = builder.add("Slice", seen, starts=(0, 10, 0), ends=(1, 14, 8), steps=(1, 1, 1))
    builder.state("past", rows, builder.constant(numbers(9, 1, 4, 8, spread=3.0)))
    plane = builder.add("Reshape", seen, new_shape=(1, 14, 1, 8))
    weights = builder.constant(numbers(1, 5, 1, 8, 16, spread=0.2))
    y = builder.add("ReluNan", builder.add("Conv", plane, weights, layout="NHWC"))
    last = builder.constant(numbers(2, 3, 1, 16, 4, spread=0.2))
    return builder.module(builder.add("Conv", y, last, layout="NHWC"))


def test_state_goes_on_from_sample_to_sample_wherever_data_is_run() -> None:
    """Means are corrected by runs with the same states as those that they come from."""
    module = _stream()
    data = [{"x": numbers(20 + i, 1, 10, 8)} for i in range(8)]
    bundle = nacre.compile(module, "npm4k", "i8", calibration=data)
    assert not [note for note in bundle.manifest.notes if "kept in f16" in note]
    stored, real = bundle.session(), module.session()
    expected: list[Any] = []
    found: list[Any] = []
    for index in range(8):
        feed = {"x": numbers(40 + index, 1, 10, 8)}
        expected += real.run(feed)
        found += stored.run(feed).values()
    assert sqnr(expected, found) > 20


def test_the_last_digits_of_what_was_seen_change_scales_and_nothing_else_of_a_plan() -> None:
    """Sums come out in another order on another processor, and plans may not differ by more."""
    source = mobile(size=8, blocks=1)
    data = samples(source, 1)
    other = [{"image": data[0]["image"] * np.float32(1 + 4e-7)}]
    texts = [
        nacre.compile(source, "npm64k", "i8", calibration=given).program for given in (data, other)
    ]
    assert texts[0] != texts[1]
    assert len({re.sub(r"scale=[^,)]*", "", text) for text in texts}) == 1
