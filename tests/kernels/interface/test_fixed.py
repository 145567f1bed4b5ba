"""Runs that are fixed to arrays give what they give on any arrays, as often as they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Array, Call, Constant, TensorType
from nacre.kernels.interface.fixed import FixableRun
from nacre.kernels.interface.runs import bare_run, quietly
from nacre.kernels.registry import PRIMITIVES

Dims = tuple[int, ...]


def window(layout: str, kernel: Dims, **given: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"layout": layout, "kernel": kernel, "strides": (), "dilations": (), "pads": (),
            "ceil": False, **given}  # fmt: skip


# The primitive, the shapes of its inputs, attributes, how many of the last inputs are known.
CASES: Sequence[tuple[str, Sequence[Dims], Mapping[str, Any], int]] = (
    ("core.ReluNan", [(3, 5)], {}, 0),
    ("core.ReluNan", [(3, 20_001)], {}, 0),
    ("core.Mean", [(2, 3, 5, 7)], {"axes": (2, 3), "keepdims": True}, 0),
    ("core.Mean", [(2, 5, 7, 3)], {"axes": (1, 2), "keepdims": False}, 0),
    ("core.Mean", [(2, 14, 14, 96)], {"axes": (1, 2), "keepdims": True}, 0),
    ("core.Mean", [(1, 56, 56, 16)], {"axes": (1, 2), "keepdims": True}, 0),
    ("core.Sum", [(1, 25, 5, 64)], {"axes": (1, 2), "keepdims": True}, 0),
    ("core.Sum", [(3, 4, 5)], {"axes": (0, 2), "keepdims": True}, 0),
    ("core.Sum", [(3, 4, 5)], {"axes": (), "keepdims": False}, 0),
    ("core.Linear", [(1, 20), (7, 20), (7,)], {}, 2),
    ("core.Linear", [(1, 20), (7, 20)], {}, 1),
    ("core.MaxPool", [(1, 3, 8, 8)], window("NCHW", (2, 2), strides=(2, 2)), 0),
    ("core.MaxPool", [(2, 9, 7, 5)], window("NHWC", (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)), 0),
    ("core.MaxPool", [(2, 9, 7, 5)], window("NHWC", (3, 2), dilations=(2, 1), pads=(2, 0, 1, 1)),
     0),
    ("core.MaxPool", [(1, 2, 30)], window("NCHW", (4,), strides=(3,), ceil=True), 0),
    ("core.MaxPool", [(1, 9, 9, 4)], window("NHWC", (9, 9)), 0),
    ("core.MaxPool", [(1, 4, 5, 6, 3)], window("NHWC", (2, 2, 2)), 0),
    ("core.MaxPool", [(1, 4, 5, 3)], window("NHWC", (1, 1)), 0),
    ("core.MaxPool", [(1, 3, 3, 2)], window("NHWC", (2, 2), strides=(5, 5), pads=(4, 4, 4, 4)), 0),
    *(("core.BinOp", shapes, {"op": op}, 0)
      for op in ("Add", "Sub", "Mul", "Div")
      for shapes in ([(3, 5), (3, 5)], [(1, 14, 14, 96), (1, 1, 1, 96)], [(96,), (1, 14, 14, 96)],
                     [(2, 40, 120), (40, 120)], [(2, 40, 120), (2, 1, 120)], [(9000,), (1,)],
                     [(1, 96, 100), (1, 96, 1)], [(), (9000,)])),
)  # fmt: skip


def _poisoned(memory: dict[str, Array], use: str, shape: Dims, dtype: np.dtype[Any]) -> Array:
    """Memory that reads as NaN, should anybody read it before it is written."""
    size = int(np.prod(shape)) * dtype.itemsize
    if use not in memory or memory[use].nbytes < size:
        memory[use] = np.full(size, 0xFF, np.uint8)
    return np.ndarray(shape, dtype, memory[use])


@pytest.mark.parametrize("values", ["finite", "not finite"])
@pytest.mark.parametrize(("name", "shapes", "attributes", "known"), CASES)
def test_calls_give_what_the_run_gives(
    name: str, shapes: Sequence[Dims], attributes: Mapping[str, Any], known: int, values: str
) -> None:
    primitive, f32 = PRIMITIVES[name], GRAPH_TYPES["f32"]
    random = np.random.default_rng(len(shapes[0]))
    inputs = [np.asarray(random.standard_normal(s), np.float32).reshape(s) for s in shapes]
    if values == "not finite":
        inputs[0].reshape(-1)[0], inputs[0].reshape(-1)[-1] = np.nan, -np.inf
    (shape,) = primitive.shape(list(shapes), attributes) or ((),)
    fixed = {at: Constant(inputs[at]) for at in range(len(inputs) - known, len(inputs))}
    types = tuple(TensorType(f32, s) for s in shapes)
    run = primitive.bind(Call(types, (TensorType(f32, shape),), attributes, known=fixed))
    wanted = np.full(shape, np.nan, np.float32)
    assert run(inputs, [wanted]) is None
    bare = bare_run(run)
    assert isinstance(bare, FixableRun)
    memory, y = dict[str, Array](), np.empty(shape, np.float32)
    mine = [array if at in fixed else np.zeros_like(array) for at, array in enumerate(inputs)]
    calls = list(bare.fix(mine, [y], lambda *what: _poisoned(memory, *what)))
    for array, source in zip(mine, inputs, strict=True):
        np.copyto(array, source)
    for _ in range(2):
        y.fill(7)
        for one in memory.values():
            one.fill(0xFF)
        for call in calls:
            quietly(call)
        np.testing.assert_array_equal(y, wanted)
