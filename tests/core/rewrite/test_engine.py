"""The engine: orders of operands, walks that end, numbers that stay."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.base.diagnostics import InternalError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.rewrite.engine import apply_once, apply_until_stable, simplify
from nacre.core.rewrite.exact.settle import IDLE
from nacre.core.rewrite.site import RewriteSite, either_order, merge_rules
from nacre.core.text.reader import parse

MODULE = """\
%3 = Input () {name="x"} : tensor<f32[2]>
%5 = Neg (%3) : tensor<f32[2]>
%8 = Neg (%5) : tensor<f32[2]>
%9 = Exp (%8) : tensor<f32[2]>
outputs: %9
"""


def binary(op: str, *, is_constant_first: bool = False) -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (2,))
    two = builder.constant(np.full(2, 2.0, np.float32))
    operands = (two, x) if is_constant_first else (x, two)
    return builder.module(builder.add("BinOp", *operands, op=op))


@pytest.mark.parametrize(
    ("op", "count"), [("Add", 2), ("Mul", 2), ("Max", 2), ("Min", 2), ("Sub", 1), ("Pow", 1)]
)
def test_operands_change_places_where_that_gives_the_same(op: str, count: int) -> None:
    made = binary(op).operations[-1]
    assert list(either_order(made)) == [(0, 1), (1, 0)][:count]
    assert list(either_order(None)) == []


@pytest.mark.parametrize("op", ["Mul", "Div"])
@pytest.mark.parametrize("is_constant_first", [False, True])
def test_a_constant_is_found_on_the_sides_where_it_may_stand(
    op: str, is_constant_first: bool
) -> None:
    seen: list[object] = []

    def look(site: RewriteSite) -> int | None:
        split = site.split(site.op)
        seen.append(None if split is None else split[1].tolist())
        seen.append(site.beside(site.op, 2.0) is not None)
        return None

    apply_once(binary(op, is_constant_first=is_constant_first), {"BinOp": [look]})
    is_seen = op == "Mul" or not is_constant_first
    assert seen == [[2.0, 2.0] if is_seen else None, is_seen]


def negative(site: RewriteSite) -> int | None:
    return site.add("Neg", site.operands[0])


def same_again(site: RewriteSite) -> int | None:
    return site.replace(*site.operands)


def narrower(site: RewriteSite) -> int | None:
    return site.add("Sum", site.operands[0], axes=(0,))


def test_exact_rules_keep_numbers_and_others_may_use_them() -> None:
    module = parse(MODULE)
    assert [op.value_id for op in simplify(module, IDLE)] == [3, 5, 9]
    assert simplify(module, {}) is module
    assert [op.opcode for op in apply_once(module, IDLE)] == ["Input", "Exp"]


def test_a_rule_that_keeps_numbers_cannot_add_an_operation() -> None:
    with pytest.raises(InternalError, match="adds a `Neg`"):
        simplify(parse(MODULE), {"Exp": [negative]})


def test_rules_that_never_end_are_a_fault() -> None:
    with pytest.raises(InternalError, match="still apply after 40 walks: \\['Exp'\\]"):
        apply_until_stable(parse(MODULE), {"Exp": [same_again]})
    with pytest.raises(InternalError, match="still apply to `Exp` %9"):
        simplify(parse(MODULE), {"Exp": [same_again]})


def test_a_result_of_another_type_is_left_out_and_the_next_rule_tried() -> None:
    rules = merge_rules({"Exp": [narrower]}, {"Exp": [negative]})
    assert [op.opcode for op in apply_once(parse(MODULE), rules)] == ["Input", "Neg", "Neg", "Neg"]
    module = parse(MODULE)
    assert apply_until_stable(module, {"Exp": [narrower]}) is module
