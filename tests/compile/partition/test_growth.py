"""Twice the steps of a recurrence are twice the work, in every stage that looks back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.stage import legalise
from nacre.compile.options import Options
from nacre.compile.partition.assembly import memory_of
from nacre.compile.partition.grouping import Group, group_items
from nacre.compile.partition.items import items_of
from nacre.compile.partition.stage import Partition, partition
from nacre.compile.target import target_of
from nacre.compile.tiling.residency import residency
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values
from tests.compile.random_graphs import feeds_of

OPTIONS = Options(target_of("npm4k").device)


def recurrence(steps: int, *, gated: bool, width: int = 8) -> Module:
    """Steps that each read the one before, all of whose results are outputs in one tensor."""
    builder = Builder()
    x = builder.input("x", "f32", (steps, width))
    weights, gates = builder.constant(values((width, width), 1)), None
    if gated:
        gates = builder.constant(values((width, width), 2))
    state = builder.constant(np.ones((1, width), np.float32))
    found: list[int] = []
    cell = state
    for step in range(steps):
        given = {"starts": (step, 0), "ends": (step + 1, width), "steps": (1, 1)}
        product = builder.add("Linear", state, weights)
        added = builder.add("BinOp", builder.add("Slice", x, **given), product, op="Add")
        state = builder.add("Unary", added, op="Tanh")
        if gates is not None:
            gate = builder.add(
                "Unary", builder.add("Linear", found[-1] if found else state, gates), op="Sigmoid"
            )
            cell = builder.add("BinOp", builder.add("BinOp", gate, cell, op="Mul"), state, op="Add")
            state = builder.add("Unary", cell, op="Tanh")
        found.append(state)
    return builder.module(builder.add("Concat", *found, axis=0))


def running_sum(steps: int) -> Module:
    """Functions of elements alone, each of the one before: nothing ends a chain but its length."""
    builder = Builder()
    x = builder.input("x", "f32", (steps, 8))
    state, found = builder.constant(np.ones((1, 8), np.float32)), []
    for step in range(steps):
        given = {"starts": (step, 0), "ends": (step + 1, 8), "steps": (1, 1)}
        part = builder.add("Unary", builder.add("Slice", x, **given), op="Tanh")
        state = builder.add("BinOp", part, builder.add("Unary", state, op="Sigmoid"), op="Mul")
        found.append(state)
    return builder.module(builder.add("Concat", *found, axis=0))


TraceFunction = Callable[[FrameType, str, object], Any]

MODELS: dict[str, Callable[[int], Module]] = {
    "recurrence": lambda steps: recurrence(steps, gated=False),
    "gated": lambda steps: recurrence(steps, gated=True),
    "running sum": running_sum,
}


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python some work runs: the same on any machine."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _legal(module: Module) -> Legal:
    return legalise(module, "f16")


def _grouped(legal: Legal) -> list[Group]:
    items = items_of(legal.module, legal.escaped)
    memory = memory_of(legal.module, items)
    return group_items(legal.module, items, memory, OPTIONS.l1_bytes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_grouping_takes_work_with_the_number_of_steps(name: str) -> None:
    few, many = (_legal(MODELS[name](steps)) for steps in (30, 120))
    assert lines_of(lambda: _grouped(many)) <= 4.2 * lines_of(lambda: _grouped(few))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_places_in_l1_are_found_with_the_number_of_steps(name: str) -> None:
    few, many = (partition(_legal(MODELS[name](steps)), OPTIONS) for steps in (30, 120))

    def work(of: Partition) -> int:
        return lines_of(lambda: residency(of, OPTIONS, 4096, 1 << 20))

    assert work(many) <= 4.2 * work(few)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_validation_takes_work_with_the_number_of_steps(name: str) -> None:
    few, many = (nacre.compile(MODELS[name](steps), "npm4k") for steps in (8, 32))

    def work(bundle: Bundle) -> int:
        feeds = feeds_of(bundle.source)
        return lines_of(lambda: bundle.validate(feeds))

    assert work(many) <= 4.2 * work(few)
