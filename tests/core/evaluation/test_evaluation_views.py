"""Values that lie within others: the same numbers as where every value is computed by itself."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module

_SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def views(draw: st.DrawFn) -> tuple[list[tuple[str, list[int], dict[str, object]]], int]:
    """Operations by name, operands and attributes, over one input of 24 elements."""
    shapes: list[tuple[int, ...]] = [(2, 3, 4)]
    made: list[tuple[str, list[int], dict[str, object]]] = []
    for _ in range(draw(st.integers(2, 12))):
        at = draw(st.integers(0, len(shapes) - 1))
        shape = shapes[at]
        kind = draw(st.sampled_from(["Reshape", "Transpose", "Slice", "Neg", "Exp", "BinOp"]))
        operands, given_ = [at], dict[str, object]()
        if kind == "Reshape":
            shape = draw(st.sampled_from([(prod(shape),), (1, *shape), (*shape, 1), shape[::-1]]))
            given_["new_shape"] = shape
        elif kind == "Transpose":
            order = draw(st.permutations(range(len(shape))))
            given_["permutation"] = tuple(order)
            shape = tuple(shape[axis] for axis in order)
        elif kind == "Slice":
            starts = tuple(draw(st.integers(0, dim - 1)) for dim in shape)
            ends = tuple(draw(st.integers(s + 1, d)) for s, d in zip(starts, shape, strict=True))
            steps = tuple(draw(st.sampled_from([1, 1, 2])) for _ in shape)
            given_ = {"starts": starts, "ends": ends, "steps": steps}
            parts = zip(starts, ends, steps, strict=True)
            shape = tuple(len(range(start, end, step)) for start, end, step in parts)
        elif kind == "BinOp":
            same = [other for other, found in enumerate(shapes) if found == shape]
            operands.append(draw(st.sampled_from(same)))
            given_["op"] = "Add"
        shapes.append(shape)
        made.append((kind, operands, given_))
    return made, draw(st.integers(1, len(made)))


def _module(
    operations: list[tuple[str, list[int], dict[str, object]]], shown: int, *, is_open: bool
) -> Module:
    build = Builder()
    x = build.input("x", "f32", (2, 3, 4))
    values = [build.add("Neg", x)]  # computed: what is given is never looked into
    for kind, operands, attributes in operations:
        values.append(build.add(kind, *(values[at] for at in operands), **attributes))
    return build.module(*(values[1:] if is_open else [values[shown], values[-1]]))


@given(views())
def test_views_change_no_number(
    drawn: tuple[list[tuple[str, list[int], dict[str, object]]], int],
) -> None:
    operations, shown = drawn
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    found = CoreSession(_module(operations, shown, is_open=False))
    wanted = CoreSession(_module(operations, shown, is_open=True)).run({"x": x})
    for _ in range(2):  # the memory is that of the run before
        one, last = found.run({"x": x})
        assert one.tobytes() == wanted[shown - 1].tobytes()
        assert last.tobytes() == wanted[-1].tobytes()


FORMS = [
    ("Reshape", {"new_shape": (24,)}, True),
    ("ExpandDims", {"axes": (0,)}, True),
    ("Squeeze", {"axes": (1,)}, True),
    ("Transpose", {"permutation": (1, 0, 2, 3)}, True),
    ("Transpose", {"permutation": (0, 1, 3, 2)}, False),
    ("Slice", {"starts": (1, 0, 1, 0), "ends": (2, 1, 3, 4), "steps": (1, 1, 1, 1)}, True),
    ("Slice", {"starts": (1, 0, 2, 1), "ends": (2, 1, 3, 3), "steps": (1, 1, 1, 1)}, True),
    ("Slice", {"starts": (0, 0, 1, 0), "ends": (2, 1, 3, 4), "steps": (1, 1, 1, 1)}, False),
    ("Slice", {"starts": (0, 0, 0, 0), "ends": (1, 1, 3, 4), "steps": (1, 1, 2, 1)}, False),
]


@pytest.mark.parametrize(("opcode", "attributes", "is_view"), FORMS)
def test_what_lies_in_one_stretch_is_not_computed(
    opcode: str, attributes: dict[str, object], is_view: bool
) -> None:
    build = Builder()
    x = build.input("x", "f32", (2, 1, 3, 4))
    part = build.add(opcode, build.add("Neg", x), **attributes)
    session = CoreSession(build.module(build.add("Exp", part)))
    assert len(session._plan.steps) == (2 if is_view else 3)


def test_what_leaves_a_run_has_memory_of_its_own() -> None:
    build = Builder()
    whole = build.add("Neg", build.input("x", "f32", (4, 2)))
    row = build.add("Slice", whole, starts=(1, 0), ends=(2, 2), steps=(1, 1))
    flat = build.add("Reshape", whole, new_shape=(8,))
    session = CoreSession(build.module(row, flat, build.add("Exp", flat)))
    first = session.run({"x": np.ones((4, 2), np.float32)})
    session.run({"x": np.zeros((4, 2), np.float32)})
    assert first[0].tolist() == [[-1.0, -1.0]]
    assert first[1].tolist() == [-1.0] * 8
    assert not any(np.shares_memory(first[0], other) for other in first[1:])


def test_a_value_is_not_written_over_while_a_part_of_it_is_needed() -> None:
    build = Builder()
    whole = build.add("Exp", build.input("x", "f32", (4, 2)))
    row = build.add("Slice", whole, starts=(1, 0), ends=(2, 2), steps=(1, 1))
    turned = build.add("Neg", whole)  # whole itself is used for the last time
    module = build.module(build.add("BinOp", turned, row, op="Add"))
    x = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)
    (found,) = CoreSession(module).run({"x": x})
    np.testing.assert_array_equal(found, -np.exp(x) + np.exp(x)[1:2])
