"""QNT09-QNT13, QNT16, QNT18: which operands carry `quant` by the type families."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import Violation, type_matches, violations
from nacre.nem.checks.tasks import operand_declaration, operand_span, operand_title
from nacre.nem.model.families import QUANT, REQUIRED
from nacre.nem.model.matching import join_names

_CONSTRAINTS = "Opcode Type Legality and Type Families / Quantization Constraints"
_APPENDIX = "Appendix: Type Family Definitions"


def _one_finding(
    facts: ProgramFacts, check: Check[ProgramFacts], violation: Violation, text: str, help: str
) -> Diagnostic:
    """A finding for a task, at the first operand that the rule speaks of, naming all of them."""
    names = [name for d in violation.differences for name in d.names]
    several = len(names) > 1
    message = (
        f"{'operands' if several else 'operand'} {join_names(names)} of `{violation.task.op}` "
        f"{'carry' if several else 'carries'} {text.format(violation.nearest.instance.id)}"
    )
    first, *others = violation.operands
    related = tuple(
        Related(operand_span(facts, o, "quant"), operand_title(violation.task, o)) for o in others
    )
    return check.at(operand_span(facts, first, "quant"), message, related=related, help=help)


def _report_missing_quant(facts: ProgramFacts, check: Check[ProgramFacts]) -> Iterator[Diagnostic]:
    for violation in violations(facts, check.code):
        text = "no `quant`, which variant `{}` requires"
        help_ = "add `quant=per_tensor(scale=..., zero_point=...)` to the region"
        yield _one_finding(facts, check, violation, text, help_)


@rule("QNT09", "product-without-quant", _CONSTRAINTS)
def product_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An 8-bit product or convolution has an input or weights without `quant`.

    Without scale and zero point an integer has no value.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
        - let A = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MK
        - let B = region(M, 16, 16) elem=i8, shape=[4, 4], layout=KN
        - let Y = region(M, 32, 16) elem=i8, shape=[4, 4], layout=MN
        + let A = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MK,
        +     quant=per_tensor(scale=0.02, zero_point=3)
        + let B = region(M, 16, 16) elem=i8, shape=[4, 4], layout=KN,
        +     quant=per_tensor(scale=0.005, zero_point=0)
        + let Y = region(M, 32, 16) elem=i8, shape=[4, 4], layout=MN,
        +     quant=per_tensor(scale=0.25, zero_point=-10)
          g = gemm.sync in A, B out Y accum_type=i32
    """
    yield from _report_missing_quant(facts, product_without_quant)


@rule("QNT10", "weights-without-quant", f"{_APPENDIX} / conv2d.int4 and gemm.int4, note 2")
def weights_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The 4-bit weights of a product or convolution carry no `quant`.

    Bad (-) and good (+):

          include "npm4k.nem"
          device npm4k
          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let A = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MK
        - let B = region(M, 16, 8) elem=i4, shape=[4, 4], layout=KN
        + let B = region(M, 16, 8) elem=i4, shape=[4, 4], layout=KN,
        +     quant=per_tensor(scale=0.005, zero_point=0)
          let Y = region(M, 32, 16) elem=i8, shape=[4, 4], layout=MN,
              quant=per_tensor(scale=0.25, zero_point=-10)
          g = gemm.sync in A, B out Y accum_type=i32
    """
    yield from _report_missing_quant(facts, weights_without_quant)


@rule("QNT11", "float-product-with-quant", f"{_APPENDIX} / conv2d and gemm")
def float_product_with_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operand of a float product or convolution carries `quant`.

    Bad (-) and good (+):

          buffer S : L2 (size=96)
          buffer M : L1 (size=96)
          t = transfer.sync(dst=region(M, 0, 96), src=region(S, 0, 96))
        - let A = region(M, 0, 32) elem=f16, shape=[4, 4], layout=MK,
        -     quant=per_tensor(scale=0.5, zero_point=0)
        + let A = region(M, 0, 32) elem=f16, shape=[4, 4], layout=MK
          let B = region(M, 32, 32) elem=f16, shape=[4, 4], layout=KN
          let Y = region(M, 64, 32) elem=f16, shape=[4, 4], layout=MN
          g = gemm.sync in A, B out Y accum_type=f32
    """
    for violation in violations(facts, "QNT11"):
        text = "`quant`, which variant `{}` does not take"
        help_ = "leave `quant` out; floats have their own scale"
        yield _one_finding(facts, float_product_with_quant, violation, text, help_)


@rule("QNT12", "quantize-without-quant", f"{_APPENDIX} / quantize")
def quantize_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of `quantize` carries no `quant` to quantise by.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let X = region(M, 0, 32) elem=f16, shape=[16], layout=C
        - let Y = region(M, 32, 16) elem=i8, shape=[16], layout=C
        + let Y = region(M, 32, 16) elem=i8, shape=[16], layout=C,
        +     quant=per_tensor(scale=0.5, zero_point=0)
          q = quantize.sync in X out Y
    """
    yield from _report_missing_quant(facts, quantize_without_quant)


@rule("QNT13", "dequantize-without-quant", f"{_APPENDIX} / dequantize")
def dequantize_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The input of `dequantize` carries no `quant` that says what its integers mean.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
        - let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        + let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
        +     quant=per_tensor(scale=0.5, zero_point=0)
          let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
          d = dequantize.sync in X out Y
    """
    yield from _report_missing_quant(facts, dequantize_without_quant)


@rule("QNT16", "output-without-quant", _CONSTRAINTS, severity="warning")
def output_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The integer output of a quantised product carries no `quant`.

    The sum is then cut to the range of the output's type as it is, which is rarely what is meant;
    with `quant` it is scaled first.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let A = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MK,
              quant=per_tensor(scale=0.02, zero_point=3)
          let B = region(M, 16, 16) elem=i8, shape=[4, 4], layout=KN,
              quant=per_tensor(scale=0.005, zero_point=0)
        - let Y = region(M, 32, 16) elem=i8, shape=[4, 4], layout=MN
        + let Y = region(M, 32, 16) elem=i8, shape=[4, 4], layout=MN,
        +     quant=per_tensor(scale=0.25, zero_point=-10)
          g = gemm.sync in A, B out Y accum_type=i32
    """
    for task, opcode, matches in type_matches(facts):
        instance = matches.instance
        if instance is None or not opcode.is_product:
            continue
        if instance.attributes.get(QUANT) != REQUIRED:
            continue
        for operand, use in zip(task.operands, matches.signature.uses, strict=True):
            is_bare = ELEMENT_TYPES[use.elem].is_integer and not use.has_quant
            if operand.access == "write" and is_bare:
                yield output_without_quant.at(
                    operand_span(facts, operand, "elem"),
                    f"{operand_title(task, operand)} is {use.elem} without `quant`; "
                    f"sums are cut to {use.elem} unscaled",
                    related=operand_declaration(facts, operand, "elem"),
                    help="add `quant=per_tensor(scale=..., zero_point=...)` to the region",
                )


@rule("QNT18", "operand-without-quant", _CONSTRAINTS)
def operand_without_quant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A type family asks for `quant`, and an integer operand of the task carries none.

    The task is computed on real values: its integers are dequantised, the result is quantised
    again. So all of them need a scale, unless the family says `required on` one operand. Families
    stand in files of their own: with one such as

        type_family softmax.int<T: {i8}> {
            input: T
            output: T
            quant = required
            variants:
                default: {} conformance: { MAY <i8> }
        }

    `softmax` of i8 needs `quant=per_tensor(scale=..., zero_point=...)` on its input and its output.
    """
    yield from _report_missing_quant(facts, operand_without_quant)
