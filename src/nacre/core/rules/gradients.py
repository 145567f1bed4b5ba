"""GRD01-GRD03: what a gradient is asked of."""

from nacre.base.rules import declare

_CLAUSE = "Core IR / Canonicalisation / Gradients"
_CORE = "Core IR"

GRD01 = declare(
    "GRD01", "no-gradient", _CLAUSE,
    """
    A gradient would have to pass an operation that has none: one that quantises, or an `Einsum`
    with more axes than there are letters. All of them are reported.

    Operations whose result does not change in small steps (`Floor`, `Compare`, `ArgMax`) are no
    error: their gradient is zero.
    """, language=_CORE)  # fmt: skip
GRD02 = declare(
    "GRD02", "gradient-name", _CLAUSE,
    """
    A gradient is asked for by a name that no Input of the module has.
    """, language=_CORE)  # fmt: skip
GRD03 = declare(
    "GRD03", "gradient-type", _CLAUSE,
    """
    A gradient is asked for by an Input of integers or truth values. Only floats have one.
    """, language=_CORE)  # fmt: skip
