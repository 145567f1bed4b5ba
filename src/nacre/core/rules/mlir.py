"""MLR01: what has no form in MLIR."""

from nacre.base.rules import declare

MLR01 = declare(
    "MLR01", "no-mlir-form", "Core IR / Instruction set and semantics",
    """
    A module is converted to MLIR, and one of its operations has no form there.

    The operations of `core-v1` all have one, on every element type that they are defined for. What
    has none: operations of `nacre-1` that are not translated, arithmetic on `bool`, an `Index`
    outside of its tensor, which fails in every run, and a padded tensor of 2^63 elements or more.
    """, language="Core IR")  # fmt: skip
