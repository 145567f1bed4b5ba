"""Which value of a legal module stands for which value of the model."""

from __future__ import annotations

from nacre.compile.legalise.legal_module import Legal
from nacre.core.ops import OPS


def values_by_source(legal: Legal) -> dict[int, int]:
    """Values of a legal module by the number that they stand for in what was legalised.

    An operation of the model may have become several: the last of them has its result. One that
    took over what followed, as a norm in its weights, has the result of the last of these.
    """
    found: dict[int, int] = {}
    for op in legal.module.operations:
        numbers = legal.origins.get(op.value_id)
        if numbers and "constant" not in OPS[op.opcode].traits:
            found[max(numbers)] = op.value_id
    return found
