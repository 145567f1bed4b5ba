"""Programs for the tests of the PyTorch importer, and what is found wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.core.torch.importer import from_torch

torch = pytest.importorskip("torch")

Loose = Any


class Function(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Loose) -> None:
        super().__init__()
        self.function = function

    def forward(self, *xs: Loose) -> Loose:
        return self.function(*xs)


def findings(source: Loose, *args: Loose, **given: Loose) -> list[tuple[str, str, str | None]]:
    with pytest.raises(InputError) as raised:
        from_torch(source, args, **given)
    return [(d.code, d.message, d.help) for d in raised.value.diagnostics]


def asserting(x: Loose) -> Loose:
    """Here, since PyTorch does not know an `assert` again that pytest has rewritten."""
    assert x.max().item() <= 5
    return x * 2


def open_program() -> Loose:
    layer = Function(lambda x, y: torch.nn.functional.softmax(x @ x.mT, -1) + y.sum())
    sizes = {0: torch.export.Dim("n", min=2, max=64)}
    return torch.export.export(
        layer, (torch.ones(3, 4), torch.ones(2)), dynamic_shapes=((sizes, None),)
    )
