"""TYP10-TYP13, TYP19, TYP22: norms, softmax, conversions, attributes, opcodes without family."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Check, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import violations
from nacre.nem.checks.rules.types.type_help import bindings_text, first_operand_finding
from nacre.nem.checks.tasks import (
    attribute_span,
    compute_tasks,
    op_span,
    operand_declaration,
    operand_span,
)
from nacre.nem.model.matching import join_names
from nacre.nem.spec.opcodes import Opcode

_APPENDIX = "Appendix: Type Family Definitions"
_MATCHING = "Opcode Type Legality and Type Families / Type Family Matching Rule"


@rule("TYP10", "scale-of-another-type", f"{_APPENDIX} / Normalization, note 2")
def scale_of_another_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The scale or bias of a normalisation has another element type than its input.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        - let g = region(M, 32, 32) elem=f32, shape=[8], layout=N
        + let g = region(M, 32, 16) elem=f16, shape=[8], layout=N
          r = rmsnorm.sync in X, g out X axis=1 epsilon=1.0e-5
    """
    for violation in violations(facts, "TYP10"):
        first = violation.differences[0]
        names = join_names([name for d in violation.differences for name in d.names])
        verb = "are" if len(violation.differences) > 1 else "is"
        message = f"{names} of `{violation.task.op}` {verb} {first.actual}, but its input is"
        yield first_operand_finding(
            facts, scale_of_another_type, violation, f"{message} {first.wanted}"
        )


@rule("TYP11", "not-a-float", f"{_APPENDIX} / Normalization and Softmax")
def not_a_float(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A softmax or normalisation works on integers; it takes f16, bf16 and f32 only.

    Bad (-) and good (+):

        - buffer S : L2 (size=16)
        - buffer M : L1 (size=16)
        - t = transfer.sync(dst=region(M, 0, 16), src=region(S, 0, 16))
        - let X = region(M, 0, 16) elem=i8, shape=[2, 8], layout=MN
        + buffer S : L2 (size=32)
        + buffer M : L1 (size=32)
        + t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
        + let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
          r = softmax.sync in X out X axis=1
    """
    for violation in violations(facts, "TYP11"):
        message = f"`{violation.task.op}` takes floats only: {bindings_text(violation)}"
        operand = violation.operands[0]
        yield not_a_float.at(
            operand_span(facts, operand, "elem"),
            message,
            related=operand_declaration(facts, operand, "elem"),
            help="convert to f16 with `dequantize` or `cast` first",
        )


@rule("TYP12", "not-a-quantisation", f"{_APPENDIX} / quantize")
def not_a_quantisation(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`quantize` goes from f16 or f32 to i8, and nowhere else.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
        - let X = region(M, 0, 32) elem=bf16, shape=[16], layout=C
        + let X = region(M, 0, 32) elem=f16, shape=[16], layout=C
          let Y = region(M, 32, 16) elem=i8, shape=[16], layout=C,
              quant=per_tensor(scale=0.5, zero_point=0)
          r = quantize.sync in X out Y
    """
    yield from _pairs(facts, not_a_quantisation, "f16 or f32 to i8")


@rule("TYP13", "not-a-dequantisation", f"{_APPENDIX} / dequantize")
def not_a_dequantisation(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`dequantize` goes from i8 to f16 or f32, and nowhere else.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
              quant=per_tensor(scale=0.5, zero_point=0)
        - let Y = region(M, 16, 32) elem=bf16, shape=[16], layout=C
        + let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
          r = dequantize.sync in X out Y
    """
    yield from _pairs(facts, not_a_dequantisation, "i8 to f16 or f32")


def _pairs(facts: ProgramFacts, check: Check[ProgramFacts], pairs: str) -> Iterator[Diagnostic]:
    for violation in violations(facts, check.code):
        source, result = (use.elem for use in violation.matches.signature.uses)
        message = f"`{violation.task.op}` goes from {pairs}, found {source} to {result}"
        yield first_operand_finding(facts, check, violation, message)


@rule("TYP22", "attribute-not-of-variant", _MATCHING)
def attribute_not_of_variant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An attribute of a task has another value than its type family asks for.

    Families stand in files of their own. With `mode = constant` in a family `pad.zeros`, and no
    other family on the device that takes the element types of the task, `pad` with `mode=reflect`
    matches nothing.
    """
    for violation in violations(facts, "TYP22"):
        for difference in violation.differences:
            (name,) = difference.names
            yield attribute_not_of_variant.at(
                attribute_span(facts, violation.task, name),
                f"`{name}` of `{violation.task.op}` is {difference.actual}, but variant "
                f"`{violation.nearest.instance.id}` takes {difference.wanted}",
                help=f"write `{name}={difference.wanted}`",
            )


@rule("TYP19", "no-type-family", "Opcode Signatures / Type families", severity="info")
def no_type_family(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """No type family says which element types an opcode takes, so any are accepted.

    Its structure is checked, and that the element type is kept. Said once for each opcode.

    Bad (-) and good (+):

        - buffer S : L2 (size=20)
        - buffer M : L1 (size=20)
        - t = transfer.sync(dst=region(M, 0, 20), src=region(S, 0, 20))
        + buffer S : L2 (size=16)
        + buffer M : L1 (size=16)
        + t = transfer.sync(dst=region(M, 0, 16), src=region(S, 0, 16))
          let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        - let Y = region(M, 16, 4) elem=i8, shape=[1, 2, 2, 1], layout=NHWC
        - r = maxpool.sync in X out Y kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]
        + r = relu.sync in X out X
    """
    seen: set[str] = set()
    for task, opcode in compute_tasks(facts):
        if not _lacks_family(facts, opcode) or opcode.name in seen:
            continue
        seen.add(opcode.name)
        message = f"no type family governs `{opcode.name}`: its element types are not checked"
        yield no_type_family.at(op_span(facts, task), message)


def _lacks_family(facts: ProgramFacts, opcode: Opcode) -> bool:
    return opcode.category != "generic" and opcode.name not in facts.device.effective_by_opcode
