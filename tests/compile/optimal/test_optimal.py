"""CP-SAT's optima, against everything that can be tried, and the compiler's plans against them."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Options
from nacre.compile.pipeline import bundle_of, run_stages
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.optimal.alternatives import Alternative
from tests.compile.optimal.answer import Answer
from tests.compile.optimal.graphs import random_graph
from tests.compile.optimal.serial import dependences, orders, serial_solution
from tests.compile.optimal.tile_choices import tile_choices

pytest.importorskip("ortools")

_SMALL = target_of(Path(__file__).with_name("npm_small.nem"))
_SEEDS = (0, 1, 2, 3, 5, 6, 9, 13, 15, 17)  # of which optima are proven soon


def _product() -> Module:
    builder = Builder()
    weights = np.linspace(-1, 1, 16 * 24, dtype=np.float32).reshape(16, 24)
    x = builder.input("x", "f32", (4, 16))
    return builder.module(builder.add("MatMul", x, builder.constant(weights)))


@pytest.mark.full
def test_an_optimum_is_what_the_best_of_all_orders_of_all_tiles_takes() -> None:
    from tests.compile.optimal.schedule_model import ScheduleModel

    target = target_of("npm4k")
    options = Options(target.device)
    compiled = run_stages(_product(), target, options)
    partition = compiled.partition
    every = tile_choices(partition.layers[0], partition, options, frozenset(), 2)
    choices = [choice for choice in every if choice.columns == 24]
    timed = set[int]()
    for choice in choices:
        for order in orders(dependences(choice)):
            solution, places = serial_solution([choice], order)
            alternative = Alternative(partition, frozenset())
            answer = Answer(alternative, [[choice]], solution, options, places)
            made = answer.compiled(compiled, target, in_order=False)
            timed.add(Bundle.of(bundle_of(_product(), made, options)).time().cycles)
    verdict = ScheduleModel(
        partition, options, frozenset(), [choices], most_cycles=max(timed), most_tasks=30
    ).solve(5)
    assert len(timed) > 1
    assert verdict.is_proven
    assert verdict.solution is not None
    assert verdict.solution.cycles == min(timed)


@pytest.mark.full
def test_plans_of_small_graphs_are_near_proven_optima() -> None:
    from tests.compile.optimal.search import compare

    ratios = []
    for seed in _SEEDS:
        module = random_graph(seed)
        found = compare(module, _SMALL, Options(_SMALL.device), 2)
        assert found.is_proven, seed
        ratios.append(found.ratio)
        if found.plan is not None:
            assert found.timed == found.best < found.ours
            (shape,) = (type_.shape for type_ in module.input_types.values())
            given = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
            ours = nacre.compile(module, _SMALL.device)
            assert ours.validate({"x": given}).first_difference is None
            # Layers may overlap, so results between them are not there all at once; outputs are.
            (expected,), (made,) = (p.run({"x": given}).values() for p in (ours, found.plan))
            assert np.array_equal(made, expected)
    assert median(ratios) <= 1.05
    assert max(ratios) <= 1.25
