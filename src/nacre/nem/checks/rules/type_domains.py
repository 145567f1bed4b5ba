"""TYP07-TYP13, TYP16, TYP17, TYP19: what element types the domains of opcodes take."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.legality import Violation, typings, violations
from nacre.nem.checks.rules.type_help import cast_help
from nacre.nem.checks.tasks import computes, declared, named, op_span, span_of
from nacre.nem.model.matching import joined
from nacre.nem.spec.opcodes import Opcode

_APPENDIX = "Appendix: Type Family Definitions"
_CASTS = "Opcode Type Legality and Type Families / No Implicit Casts"


def _at_first(
    facts: ProgramFacts, check: Check[ProgramFacts], found: Violation, message: str
) -> Diagnostic:
    """Blame the first operand that differs from the nearest variant that the device has."""
    nearest = found.typing.nearest or found.nearest
    operand = found.task.operands[next(p for d in nearest.differences for p in d.places)]
    return check.at(
        span_of(facts, operand, "elem"),
        message,
        related=declared(facts, operand, "elem"),
        help=cast_help(found.opcode, nearest),
    )


def _given(found: Violation) -> str:
    """`` `A` is i8, `B` is i16 ``: what families bind, in order."""
    bound = {s.name for name in found.nearest.instance.operands for s in found.opcode.bound(name)}
    uses = [use for use in found.typing.signature.uses if use.name in bound]
    pairs = dict.fromkeys((use.name, use.elem) for use in uses)
    return ", ".join(f"`{name}` is {elem}" for name, elem in pairs)


@rule("TYP07", "inputs-of-different-types", _CASTS)
def inputs_of_different_types(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The inputs of an elementwise task have different element types.

    Bad:

        buffer M : L1 (size=64)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 32) elem=i16, shape=[16], layout=C
        t = add.async in A, B out A

    Good:

        buffer M : L1 (size=64)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        t = add.async in A, B out A
    """
    for found in violations(facts, "TYP07"):
        message = f"`{found.task.op}` takes inputs of one element type: {_given(found)}"
        yield _at_first(facts, inputs_of_different_types, found, message)


@rule("TYP08", "elementwise-changes-type", _CASTS)
def elementwise_changes_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of an elementwise task has another element type than its input.

    Bad:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
        t = relu.async in X out Y

    Good:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 16) elem=i8, shape=[16], layout=C
        t = relu.async in X out Y
    """
    for found in violations(facts, "TYP08"):
        message = f"`{found.task.op}` keeps the element type: {_given(found)}"
        yield _at_first(facts, elementwise_changes_type, found, message)


@rule("TYP09", "view-changes-type", _CASTS)
def view_changes_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A view task has inputs and outputs of different element types; views only move elements.

    Bad:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 32) elem=i16, shape=[4, 4], layout=HW
        t = reshape.async in X out Y target_shape=[4, 4]

    Good:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 16) elem=i8, shape=[4, 4], layout=HW
        t = reshape.async in X out Y target_shape=[4, 4]
    """
    for found in violations(facts, "TYP09"):
        message = f"`{found.task.op}` keeps the element type: {_given(found)}"
        yield _at_first(facts, view_changes_type, found, message)


