"""Moves of elements: they cost what they move, and infinities stay where they are."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.legalise.forms.products.along import FEW, has_few_runs, runs_of
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.legalise.checking import legal_of, opcodes, require_same
from tests.compile.models import values

pytestmark = pytest.mark.sampled(2)  # together they take long


def _moved(opcode: str, shape: tuple[int, ...], **attributes: object) -> Module:
    builder = Builder()
    return builder.module(builder.add(opcode, builder.input("x", "f32", shape), **attributes))


def _padded(mode: str, shape: tuple[int, ...], *pads: int) -> Module:
    return _moved("Pad", shape, mode=mode, pads=pads)


CASES = {
    "flip-line": _moved("Flip", (1, 1, 200), axes=(2,)),
    "flip-rows": _moved("Flip", (2, 40, 3), axes=(1,)),
    "flip-wide-rows": _moved("Flip", (3, 33, 24), axes=(1,)),
    "flip-all": _moved("Flip", (2, 20, 17), axes=(0, 1, 2)),
    "reflect": _padded("reflect", (1, 2, 90), 0, 0, 30, 0, 0, 20),
    "reflect-whole": _padded("reflect", (1, 1, 40), 0, 0, 39, 0, 0, 39),
    "reflect-plane": _padded("reflect", (1, 24, 25, 3), 0, 18, 17, 0, 0, 19, 20, 0),
    "edge": _padded("edge", (1, 2, 90), 0, 0, 30, 0, 0, 20),
    "wrap": _padded("wrap", (1, 2, 90), 0, 0, 30, 0, 0, 20),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_an_infinity_stays_alone(name: str) -> None:
    module = CASES[name]
    (shape,) = (t.shape for t in module.input_types.values())
    x = values(shape, 3)
    x.flat[x.size // 3], x.flat[1] = np.inf, np.nan
    legal = require_same(module, feeds={"x": x})
    assert not opcodes(legal) & {"Linear", "MatMul"}
    bundle = nacre.compile(module, "npm4k")
    (found,) = bundle.run({"x": x}).values()
    (expected,) = evaluate(module, {"x": x})
    np.testing.assert_array_equal(found, expected.astype(np.float16).astype(np.float32))


def test_a_border_costs_what_it_has_not_the_square_of_the_line() -> None:
    short, long = (
        nacre.estimate(_padded("reflect", (1, 1, size), 0, 0, 200, 0, 0, 200), "npm4k")
        for size in (1000, 16000)
    )
    assert short.cycles is not None
    assert long.cycles is not None
    assert long.cycles < 4 * short.cycles
    assert long.bounds is not None
    assert sum(layer.macs for layer in long.layers) == 0


def _decoder(norm: bool) -> Module:
    """What a norm with channels first gives is enlarged, then convolved with channels last."""
    builder = Builder()
    y = builder.input("x", "f32", (1, 16, 12, 12))
    y = builder.add("Conv", y, builder.constant(values((16, 16, 3, 3), 1, 0.2)), pads=(1, 1, 1, 1))
    if norm:
        ones = builder.constant(np.ones(16, np.float32))
        y = builder.add("GroupNorm", y, ones, ones, groups=4)
    y = builder.add("ReluNan", y)
    y = builder.add("Resize", y, sizes=(1, 16, 24, 24), mode="nearest", coordinate="asymmetric")
    weights = builder.constant(values((8, 16, 3, 3), 2, 0.2))
    return builder.module(builder.add("Conv", y, weights, pads=(1, 1, 1, 1)))


def test_what_is_enlarged_is_turned_before() -> None:
    legal = require_same(_decoder(norm=True))
    by_id = legal.module.by_id
    (resize,) = (op for op in legal.module.operations if op.opcode == "Resize")
    assert resize.type.shape == (1, 24, 24, 16)
    assert by_id[resize.operands[0]].type.shape == (1, 12, 12, 16)
    plain, normed = (nacre.estimate(_decoder(norm), "npm4k").cycles for norm in (False, True))
    assert plain is not None
    assert normed is not None
    assert normed < 1.5 * plain


def _bordered(norm: bool) -> Module:
    """The same with borders that are reflected, as networks that paint have them."""
    builder = Builder()
    y = builder.input("x", "f32", (1, 16, 12, 12))
    for size in (3, 5):
        y = builder.add("Pad", y, mode="reflect", pads=(0, 0, size // 2, size // 2) * 2)
        y = builder.add("Conv", y, builder.constant(values((16, 16, size, size), size, 0.1)))
        if norm:
            ones = builder.constant(np.ones(16, np.float32))
            y = builder.add("InstanceNorm", y, ones, ones)
        sides = tuple(2 * side for side in builder.type_of(y).shape[2:])
        y = builder.add("Resize", y, sizes=(1, 16, *sides), mode="nearest", coordinate="asymmetric")
    y = builder.add("Pad", y, mode="reflect", pads=(0, 0, 1, 1, 0, 0, 1, 1))
    return builder.module(builder.add("Conv", y, builder.constant(values((8, 16, 3, 3), 2, 0.2))))


@pytest.mark.heavy("compiles networks")
def test_borders_come_behind_the_transposition_that_follows_them() -> None:
    legal = require_same(_bordered(norm=True))
    joined = [op for op in legal.module.operations if op.opcode == "Concat"]
    behind = [op.type.shape for op in joined if op.type.shape[-1] == 16]
    assert len(behind) == len(joined) == 6
    plain, normed = (nacre.estimate(_bordered(norm), "npm4k").cycles for norm in (False, True))
    assert plain is not None
    assert normed is not None
    assert normed < 2 * plain


def _mixed(shape: tuple[int, ...], sizes: tuple[int, ...], *order: int) -> Module:
    """A resize that mixes elements, and a transposition behind it."""
    builder = Builder()
    y = builder.add("Unary", builder.input("x", "f32", shape), op="Tanh")
    y = builder.add("Resize", y, sizes=sizes, mode="linear")
    return builder.module(builder.add("Transpose", y, permutation=order) if order else y)


MIXED = {
    "larger": _mixed((1, 12, 10, 24), (1, 48, 30, 24)),
    "smaller": _mixed((1, 48, 30, 24), (1, 12, 10, 24)),
    "both": _mixed((1, 12, 30, 24), (1, 48, 10, 24)),
    "channels first": _mixed((1, 12, 10, 24), (1, 48, 30, 24), 0, 3, 1, 2),
    "channels last": _mixed((1, 24, 12, 10), (1, 24, 48, 30), 0, 2, 3, 1),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_mixed_is_turned_while_it_is_small(name: str) -> None:
    module = MIXED[name]
    (given,) = (t.shape for t in module.input_types.values())
    made = module.by_id[module.outputs[0]].type.shape
    turned = [op for op in require_same(module).module.operations if op.opcode == "Transpose"]
    most = max((np.prod(op.type.shape) for op in turned), default=0)
    assert most < max(np.prod(given), np.prod(made))


def _naive_runs(places: list[int]) -> list[list[int]]:
    """Slices that run forward, place by place."""
    found: list[list[int]] = []
    left = list(places)
    while left:
        step = left[1] - left[0] if len(left) > 1 else 0
        count = 1
        while step >= 1 and count < len(left) and left[count] == left[0] + count * step:
            count += 1
        found.append([left[0], left[count - 1] + 1, step if count > 1 else 1])
        left = left[count:]
    return found


@pytest.mark.fuzz
@given(st.lists(st.integers(0, 6), max_size=12))
def test_runs_are_those_that_a_walk_over_the_places_finds(places: list[int]) -> None:
    assert runs_of(np.array(places, np.int64)).tolist() == _naive_runs(places)
    is_few = len(_naive_runs(places)) <= FEW
    assert has_few_runs(np.array(places, np.int64)) == is_few


def _convolved(opcode: str, kernel: int, pads: tuple[int, ...], **attributes: object) -> Module:
    builder = Builder()
    weights = values((kernel, kernel, 4, 4), 5)
    x = builder.input("x", "f32", (1, 6, 7, 4))
    made = builder.add(opcode, x, builder.constant(weights), layout="NHWC", pads=pads, **attributes)
    return builder.module(made)


HUGE = {
    "mean": _moved("AvgPool", (1, 2, 40, 40), kernel=(2001, 2001), pads=(1000,) * 4),
    "mean-with-padding": _moved("AvgPool", (1, 3, 64, 64), kernel=(2001, 2001),
                                 pads=(1000,) * 4, count_pad=True),
    "mean-rounded-up": _moved("AvgPool", (1, 3, 64, 64), kernel=(2001, 2001), strides=(7, 7),
                               pads=(1000,) * 4, ceil=True, count_pad=True),
    "mean-with-gaps": _moved("AvgPool", (1, 2, 1850, 20), kernel=(901, 2), dilations=(2, 3)),
    "maximum": _moved("MaxPool", (1, 1, 32, 32), kernel=(1501, 1501), pads=(1500,) * 4),
    "norm": _moved("LpPool", (1, 1, 2001, 201), kernel=(1000, 101), p=2),
    "of-a-line": _moved("MaxPool", (1, 1, 3_000_000), kernel=(3_000_000,)),
    "edge": _padded("edge", (1, 4, 8), 0, 0, 100_000, 0, 0, 100_000),
    "edge-of-channels": _padded("edge", (1, 4, 8), 0, 100_000, 0, 0, 0, 0),
    "reflect": _padded("reflect", (1, 2, 100_001), 0, 0, 0, 0, 0, 100_000),
    "wrap": _padded("wrap", (1, 4, 8), 0, 0, 0, 0, 0, 100_000),
    "constant": _padded("constant", (1, 4, 8), 0, 0, 0, 0, 0, 100_000),
    "convolution": _convolved("Conv", 3, (1500, 0, 0, 1500)),
    "transposed": _convolved("ConvTranspose", 3, (0, 0, 0, 0), strides=(100, 300)),
    "transposed-with-more": _convolved("ConvTranspose", 3, (0, 0, 0, 0), strides=(100, 100),
                                       output_padding=(99, 99)),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HUGE)
def test_huge_pads_and_strides_are_planned_at_once(name: str) -> None:
    began = time.process_time()
    with suppress(InputError):  # or refused
        nacre.compile(HUGE[name], "npm4k")
    assert time.process_time() - began < 5.0  # well below one on a quiet machine


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("opcode", "given"),
    [
        ("MaxPool", {"kernel": (701, 601), "pads": (700, 600, 600, 1), "strides": (3, 2)}),
        ("MaxPool", {"kernel": (3, 601), "pads": (2, 600, 0, 530), "strides": (1, 5)}),
        ("AvgPool", {"kernel": (701, 601), "pads": (700, 600, 600, 1), "strides": (3, 2)}),
        ("AvgPool", {"kernel": (3, 601), "pads": (2, 550, 1, 600), "strides": (1, 5)}),
        ("AvgPool", {"kernel": (35, 33), "pads": (30, 0, 20, 31), "count_pad": True}),
        ("LpPool", {"kernel": (35, 33), "pads": (30, 0, 20, 31), "p": 1}),
        ("AvgPool", {"kernel": (601, 3), "pads": (600, 2, 1, 1), "count_pad": True}),
        (
            "AvgPool",
            {
                "kernel": (601, 5),
                "pads": (600, 2, 1, 1),
                "strides": (5, 4),
                "count_pad": True,
                "ceil": True,
            },
        ),
        ("MaxPool", {"kernel": (601, 5), "pads": (600, 2, 1, 1), "strides": (4, 3), "ceil": True}),
        ("LpPool", {"kernel": (601, 5), "pads": (600, 2, 1, 1), "p": 2}),
        (
            "MaxPool",
            {"kernel": (9, 4), "dilations": (1, 2), "strides": (2, 1), "pads": (4, 3, 5, 1)},
        ),
        ("MaxPool", {"kernel": (6, 7), "dilations": (2, 1), "pads": (5, 3, 6, 1)}),
    ],
)
def test_large_windows_that_reach_far_over_the_border(
    opcode: str, given: dict[str, object]
) -> None:
    module = _moved(opcode, (1, 2, 9, 8), **given)
    validation = nacre.compile(module, "npm4k").validate({"x": values((1, 2, 9, 8), 2)})
    assert validation.ok, str(validation)


@pytest.mark.parametrize("name", ["mean-with-padding", "maximum", "mean-rounded-up"])
def test_padding_of_both_axes_is_never_there_at_once(name: str) -> None:
    (given,) = HUGE[name].input_types.values()
    pads = HUGE[name].operations[-1].attributes["pads"]
    assert isinstance(pads, tuple)
    padded = np.prod([size + 2 * pads[0] for size in given.shape[2:]]) * given.shape[1]
    legal = legal_of(HUGE[name])
    assert max(np.prod(op.type.shape) for op in legal.module.operations) < 0.6 * padded


def test_the_largest_of_many_places_with_gaps_is_found_in_few_steps() -> None:
    module = _moved("MaxPool", (1, 1, 2001, 8), kernel=(900, 2), dilations=(2, 3))
    assert len(require_same(module).module.operations) < 60  # of 900 places


@pytest.mark.parametrize("pads", [(0, 0, 1, 1), (0, 0, 3, 0), (2, 1, 2, 1)])
@pytest.mark.parametrize("kernel", [1, 2])
def test_windows_that_lie_wholly_in_the_padding(kernel: int, pads: tuple[int, ...]) -> None:
    x = values((1, 6, 7, 4), 2)
    assert nacre.compile(_convolved("Conv", kernel, pads), "npm4k").validate({"x": x}).ok
    more = _convolved("ConvTranspose", kernel, (0, 0, 0, 0), strides=(4, 4), output_padding=(3, 3))
    assert nacre.compile(more, "npm4k").validate({"x": x}).ok
