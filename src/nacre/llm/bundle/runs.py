"""Plans of a bundle as steps of a text."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.bundle.not_finite import warn_of_infinite_outputs
from nacre.core.values import Array
from nacre.llm.model.cache import CacheSizes, cache_names
from nacre.llm.model.runner import RunStep


def run_of(bundle: Bundle) -> RunStep:
    """Runs of a plan on inputs of ours, which need no look: the cache is as large as the model."""

    def run(inputs: Mapping[str, Any]) -> list[Array]:
        outputs = bundle.compute(inputs, ordered=False)
        found = warn_of_infinite_outputs(bundle.manifest, bundle.legal, inputs, outputs)
        for warning in found:
            warnings.warn(f"{warning.code}: {warning.message}", stacklevel=2)
        return outputs

    return run


def cache_dtype(bundle: Bundle, sizes: CacheSizes) -> np.dtype[Any]:
    """The type in which a plan holds the cache: no step then converts all of it."""
    ports = {port.name: port for port in bundle.manifest.inputs}
    held = {GRAPH_TYPES[ports[name].elem].dtype for name in cache_names(sizes)}
    return held.pop() if len(held) == 1 else np.dtype(np.float32)
