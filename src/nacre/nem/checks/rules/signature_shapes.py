"""SIG06, SIG08-SIG10, SIG14, SIG24: ranks, shapes that stay as they are, and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Check, rule
from nacre.nem.checks import shapes
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shapes import Dims
from nacre.nem.checks.tasks import (
    Reading,
    computes,
    declared,
    has_its_operands,
    listed,
    named,
    node_span,
    readings,
    span_of,
)
from nacre.nem.model.program import Operand, Task
from nacre.nem.spec.opcodes import Category, Opcode, OperandSpec

_SIGNATURES = "Opcode Signatures"

Finder = Callable[[ProgramFacts, Reading], Iterator[Diagnostic]]


def first_findings(
    facts: ProgramFacts, find: Finder, *categories: Category
) -> Iterator[Diagnostic]:
    """What a rule finds in the first iteration of each task that has something wrong."""
    for task, opcode in computes(facts, *categories):
        if has_sound_ranks(task, opcode):
            for reading in readings(facts, task, opcode):
                found = list(find(facts, reading))
                if found:
                    yield from found
                    break


def at_shape(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    reading: Reading,
    operand: Operand,
    message: str,
    *,
    help: str | None = None,
) -> Diagnostic:
    """A finding about an operand's shape; `message` goes on after the operand's name."""
    return check.at(
        span_of(facts, operand, "shape"),
        f"{named(reading.task, operand)} {message}{reading.iteration}",
        related=declared(facts, operand, "shape"),
        help=help,
    )


def differing(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    reading: Reading,
    name: str,
    expected: Dims | None,
    why: str = "",
    *,
    help: str | None = None,
) -> Iterator[Diagnostic]:
    """A finding for the first operand of a name whose shape is not the expected one."""
    for operand, dims in zip(reading.task.operands, reading.shapes, strict=True):
        is_meant = operand.spec is not None and operand.spec.name == name
        if is_meant and expected is not None and dims != expected:
            message = f"has shape {listed(dims)}, expected {listed(expected)}{why}"
            yield at_shape(facts, check, reading, operand, message, help=help)
            return


def _rank_problem(task: Task, operand: Operand) -> str | None:
    spec, region = operand.spec, operand.region
    if spec is None or region is None or region.shape is None or task.opcode is None:
        return None
    # The scale and bias of a normalisation have a whole shape to follow: SIG10.
    if task.opcode.category == "normalization":
        return None
    rank = len(region.shape)
    if spec.rank is not None and rank != spec.rank:
        return f"has rank {rank}, expected {spec.rank}{_axes(spec)}"
    if spec.min_rank is not None and rank < spec.min_rank:
        return f"has rank {rank}, expected at least {spec.min_rank}{_axes(spec)}"
    return None


def _axes(spec: OperandSpec) -> str:
    return f": {spec.shape}" if spec.shape.startswith("[") else ""


def has_sound_ranks(task: Task, opcode: Opcode) -> bool:
    """Whether a task has its operands, each with the rank that its opcode asks for."""
    return has_its_operands(task, opcode) and all(
        _rank_problem(task, operand) is None for operand in task.operands
    )


@rule("SIG06", "wrong-rank", _SIGNATURES)
def wrong_rank(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operand has another number of dimensions than its opcode takes, or a bias another size.

    The bias of a convolution is a vector with one element for each output channel.

    Bad:

        buffer M : L1 (size=48)
        let A = region(M, 0, 8) elem=f16, shape=[4], layout=K
        let B = region(M, 8, 32) elem=f16, shape=[4, 4], layout=KN
        let Y = region(M, 40, 8) elem=f16, shape=[1, 4], layout=MN
        t = gemm.async in A, B out Y accum_type=f32

    Good:

        buffer M : L1 (size=48)
        let A = region(M, 0, 8) elem=f16, shape=[1, 4], layout=MK
        let B = region(M, 8, 32) elem=f16, shape=[4, 4], layout=KN
        let Y = region(M, 40, 8) elem=f16, shape=[1, 4], layout=MN
        t = gemm.async in A, B out Y accum_type=f32
    """
    for task, opcode in computes(facts):
        if not has_its_operands(task, opcode):
            continue
        for operand in task.operands:
            problem = _rank_problem(task, operand)
            if problem is not None:
                span = span_of(facts, operand, "shape")
                related = declared(facts, operand, "shape")
                yield wrong_rank.at(span, f"{named(task, operand)} {problem}", related=related)
    yield from first_findings(facts, _bias_sizes, "convolution")


