"""Every decomposition: importing the modules, which need PyTorch, registers theirs."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.core.torch.decompositions.table import Decomposition, registered_decompositions


def decompositions() -> Mapping[str, Decomposition]:
    """Every function by the overload that it computes."""
    from nacre.core.torch.decompositions import (  # noqa: F401 - they register their functions
        distances,
        functions,
        normal,
        orders,
        places,
        samples,
        searches,
        windows,
    )

    return registered_decompositions()
