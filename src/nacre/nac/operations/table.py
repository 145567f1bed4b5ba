"""Kernels of ours by the names of their calls; modules fill it as they are imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from nacre.base.handlers import Handlers
from nacre.core.opaque.schemas import parse_schema
from nacre.nac.operations.operation import Kernel, Operation, ShapeFunction

_TABLE = Handlers[Operation]()
KernelT = TypeVar("KernelT", bound=Kernel)


def computes(
    *calls: str,
    schema: str,
    shape: ShapeFunction,
    random: bool = False,
    effort: Literal["linear", "cubic"] = "linear",
    is_kept: bool = True,
) -> Callable[[KernelT], KernelT]:
    """Register a kernel for calls of ATen, written `name.overload`."""

    def register(kernel: KernelT) -> KernelT:
        for call in calls:
            name = f"aten.{call}"
            parsed = parse_schema(name, schema)
            made = Operation(kernel, shape, random, parsed, effort, is_kept)
            _TABLE.register(name)(made)
        return kernel

    return register


def registered_kernels() -> Mapping[str, Operation]:
    """Kernels by name, of the modules that are imported; a registry imports all."""
    return _TABLE.registered