def _bias_sizes(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    weights = reading.shape("W")
    opcode = reading.task.opcode
    if weights is None or opcode is None:
        return
    is_depthwise = opcode.attribute("groups") is None
    channels = weights[-2] * weights[-1] if is_depthwise else weights[-1]
    why = ", one element for each output channel"
    yield from differing(facts, wrong_rank, reading, "B", (channels,), why)


@rule("SIG08", "elementwise-shapes-differ", "Compute Tasks / Elementwise Operations")
def elementwise_shapes_differ(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The operands of an elementwise task have different shapes; nothing is broadcast.

    Bad:

        buffer M : L1 (size=17)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 1) elem=i8, shape=[1], layout=C
        t = add.async in A, B out A

    Good:

        buffer M : L1 (size=32)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        t = add.async in A, B out A
    """

    def find(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
        yield from _all_alike(facts, elementwise_shapes_differ, reading)

    yield from first_findings(
        facts, find, "elementwise_unary", "elementwise_binary", "elementwise_other"
    )


def _all_alike(
    facts: ProgramFacts, check: Check[ProgramFacts], reading: Reading
) -> Iterator[Diagnostic]:
    """A finding for the first main operand that has another shape than the first operand."""
    first = reading.task.operands[0].spec
    for operand, dims in zip(reading.task.operands, reading.shapes, strict=True):
        is_main = operand.spec is not None and operand.spec.is_main
        if is_main and first is not None and dims != reading.shapes[0]:
            expected = f"{listed(reading.shapes[0])} like `{first.name}`"
            message = f"has shape {listed(dims)}, expected {expected}"
            yield at_shape(facts, check, reading, operand, message)
            return


def axis_finding(
    facts: ProgramFacts, check: Check[ProgramFacts], reading: Reading, rank: int
) -> Iterator[Diagnostic]:
    """A finding where the attribute `axis` is out of range."""
    axis = reading.number("axis")
    if axis is not None and shapes.axis_of(axis, rank) is None:
        message = f"`axis` of `{reading.task.op}` is {axis}, expected {-rank} to {rank - 1}"
        yield check.at(node_span(facts, reading.task, "axis"), f"{message}{reading.iteration}")


@rule("SIG09", "softmax-shape", "Appendix: Type Family Definitions / Softmax, note 2")
def softmax_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of a softmax has another shape than its input, or its axis does not exist.

    Bad:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=2

    Good:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=-1
    """

    def find(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
        yield from axis_finding(facts, softmax_shape, reading, len(reading.shapes[0]))
        yield from _all_alike(facts, softmax_shape, reading)

    yield from first_findings(facts, find, "softmax")


@rule("SIG10", "normalisation-shape", "Appendix: Type Family Definitions / Normalization")
def normalisation_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A normalisation changes the shape, its axis does not exist, or its scale does not fit.

    Scale and bias are vectors with one element for each index along the axis.

    Bad:

        buffer M : L1 (size=64)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        let g = region(M, 32, 4) elem=f16, shape=[2], layout=N
        t = rmsnorm.async in X, g out X axis=1 epsilon=1.0e-5

    Good:

        buffer M : L1 (size=64)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        let g = region(M, 32, 16) elem=f16, shape=[8], layout=N
        t = rmsnorm.async in X, g out X axis=1 epsilon=1.0e-5
    """
    yield from first_findings(facts, _normalisation, "normalization")


def _normalisation(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    x = reading.shapes[0]
    yield from axis_finding(facts, normalisation_shape, reading, len(x))
    yield from _all_alike(facts, normalisation_shape, reading)
    axis = reading.number("axis")
    at = shapes.axis_of(axis, len(x)) if axis is not None else None
    if at is not None:
        why = f", the size of axis {axis}"
        for name in ("scale", "bias"):
            yield from differing(facts, normalisation_shape, reading, name, (x[at],), why)


@rule("SIG14", "product-shapes", "Compute Tasks / Linear Algebra Operations")
def product_shapes(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The shapes of a matrix product do not go together.

    A is [.., M, K], B is [.., K, N] and Y is [.., M, N]. The dimensions before are a batch;
    where one side has 1 or lacks them, it is used again for each of the other's. C, where given,
    broadcasts to Y.

    Bad:

        buffer M : L1 (size=96)
        let A = region(M, 0, 16) elem=f16, shape=[2, 4], layout=MK
        let B = region(M, 16, 24) elem=f16, shape=[3, 4], layout=KN
        let Y = region(M, 40, 16) elem=f16, shape=[2, 4], layout=MN
        t = gemm.async in A, B out Y accum_type=f32

    Good:

        buffer M : L1 (size=96)
        let A = region(M, 0, 12) elem=f16, shape=[2, 3], layout=MK
        let B = region(M, 16, 24) elem=f16, shape=[3, 4], layout=KN
        let Y = region(M, 40, 16) elem=f16, shape=[2, 4], layout=MN
        t = gemm.async in A, B out Y accum_type=f32
    """
    yield from first_findings(facts, _product, "linear_algebra")


def _product(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    a, b, y = reading.shape("A"), reading.shape("B"), reading.shape("Y")
    if a is None or b is None or y is None:
        return
    weights = reading.task.operands[1]
    result = shapes.matmul(a, b)
    if a[-1] != b[-2]:
        message = f"has {b[-2]} rows, expected {a[-1]}, the columns of `A` {listed(a)}"
        yield at_shape(facts, product_shapes, reading, weights, message)
    elif result is None:
        message = f"has batch {listed(b[:-2])}, which does not fit {listed(a[:-2])} of `A`"
        yield at_shape(facts, product_shapes, reading, weights, message)
    yield from differing(facts, product_shapes, reading, "Y", result)
    bias = reading.shape("C")
    if bias is not None and result == y and not shapes.broadcasts_to(bias, y):
        message = f"has shape {listed(bias)}, which does not broadcast to {listed(y)}"
        yield at_shape(facts, product_shapes, reading, reading.task.operands[2], message)


@rule("SIG24", "conversion-changes-shape", "Compute Tasks / Casting and Quantization Operations")
def conversion_changes_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of `cast`, `quantize` or `dequantize` has another shape than its input.

    Bad:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 32) elem=f16, shape=[4, 4], layout=MN
        t = cast.async in X out Y

    Good:

        buffer M : L1 (size=64)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let Y = region(M, 16, 32) elem=f16, shape=[16], layout=C
        t = cast.async in X out Y
    """

    def find(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
        yield from _all_alike(facts, conversion_changes_shape, reading)

    yield from first_findings(facts, find, "conversion")


SHAPE_RULES = (
    wrong_rank,
    elementwise_shapes_differ,
    softmax_shape,
    normalisation_shape,
    product_shapes,
    conversion_changes_shape,
)
