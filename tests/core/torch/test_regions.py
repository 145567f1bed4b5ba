"""Branches and loops of PyTorch, beside PyTorch itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.importing import model_builder
from nacre.core.torch import regions
from nacre.core.torch.importer import from_torch
from tests.core.torch.programs import Function, findings

torch = pytest.importorskip("torch")
higher_order = pytest.importorskip("torch._higher_order_ops")

pytestmark = pytest.mark.heavy("PyTorch exports a network")

Loose = Any
X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


class Branches(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two layers, of which the sum of the input chooses one."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(3, 4)
        self.other = torch.nn.Linear(3, 4)

    def forward(self, x: Loose) -> Loose:
        return torch.cond(
            x.sum() > 0,
            lambda x: (torch.relu(self.one(x)), x + 1),
            lambda x: (self.other(x) * 2, x - 1),
            (x,),
        )


def require_same(module: Loose, *args: Loose) -> Loose:
    """That the imported module gives what PyTorch gives; the module."""
    imported = from_torch(module, args)
    arrays = dict(zip(imported.input_types, (a.numpy() for a in args), strict=True))
    with torch.no_grad():
        expected = module(*args)
    expected = expected if isinstance(expected, list | tuple) else (expected,)
    found = evaluate(imported, arrays)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.numpy().dtype
        np.testing.assert_allclose(a, b.numpy(), rtol=2e-6, atol=1e-6)
    return imported


def test_a_branch_that_the_input_chooses() -> None:
    branches = Branches()
    imported = require_same(branches, X)
    require_same(branches, -X)
    assert [op.opcode for op in imported].count("Where") == 2
    choices = [op for op in imported if op.opcode == "Where"]
    assert {imported.by_id[op.operands[0]].type.shape for op in choices} == {()}


def test_a_branch_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "branches.pt2"
    branches = Branches()
    torch.export.save(torch.export.export(branches, (X,)), path)
    found = evaluate(from_torch(path), {"x": X.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found[0], branches(X)[0].numpy(), rtol=2e-6, atol=1e-6)


def test_a_branch_that_is_known() -> None:
    def chosen(x: Loose) -> Loose:
        return torch.cond(torch.zeros(3).sum() > 0, torch.sin, torch.cos, (x,))

    imported = require_same(Function(chosen), X)
    assert [(op.opcode, op.attributes.get("op")) for op in imported][1:] == [("Unary", "Cos")]


def test_a_branch_within_a_branch() -> None:
    def inner(x: Loose) -> Loose:
        return torch.cond(x.max() > 3, torch.sin, torch.cos, (x,))

    def outer(x: Loose) -> Loose:
        return torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,))

    for sign in (1, -1, 0.1):
        require_same(Function(outer), X * sign)


def test_a_loop_whose_length_follows_from_what_is_known() -> None:
    def counted(x: Loose) -> Loose:
        start = torch.zeros((), dtype=torch.int64)
        return higher_order.while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 2, x * 2 + i), (start, x)
        )

    require_same(Function(counted), X)


def test_a_scan() -> None:
    def summed(x: Loose) -> Loose:
        return higher_order.scan(
            lambda c, x: (c * 0.5 + x, torch.sin(c) + x), torch.zeros(3), x, dim=0
        )

    require_same(Function(summed), torch.cat([X, X * 2, -X]))


def test_a_map() -> None:
    def each(x: Loose, y: Loose) -> Loose:
        return higher_order.map(lambda a, b: a.cos() + b, x, y)

    require_same(Function(each), X, torch.ones(3))


def test_a_scan_of_an_associative_function() -> None:
    def products(x: Loose) -> Loose:
        return higher_order.associative_scan(lambda a, b: a * b, x, dim=0, combine_mode="generic")

    require_same(Function(products), torch.cat([X, X]))


def test_an_associative_scan_as_one_call() -> None:
    """PyTorch writes it for other machines than this one."""
    graph = torch.fx.symbolic_trace(lambda a, b: a * b + b)
    rows = torch.arange(1.0, 6)
    call = regions.RegionCall(
        lambda body, given: [body(*given)],
        model_builder.ModelBuilder(),
        None,  # type: ignore[arg-type]
    )
    (found,) = regions.associative_scan(call, graph, [rows])
    expected = [1.0]
    for value in range(2, 6):
        expected.append(expected[-1] * value + value)
    assert found.tolist() == expected


def test_a_loop_that_elements_end() -> None:
    def doubled(x: Loose) -> Loose:
        return higher_order.while_loop(lambda x: x.sum() < 100, lambda x: (x * 2,), (x,))

    ((code, message, help_),) = findings(Function(doubled), X)
    assert code == "TCH01"
    assert "a loop whose length is not known" in message
    assert help_ is not None
    assert "unroll it" in help_


def test_a_loop_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(x: Loose) -> Loose:
        start = torch.zeros((), dtype=torch.int64)
        return higher_order.while_loop(lambda i, x: i < 9, lambda i, x: (i + 1, x * 2), (start, x))

    monkeypatch.setattr(regions, "MOST_ITERATIONS", 8)
    ((code, message, _),) = findings(Function(counted), X)
    assert code == "TCH01"
    assert message.endswith("it runs more than 8 times")


def test_what_stands_in_a_loop_is_refused_once() -> None:
    def drawn(x: Loose) -> Loose:
        start = torch.zeros((), dtype=torch.int64)
        return higher_order.while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, torch.special.bessel_j0(x)), (start, x)
        )

    ((code, message, _),) = findings(Function(drawn), X)
    assert code == "TCH01"
    assert "special_bessel_j0" in message


def test_both_branches_are_looked_at() -> None:
    def odd(x: Loose) -> Loose:
        return torch.cond(x.sum() > 0, torch.special.bessel_j0, torch.special.bessel_j1, (x,))

    found = findings(Function(odd), X)
    assert [code for code, *_ in found] == ["TCH01", "TCH01"]
    assert "bessel_j0" in found[0][1]
    assert "bessel_j1" in found[1][1]


def test_what_can_fail_does_not_where_the_other_branch_is_meant() -> None:
    def divided(x: Loose, n: Loose) -> Loose:
        return torch.cond(x.sum() > 0, lambda n: torch.full_like(n, 7) // n, lambda n: n + 1, (n,))

    imported = require_same(Function(divided), X, torch.tensor([1, 2]))
    given = dict(zip(imported.input_types, (-X.numpy(), np.array([0, 2])), strict=True))
    assert evaluate(imported, given)[0].tolist() == [1, 3]


def test_indices_that_are_computed_in_a_branch() -> None:
    def picked(x: Loose, i: Loose) -> Loose:
        rows = torch.cond(x.sum() > 0, lambda x, i: x[i], lambda x, i: x[:1] * 2, (x, i))
        best = torch.cond(
            x.sum() > 0,
            lambda x: x.gather(1, x.argmax(1, keepdim=True)),
            lambda x: x[:, :1] + 1,
            (x,),
        )
        table = torch.nn.functional.embedding
        return rows, best, torch.cond(i.sum() > 0, table, lambda i, x: x[0] - x[:1], (i, x))

    one, other = torch.tensor([1]), torch.tensor([-7])
    require_same(Function(picked), X, one)
    imported = require_same(Function(picked), -X, one)
    require_same(Function(picked), -X, torch.tensor([0]))
    with torch.no_grad():
        expected = picked(-X, other)
    found = evaluate(imported, {"xs_0": -X.numpy(), "xs_1": other.numpy()})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def test_a_call_that_is_known_by_its_name_is_not_computed_for_nothing() -> None:
    def spectrum(x: Loose) -> Loose:
        return torch.cond(
            x.sum() > 0, lambda x: torch.fft.rfft(x).abs(), lambda x: x[:, :2] * 1, (x,)
        )

    with pytest.raises(InputError) as refused:
        nac.build(Function(spectrum), example_args=(X,))
    (finding,) = refused.value.diagnostics
    assert finding.code == "TCH01"
    assert "`aten.fft_rfft.default` can fail where the other is meant" in finding.message
