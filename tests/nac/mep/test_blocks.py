"""Blocks of a model's OPS: cut anywhere they give what a whole run gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre import core, nac
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.mep import Machine, assemble
from nacre.nac.program.lower import lower
from nacre.nac.run.block_run import BlockError, BlockRun
from tests.effort import scaled
from tests.nac.mep.running import Successor, refused, run
from tests.nac.program.test_choices import SHAPE, two_layers
from tests.nac.training.test_trainer import CLASSES, RATE, X, perceptron

ROW = np.random.default_rng(3).normal(size=SHAPE).astype(np.float32)
CHOICE = two_layers()


def chosen() -> nac.NacModel:
    return nac.load(to_bytes(lower(CHOICE)))


def user_input(model: nac.NacModel) -> int:
    return model.inputs[0].instruction


def last_result(model: nac.NacModel) -> int:
    return model.program[-1].refs[0]


def as_written(model: nac.NacModel, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first output of a whole run, with the bits of blocks."""
    return model.session(optimise=False).run({"x": x})[0]


@settings(max_examples=scaled(20))
@given(cuts=st.sets(st.integers(0, 40)), branches=st.booleans())
def test_any_cut_into_blocks_gives_the_same_bytes(cuts: set[int], branches: bool) -> None:
    model, x = (chosen(), ROW) if branches else (perceptron(), X)
    around = model.blocks.homes  # no block begins in a branch
    starts = sorted({0, *(c for c in cuts if c < len(model.program) and c not in around)})
    blocks = BlockRun(model)
    blocks.set_result(user_input(model), x)
    for first, behind in zip(starts, [*starts[1:], len(model.program)], strict=True):
        blocks.run(first, behind - 1)
    np.testing.assert_array_equal(blocks.result(last_result(model)), as_written(model, x))


def test_a_plan_goes_round_a_block() -> None:
    """A loop whose end depends on what it computes, which OPS alone cannot say."""
    made = Builder()
    x = made.input("x", "f32", (4,))
    doubled = made.add("BinOp", x, x, op="Add")
    total = made.add("Sum", doubled, axes=(0,), keepdims=False)
    is_large = made.add("Compare", total, made.constant(np.float32(100.0)), op="Gt")
    module = made.module(doubled, is_large)
    model = nac.load(to_bytes(lower(module)))
    entry, (value, stop) = user_input(model), model.program[-1].refs
    text = f"""
            src_user_prompt %x, str, "x"
            src_constant %most, 50
            res_load_model 0, "m"
            loop_start %most
    again:  block_set 0, {entry}, %x
            block_run 0, 0, {len(model.program) - 1}
            block_get 0, {value}, %x
            block_get 0, {stop}, %stop
            break_loop_if %stop, done
            loop_end again
    done:   return [%x]
    """
    (found,) = run(text, {"x": np.ones(4, np.float32)}, models={"m": model})
    expected = np.ones(4, np.float32)
    while expected.sum() <= 100:
        (expected, _) = core.evaluate(module, {"x": expected})
    np.testing.assert_array_equal(found, expected)


def test_a_result_is_replaced_and_what_follows_runs_again() -> None:
    model = perceptron()
    blocks = BlockRun(model)
    blocks.set_result(user_input(model), X)
    blocks.run(0, len(model.program) - 1)
    relu = next(at for at, one in enumerate(model.program) if one.name == "core.Relu")
    before = blocks.result(last_result(model))
    blocks.set_result(relu, np.zeros_like(blocks.result(relu)))
    blocks.run(relu + 1, len(model.program) - 1)
    after = blocks.result(last_result(model))
    np.testing.assert_array_equal(after, np.zeros_like(after))  # biases are zero
    assert before.any()


def test_results_belong_to_who_gets_them() -> None:
    model = perceptron()
    blocks = BlockRun(model)
    blocks.set_result(user_input(model), X)
    blocks.run(0, len(model.program) - 1)
    blocks.result(last_result(model))[:] = 7
    assert not (blocks.result(last_result(model)) == 7).any()


