"""Random inputs of a model, where nobody has given any."""

from __future__ import annotations

import numpy as np

from nacre.core.module import Module
from nacre.core.values import Array


def random_inputs(module: Module, seed: int, lead: tuple[int, ...] = ()) -> dict[str, Array]:
    """Floats around 0, and integers that any table has a row for; `lead` are axes before."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for name, type_ in module.input_types.items():
        shape = (*lead, *type_.shape)
        is_float = type_.element.kind == "float"
        values: Array = rng.standard_normal(shape) if is_float else rng.integers(0, 2, shape)
        made[name] = values.astype(type_.element.dtype)
    return made
