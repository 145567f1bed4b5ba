"""Checks that a module makes of its elements: none gets lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from tests.core.torch.programs import Function, asserting, findings

torch = pytest.importorskip("torch")

Loose = Any
X = torch.arange(12).reshape(3, 4)
HELP = "check inputs before the model"


def async_check(x: Loose) -> Loose:
    torch._assert_async(x.max() <= 5)
    return x * 2


def told_check(x: Loose) -> Loose:
    torch._assert_async(x.max() <= 5, "too large")
    return x * 2


def check_in_a_region(x: Loose) -> Loose:
    with torch.no_grad():
        torch._assert_async(x.max() <= 5)
        return x * 2


def range_check(x: Loose) -> Loose:
    number = x.max().item()
    torch._check(number <= 5)
    torch._check(number * 2 + 1 >= -7)
    return x * 2


@pytest.mark.parametrize(
    "function", [async_check, told_check, check_in_a_region, asserting, range_check]
)
def test_a_check_of_elements_is_refused(function: Loose) -> None:
    ((code, message, help_),) = findings(Function(function), X)
    assert code == "TCH01"
    assert "it is a check of elements (an assert)" in message
    assert help_ == HELP


def test_a_check_is_kept_where_sizes_are_given() -> None:
    sizes = {0: torch.export.Dim("n", min=2, max=64)}
    program = torch.export.export(Function(async_check), (X,), dynamic_shapes=((sizes,),))
    ((code, message, help_),) = findings(program, shapes={"xs_0": (5, 4)})
    assert (code, help_) == ("TCH01", HELP)
    assert "(_assert_async.default)" in message


def test_findings_beside_a_check_are_reported_too() -> None:
    found = findings(Function(lambda x: torch.lgamma(async_check(x).float())), X)
    assert [message.split(" of ")[0] for _, message, _ in found] == [
        "node `_assert_async` (_assert_async.default)", "node `lgamma` (lgamma.default)",
    ]  # fmt: skip


def test_a_number_that_is_checked_and_used_is_no_check() -> None:
    def function(x: Loose) -> Loose:
        place = x.max().item()
        torch._check(place >= 0)
        torch._check(place < 3)
        return x[place]

    ((code, message, help_),) = findings(Function(function), X)
    assert code == "TCH01"
    assert "an element becomes a number of the program" in message
    assert "index_select" in str(help_)


@pytest.mark.parametrize("is_held", [True, False])
def test_a_check_of_known_elements_is_made_at_import(is_held: bool) -> None:
    def function(x: Loose) -> Loose:
        torch._assert_async(layer.kept.max() <= (3 if is_held else 2))
        return x * 2

    layer = Function(function)
    layer.register_buffer("kept", torch.tensor([2, 3]))
    if is_held:
        found = evaluate(from_torch(layer, (X,)), {"xs_0": X.numpy()})[0]
        assert found.tolist() == (X * 2).tolist()
    else:
        ((code, message, _),) = findings(layer, X)
        assert code == "TCH01"
        assert "(_assert_async.default)" in message
        assert "PyTorch cannot compute it" in message


@pytest.fixture
def own_check() -> Iterator[Loose]:
    library = torch.library.Library("nacre_tests", "FRAGMENT")
    library.define("look(Tensor x) -> ()")
    library.impl("look", lambda _: None, "CompositeExplicitAutograd")
    yield torch.ops.nacre_tests.look
    library._destroy()


def test_a_call_that_gives_nothing_is_not_dropped(own_check: Loose) -> None:
    def function(x: Loose) -> Loose:
        own_check(x)
        return x * 2

    lasting = set(torch.fx.node._side_effectful_functions)
    ((code, message, _),) = findings(Function(function), X)
    assert code == "TCH01"
    assert "it belongs to `nacre_tests`, not to ATen" in message
    assert torch.fx.node._side_effectful_functions == lasting  # PyTorch is left as it was


def test_checks_of_shapes_hold_already() -> None:
    def function(x: Loose) -> Loose:
        torch._check(x.shape[0] == 3)
        return x * 2

    module = from_torch(Function(function), (X,))
    found = evaluate(module, {"xs_0": X.numpy()})[0]
    np.testing.assert_array_equal(found, (X * 2).numpy())
