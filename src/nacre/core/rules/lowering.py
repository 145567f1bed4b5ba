"""LOW: surface expressions. CAN: what the canonical form promises."""

from nacre.base.rules import declare

_SURFACE = "Core IR / Surface language lowering"
_CANONICAL = "Core IR / Canonicalisation"
_CORE = "Core IR"

LOW01 = declare(
    "LOW01", "expression-syntax", _SURFACE,
    """
    An expression cannot be read.

    It consists of names, numbers, lists of numbers, `+`, `-`, `*`, `@`, parentheses and calls such
    as `sum(x, axes=[1], keepdims=true)`.
    """, language=_CORE)  # fmt: skip
LOW02 = declare(
    "LOW02", "expression-name", _SURFACE,
    """
    A name in an expression is neither an input that was given nor a function that exists.
    """, language=_CORE)  # fmt: skip
LOW03 = declare(
    "LOW03", "expression-arguments", _SURFACE,
    """
    A call in an expression has too many or too few arguments, one that the function does not know,
    or one of another kind.
    """, language=_CORE)  # fmt: skip
LOW04 = declare(
    "LOW04", "expression-literal", _SURFACE,
    """
    A literal in an expression is ragged, or holds a number that its element type does not have.

    A literal takes the element type of what it is combined with. Where that is nothing but other
    literals, it is `i64` if all of them are integers, and `f32` otherwise.
    """, language=_CORE)  # fmt: skip
LOW05 = declare(
    "LOW05", "expression-limit", _SURFACE,
    """
    An expression is too long, or nested too deep.
    """, language=_CORE)  # fmt: skip
LOW06 = declare(
    "LOW06", "expression-input", _SURFACE,
    """
    The type of an input of an expression cannot be read. It is written as in `f32[2,3]`.
    """, language=_CORE)  # fmt: skip

CAN01 = declare(
    "CAN01", "operand-order", _CANONICAL,
    """
    The operands of `Add` and `Mul` stand by ascending id.
    """, behaviour=True, language=_CORE)  # fmt: skip
CAN02 = declare(
    "CAN02", "operand-order-kept", _CANONICAL,
    """
    The operands of `Sub` and `Div` are never exchanged.
    """, behaviour=True, language=_CORE)  # fmt: skip
CAN03 = declare(
    "CAN03", "safe-folding", _CANONICAL,
    """
    Constants are folded only where that is safe: integers that would wrap, and floats that would
    become infinite or NaN, are left to the run.
    """, behaviour=True, language=_CORE)  # fmt: skip
CAN04 = declare(
    "CAN04", "pruning", _CANONICAL,
    """
    Operations that nothing uses are removed; Inputs, outputs and state stay.
    """, behaviour=True, language=_CORE)  # fmt: skip
CAN05 = declare(
    "CAN05", "idempotence", _CANONICAL,
    """
    Canonicalising twice is canonicalising once, and a valid module stays valid.
    """, behaviour=True, language=_CORE)  # fmt: skip
CAN06 = declare(
    "CAN06", "exact-folding", _CANONICAL,
    """
    A folded float has the bits that the run would give.
    """, behaviour=True, language=_CORE)  # fmt: skip
