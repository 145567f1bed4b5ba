"""Names of nodes through rewrites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.module import Labels, Module
from nacre.core.passes.inference import optimise


def named(builder: Builder, output: int, names: dict[int, str]) -> Module:
    return replace(builder.module(output), labels=Labels(nodes=names, source="net"))


def names_by_opcode(module: Module) -> dict[str, tuple[str, ...]]:
    assert module.labels is not None
    return {op.opcode: module.labels.names(op.value_id) for op in module.operations}


def test_a_product_is_called_after_itself_and_what_went_into_its_weights() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 4, 6, 6))
    conv = builder.add("Conv", x, builder.constant(np.ones((4, 4, 3, 3), np.float32)))
    parts = [builder.constant(np.full(4, n, np.float32)) for n in (2.0, 1.0, 0.5, 4.0)]
    norm = builder.add("BatchNorm", conv, *parts)
    twice = builder.add("BinOp", norm, builder.constant(np.float32(2.0)), op="Mul")
    relu = builder.add("Relu", twice)
    given = {conv: "conv", norm: "norm", twice: "twice", relu: "relu"}
    found = optimise(named(builder, relu, given))
    by_opcode = names_by_opcode(found)
    assert by_opcode["Conv"] == ("conv", "twice", "norm")
    assert by_opcode["Relu"] == ("relu",)
    assert found.labels is not None
    assert found.labels.source == "net"


def test_an_activation_is_called_after_all_that_spelled_it_out() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 4))
    y = builder.add("Exp", x)
    gate = builder.add("Unary", y, op="Sigmoid")
    made = builder.add("BinOp", y, gate, op="Mul")
    by_opcode = names_by_opcode(optimise(named(builder, made, {y: "y", gate: "gate", made: "mul"})))
    assert by_opcode["Silu"] == ("mul", "gate")
    assert by_opcode["Exp"] == ("y",)


def test_what_only_moves_elements_gives_its_name_to_nobody() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 6))
    turned = builder.add("Transpose", x, permutation=(1, 0))
    relu = builder.add("Relu", turned)
    back = builder.add("Transpose", relu, permutation=(1, 0))
    given = {turned: "turned", relu: "relu", back: "back"}
    by_opcode = names_by_opcode(optimise(named(builder, back, given)))
    assert by_opcode == {"Input": (), "Relu": ("relu",)}


def test_equal_operations_that_become_one_keep_both_names() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 6))
    one, two = builder.add("Exp", x), builder.add("Exp", x)
    total = builder.add("BinOp", one, two, op="Add")
    by_opcode = names_by_opcode(
        canonicalise(named(builder, total, {one: "one", two: "two", total: "total"}))
    )
    assert by_opcode["Exp"] == ("one", "two")
    assert by_opcode["BinOp"] == ("total",)
