"""Core IR: the graph IR that everything passes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use
from nacre.core.sessions import register_evaluator

if TYPE_CHECKING:
    from nacre.core.builder import Builder
    from nacre.core.canonical import canonicalise
    from nacre.core.evaluation.evaluate import CoreSession, Evaluation, evaluate, evaluate_with_peak
    from nacre.core.expressions import lower
    from nacre.core.gradients.grad import grad
    from nacre.core.mlir.export import to_mlir
    from nacre.core.module import CoreOperation, Module, TensorType
    from nacre.core.onnx.importer import from_onnx
    from nacre.core.onnx_export.export import to_onnx
    from nacre.core.passes.inference import optimise
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

load_on_use(
    __name__,
    {
        "Builder": "builder",
        "CoreOperation": "module",
        "CoreSession": "evaluation.evaluate",
        "Evaluation": "evaluation.evaluate",
        "Module": "module",
        "TensorType": "module",
        "canonicalise": "canonical",
        "evaluate": "evaluation.evaluate",
        "evaluate_with_peak": "evaluation.evaluate",
        "from_onnx": "onnx.importer",
        "from_torch": "torch.importer",
        "grad": "gradients.grad",
        "load": "storage",
        "lower": "expressions",
        "optimise": "passes.inference",
        "parse": "text.reader",
        "print_module": "text.printer",
        "save": "storage",
        "to_mlir": "mlir.export",
        "to_onnx": "onnx_export.export",
        "verify": "verify",
    },
)


def _session(module: Module) -> CoreSession:
    from nacre.core.evaluation.evaluate import CoreSession

    return CoreSession(module)


register_evaluator(_session)
