"""Operations on constants, computed with the kernels that would run them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.core.constants import kernel_type
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array
from nacre.kernels.interface.call import Call
from nacre.kernels.registry import PRIMITIVES


def known_operands(site: RewriteSite) -> list[Array] | None:
    """The operands of the operation at hand as arrays; None where one is no constant."""
    arrays = []
    for operand in site.operands:
        array = site.constant(operand)
        if array is None:
            return None
        arrays.append(array)
    return arrays


def compute(site: RewriteSite, arrays: Sequence[Array]) -> Array | None:
    """What the operation at hand makes of arrays; None where a kernel finds fault with them."""
    spec, type_ = OPS[site.op.opcode], kernel_type(site.op.type)
    if spec.primitive is None:
        return None
    inputs = tuple(kernel_type(site.type(value)) for value in site.operands)
    call = Call(inputs, (type_,), spec.with_defaults(site.op.attributes))
    result: Array = np.empty(type_.shape, type_.dtype)
    try:
        fault = PRIMITIVES[spec.primitive].bind(call)(list(arrays), [result])
    except (ValueError, TypeError):
        return None
    return None if fault is not None else result
