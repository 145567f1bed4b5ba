"""Which operation a name stands for, where it is used.

A name is that of the operation before it that defines it, in its own body or in one around it.
Writer and reader ask this alike, so that a value comes back under a name that means it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Def = TypeVar("Def")


class Scopes(Generic[Def]):
    """The names that are known, and those that bodies which are open have hidden."""

    def __init__(self) -> None:
        self._known: dict[str, Def | None] = {}
        self._hidden: list[dict[str, Def | None]] = []

    def define(self, name: str, value: Def | None) -> None:
        """From here on the name means that value; None: it is no value that an operand can be."""
        if self._hidden:
            self._hidden[-1].setdefault(name, self._known.get(name))
        self._known[name] = value

    def find(self, name: str) -> Def | None:
        """What the name means here."""
        return self._known.get(name)

    def open(self) -> None:
        """Begin a body."""
        self._hidden.append({})

    def close(self) -> None:
        """End it: what it defined is not known any more."""
        self._known.update(self._hidden.pop())
