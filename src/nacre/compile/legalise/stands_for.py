"""Which value of a legal module stands for which value of the model."""

from __future__ import annotations

from math import prod

from nacre.compile.legalise.legal_module import Legal
from nacre.core.module import Module, TensorType
from nacre.core.ops import OPS


def values_by_source(legal: Legal) -> dict[int, int]:
    """Values of a legal module by the number that they stand for in what was legalised.

    An operation of the model may have become several: the last of them has its result, unless it
    has a part of it. One that took over what followed, as a norm in its weights, has the result of
    the last of these.
    """
    found: dict[int, int] = {}
    for op in legal.module.operations:
        numbers = legal.origins.get(op.value_id)
        if numbers and "constant" not in OPS[op.opcode].traits:
            number = max(numbers)
            if _has_all_elements(legal.source, number, op.type):
                found[number] = op.value_id
    return found


def _has_all_elements(source: Module | None, number: int, type_: TensorType) -> bool:
    wanted = None if source is None else source.by_id.get(number)
    return wanted is None or prod(wanted.type.shape) == prod(type_.shape)