def test_blocks_have_the_weights_that_training_left() -> None:
    model = perceptron()
    text = f"""
        src_user_prompt %x, str, "x"
        src_user_prompt %classes, str, "classes"
        src_constant %rate, {RATE}
        res_load_model 0, "m"
        block_set 0, {user_input(model)}, %x
        block_run 0, 0, {len(model.program) - 1}
        model_train_step 0, cross_entropy, [%x], [%classes], %loss, %rate, %0, "", ""
        model_run_static 0, [%x], [%whole]
        block_set 0, {user_input(model)}, %x
        block_run 0, 0, {len(model.program) - 1}
        block_get 0, {last_result(model)}, %scores
        return [%whole, %scores]
    """
    whole, scores = run(text, {"x": X, "classes": CLASSES}, models={"m": model})
    np.testing.assert_allclose(scores, whole, rtol=1e-5, atol=1e-6)
    assert not np.allclose(scores, as_written(model, X), rtol=1e-5, atol=1e-6)


def branch_of(model: nac.NacModel) -> int:
    return next(iter(model.blocks.branches))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (lambda m: (5, 4), "ends before it begins"),
        (lambda m: (0, len(m.program)), "there is no instruction"),
        (lambda m: (branch_of(m), branch_of(m) + 1), "cuts the branches"),
        (lambda m: (branch_of(m) + 1, len(m.program) - 1), "lies in a branch"),
        (lambda m: (user_input(m), user_input(m)), "has not been run"),
        (lambda m: (branch_of(m), len(m.program) - 1), "has not been run, which instruction"),
    ],
)  # fmt: skip
def test_a_block_that_cannot_be_run(block: Any, message: str) -> None:  # noqa: ANN401
    model = chosen()
    with pytest.raises(BlockError, match=message):
        BlockRun(model).run(*block(model))
    first, last = block(model)
    found = refused(f'res_load_model 0, "m"\nblock_run 0, {first}, {last}', models={"m": model})
    assert found.code == "NAC91"
    assert "block_run" in found.message


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("block_run 0, 0, 0", "NAC90"),
        ('res_load_model 0, "other"\nblock_run 0, 0, 0', "NAC87"),
        ('res_load_model 0, "m"\nblock_get 0, 999, %x', "NAC91"),
        ('res_load_model 0, "m"\nblock_get 0, 1, %x', "NAC91"),
        ('res_load_model 0, "m"\nblock_run 0, 4294967296, 0', "NAC83"),
        ('res_load_model 0, "m"\nsrc_constant %x, [1, 2]\nblock_set 0, {input}, %x', "NAC97"),
        ('res_load_model 0, "m"\nsrc_constant %x, "text"\nblock_set 0, {input}, %x', "NAC91"),
    ],
)
def test_what_plans_do_wrong_with_blocks(lines: str, code: str) -> None:
    model = perceptron()
    text = lines.replace("{input}", str(user_input(model)))
    assert refused(text, models={"m": model, "other": Successor()}).code == code


def test_an_output_is_no_result() -> None:
    model = perceptron()
    blocks = BlockRun(model)
    with pytest.raises(BlockError, match="is an output"):
        blocks.result(len(model.program) - 1)


def test_memory_of_blocks_is_given_back() -> None:
    """A loop over a block does not grow: what is replaced is let go."""
    model = perceptron()
    text = f"""
            src_user_prompt %x, str, "x"
            src_constant %n, 2000
            res_load_model 0, "m"
            loop_start %n
    again:  block_set 0, {user_input(model)}, %x
            block_run 0, 0, {len(model.program) - 1}
            loop_end again
            block_get 0, {last_result(model)}, %y
            return [%y]
    """
    machine = Machine(assemble(text), models={"m": model}, max_bytes=1 << 20)
    (found,) = machine.run({"x": X})
    np.testing.assert_array_equal(found, as_written(model, X))
    assert machine.peak_bytes < 1 << 14


def test_an_output_is_no_place_for_a_result() -> None:
    model = chosen()
    with pytest.raises(BlockError, match="is an output; set the results that it names"):
        BlockRun(model).set_result(len(model.program) - 1, ROW)
