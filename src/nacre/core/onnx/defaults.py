"""Inputs that have a default: an initialiser of the same name, which is what they are fixed to.

Until version 3 of ONNX's format every initialiser had to be an input too, and said nothing by it.
From version 4 on such an input may be given or left out, which a module cannot say.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import CONSTANT, finding
from nacre.core.rules.onnx import ONX10

_FIRST_WITH_DEFAULTS = 4  # of `ir_version`
_MOST_NAMED = 4
_MEND = (
    f"{CONSTANT} gives one another value;"
    " to keep one an input, take its initialiser out of the model"
)


def warn_of_fixed_inputs(model: Any, others: Container[str], name: str) -> list[Diagnostic]:  # noqa: ANN401
    """One warning about all inputs that are fixed to their defaults; `others` have values."""
    graph = model.graph
    held = {tensor.name for tensor in graph.initializer}
    held |= {tensor.values.name for tensor in graph.sparse_initializer}
    fixed = [i.name for i in graph.input if i.name in held and i.name not in others]
    if model.ir_version < _FIRST_WITH_DEFAULTS or not fixed:
        return []
    named = ", ".join(backquote(given) for given in fixed[:_MOST_NAMED])
    more = f" and {len(fixed) - _MOST_NAMED:,} more" if len(fixed) > _MOST_NAMED else ""
    if len(fixed) == 1:
        message = f"input {named} has a default and is fixed to it"
    else:
        message = f"{len(fixed):,} inputs have defaults and are fixed to them: {named}{more}"
    return [finding(ONX10, name, message, _MEND)]
