"""Sizes of a `.pt2` that divide by zero, in values that the graph uses: a code, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from nacre.base.diagnostics import InputError
from nacre.core.torch.importer import from_torch
from tests.core.torch.test_files import (
    MODEL,
    Loose,
    changed,
    edited,
    saved,
)

__all__ = ["saved"]

DIVISIONS = [
    "Mod(s0, 0)", "FloorDiv(s0, 0)", "PythonMod(s0, 0)", "CeilDiv(s0, 0)", "CleanDiv(s0, 0)",
    "ModularIndexing(s0, 0, 4)", "ModularIndexing(s0, 4, 0)", "s0/0", "IntTrueDiv(s0, 0)",
    "FloatTrueDiv(s0, 0)", "Mod(4, 0)", "FloorDiv(4, 0)", "Rational(1, 0)", "Pow(0, Integer(-1))",
    "Mod(s0, s0 - s0)", "FloorDiv(8, s0 - 4)",
]  # fmt: skip


def _used(text: str, *, has_range: bool) -> Loose:
    """Every computed value of the graph with that size, which its operations look at."""

    def change(model: Loose) -> None:
        graph = model["graph_module"]["graph"]
        for value in graph["tensor_values"].values():
            if len(value["sizes"]) == 2:
                size = {"as_expr": {"expr_str": text, "hint": {"as_int": 2}}}
                value["sizes"] = [size, value["sizes"][1]]
        if has_range:
            model["range_constraints"]["s0"] = {"min_val": 2, "max_val": 9}

    return change


@pytest.mark.full  # PyTorch reads a file for each
@pytest.mark.parametrize("has_range", [True, False])
@pytest.mark.parametrize("text", DIVISIONS)
def test_a_size_that_divides_by_zero_is_refused_or_harmless(
    tmp_path: Path, saved: bytes, text: str, has_range: bool
) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, _used(text, has_range=has_range))))
    try:
        module = from_torch(path)
    except InputError as error:
        found = error.diagnostics
        assert found
        assert {d.code[:3] for d in found} <= {"TCH", "NCR", "MOD"}, found
        assert all(d.message for d in found)
    else:  # the graph's own shapes are what counts
        assert all(dim > 0 for type_ in module.output_types for dim in type_.shape)
