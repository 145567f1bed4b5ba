"""Concats of more tensors than an instruction names, as concats of concats.

The signature of an instruction has a letter for each of its arguments, and at most 255 letters: the
length of a text of PERM is a byte. The axis is one of them. The elements are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from nacre.core.module import CoreOperation, Module, TensorType
from nacre.nac.spec.instructions import MOST_ARGUMENTS

_MOST_TENSORS = MOST_ARGUMENTS - 1  # and an axis


def narrowed(module: Module) -> Module:
    """A module whose concats are as narrow as instructions are."""
    if not any(_is_wide(op) for op in module.operations):
        return module
    return _Narrowing(module).module_()


def _is_wide(op: CoreOperation) -> bool:
    return op.opcode == "Concat" and len(op.operands) > _MOST_TENSORS


@dataclass
class _Narrowing:
    """Puts concats of parts before the wide ones."""

    module: Module
    made: list[CoreOperation] = field(default_factory=list)

    def module_(self) -> Module:
        """The whole of it."""
        for op in self.module.operations:
            self.made.append(self._narrow(op) if _is_wide(op) else op)
        return replace(self.module, operations=tuple(self.made))

    def _narrow(self, op: CoreOperation) -> CoreOperation:
        types = [self.module.by_id[value].type for value in op.operands]
        operands, axis = op.operands, op.attributes["axis"] % op.type.rank
        while len(operands) > _MOST_TENSORS:
            parts = [
                self._part(op, operands[low:high], _joined(types[low:high], axis))
                for low, high in _chunks(len(operands))
            ]
            operands, types = tuple(p.value_id for p in parts), [p.type for p in parts]
        return CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type)

    def _part(
        self, op: CoreOperation, operands: tuple[int, ...], type_: TensorType
    ) -> CoreOperation:
        # Every number that is not taken will do: arranging deals out others.
        value = -1 - len(self.made)
        part = CoreOperation(value, op.opcode, operands, op.attributes, type_)
        self.made.append(part)
        return part


def _joined(types: list[TensorType], axis: int) -> TensorType:
    first = types[0]
    size = sum(type_.shape[axis] for type_ in types)
    return TensorType(first.dtype, (*first.shape[:axis], size, *first.shape[axis + 1 :]))


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """As few as will do, and all of nearly the same length."""
    parts = -(-count // _MOST_TENSORS)
    bounds = [count * at // parts for at in range(parts + 1)]
    yield from pairwise(bounds)
