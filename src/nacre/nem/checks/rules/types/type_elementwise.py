"""TYP07-TYP09, TYP16, TYP17: element types of elementwise and view opcodes."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import type_matches, violations
from nacre.nem.checks.rules.types.type_help import bindings_text, first_operand_finding
from nacre.nem.checks.tasks import operand_declaration, operand_span, operand_title

_APPENDIX = "Appendix: Type Family Definitions"
_CASTS = "Opcode Type Legality and Type Families / No Implicit Casts"


@rule("TYP07", "inputs-of-different-types", _CASTS)
def inputs_of_different_types(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The inputs of an elementwise task have different element types.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let B = region(M, 16, 32) elem=i16, shape=[16], layout=C
        + let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
          r = add.sync in A, B out A
    """
    for violation in violations(facts, "TYP07"):
        message = (
            f"`{violation.task.op}` takes inputs of one element type: {bindings_text(violation)}"
        )
        yield first_operand_finding(facts, inputs_of_different_types, violation, message)


@rule("TYP08", "elementwise-changes-type", _CASTS)
def elementwise_changes_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of an elementwise task has another element type than its input.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
        + let Y = region(M, 16, 16) elem=i8, shape=[16], layout=C
          r = relu.sync in X out Y
    """
    for violation in violations(facts, "TYP08"):
        message = f"`{violation.task.op}` keeps the element type: {bindings_text(violation)}"
        yield first_operand_finding(facts, elementwise_changes_type, violation, message)


@rule("TYP09", "view-changes-type", _CASTS)
def view_changes_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A view task has inputs and outputs of different element types; views only move elements.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let Y = region(M, 16, 32) elem=i16, shape=[4, 4], layout=HW
        + let Y = region(M, 16, 16) elem=i8, shape=[4, 4], layout=HW
          r = reshape.sync in X out Y target_shape=[4, 4]
    """
    for violation in violations(facts, "TYP09"):
        message = f"`{violation.task.op}` keeps the element type: {bindings_text(violation)}"
        yield first_operand_finding(facts, view_changes_type, violation, message)


@rule("TYP16", "type-in-no-family", f"{_APPENDIX} / Elementwise and View")
def type_in_no_family(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An elementwise or view task works on u8, u16, u32 or i4, which only `cast` takes.

    i4 also stands for the weights of products.

    Bad (-) and good (+):

          buffer S : L2 (size=16)
          buffer M : L1 (size=16)
          t = transfer.sync(dst=region(M, 0, 16), src=region(S, 0, 16))
        - let X = region(M, 0, 16) elem=u8, shape=[16], layout=C
        + let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
          r = relu.sync in X out X
    """
    for violation in violations(facts, "TYP16"):
        first = violation.differences[0]
        types = dict.fromkeys(t for m in violation.matches.available for t in m.instance.types)
        message = f"`{violation.task.op}` takes {', '.join(types)} here, found {first.actual}"
        yield first_operand_finding(facts, type_in_no_family, violation, message)


@rule("TYP17", "no-meaning-in-integers", "nacre: integer elementwise operations")
def no_meaning_in_integers(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operation without a meaning in integers works on integers that carry no `quant`.

    With `quant` on every operand the values are dequantised, computed in f32, and quantised again.

    Bad (-) and good (+):

          buffer S : L2 (size=16)
          buffer M : L1 (size=16)
          t = transfer.sync(dst=region(M, 0, 16), src=region(S, 0, 16))
        - let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        + let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
        +     quant=per_tensor(scale=0.05, zero_point=0)
          r = sigmoid.sync in X out X
    """
    for task, opcode, matches in type_matches(facts):
        if "integers_need_quant" not in opcode.traits or matches.instance is None:
            continue
        for operand, use in zip(task.operands, matches.signature.uses, strict=True):
            if ELEMENT_TYPES[use.elem].is_integer and not use.has_quant:
                yield no_meaning_in_integers.at(
                    operand_span(facts, operand, "elem"),
                    f"{operand_title(task, operand)} is {use.elem} without `quant`; "
                    f"`{task.op}` has no meaning in plain integers",
                    related=operand_declaration(facts, operand, "elem"),
                    help="give all its operands `quant`, or convert to f16",
                )
                break
