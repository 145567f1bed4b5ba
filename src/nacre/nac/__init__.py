"""NAC: the binary format for networks, its compiler, its verifier and its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.nac.build import build
    from nacre.nac.format.file import read, to_bytes
    from nacre.nac.format.values import NacFile
    from nacre.nac.operations.operation import Operation
    from nacre.nac.operations.registry import register_operation
    from nacre.nac.program.canonical import canonical
    from nacre.nac.program.lift import lift
    from nacre.nac.program.lower import lower
    from nacre.nac.program.memory_map import memory_map
    from nacre.nac.quantise.apply import quantise
    from nacre.nac.run.model import NacModel, load
    from nacre.nac.run.session import NacSession
    from nacre.nac.save import save
    from nacre.nac.synthesis.grammar import Grammar
    from nacre.nac.synthesis.learning import learn_grammar
    from nacre.nac.synthesis.synthesise import synthesise
    from nacre.nac.training.optimisers import SGD, Adam, AdamW
    from nacre.nac.training.trainer import Trainer
    from nacre.nac.verify import verify

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Grammar",
    "NacFile",
    "NacModel",
    "NacSession",
    "Operation",
    "Trainer",
    "build",
    "canonical",
    "learn_grammar",
    "lift",
    "load",
    "lower",
    "memory_map",
    "quantise",
    "read",
    "register_operation",
    "save",
    "synthesise",
    "to_bytes",
    "verify",
]

load_on_use(
    __name__,
    {
        "SGD": "training.optimisers",
        "Adam": "training.optimisers",
        "AdamW": "training.optimisers",
        "Grammar": "synthesis.grammar",
        "NacFile": "format.values",
        "NacModel": "run.model",
        "NacSession": "run.session",
        "Operation": "operations.operation",
        "Trainer": "training.trainer",
        "build": "build",
        "canonical": "program.canonical",
        "learn_grammar": "synthesis.learning",
        "lift": "program.lift",
        "load": "run.model",
        "lower": "program.lower",
        "memory_map": "program.memory_map",
        "quantise": "quantise.apply",
        "read": "format.file",
        "register_operation": "operations.registry",
        "save": "save",
        "synthesise": "synthesis.synthesise",
        "to_bytes": "format.file",
        "verify": "verify",
    },
)
