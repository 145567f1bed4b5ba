"""Operations that compute the same, once."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

import numpy as np

from nacre.core.constants import CONSTANTS, constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.text.operations import attributes_text

_LONG_BYTES = 4096
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

    def join(site: RewriteSite) -> int | None:
        # A parameter is itself, whatever its elements are now.
        key = _key(site.op), site.parameters.get(site.op.value_id)
        first = known.setdefault(key, site.op.value_id)
        return None if first == site.op.value_id else first

    return {opcode: [join] for opcode in OPS if opcode != "Input"}


def _key(op: CoreOperation) -> Hashable:
    if op.opcode in CONSTANTS:
        return _constant_key(op)
    given = attributes_text(op.attributes) if op.opcode in _WITH_FLOATS else op.attributes
    return op.opcode, op.operands, given, op.type


def _constant_key(op: CoreOperation) -> Hashable:
    array = constant_array(op)
    if array is None:
        return op.value_id
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    # A digest instead of a copy: networks have constants of hundreds of megabytes.
    bits = blake2b(raw.data).digest() if raw.size > _LONG_BYTES else raw.tobytes()
    return op.type, bits
