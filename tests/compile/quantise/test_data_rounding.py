"""Weights of i8 rounded for data: beside the objective of the papers, term by term."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.quantise.quantiser import Quantised, quantise
from nacre.compile.quantise.rounding.adaptive_rounding import round_adaptively
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import CoreOperation, Module
from tests.compile.quantise.networks import (
    Array,
    Sample,
    convolution,
    legal,
    mobile,
    named,
    numbers,
    samples,
    stored_run,
)

NONE = frozenset({"gptq", "adaround"})


def correlated(count: int, depth: int, seed: int) -> Array:
    """Rows whose elements say much of each other, as those of a network do."""
    mixed = numbers(seed, count, 6) @ numbers(1, 6, depth) + numbers(seed, count, depth, spread=0.2)
    made: Array = np.maximum(mixed, 0).astype(np.float32)
    return made


def objective(weights: Array, rounded: Array, rows: Array) -> list[float]:
    """|W x - W~ x|^2 for each column, over rows, one at a time."""
    lost = [0.0] * len(weights)
    for row in rows.astype(np.float64):
        for column, (own, made) in enumerate(zip(weights, rounded, strict=True)):
            lost[column] += float(np.dot(own.astype(np.float64) - made, row)) ** 2
    return lost


def test_learned_roundings_go_up_or_down_and_lose_less_on_rows_that_were_not_seen() -> None:
    seen, unseen = correlated(300, 48, 3), correlated(60, 48, 4)
    steps = numbers(5, 8, 48, spread=30.0)
    made = round_adaptively(steps[None], (seen.T @ seen)[None])[0]
    assert np.isin(made - np.floor(steps), (0, 1)).all()
    assert (made != np.rint(steps)).any()
    ours, plain = (sum(objective(steps, own, unseen)) for own in (made, np.rint(steps)))
    assert ours < 0.6 * plain
    again = round_adaptively(steps[None], (seen.T @ seen)[None])[0]
    np.testing.assert_array_equal(made, again)


def test_groups_are_rounded_each_by_its_own_moments() -> None:
    rows = [correlated(100, 9, seed) for seed in (1, 2)]
    moments = np.stack([own.T @ own for own in rows])
    steps = numbers(3, 2, 4, 9, spread=20.0)
    both = round_adaptively(steps, moments)
    for at in range(2):
        alone = round_adaptively(steps[at : at + 1], moments[at : at + 1])
        np.testing.assert_array_equal(both[at], alone[0])


def test_inputs_that_say_nothing_leave_the_nearest() -> None:
    steps = numbers(3, 1, 4, 9, spread=20.0)
    made = round_adaptively(steps, np.zeros((1, 9, 9), np.float32))
    np.testing.assert_array_equal(made, np.rint(steps))


def one_product(kind: str) -> Module:
    """A product and nothing else."""
    builder = Builder()
    if kind == "linear":
        x = builder.input("x", "f32", (40, 24))
        y = builder.add("Linear", x, builder.constant(numbers(7, 10, 24)))
    else:
        x = builder.input("x", "f32", (1, 9, 9, 6))
        y = convolution(
            builder, x, 6 if kind == "depthwise" else 10, 7, depthwise=kind == "depthwise"
        )
    return named(builder.module(y))


def _data(module: Module, seed: int) -> list[Sample]:
    shape = module.input_types["x"].shape
    count, depth = int(np.prod(shape[:-1])), shape[-1]
    return [{"x": correlated(count, depth, seed + at).reshape(shape)} for at in range(4)]


def _product(made: Quantised) -> CoreOperation:
    return next(op for op in made.legal.module.operations if op.opcode in ("QConv", "QLinear"))


@pytest.mark.parametrize("kind", ["linear", "conv", "depthwise"])
@pytest.mark.parametrize("method", ["gptq", "adaround"])
def test_no_channel_of_a_product_loses_more_on_the_data_than_by_the_nearest(
    kind: str, method: str
) -> None:
    module = one_product(kind)
    data = _data(module, 20)
    rounded, nearest = (
        quantise(
            legal(module),
            data,
            source=module,
            accuracy_db=100,
            fallback=False,
            without=frozenset(without | {"bias"}),
        )
        for without in (NONE - {method}, NONE)
    )
    ours, plain = (_lost_channels(module, made, data) for made in (rounded, nearest))
    assert all(a <= b * (1 + 1e-5) for a, b in zip(ours, plain, strict=True))
    if (kind, method) != ("depthwise", "gptq"):
        assert sum(ours) < 0.9 * sum(plain)
    assert _product(rounded).attributes["w_scales"] == _product(nearest).attributes["w_scales"]


def _lost_channels(module: Module, made: Quantised, data: list[Sample]) -> list[float]:
    """What each channel loses by its weights, on the inputs as integers have them.

    The product runs in f32 with the model's weights and with those of the integers.
    """
    op = next(op for op in module.operations if op.opcode in ("Conv", "Linear"))
    stored = constant_array(made.legal.module.by_id[_product(made).operands[1]])
    scales = np.array(_product(made).attributes["w_scales"], np.float32)
    assert stored is not None
    reals = stored * (scales[:, None] if op.opcode == "Linear" else scales)
    (port,) = made.inputs
    total: Array = np.zeros(op.type.shape[-1])
    for sample in data:
        given = port.real(port.to_memory(sample["x"]))
        wanted, found = (_run(op, given, weights) for weights in (_weights(module, op), reals))
        total += np.square(found - wanted).reshape(-1, len(total)).sum(axis=0)
    return [float(one) for one in total]


def _weights(module: Module, op: CoreOperation) -> Array:
    found = constant_array(module.by_id[op.operands[1]])
    assert found is not None
    return found


def _run(op: CoreOperation, x: Array, weights: Array) -> Array:
    """A product without its bias, in f64."""
    builder = Builder()
    given = builder.input("x", "f64", x.shape)
    y = builder.add(op.opcode, given, builder.constant(weights.astype(np.float64)), **op.attributes)
    return np.asarray(evaluate(builder.module(y), {"x": x.astype(np.float64)})[0])


def test_networks_stay_as_near_on_inputs_that_were_not_seen() -> None:
    module = mobile(size=8, blocks=1)
    data, unseen = samples(module, 6), samples(module, 4, seed=80)
    noise = []
    for without in (NONE, frozenset[str]()):
        made = quantise(
            legal(module), data, source=module, accuracy_db=100, fallback=False, without=without
        )
        runs = [stored_run(made, one)[0] - evaluate(module, one)[0] for one in unseen]
        noise.append(sum(float(np.square(run).sum()) for run in runs))
    assert noise[1] < 1.5 * noise[0]
