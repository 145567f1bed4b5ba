"""Every decomposition: importing the modules, which need PyTorch, registers theirs."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.base.lazy import load_all
from nacre.core.torch.decompositions.table import Decomposition, registered_decompositions


def decompositions() -> Mapping[str, Decomposition]:
    """Every function by the overload that it computes."""
    load_all("nacre.core.torch.decompositions")
    return registered_decompositions()
