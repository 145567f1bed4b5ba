"""The report on a program: what of it can be brought in, before anybody converts it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.core.torch.coverage import coverage
from tests.core.torch.programs import Function, open_program

torch = pytest.importorskip("torch")

Loose = Any
X = torch.ones(3, 4)


def program(function: Loose) -> Loose:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        return torch.export.export(Function(function), (X,))


def test_a_program_that_is_covered() -> None:
    found = coverage(program(lambda x: torch.relu(x @ x.mT) + torch.relu(x).sum()))
    assert found.is_whole
    assert {(row.operation, row.nodes) for row in found.rows} >= {("relu.default", 2)}
    assert found.as_text().endswith("nodes: all can be brought in")


def test_reasons_are_counted() -> None:
    def function(x: Loose) -> Loose:
        y = torch.lgamma(x) + torch.lgamma(x + 1)
        return torch.fft.rfft(y).real + torch.rand(3)[:, None]

    found = coverage(program(function))
    rows = {row.operation: row for row in found.rows}
    assert not found.is_whole
    assert found.lost > 0  # what follows a complex tensor
    assert (rows["lgamma.default"].nodes, rows["lgamma.default"].refused) == (2, 2)
    assert "complex" in next(iter(rows["_fft_r2c.default"].reasons))
    assert "random" in next(iter(rows["rand.default"].reasons))
    refused = [row.refused for row in found.rows]
    assert refused == sorted(refused, reverse=True)
    assert "2 times: no operation of Core IR" in found.as_text()
    assert "behind them not looked at" in found.as_text()


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program(torch.lgamma), path)
    found = coverage(path)
    assert [(row.operation, row.refused) for row in found.rows] == [("lgamma.default", 1)]
    path.write_bytes(b"PK")
    with pytest.raises(InputError) as raised:
        coverage(path)
    assert [d.code for d in raised.value.diagnostics] == ["TCH03"]


@pytest.mark.heavy("PyTorch exports a network")
def test_shapes_are_needed_and_taken() -> None:
    with pytest.raises(InputError) as raised:
        coverage(open_program())
    assert [d.code for d in raised.value.diagnostics] == ["TCH02"]
    assert coverage(open_program(), {"xs_0": (5, 4)}).is_whole


def test_a_module_with_examples() -> None:
    assert coverage(torch.nn.Linear(4, 2), example_args=(X,)).is_whole
