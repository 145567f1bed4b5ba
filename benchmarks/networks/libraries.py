"""Libraries that networks of the benchmarks come from."""

from __future__ import annotations

import importlib
from typing import Any

from tests.detection_names import define_detections


def load_transformers() -> Any:  # noqa: ANN401 - a module without types
    """transformers, which looks for torchvision and ends where its binary part cannot be loaded."""
    define_detections()
    return importlib.import_module("transformers")
