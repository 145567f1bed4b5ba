"""Functions and layers as users call them, against PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify
from tests.core.torch.function_layers import LAYERS, POOLS
from tests.core.torch.functions import AXES, ELEMENTS, PLACES, Row

pytestmark = pytest.mark.full  # with packages that CI does without


torch = pytest.importorskip("torch")

Tensor = Any  # or several
NEARNESS = 2e-5


class Rows(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Calls every row with inputs of its own."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.rows = rows
        layers = [row.call for row in rows if isinstance(row.call, torch.nn.Module)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *inputs: Tensor) -> list[list[Tensor]]:
        waiting = iter(inputs)
        return [flat(row.call(*(next(waiting) for _ in row.inputs))) for row in self.rows]


def flat(found: Tensor) -> list[Tensor]:
    leaves = torch.utils._pytree.tree_leaves(found)
    return [leaf for leaf in leaves if leaf is not None]


@pytest.mark.parametrize(
    "rows",
    [ELEMENTS, PLACES, AXES, POOLS, LAYERS[:30], LAYERS[30:]],
    ids=["elements", "places", "axes", "pools", "layers", "models"],
)
def test_functions(rows: Sequence[Row]) -> None:
    inputs = [tensor for row in rows for tensor in row.inputs]
    model = Rows(rows).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        expected = model(*(x.clone() for x in inputs))
    module = from_torch(model, tuple(inputs))
    assert verify(module, profile="nacre-1") == []
    arrays = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    found = iter(evaluate(module, arrays))
    for row, outputs in zip(rows, expected, strict=True):
        for place, output in enumerate(outputs):
            made, wanted = next(found), output.numpy()
            told = f"{row.name}, output {place}"
            assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape), told
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(made, wanted, NEARNESS, NEARNESS, err_msg=told)
            else:
                np.testing.assert_array_equal(made, wanted, err_msg=told)
    assert next(found, None) is None
