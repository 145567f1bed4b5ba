"""Core IR: the graph IR that everything passes through."""

from __future__ import annotations

import importlib
import sys
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.core.builder import Builder
    from nacre.core.canonical import canonicalise
    from nacre.core.evaluate import CoreSession, Evaluation, evaluate, evaluate_with_peak
    from nacre.core.expressions import lower
    from nacre.core.gradients.grad import grad
    from nacre.core.inference.pipeline import optimise
    from nacre.core.mlir.export import to_mlir
    from nacre.core.module import CoreOperation, Module, TensorType
    from nacre.core.onnx.importer import from_onnx
    from nacre.core.onnx_export.export import to_onnx
    from nacre.core.storage import load, save
    from nacre.core.text.printer import print_module
    from nacre.core.text.reader import parse
    from nacre.core.torch.importer import from_torch
    from nacre.core.verify import verify

__all__ = [
    "Builder",
    "CoreOperation",
    "CoreSession",
    "Evaluation",
    "Module",
    "TensorType",
    "canonicalise",
    "evaluate",
    "evaluate_with_peak",
    "from_onnx",
    "from_torch",
    "grad",
    "load",
    "lower",
    "optimise",
    "parse",
    "print_module",
    "save",
    "to_mlir",
    "to_onnx",
    "verify",
]

# Where each name lives. Loaded on first use: reading a module must not pay for evaluating one.
_HOMES = MappingProxyType(
    {
        "Builder": "builder",
        "CoreOperation": "module",
        "CoreSession": "evaluate",
        "Evaluation": "evaluate",
        "Module": "module",
        "TensorType": "module",
        "canonicalise": "canonical",
        "evaluate": "evaluate",
        "evaluate_with_peak": "evaluate",
        "from_onnx": "onnx.importer",
        "from_torch": "torch.importer",
        "grad": "gradients.grad",
        "load": "storage",
        "lower": "expressions",
        "optimise": "inference.pipeline",
        "parse": "text.reader",
        "print_module": "text.printer",
        "save": "storage",
        "to_mlir": "mlir.export",
        "to_onnx": "onnx_export.export",
        "verify": "verify",
    }
)


class _Room(ModuleType):
    """This package: a public name stays what it is when a file of the same name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        # Importing `nacre.core.verify` would put that module in the place of the function.
        if name in _HOMES and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'nacre.core' has no attribute {name!r}")
    return getattr(importlib.import_module(f"nacre.core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
