"""The decorators: what each means, where it may stand and what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

Kind = Literal["semantic", "informational"]
Target = Literal["buffer", "region", "let", "operand", "task", "loop"]
Argument = Literal["none", "integer", "index", "unit", "name"]


class Decorator(Struct, frozen=True, kw_only=True):
    """One decorator. Its argument, if it takes one, is never optional."""

    name: str  # without the `@`
    kind: Kind
    targets: tuple[Target, ...]
    # A constant, an index that may vary by iteration, a unit such as CSTL[1], or a name or tag.
    argument: Argument = "none"
    minimum: int | None = None  # of an integer argument or index
    only_opcode: str | None = None  # the one opcode whose tasks may carry it; None: every task
    # After the last operand of a compute task the grammar allows two readings, and this chooses:
    # what is said about memory belongs to the operand, everything else to the task.
    binds_to_operand: bool = False
    summary: str

    def fits(self, target: Target, opcode: str | None = None) -> bool:
        """Whether it may stand on such an object; `opcode` is that of a task."""
        if target not in self.targets:
            return False
        return target != "task" or self.only_opcode in (None, opcode)


_REGIONS: tuple[Target, ...] = ("region", "let", "operand")
_WORK: tuple[Target, ...] = ("task", "loop")

_ROWS = (
    Decorator(
        name="materialized",
        kind="semantic",
        targets=_REGIONS,
        binds_to_operand=True,
        summary="the value must exist in memory; fusion may not remove it",
    ),
    Decorator(
        name="readonly",
        kind="semantic",
        targets=_REGIONS,
        binds_to_operand=True,
        summary="no task writes through this region",
    ),
    Decorator(
        name="writeonly",
        kind="semantic",
        targets=_REGIONS,
        binds_to_operand=True,
        summary="no task reads through this region",
    ),
    Decorator(
        name="resource",
        kind="semantic",
        targets=("task",),
        argument="unit",
        summary="runs the task on this unit instance of its engine",
    ),
    # Semantic although it stands outside the language text's list: it decides where a task runs.
    Decorator(
        name="seq_engine",
        kind="semantic",
        targets=("task",),
        argument="index",
        minimum=0,
        summary="runs the task on this engine",
    ),
    Decorator(
        name="memmove",
        kind="semantic",
        targets=("task",),
        only_opcode="transfer",
        summary="lets source and destination overlap",
    ),
    Decorator(
        name="deterministic",
        kind="semantic",
        targets=_WORK,
        summary="floats are accumulated in a fixed order: the same bits everywhere",
    ),
    Decorator(
        name="max_in_flight",
        kind="semantic",
        targets=("loop",),
        argument="integer",
        minimum=1,
        summary="how many iterations may be active at once; 1 where it is absent",
    ),
    Decorator(
        name="debug",
        kind="informational",
        targets=("buffer", *_REGIONS, *_WORK),
        argument="name",
        summary="names the object for tools",
    ),
    Decorator(
        name="profile",
        kind="informational",
        targets=_WORK,
        argument="name",
        summary="adds the time of the object to this tag",
    ),
)

DECORATORS: Mapping[str, Decorator] = MappingProxyType({row.name: row for row in _ROWS})

if len(DECORATORS) != len(_ROWS):
    raise ValueError("a decorator is declared twice")