@rule("TYP10", "scale-of-another-type", f"{_APPENDIX} / Normalization, note 2")
def scale_of_another_type(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The scale or bias of a normalisation has another element type than its input.

    Bad:

        buffer M : L1 (size=64)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        let g = region(M, 32, 32) elem=f32, shape=[8], layout=N
        t = rmsnorm.async in X, g out X axis=1 epsilon=1.0e-5

    Good:

        buffer M : L1 (size=64)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        let g = region(M, 32, 16) elem=f16, shape=[8], layout=N
        t = rmsnorm.async in X, g out X axis=1 epsilon=1.0e-5
    """
    for found in violations(facts, "TYP10"):
        first = found.differences[0]
        names = joined([name for d in found.differences for name in d.names])
        verb = "are" if len(found.differences) > 1 else "is"
        message = f"{names} of `{found.task.op}` {verb} {first.found}, but its input is"
        yield _at_first(facts, scale_of_another_type, found, f"{message} {first.wanted}")


@rule("TYP11", "not-a-float", f"{_APPENDIX} / Normalization and Softmax")
def not_a_float(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A softmax or normalisation works on integers; it takes f16, bf16 and f32 only.

    Bad:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=1

    Good:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=1
    """
    for found in violations(facts, "TYP11"):
        message = f"`{found.task.op}` takes floats only: {_given(found)}"
        operand = found.operands[0]
        yield not_a_float.at(
            span_of(facts, operand, "elem"),
            message,
            related=declared(facts, operand, "elem"),
            help="convert to f16 with `dequantize` or `cast` first",
        )


@rule("TYP12", "not-a-quantisation", f"{_APPENDIX} / quantize")
def not_a_quantisation(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`quantize` goes from f16 or f32 to i8, and nowhere else.

    Bad:

        buffer M : L1 (size=48)
        let X = region(M, 0, 32) elem=bf16, shape=[16], layout=C
        let Y = region(M, 32, 16) elem=i8, shape=[16], layout=C,
            quant=per_tensor(scale=0.5, zero_point=0)
        t = quantize.async in X out Y

    Good:

        buffer M : L1 (size=48)
        let X = region(M, 0, 32) elem=f16, shape=[16], layout=C
        let Y = region(M, 32, 16) elem=i8, shape=[16], layout=C,
            quant=per_tensor(scale=0.5, zero_point=0)
        t = quantize.async in X out Y
    """
    yield from _pairs(facts, not_a_quantisation, "f16 or f32 to i8")


@rule("TYP13", "not-a-dequantisation", f"{_APPENDIX} / dequantize")
def not_a_dequantisation(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`dequantize` goes from i8 to f16 or f32, and nowhere else.

    Bad:

        buffer M : L1 (size=48)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
            quant=per_tensor(scale=0.5, zero_point=0)
        let Y = region(M, 16, 32) elem=bf16, shape=[16], layout=C
        t = dequantize.async in X out Y

    Good:

        buffer M : L1 (size=48)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
            quant=per_tensor(scale=0.5, zero_point=0)
        let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
        t = dequantize.async in X out Y
    """
    yield from _pairs(facts, not_a_dequantisation, "i8 to f16 or f32")


def _pairs(facts: ProgramFacts, check: Check[ProgramFacts], pairs: str) -> Iterator[Diagnostic]:
    for found in violations(facts, check.rule.code):
        source, result = (use.elem for use in found.typing.signature.uses)
        message = f"`{found.task.op}` goes from {pairs}, found {source} to {result}"
        yield _at_first(facts, check, found, message)


@rule("TYP16", "type-in-no-family", f"{_APPENDIX} / Elementwise and View")
def type_in_no_family(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An elementwise or view task works on u8, u16, u32 or i4, which only `cast` takes.

    i4 also stands for the weights of products.

    Bad:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=u8, shape=[16], layout=C
        t = relu.async in X out X

    Good:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = relu.async in X out X
    """
    for found in violations(facts, "TYP16"):
        first = found.differences[0]
        types = dict.fromkeys(t for m in found.typing.available for t in m.instance.types)
        message = f"`{found.task.op}` takes {', '.join(types)} here, found {first.found}"
        yield _at_first(facts, type_in_no_family, found, message)


@rule("TYP17", "no-meaning-in-integers", "nacre: integer elementwise operations")
def no_meaning_in_integers(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operation without a meaning in integers works on integers that carry no `quant`.

    With `quant` on every operand the values are dequantised, computed in f32, and quantised again.

    Bad:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = sigmoid.async in X out X

    Good:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C,
            quant=per_tensor(scale=0.05, zero_point=0)
        t = sigmoid.async in X out X
    """
    for task, opcode, typing in typings(facts):
        if "integers_need_quant" not in opcode.traits or typing.instance is None:
            continue
        for operand, use in zip(task.operands, typing.signature.uses, strict=True):
            if ELEMENT_TYPES[use.elem].is_integer and not use.has_quant:
                yield no_meaning_in_integers.at(
                    span_of(facts, operand, "elem"),
                    f"{named(task, operand)} is {use.elem} without `quant`; "
                    f"`{task.op}` has no meaning in plain integers",
                    related=declared(facts, operand, "elem"),
                    help="give all its operands `quant`, or convert to f16",
                )
                break


@rule("TYP19", "no-type-family", "Opcode Signatures / Type families", severity="info")
def no_type_family(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """No type family says which element types an opcode takes, so any are accepted.

    Its structure is checked, and that the element type is kept. Said once for each opcode.

    Bad:

        buffer M : L1 (size=20)
        let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        let Y = region(M, 16, 4) elem=i8, shape=[1, 2, 2, 1], layout=NHWC
        t = maxpool.async in X out Y kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]

    Good:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        t = relu.async in X out X
    """
    seen: set[str] = set()
    for task, opcode in computes(facts):
        if not _lacks_family(facts, opcode) or opcode.name in seen:
            continue
        seen.add(opcode.name)
        message = f"no type family governs `{opcode.name}`: its element types are not checked"
        yield no_type_family.at(op_span(facts, task), message)


def _lacks_family(facts: ProgramFacts, opcode: Opcode) -> bool:
    return opcode.category != "generic" and opcode.name not in facts.device.effective


DOMAIN_RULES = (
    inputs_of_different_types,
    elementwise_changes_type,
    view_changes_type,
    scale_of_another_type,
    not_a_float,
    not_a_quantisation,
    not_a_dequantisation,
    type_in_no_family,
    no_meaning_in_integers,
    no_type_family,
)
