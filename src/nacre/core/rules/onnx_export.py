"""EXP01: what has no form in ONNX."""

from nacre.base.rules import declare

EXP01 = declare(
    "EXP01", "no-onnx-form", "Core IR / Instruction set and semantics",
    """
    A module is written as an ONNX model, and one of its operations has no form there that
    onnxruntime runs with the results of the evaluator. All such operations are reported at once.

    What has none: functions of `f64` that onnxruntime lacks, such as `Erf`; integer powers whose
    exponents are not constant; arithmetic on `bool`; interpolation of `i64`; a `QPool` that takes
    the mean of more than 64 elements between different scales; whatever would need a constant of
    more than 2^26 elements beside its operands; an `Index` outside of its tensor, which fails in
    every run.
    """, language="Core IR")  # fmt: skip
