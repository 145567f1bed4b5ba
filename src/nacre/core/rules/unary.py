"""UNA01-UNA07: one tensor element by element."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nacre.base.elements import GRAPH_TYPES
from nacre.core.rules.facts import OperationFacts, declare_behaviour, operation_rule

_UNARY = "Activation and elementwise unary operations"


@operation_rule("UNA01", "relu-type", _UNARY, "Relu")
def relu_type(facts: OperationFacts) -> Iterator[str]:
    """Relu in `core-v1` is for floats only; `nacre-1` has it for integers too."""
    if facts.profile == "core-v1":
        yield from _only_floats(facts)
    elif facts.types[0].dtype == "bool":
        yield "`Relu` of `bool`, expected numbers"


@operation_rule("UNA02", "neg-type", _UNARY, "Neg")
def neg_type(facts: OperationFacts) -> Iterator[str]:
    """Neg is for numbers only: not for `bool`."""
    if facts.types[0].dtype == "bool":
        yield "`Neg` of `bool`, expected numbers"


@operation_rule("UNA03", "exp-type", _UNARY, "Exp")
def exp_type(facts: OperationFacts) -> Iterator[str]:
    """Exp is for floats only."""
    yield from _only_floats(facts)


@operation_rule("UNA04", "log-type", _UNARY, "Log")
def log_type(facts: OperationFacts) -> Iterator[str]:
    """Log is for floats only."""
    yield from _only_floats(facts)


def _only_floats(facts: OperationFacts) -> Iterator[str]:
    element = GRAPH_TYPES.get(facts.types[0].dtype)
    if element is None or element.is_integer:
        yield f"`{facts.opcode}` of `{facts.types[0].dtype}`, expected floats"


_declare_behaviour = partial(declare_behaviour, _UNARY)
UNA05 = _declare_behaviour(
    "UNA05",
    "unary-type",
    """
    Relu, Neg, Exp and Log keep shape and element type.
    """,
)
UNA06 = _declare_behaviour(
    "UNA06",
    "log-and-nan",
    """
    Log of 0 is -inf and of a negative number NaN, as IEEE has it; Relu of NaN is 0, as the formula
    `x if x > 0 else 0` says.
    """,
)
UNA07 = _declare_behaviour(
    "UNA07",
    "relu-of-minus-zero",
    """
    Relu of -0.0 is 0.0, by the same formula.
    """,
)
