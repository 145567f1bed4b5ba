"""Plans that train: what they return, and the files that they write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.mep import Machine, assemble, shipped_plan
from nacre.nac.program.lower import lower
from nacre.nac.training.trainer import Trainer
from tests.nac.training.test_trainer import CLASSES, RATE, X, perceptron

ANSWERS = {"inputs": X, "classes": CLASSES, "steps": 8, "rate": RATE, "path": ""}


def expected_losses(steps: int) -> list[float]:
    trainer = Trainer(perceptron())
    return [trainer.step({"x": X}, [CLASSES], RATE) for _ in range(steps)]


def arrays(machine: Machine, given: dict[str, Any]) -> Any:  # noqa: ANN401
    """What a plan returns, whose values are of many types."""
    return machine.run(given)


def test_the_plan_that_comes_with_the_package(tmp_path: Path) -> None:
    machine = Machine(
        shipped_plan("train"), models={"model": perceptron()}, root=tmp_path, may_write=True
    )
    first, last, scores = arrays(machine, {**ANSWERS, "path": "trained.nac"})
    losses = expected_losses(8)
    assert first == pytest.approx(losses[0])
    assert last == pytest.approx(losses[-1])
    saved = nac.load(tmp_path / "trained.nac").session(optimise=False).run({"x": X})[0]
    np.testing.assert_allclose(saved, scores, rtol=1e-5, atol=1e-6)
    # Each run starts anew.
    assert machine.run({**ANSWERS, "steps": 0})[0] == pytest.approx(losses[0])


def test_scores_before_a_step() -> None:
    text = """
        src_user_prompt %x, str, "x"
        src_user_prompt %classes, str, "classes"
        src_constant %rate, 0.5
        res_load_model 0, "m"
        model_run_static 0, [%x], [%before]
        model_train_step 0, cross_entropy, [%x], [%classes], %loss, %rate, %scores, "", ""
        model_run_static 0, [%x], [%after]
        return [%before, %scores, %after]
    """
    machine = Machine(assemble(text), models={"m": perceptron()})
    before, scores, after = arrays(machine, {"x": X, "classes": CLASSES})
    np.testing.assert_allclose(scores, before, rtol=1e-5, atol=1e-6)
    assert not np.allclose(after, before)


@pytest.mark.parametrize(
    "quant", ["fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"]
)
def test_weights_are_written_in_a_quantisation(quant: str, tmp_path: Path) -> None:
    text = f'res_load_model 0, "m"\nsrc_constant %p, "q.nac"\nmodel_save_weights 0, %p, {quant}'
    Machine(assemble(text), models={"m": perceptron()}, root=tmp_path, may_write=True).run()
    expected, _ = nac.quantise(perceptron(), quant)
    assert (tmp_path / "q.nac").read_bytes() == nac.to_bytes(expected.file)


def test_what_a_plan_cannot_train() -> None:
    text = """
        src_user_prompt %x, str, "x"
        src_constant %rate, 0.5
        res_load_model 0, "m"
        model_train_step 0, cross_entropy, [%x], [%x], %loss, %rate, %0, "", ""
    """
    with pytest.raises(InputError) as refused:
        Machine(assemble(text), models={"m": perceptron()}).run({"x": X})
    assert [d.code for d in refused.value.diagnostics] == ["NAC97", "NAC55"]


def test_a_plan_reads_what_it_is_asked_to_do() -> None:
    plan = assemble("src_exec_mode %out\nreturn [%out]")
    assert Machine(plan).run() == ["infer"]
    assert Machine(plan, mode="train").run() == ["train"]
    with pytest.raises(ValueError, match="expected one of infer, train, infer_train"):
        Machine(plan, mode="learn")  # type: ignore[arg-type]


def test_a_plan_leaves_what_is_no_parameter(tmp_path: Path) -> None:
    made = Builder()
    x = made.input("x", "f32", (16, 6))
    rng = np.random.default_rng(3)
    weight = made.constant(rng.normal(size=(3, 6)).astype(np.float32))
    linear = made.add("Linear", x, weight, made.constant(np.full(3, 0.25, np.float32)))
    statistics = [made.constant(np.full(3, n, np.float32)) for n in (1.5, 0.5, 0.75, 2.5)]
    normed = made.add("BatchNorm", linear, *statistics)
    model = nac.load(nac.to_bytes(lower(made.module(normed))))
    machine = Machine(shipped_plan("train"), models={"model": model}, root=tmp_path, may_write=True)
    machine.run({**ANSWERS, "path": "trained.nac"})
    trained = Trainer(nac.load(tmp_path / "trained.nac"))
    trainer = Trainer(model)
    for _ in range(8):
        trainer.step({"x": X}, [CLASSES], RATE)
    assert set(trained.parameters) == set(trainer.parameters)
    for name, array in trained.weights.items():
        np.testing.assert_allclose(array, trainer.weights[name], rtol=1e-5, atol=1e-6)
    kept = [
        float(array.flat[0]) for n, array in trained.weights.items() if n not in trained.parameters
    ]
    assert sorted(kept) == [0.75, 2.5]
