"""TYP01-TYP06: tasks against the type families and the variants that the device has."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.fixes import replacement_fix
from nacre.base.rules import Check, declare, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import Violation, violations
from nacre.nem.checks.rules.types.type_help import available_text, cast_help
from nacre.nem.checks.tasks import (
    attribute_span,
    op_span,
    operand_declaration,
    operand_span,
    operand_title,
    task_title,
)
from nacre.nem.model.families import ACCUMULATOR, must_instances
from nacre.nem.model.matching import Match, describe_differences

_MATCHING = "Opcode Type Legality and Type Families / Type Family Matching Rule"
_EFFECTIVE = "Device Configuration / Effective Type Family Set"
_BIAS = "Appendix: Type Family Definitions / conv2d, note"


@rule("TYP01", "no-matching-variant", _MATCHING)
def no_matching_variant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task matches no variant of any type family.

    There are no implicit conversions: the element types of all operands together must be one of
    the combinations that the families list.

    Bad (-) and good (+):

          buffer S : L2 (size=128)
          buffer M : L1 (size=128)
          t = transfer.sync(dst=region(M, 0, 128), src=region(S, 0, 128))
          let A = region(M, 0, 32) elem=f16, shape=[4, 4], layout=MK
        - let B = region(M, 32, 64) elem=f32, shape=[4, 4], layout=KN
        + let B = region(M, 32, 32) elem=f16, shape=[4, 4], layout=KN
          let Y = region(M, 96, 32) elem=f16, shape=[4, 4], layout=MN
          r = gemm.sync in A, B out Y accum_type=f32
    """
    for violation in violations(facts, "TYP01"):
        nearest = violation.matches.nearest or violation.nearest
        title = task_title(violation.task)
        message = f"{title} matches no variant of a type family; {_nearest_text(nearest)}"
        yield _operand_finding(facts, no_matching_variant, violation, nearest, message)


