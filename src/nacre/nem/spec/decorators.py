"""The decorators: what each means, where it may stand and what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

Kind = Literal["semantic", "informational"]
Target = Literal["buffer", "region", "let", "operand", "task", "loop"]
Argument = Literal["none", "integer", "index", "unit", "name"]


class Decorator(Struct, frozen=True):
    """One decorator. Its argument, if it takes one, is never optional."""

    name: str  # without the `@`
    targets: tuple[Target, ...]
    summary: str
    kind: Kind = "semantic"
    # A constant, an index that may vary by iteration, a unit such as CSTL[1], or a name or tag.
    argument: Argument = "none"
    minimum: int | None = None  # of an integer argument or index
    only_opcode: str | None = None  # the one opcode whose tasks may carry it; None: every task

    @property
    def binds_to_operand(self) -> bool:
        """Whether it belongs to the last operand of a compute task, and not to the task.

        The grammar allows two readings, and this chooses: what is said about memory alone.
        """
        return self.targets == _REGIONS

    def fits(self, target: Target, opcode: str | None = None) -> bool:
        """Whether it may stand on such an object; `opcode` is that of a task."""
        if target not in self.targets:
            return False
        return target != "task" or self.only_opcode in (None, opcode)


_REGIONS: tuple[Target, ...] = ("region", "let", "operand")
_WORK: tuple[Target, ...] = ("task", "loop")

_ROWS = (
    Decorator("materialized", _REGIONS,
              "the value must exist in memory; fusion may not remove it"),
    Decorator("readonly", _REGIONS, "no task writes through this region"),
    Decorator("writeonly", _REGIONS, "no task reads through this region"),
    Decorator("resource", ("task",), "runs the task on this unit instance of its engine",
              argument="unit"),
    # Semantic although it stands outside the language text's list: it decides where a task runs.
    Decorator("seq_engine", ("task",), "runs the task on this engine",
              argument="index", minimum=0),
    Decorator("memmove", ("task",), "lets source and destination overlap",
              only_opcode="transfer"),
    Decorator("deterministic", _WORK,
              "floats are accumulated in a fixed order: the same bits everywhere"),
    Decorator("max_in_flight", ("loop",),
              "how many iterations may be active at once; 1 where it is absent",
              argument="integer", minimum=1),
    Decorator("debug", ("buffer", *_REGIONS, *_WORK), "names the object for tools",
              "informational", "name"),
    Decorator("profile", _WORK, "adds the time of the object to this tag",
              "informational", "name"),
)  # fmt: skip

DECORATORS: Mapping[str, Decorator] = MappingProxyType({row.name: row for row in _ROWS})

if len(DECORATORS) != len(_ROWS):
    raise ValueError("a decorator is declared twice")
