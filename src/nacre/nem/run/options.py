"""How a program is run, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from nacre.base.diagnostics import Diagnostic
from nacre.nem.model.imports import Import
from nacre.nem.run.machine.backends import Backends, NumpyBackend

Scheduling = Literal["deterministic", "random"]
Uninitialized = Literal["poison", "zero"]

# A session that can go back keeps what its steps overwrote, up to this much.
HISTORY_BYTES = 512 * 1024 * 1024


def _numpy_backend() -> Backends:
    return MappingProxyType({"": NumpyBackend()})


@dataclass(frozen=True)
class RunOptions:
    """How a program is run."""

    scheduling: Scheduling = "deterministic"
    seed: int = 0
    order: Sequence[str] | None = None  # instances by name; replaces the scheduling
    ordered: bool = False  # floats the same on every platform, slowly
    strict: bool = False  # warnings of the run stop it
    detect_races: bool = False
    fuse: bool = False  # chains of tasks stream: the values between them are never written
    observed: tuple[str, ...] = ()  # buffers that are looked at, and so never streamed
    history_bytes: int = 0  # 0: steps cannot be taken back
    backends: Backends = field(default_factory=_numpy_backend)
    inputs: Mapping[str, Any] = field(default_factory=dict)  # arrays by buffer
    imports: tuple[Import, ...] = ()  # buffers whose contents are the host's
    constant: tuple[str, ...] = ()  # buffers that the host never changes between runs
    allowed: tuple[Diagnostic, ...] = ()  # errors of the program that it runs in spite of