@rule("TYP02", "variant-not-on-device", _EFFECTIVE)
def variant_not_on_device(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task needs a variant that its device does not have.

    A device has the variants in its `opcode.mandatory` and `opcode.extended` blocks, its parents'
    included. Where no device is named, only those are legal that every device has.

    Bad (-) and good (+):

        + include "nem_reference.nem"
        + device nem_reference
          buffer S : L2 (size=64)
        - buffer M : L1 (size=64)
        + buffer M : L1[0] (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 64) elem=f32, shape=[16], layout=C
          r = relu.sync in X out X
    """
    if facts.device.is_abstract:  # which device it is could not be found out
        return
    for violation in violations(facts, "TYP02"):
        if violation.nearest.instance.id in must_instances():  # the device is at fault: DEV12
            continue
        device = f"device `{facts.device.name}`" if facts.device_is_named else "the baseline"
        message = (
            f"{task_title(violation.task)} needs variant `{violation.nearest.instance.id}`, "
            f"which {device} does not have"
        )
        nearest = violation.matches.nearest
        if nearest is None:
            yield variant_not_on_device.at(
                op_span(facts, violation.task), message, help=available_text(facts, violation)
            )
        else:
            message = f"{message}; {_nearest_text(nearest)}"
            yield _operand_finding(facts, variant_not_on_device, violation, nearest, message)


def _nearest_text(match: Match) -> str:
    return f"nearest is `{match.instance.id}`: {describe_differences(match.differences)}"


def _operand_finding(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    violation: Violation,
    nearest: Match,
    message: str,
) -> Diagnostic:
    """Blame the first operand that differs from the nearest variant, else the opcode."""
    index = next((p for d in nearest.differences for p in d.operand_indices), None)
    help_ = "; ".join(
        part
        for part in (cast_help(violation.opcode, nearest), available_text(facts, violation))
        if part
    )
    if index is None:
        return check.at(op_span(facts, violation.task), message, help=help_)
    operand = violation.task.operands[index]
    related = operand_declaration(facts, operand, "elem")
    return check.at(operand_span(facts, operand, "elem"), message, related=related, help=help_)


declare(
    "TYP03",
    "nearest-variant-is-named",
    _MATCHING,
    """
    A finding about types names the task and the nearest variant that the device has.

    TYP01 and TYP02 say what differs from it, and list what there is. No diagnostic carries this
    code.
    """,
    behaviour=True,
)


@rule(
    "TYP04",
    "accumulator-type-differs",
    f"{_BIAS} 3",
    fix="writes the type that the variant sums in",
)
def accumulator_type_differs(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`accum_type` is another type than the family sums in.

    Floats are summed in f32, 8-bit and 4-bit integers in i32.

    Bad (-) and good (+):

          buffer S : L2 (size=96)
          buffer M : L1 (size=96)
          t = transfer.sync(dst=region(M, 0, 96), src=region(S, 0, 96))
          let A = region(M, 0, 32) elem=f16, shape=[4, 4], layout=MK
          let B = region(M, 32, 32) elem=f16, shape=[4, 4], layout=KN
          let Y = region(M, 64, 32) elem=f16, shape=[4, 4], layout=MN
        - r = gemm.sync in A, B out Y accum_type=f16
        + r = gemm.sync in A, B out Y accum_type=f32
    """
    for violation in violations(facts, "TYP04"):
        for difference in violation.differences:
            span = attribute_span(facts, violation.task, ACCUMULATOR)
            is_written = ACCUMULATOR in violation.task.attributes
            yield accumulator_type_differs.at(
                span,
                f"`{ACCUMULATOR}` of `{violation.task.op}` is {difference.actual}, but variant "
                f"`{violation.nearest.instance.id}` sums in {difference.wanted}",
                help=f"write `{ACCUMULATOR}={difference.wanted}`",
                fix=replacement_fix(span, str(difference.wanted)) if is_written else None,
            )


@rule("TYP05", "bias-does-not-fit-variant", f"{_BIAS} 1")
def bias_does_not_fit_variant(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A bias is given where no variant of these types has one, or missing where all have one.

    Bad (-) and good (+):

          include "nem_reference.nem"
          device nem_reference
        - buffer S : L2 (size=104)
        - buffer M : L1[0] (size=104)
        - t = transfer.sync(dst=region(M, 0, 104), src=region(S, 0, 104))
        + buffer S : L2 (size=96)
        + buffer M : L1[0] (size=96)
        + t = transfer.sync(dst=region(M, 0, 96), src=region(S, 0, 96))
          let A = region(M, 0, 32) elem=bf16, shape=[4, 4], layout=MK
          let B = region(M, 32, 32) elem=bf16, shape=[4, 4], layout=KN
        - let C = region(M, 96, 8) elem=bf16, shape=[4], layout=N
          let Y = region(M, 64, 32) elem=bf16, shape=[4, 4], layout=MN
        - r = gemm.sync in A, B, C out Y accum_type=f32
        + r = gemm.sync in A, B out Y accum_type=f32
    """
    for violation in violations(facts, "TYP05"):
        variant = violation.nearest.instance.id
        for operand in violation.operands:
            yield bias_does_not_fit_variant.at(
                operand_span(facts, operand, "elem"),
                f"{operand_title(violation.task, operand)} is given, but variant `{variant}` "
                "takes none",
                help="no variant of these types takes it; add it with a task of its own",
            )
        for difference in violation.differences:
            if difference.kind == "missing":
                name = difference.names[0]
                yield bias_does_not_fit_variant.at(
                    op_span(facts, violation.task),
                    f"`{violation.task.op}` has no operand `{name}`, but variant `{variant}` "
                    f"takes it as {difference.wanted}",
                    help=f"no variant of these types goes without `{name}`; give it, or zeros",
                )


@rule("TYP06", "bias-not-i32", f"{_BIAS} 2")
def bias_not_i32(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The bias of an 8-bit or 4-bit product is not i32.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let A = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MK,
              quant=per_tensor(scale=0.5, zero_point=0)
          let B = region(M, 16, 16) elem=i8, shape=[4, 4], layout=KN,
              quant=per_tensor(scale=0.5, zero_point=0)
        - let C = region(M, 32, 4) elem=i8, shape=[4], layout=N
        + let C = region(M, 32, 16) elem=i32, shape=[4], layout=N
          let Y = region(M, 48, 16) elem=i8, shape=[4, 4], layout=MN,
              quant=per_tensor(scale=0.5, zero_point=0)
          r = gemm.sync in A, B, C out Y accum_type=i32
    """
    for violation in violations(facts, "TYP06"):
        variant = violation.nearest.instance.id
        for operand, difference in zip(violation.operands, violation.differences, strict=True):
            yield bias_not_i32.at(
                operand_span(facts, operand, "elem"),
                f"{operand_title(violation.task, operand)} is {difference.actual}, "
                f"but variant `{variant}` takes {difference.wanted}",
                related=operand_declaration(facts, operand, "elem"),
                help="convert it first with `cast`",
            )
