"""Names of operations that torchvision looks for where its binary part cannot be loaded."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any


@cache
def define_detections() -> Any:  # noqa: ANN401 - what keeps the names alive, or None
    """Define them, so that torchvision and all that imports it can be imported.

    Its wheels are made for other builds of PyTorch than the one for CPUs alone; networks do without
    what is in there.
    """
    if not all(importlib.util.find_spec(name) for name in ("torch", "torchvision")):
        return None
    import torch

    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
        return library
    return None
