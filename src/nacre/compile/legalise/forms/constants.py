"""Operations on constants, done ahead of time: no device needs to compute what is known."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.rounds import Forms
from nacre.core.inference.rewriting import RewriteSite
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.interface.call import Call, TensorType
from nacre.kernels.registry import PRIMITIVES

_LARGEST = 1 << 24  # elements: beyond, a constant costs more memory than it saves work


def fold(site: RewriteSite) -> int | None:
    """The result of an operation whose operands are all known."""
    if prod(site.op.type.shape) > _LARGEST:
        return None
    arrays = [site.constant(value) for value in site.operands]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    made = _computed(site, known)
    return None if made is None else site.literal(made, site.op.type.dtype)


def _computed(site: RewriteSite, arrays: list[Array]) -> Array | None:
    spec = OPS[site.op.opcode]
    if spec.primitive is None:
        return None
    types = [site.type(value) for value in site.operands]
    element, shape = site.op.type.element, site.op.type.shape
    call = Call(
        tuple(TensorType(t.element, t.shape) for t in types),
        (TensorType(element, shape),),
        spec.filled(site.op.attributes),
    )
    result: Array = np.empty(shape, TensorType(element, shape).dtype)
    try:
        fault = PRIMITIVES[spec.primitive].bind(call)(arrays, [result])
    except (ValueError, TypeError):
        return None
    return None if fault is not None else result


_NOT_COMPUTED = frozenset({"Input"})
CONSTANT_FORMS: Forms = {
    name: [fold]
    for name, spec in OPS.items()
    if "constant" not in spec.traits and name not in _NOT_COMPUTED
}
