"""NAC: the binary format for networks, its compiler, its verifier and its runtime."""

from __future__ import annotations

import importlib
import sys
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.nac.build import build
    from nacre.nac.canonical import canonical
    from nacre.nac.format.file import read, to_bytes
    from nacre.nac.format.values import NacFile
    from nacre.nac.lift import lift
    from nacre.nac.lower import lower
    from nacre.nac.memory_map import memory_map
    from nacre.nac.quantise.apply import quantise
    from nacre.nac.run.model import NacModel, load
    from nacre.nac.run.session import NacSession
    from nacre.nac.save import save
    from nacre.nac.verify import verify

__all__ = [
    "NacFile",
    "NacModel",
    "NacSession",
    "build",
    "canonical",
    "lift",
    "load",
    "lower",
    "memory_map",
    "quantise",
    "read",
    "save",
    "to_bytes",
    "verify",
]

# Where each name lives. Loaded on first use: reading a file must not pay for running one.
_HOMES = MappingProxyType(
    {
        "NacFile": "format.values",
        "NacModel": "run.model",
        "NacSession": "run.session",
        "build": "build",
        "canonical": "canonical",
        "lift": "lift",
        "load": "run.model",
        "lower": "lower",
        "memory_map": "memory_map",
        "quantise": "quantise.apply",
        "read": "format.file",
        "save": "save",
        "to_bytes": "format.file",
        "verify": "verify",
    }
)


class _Room(ModuleType):
    """This package: a public name stays what it is when a file of the same name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'nacre.nac' has no attribute {name!r}")
    return getattr(importlib.import_module(f"nacre.nac.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
