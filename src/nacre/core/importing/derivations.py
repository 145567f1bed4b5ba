"""Tensors that were computed from parameters at import: known, and made again in the module.

An importer knows the elements of `1 + weight`, and handlers may look at them. Where the module is
to keep its parameters, such a tensor does not become a constant, in which the parameter would be
lost, but the operations that compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nacre.core.unsupported import Unsupported

Key = Hashable  # what tells a tensor from others while it lives
BuilderT = TypeVar("BuilderT")  # what operations are added to
Emitter = Callable[[BuilderT], "int | None"]  # the value that operations give, where they do


@dataclass(frozen=True)
class _Derivation(Generic[BuilderT]):
    """How a tensor is computed, from which others of this kind."""

    owner: object  # an address is only its own while it lives
    operands: tuple[Key, ...]
    emit: Emitter[BuilderT]


@dataclass(eq=False)
class Derivations(Generic[BuilderT]):
    """What was computed from parameters, by the keys of tensors."""

    _known: dict[Key, _Derivation[BuilderT]] = field(default_factory=dict)
    _made: dict[Key, int | None] = field(default_factory=dict)
    _roots: set[Key] = field(default_factory=set)  # what others were computed from, itself given

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def fork(self) -> Derivations[BuilderT]:
        """The same for another builder, which goes its own way."""
        return Derivations(self._known, dict(self._made), self._roots)

    def add(
        self, key: Key, owner: object, operands: Sequence[Key], emit: Emitter[BuilderT]
    ) -> None:
        """A tensor that was computed; one that is there already only lies under another name."""
        self._roots.update(operand for operand in operands if operand not in self._known)
        if key in self._roots:  # laid out there and back, it is the parameter again
            return
        found = tuple(operand for operand in operands if operand in self._known)
        self._known.setdefault(key, _Derivation(owner, found, emit))

    def value(self, key: Key, builder: BuilderT) -> int | None:
        """The value of a tensor, what it is computed from first; None where it has no form."""
        waiting = [key] if key in self._known else []
        while waiting:
            derivation = self._known[waiting[-1]]
            missing = [operand for operand in derivation.operands if operand not in self._made]
            if missing:
                waiting += missing
            else:
                self._emit(waiting.pop(), derivation, builder)
        return self._made.get(key)

    def _emit(self, key: Key, derivation: _Derivation[BuilderT], builder: BuilderT) -> None:
        if key not in self._made:
            try:
                self._made[key] = derivation.emit(builder)
            except Unsupported:  # it becomes a constant
                self._made[key] = None
