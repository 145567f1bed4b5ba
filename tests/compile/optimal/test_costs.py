"""Costs of the model of schedules are those of the timed machine, for every legal tile."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Options
from nacre.compile.pipeline import Compiled, bundle_of, run_stages
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.optimal.alternatives import Alternative
from tests.compile.optimal.answer import Answer
from tests.compile.optimal.serial import serial_solution
from tests.compile.optimal.tile_choices import TileChoice, tile_choices

_TARGET = target_of("npm4k")
_OPTIONS = Options(_TARGET.device)


def _convolution() -> Module:
    builder, random = Builder(), np.random.default_rng(3)
    x = builder.input("x", "f32", (1, 3, 4, 8))
    weights = builder.constant(random.standard_normal((3, 3, 8, 6)).astype(np.float32))
    made = builder.add("Conv", x, weights, layout="NHWC", pads=(1, 1, 1, 1), strides=(1, 1))
    return builder.module(builder.add("ReluNan", made))


def _plan(module: Module, compiled: Compiled, choice: TileChoice) -> tuple[Bundle, dict[str, int]]:
    """The tasks of one choice, each after all others, and the cycles that the model gives them."""
    solution, places = serial_solution([choice])
    alternative = Alternative(compiled.partition, frozenset())
    answer = Answer(alternative, [[choice]], solution, _OPTIONS, places)
    made = answer.compiled(compiled, _TARGET, in_order=False)
    return Bundle.of(bundle_of(module, made, _OPTIONS)), answer.cycles_of_tokens()


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return run_stages(_convolution(), _TARGET, _OPTIONS)


def test_tasks_of_every_tile_take_what_the_model_says(compiled: Compiled) -> None:
    (layer,) = compiled.partition.layers
    choices = tile_choices(layer, compiled.partition, _OPTIONS, frozenset(), 6)
    assert {(c.rows, c.columns) for c in choices} == {
        (rows, columns) for rows in (1, 2, 3) for columns in range(1, 7)
        if -(-3 // rows) * -(-6 // columns) <= 6
    }  # fmt: skip
    for choice in choices:
        plan, expected = _plan(_convolution(), compiled, choice)
        assert not plan.problems
        timed = {row["name"]: row["end"] - row["start"] for row in plan.time().tasks}
        assert timed == expected
    given = {"x": np.linspace(-1, 1, 96, dtype=np.float32).reshape(1, 3, 4, 8)}
    assert plan.validate(given).first_difference is None
