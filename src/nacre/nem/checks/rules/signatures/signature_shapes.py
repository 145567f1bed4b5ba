"""SIG08-SIG10, SIG14, SIG24: shapes that stay as they are, and matrix products."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.kernels.interface import shapes
from nacre.nem.checks.concrete_tasks import ConcreteTask
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shape_findings import (
    axis_out_of_range,
    first_findings,
    shape_finding,
    shape_text,
    shapes_unlike_first,
    unexpected_shapes,
)

_APPENDIX = "Appendix: Type Family Definitions"


@rule("SIG08", "elementwise-shapes-differ", "Compute Tasks / Elementwise Operations")
def elementwise_shapes_differ(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The operands of an elementwise task have different shapes; nothing is broadcast.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let B = region(M, 16, 1) elem=i8, shape=[1], layout=C
        + let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
          r = add.sync in A, B out A
    """

    def find(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
        yield from shapes_unlike_first(facts, elementwise_shapes_differ, concrete)

    yield from first_findings(
        facts, find, "elementwise_unary", "elementwise_binary", "elementwise_other"
    )


@rule("SIG09", "softmax-shape", f"{_APPENDIX} / Softmax, note 2")
def softmax_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of a softmax has another shape than its input, or its axis does not exist.

    A negative axis counts from the end.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        - s = softmax.sync in X out X axis=2
        + s = softmax.sync in X out X axis=-1
    """

    def find(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
        yield from axis_out_of_range(facts, softmax_shape, concrete, len(concrete.shapes[0]))
        yield from shapes_unlike_first(facts, softmax_shape, concrete)

    yield from first_findings(facts, find, "softmax")


@rule("SIG10", "normalisation-shape", f"{_APPENDIX} / Normalization")
def normalisation_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A normalisation changes the shape, its axis does not exist, or its scale does not fit.

    Scale and bias are vectors with one element for each index along the axis.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        - let g = region(M, 32, 4) elem=f16, shape=[2], layout=M
        + let g = region(M, 32, 16) elem=f16, shape=[8], layout=N
          n = rmsnorm.sync in X, g out X axis=1 epsilon=1.0e-5
    """
    yield from first_findings(facts, _normalisation, "normalization")


def _normalisation(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    x = concrete.shapes[0]
    yield from axis_out_of_range(facts, normalisation_shape, concrete, len(x))
    yield from shapes_unlike_first(facts, normalisation_shape, concrete)
    axis = concrete.number("axis")
    at = shapes.axis_of(axis, len(x)) if axis is not None else None
    if at is not None:
        why = f", the size of axis {axis}"
        for name in ("scale", "bias"):
            yield from unexpected_shapes(facts, normalisation_shape, concrete, name, (x[at],), why)


@rule("SIG14", "product-shapes", "Compute Tasks / Linear Algebra Operations")
def product_shapes(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The shapes of a matrix product do not go together.

    A is [.., M, K], B is [.., K, N] and Y is [.., M, N]. The dimensions before are a batch;
    where one side has 1 or lacks them, it is used again for each of the other's. C, where given,
    broadcasts to Y.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
        - let A = region(M, 0, 16) elem=f16, shape=[2, 4], layout=MK
        + let A = region(M, 0, 12) elem=f16, shape=[2, 3], layout=MK
          let B = region(M, 16, 24) elem=f16, shape=[3, 4], layout=KN
          let Y = region(M, 40, 16) elem=f16, shape=[2, 4], layout=MN
          g = gemm.sync in A, B out Y accum_type=f32
    """
    yield from first_findings(facts, _product, "linear_algebra")


def _product(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    a, b = concrete.shapes[:2]
    weights = concrete.task.operands[1]
    if a[-1] != b[-2]:
        message = f"has {b[-2]} rows, expected {a[-1]}, the columns of `A` {shape_text(a)}"
        yield shape_finding(facts, product_shapes, concrete, weights, message)
        return
    result = shapes.matmul(a, b)
    if result is None:
        message = f"has batch {shape_text(b[:-2])}, which does not fit {shape_text(a[:-2])} of `A`"
        yield shape_finding(facts, product_shapes, concrete, weights, message)
        return
    yield from unexpected_shapes(facts, product_shapes, concrete, "Y", result)
    bias = concrete.shape("C")
    if bias is not None and not shapes.broadcasts_to(bias, result):
        message = f"has shape {shape_text(bias)}, which does not broadcast to {shape_text(result)}"
        yield shape_finding(facts, product_shapes, concrete, concrete.task.operands[2], message)


@rule("SIG24", "conversion-changes-shape", "Compute Tasks / Casting and Quantization Operations")
def conversion_changes_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of `cast`, `quantize` or `dequantize` has another shape than its input.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let Y = region(M, 16, 32) elem=f16, shape=[4, 4], layout=MN
        + let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
          c = cast.sync in X out Y
    """

    def find(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
        yield from shapes_unlike_first(facts, conversion_changes_shape, concrete)

    yield from first_findings(facts, find, "conversion")
