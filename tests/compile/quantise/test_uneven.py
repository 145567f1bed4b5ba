"""Parts of very different size that are joined: in floats where somebody has something of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import nacre
from nacre.compile.quantise.observers import OBSERVERS
from nacre.compile.quantise.quantiser import Quantised
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.quantise.networks import convolution, named, numbers, samples, sqnr, stored_run
from tests.compile.quantise.test_forms import network, opcodes, quantised
from tests.compile.quantise.test_sharing import linear

pytestmark = pytest.mark.sampled(2)  # together they take long

ROWS, BOXES, SCORES = 64, 4, 5


def part(builder: Builder, x: int, start: int, end: int) -> int:
    """Columns of a matrix."""
    rows = builder.type_of(x).shape[0]
    return builder.add("Slice", x, starts=(0, start), ends=(rows, end), steps=(1, 1))


def head(builder: Builder, x: int, pixels: float = 320.0, seed: int = 3) -> int:
    """Boxes in pixels beside scores."""
    y = builder.add("Unary", linear(builder, x, BOXES + SCORES, seed), op="Sigmoid")
    boxes, scores = part(builder, y, 0, BOXES), part(builder, y, BOXES, BOXES + SCORES)
    wide = builder.add("BinOp", boxes, builder.constant(np.float32(pixels)), op="Mul")
    return builder.add("Concat", wide, scores, axis=1)


def two_heads(builder: Builder, x: int) -> int:
    moved = [
        builder.add("Reshape", head(builder, x, seed=seed), new_shape=(1, ROWS, BOXES + SCORES))
        for seed in (3, 13)
    ]
    joined = builder.add("Concat", *moved, axis=1)
    return builder.add("Reshape", joined, new_shape=(2 * ROWS, BOXES + SCORES))


def kept(module: Module, made: Quantised, columns: slice) -> float:
    """Signal over noise of some columns of the first output, on inputs that were not seen."""
    pairs = [
        (evaluate(module, sample)[0][..., columns], stored_run(made, sample)[0][..., columns])
        for sample in samples(module, 3, seed=900)
    ]
    return sqnr([a for a, _ in pairs], [b for _, b in pairs])


def joined_in(made: Quantised) -> set[str]:
    """The element types of all that is joined."""
    return {name for name in opcodes(made) if name.startswith("Concat")}


@pytest.mark.parametrize("observer", OBSERVERS)
def test_scores_beside_boxes_are_as_good_as_alone(observer: str) -> None:
    module = network(head, (ROWS, 12))
    made = quantised(module, observer=observer)
    assert joined_in(made) == {"Concat:f16"}
    assert made.outputs[0].elem == "f16"
    alone = network(lambda b, x: part(b, head(b, x, 1.0), BOXES, BOXES + SCORES), (ROWS, 12))
    least = kept(alone, quantised(alone, observer=observer), slice(None))
    assert kept(module, made, slice(BOXES, None)) > least - 0.5
    assert kept(module, made, slice(BOXES)) > 30


def test_what_others_see_of_an_output_does_not_bring_its_parts_into_one_scale() -> None:
    """As detectors end: all rows are an output, and so are the best class and how sure it is."""
    builder = Builder()
    both = two_heads(builder, builder.input("x", "f32", (ROWS, 12)))
    classes = part(builder, both, BOXES + 1, BOXES + SCORES)
    best = builder.add("ArgMax", classes, axis=1)
    most = builder.add("Reduce", classes, op="Max", axes=(1,), keepdims=True)
    sure = builder.add("BinOp", most, part(builder, both, BOXES, BOXES + 1), op="Mul")
    module = builder.module(both, sure, best)
    made = quantised(module)
    assert joined_in(made) == {"Concat:f16"}
    assert kept(module, made, slice(BOXES, None)) > 30
    for sample in samples(module, 3, seed=900):
        wanted, found = evaluate(module, sample), stored_run(made, sample)
        assert sqnr(wanted[1], found[1]) > 30
        assert np.mean(wanted[2] == found[2]) > 0.9
    plan = nacre.compile(module, "npm4k", "i8", calibration=samples(module, 24))
    assert plan.validate(sample).ok


def test_a_part_that_is_taken_back_has_its_own_scale() -> None:
    def make(builder: Builder, x: int) -> int:
        both = head(builder, x)
        return linear(builder, part(builder, both, BOXES, BOXES + SCORES), 8, 23)

    module = network(make, (ROWS, 12))
    made = quantised(module)
    assert joined_in(made) == {"Concat:f16"}
    (entered,) = (op for op in made.legal.module.operations if op.opcode == "QLinear" and
                  op.type.shape == (ROWS, 8))  # fmt: skip
    assert float(str(entered.attributes["x_scale"])) < 2 / 255
    assert kept(module, made, slice(None)) > 30


def _inner(builder: Builder, x: int, spread: float) -> int:
    parts = [convolution(builder, x, 4, 1), convolution(builder, x, 4, 5, spread=spread)]
    return builder.add("Concat", *parts, axis=3)


@pytest.mark.parametrize("spread", [3.0, 40.0])
def test_a_product_takes_all_parts_in_one_scale_so_they_are_joined_in_it(spread: float) -> None:
    def make(builder: Builder, x: int) -> int:
        y = builder.add("ReluNan", _inner(builder, x, spread))
        return convolution(builder, y, 4, 9)

    made = quantised(network(make))
    assert joined_in(made) == {"Concat:i8"}
    assert not [name for name in opcodes(made) if name.endswith(":f16")]


@pytest.mark.parametrize(("spread", "elem"), [(3.0, "i8"), (40.0, "f16")])
def test_parts_of_about_the_same_size_share_a_scale(spread: float, elem: str) -> None:
    made = quantised(network(lambda b, x: _inner(b, x, spread)))
    assert joined_in(made) == {f"Concat:{elem}"}


def _zeros(builder: Builder, x: int) -> int:
    far = builder.add("BinOp", x, builder.constant(np.float32(1e3)), op="Sub")
    return builder.add("ReluNan", far)


def _ones(builder: Builder, x: int) -> int:
    """A computed value that is the same number everywhere."""
    return builder.add("Clip", x, min=1e-3, max=1e-3)


def _constant(builder: Builder, x: int) -> int:
    return builder.constant(numbers(5, *builder.type_of(x).shape, spread=1e-3))


@pytest.mark.parametrize("small", [_zeros, _ones, _constant])
def test_a_part_that_says_nothing_needs_no_floats(small: Callable[[Builder, int], int]) -> None:
    def make(builder: Builder, x: int) -> int:
        y = linear(builder, x, 16, 3, spread=20.0)
        return builder.add("Concat", y, small(builder, y), axis=1)

    assert joined_in(quantised(network(make, (ROWS, 12)))) == {"Concat:i8"}


def test_parts_beyond_f16_stay_integers() -> None:
    module = network(lambda b, x: head(b, x, 1e6), (ROWS, 12))
    made = quantised(module)
    assert joined_in(made) == {"Concat:i8"}
    assert all(
        np.isfinite(array).all() for s in samples(module, 3) for array in stored_run(made, s)
    )


def test_a_function_of_what_is_joined_is_on_the_way_to_an_output() -> None:
    strides = np.repeat(np.array([8.0, 1.0], np.float32), [BOXES, SCORES])

    def make(builder: Builder, x: int) -> int:
        return builder.add("BinOp", head(builder, x, 40.0), builder.constant(strides), op="Mul")

    module = network(make, (ROWS, 12))
    made = quantised(module)
    assert joined_in(made) == {"Concat:f16"}
    assert kept(module, made, slice(BOXES, None)) > 30


def _chain(builder: Builder, parts: Sequence[int]) -> int:
    whole = parts[0]
    for other in parts[1:]:
        whole = builder.add("Concat", whole, other, axis=1)
    return whole


def test_parts_that_are_joined_one_by_one() -> None:
    """Each is twice as large as the one before it, and the last 128 times as large as the first."""
    builder = Builder()
    x = builder.input("x", "f32", (ROWS, 12))
    parts = [linear(builder, x, 4, 7 + 2 * at, spread=2.0**at) for at in range(8)]
    module = named(builder.module(_chain(builder, parts)))
    made = quantised(module)
    assert made.outputs[0].elem == "f16"
    assert kept(module, made, slice(4)) > 25


def test_the_same_model_gives_the_same_module() -> None:
    module = network(two_heads, (ROWS, 12))
    assert str(quantised(module)) == str(quantised(module))
