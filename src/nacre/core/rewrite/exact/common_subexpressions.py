"""Operations that compute the same, once."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from nacre.core.constants import CONSTANTS, constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.text.operations import attributes_text
from nacre.core.values import Array

_LONG_BYTES = 4096
_SAMPLES = 64  # elements that tell most long constants apart
# Equal attributes are not the same where 0.0 equals -0.0: their text tells them apart.
_WITH_FLOATS = frozenset(
    name
    for name, spec in OPS.items()
    if any(attribute.kind in ("float", "floats") for attribute in spec.attributes)
)


def common_subexpressions(module: Module) -> Module:
    """Compute equal expressions once.

    - an operation with the opcode, operands, attributes and type of an earlier one: the earlier
    - a constant with the type and the bits of an earlier one, however it is spelled: the earlier

    Inputs are never joined, nor parameters of a model that keeps them apart.
    """
    return simplify(module, join_rules())


def join_rules() -> Rules:
    """The rule, with a memory of its own."""
    known: dict[Hashable, int] = {}
    constants = _LongConstants()

    def join(site: RewriteSite) -> int | None:
        # A parameter is itself, whatever its elements are now.
        key = _key(site.op, constants), site.parameters.get(site.op.value_id)
        first = known.setdefault(key, site.op.value_id)
        return None if first == site.op.value_id else first

    return {opcode: [join] for opcode in OPS if opcode != "Input"}


def _key(op: CoreOperation, constants: _LongConstants) -> Hashable:
    if op.opcode in CONSTANTS:
        return _constant_key(op, constants)
    given = attributes_text(op.attributes) if op.opcode in _WITH_FLOATS else op.attributes
    return op.opcode, op.operands, given, op.type


def _constant_key(op: CoreOperation, constants: _LongConstants) -> Hashable:
    array = constant_array(op)
    if array is None:
        return op.value_id
    if array.nbytes > _LONG_BYTES:
        return constants.first_equal(op, array)
    return op.type, array.tobytes()


class _LongConstants:
    """Constants compared instead of hashed: networks have hundreds of megabytes of them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, list[tuple[int, Array]]] = {}

    def first_equal(self, op: CoreOperation, array: Array) -> int:
        """The first constant with this type and these bits: perhaps this one."""
        places = np.linspace(0, array.size - 1, _SAMPLES).astype(np.int64)
        sample = array[np.unravel_index(places, array.shape)].tobytes()
        alike = self._known.setdefault((op.type, sample), [])
        for value_id, other in alike:
            if array is other or np.array_equal(_bits(array), _bits(other)):
                return value_id
        alike.append((op.value_id, array))
        return op.value_id


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
