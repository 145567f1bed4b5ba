"""Activations that are spelt out become what they are, and what was right stays right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.compile.legalise.stage import legalise
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx_export.export import to_onnx
from nacre.core.passes.inference import INFERENCE, optimise
from nacre.core.passes.runner import run_passes
from tests.core.onnx_export.running import session_of
from tests.core.rewrite.spelt_activations import ACTIVATIONS, Spelling
from tests.core.rewrite.test_inference import Array, Chain, opcodes, require_kept
from tests.core.rewrite.test_recover import exchange

pytestmark = pytest.mark.sampled(2)  # together they take long

spellings = pytest.mark.parametrize(("spelt", "named"), ACTIVATIONS.values(), ids=list(ACTIVATIONS))
# Where powers of e leave the floats, and beyond; x * x * x leaves them later.
EDGES = (0.0, 1e-30, 1e-4, 0.5, 1.0, 2.999, 3.0, 5.5, 11.5, 17.0, 87.0, 88.0, 88.8, 89.0, 104.0)
BEYOND = (1e3, 7e4, 1e13, 1e19, 1e37, 3e38, np.inf)
EXTREMES = np.array([*EDGES, *BEYOND, *np.negative(EDGES), *np.negative(BEYOND), np.nan])


def module_of(spelt: Spelling, *shape: int) -> Module:
    chain = Chain(*(shape or (2, 4, 8)))
    return chain.builder.module(spelt(chain))


@pytest.mark.sampled(3)
@spellings
def test_a_spelling_is_recovered(spelt: Spelling, named: Spelling) -> None:
    module, expected = module_of(spelt), module_of(named)
    optimised = optimise(module)
    assert opcodes(optimised) == opcodes(optimise(expected))
    require_kept(module, optimised)
    assert opcodes(legalise(module, "f16").module) == opcodes(legalise(expected, "f16").module)


@pytest.mark.sampled(3)
@spellings
def test_operands_may_stand_in_either_order(spelt: Spelling, named: Spelling) -> None:
    module, expected = module_of(spelt), sorted(opcodes(module_of(named)))
    for at in (None, *range(len(module.operations))):
        recovered = run_passes(exchange(module, at), INFERENCE)
        assert sorted(opcodes(recovered)) == expected, at


def require_near(found: Array, spelt: Array) -> None:
    """Near what is spelt out wherever that is finite, a little more where digits cancel in it."""
    counts = np.isfinite(spelt)
    assert counts.sum() > 20
    np.testing.assert_allclose(found[counts], spelt[counts], rtol=2e-5, atol=2e-6)


@spellings
def test_what_was_finite_stays_what_it_was(spelt: Spelling, named: Spelling) -> None:
    module = module_of(spelt, EXTREMES.size)
    inputs = {"x": EXTREMES.astype(np.float32)}
    with np.errstate(all="ignore"):
        (found,), (expected,) = evaluate(optimise(module), inputs), evaluate(module, inputs)
    require_near(found, expected)
    assert np.isnan(found[-1]) or np.isfinite(expected[-1])


@pytest.mark.sampled(6)
@spellings
def test_onnxruntime_has_the_same(spelt: Spelling, named: Spelling, tmp_path: Path) -> None:
    module = module_of(spelt, EXTREMES.size)
    to_onnx(module, tmp_path / "m.onnx")
    inputs = {"x": EXTREMES.astype(np.float32)}
    (expected,) = session_of(tmp_path / "m.onnx").run(None, inputs)
    with np.errstate(all="ignore"):
        (found,) = evaluate(optimise(module), inputs)
    require_near(found, np.asarray(expected))


@pytest.mark.parametrize(
    "name",
    ["sigmoid by division, neg", "silu by division, times", "quick gelu", "softplus", "mish",
     "hard swish, min of relu, (x g) n", "gelu by_factored_square, (x / n) g"],
)  # fmt: skip
def test_a_plan_at_f16_validates(name: str) -> None:
    module = module_of(ACTIVATIONS[name][0], 4, 64)
    x = np.linspace(-12, 12, 256, dtype=np.float32).reshape(4, 64)
    assert nacre.compile(module, "npm4k").validate({"x": x}).ok


def test_a_gate_of_another_value_stays() -> None:
    chain = Chain(2, 8)
    other = chain.unary("Sin", chain.x)
    gate = chain.op(
        "Add", chain.builder.add("Exp", chain.builder.add("Neg", other)), chain.number(1.0)
    )
    module = chain.builder.module(chain.op("Div", chain.x, gate))
    assert opcodes(optimise(module)) == opcodes(module)


@pytest.mark.parametrize("number", [0.99, 1.0001, 2.0])
def test_a_number_that_is_not_one_stays(number: float) -> None:
    chain = Chain(2, 8)
    power = chain.builder.add("Exp", chain.builder.add("Neg", chain.x))
    total = chain.op("Add", power, chain.number(number))
    log = chain.builder.add("Log", total)
    module = chain.builder.module(chain.op("Div", chain.number(1.0), total), log)
    assert opcodes(optimise(module)) == opcodes(module)


def test_a_logarithm_that_is_part_of_a_loss_keeps_its_steps() -> None:
    """Log(1 + Exp(-|x|)) is as short as it can be."""
    chain = Chain(2, 8)
    power = chain.builder.add("Exp", chain.builder.add("Neg", chain.unary("Abs", chain.x)))
    module = chain.builder.module(chain.unary("Log1p", power))
    assert opcodes(optimise(module)) == opcodes(module)


def test_a_hard_sigmoid_alone_keeps_its_steps() -> None:
    """So that its sum can go into the bias of a product before it."""
    chain = Chain(2, 8)
    total = chain.op(
        "Add", chain.builder.add("MatMul", chain.x, chain.literal(8, 8)), chain.number(3.0)
    )
    held = chain.builder.add("Clip", total, min=0.0, max=6.0)
    module = chain.builder.module(chain.op("Div", held, chain.number(6.0)))
    assert opcodes(optimise(module)) == ["Linear", "Clip", "BinOp"]


def test_numbers_of_16_bits_are_as_near_as_they_can_be() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (2, 8))
    numbers = {n: builder.constant(np.array(n, np.float16)) for n in (1.0, 3.0, 1 / 6)}
    held = builder.add("Clip", builder.add("BinOp", x, numbers[3.0], op="Add"), min=0.0, max=6.0)
    scaled = builder.add("BinOp", builder.add("BinOp", x, held, op="Mul"), numbers[1 / 6], op="Mul")
    power = builder.add("Exp", builder.add("Neg", x))
    total = builder.add("BinOp", numbers[1.0], power, op="Add")
    module = builder.module(scaled, builder.add("BinOp", x, total, op="Div"))
    assert opcodes(optimise(module)) == ["HardSwish", "Silu"]
