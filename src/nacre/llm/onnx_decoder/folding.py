"""Values of a module under construction that follow from its constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module


def fold_to_array(b: Builder, value: int) -> npt.NDArray[Any] | None:
    """The elements of a value; None where they depend on an input."""
    op = b.operation(value)
    array = constant_array(op)
    if array is not None:
        return array
    part = _part(b, value)
    return None if part is None else np.asarray(part.session().run({})[0])


def _part(b: Builder, value: int) -> Module | None:
    """The operations that a value follows from; None where there is an input among them."""
    found: dict[int, CoreOperation] = {}
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        op = found[at] = b.operation(at)
        if op.opcode == "Input":
            return None
        waiting += op.operands
    return Module(tuple(found[at] for at in sorted(found)), (value,))
