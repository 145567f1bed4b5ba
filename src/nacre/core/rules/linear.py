"""DOT01-DOT03, MAT01-MAT04, CNV01-CNV09: Dot, MatMul and Conv2d."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nacre.base.excerpt import backquote
from nacre.core.module import Shape
from nacre.core.rules.binary import broadcast_failure
from nacre.core.rules.facts import OperationFacts, declare_behaviour, operation_rule
from nacre.core.rules.signature import is_i64, shape_text
from nacre.core.values import Custom, Word

_LINEAR = "Linear and tensor algebra"
_PADDINGS = ("Valid", "Same")


@operation_rule("DOT01", "dot-rank", _LINEAR, "Dot")
def dot_rank(facts: OperationFacts) -> Iterator[str]:
    """An operand of a Dot has another rank than 1 or 2."""
    for type_, side in zip(facts.types, facts.spec.operands, strict=True):
        if type_.rank not in (1, 2):
            yield f"`{side}` of `Dot` has rank {type_.rank}, expected 1 or 2"


@operation_rule("DOT03", "dot-operands", _LINEAR, "Dot")
def dot_operands(facts: OperationFacts) -> Iterator[str]:
    """The operands of a Dot differ in element type or in their inner dimension."""
    yield from _mixed_types(facts)
    lhs, rhs = (type_.shape for type_ in facts.types)
    if lhs and rhs and len(lhs) <= 2 and len(rhs) <= 2 and lhs[-1] != rhs[0]:
        yield f"inner dimensions of `Dot` are {lhs[-1]} and {rhs[0]}, expected equal ones"


@operation_rule("MAT01", "matmul-rank", _LINEAR, "MatMul")
def matmul_rank(facts: OperationFacts) -> Iterator[str]:
    """An operand of a MatMul has fewer than two axes."""
    for type_, side in zip(facts.types, facts.spec.operands, strict=True):
        if type_.rank < 2:
            yield f"`{side}` of `MatMul` has rank {type_.rank}, expected 2 or more"


@operation_rule("MAT02", "matmul-inner", _LINEAR, "MatMul")
def matmul_inner(facts: OperationFacts) -> Iterator[str]:
    """The last dimension of the left operand is not the last but one of the right."""
    lhs, rhs = (type_.shape for type_ in facts.types)
    if _are_matrices(lhs, rhs) and lhs[-1] != rhs[-2]:
        yield (
            f"inner dimensions of `MatMul` are {lhs[-1]} of {shape_text(lhs)} "
            f"and {rhs[-2]} of {shape_text(rhs)}, expected equal ones"
        )


@operation_rule("MAT03", "matmul-batch", _LINEAR, "MatMul")
def matmul_batch(facts: OperationFacts) -> Iterator[str]:
    """The batch dimensions of a MatMul, all but the last two, do not broadcast."""
    lhs, rhs = (type_.shape for type_ in facts.types)
    failing = broadcast_failure(lhs[:-2], rhs[:-2]) if _are_matrices(lhs, rhs) else None
    if failing is not None:
        yield f"batches of {shape_text(lhs)} and {shape_text(rhs)} do not broadcast: {failing}"


@operation_rule("MAT04", "matmul-types", _LINEAR, "MatMul")
def matmul_types(facts: OperationFacts) -> Iterator[str]:
    """The operands of a MatMul differ in element type."""
    yield from _mixed_types(facts)


def _are_matrices(lhs: Shape, rhs: Shape) -> bool:
    return len(lhs) >= 2 and len(rhs) >= 2


def _mixed_types(facts: OperationFacts) -> Iterator[str]:
    lhs, rhs = (type_.dtype for type_ in facts.types)
    if lhs != rhs:
        yield f"the operands of `{facts.opcode}` have the types `{lhs}` and `{rhs}`, expected one"


@operation_rule("CNV01", "conv-input-rank", _LINEAR, "Conv2d")
def conv_input_rank(facts: OperationFacts) -> Iterator[str]:
    """The input of a Conv2d does not have the four axes NHWC."""
    if facts.types[0].rank != 4:
        yield f"the input of `Conv2d` has rank {facts.types[0].rank}, expected 4 (NHWC)"


@operation_rule("CNV02", "conv-filter-rank", _LINEAR, "Conv2d")
def conv_filter_rank(facts: OperationFacts) -> Iterator[str]:
    """The filter of a Conv2d does not have the four axes HWCF."""
    if facts.types[1].rank != 4:
        yield f"the filter of `Conv2d` has rank {facts.types[1].rank}, expected 4 (HWCF)"


@operation_rule("CNV03", "conv-channels", _LINEAR, "Conv2d")
def conv_channels(facts: OperationFacts) -> Iterator[str]:
    """The input and the filter of a Conv2d differ in their number of input channels."""
    input_, filter_ = (type_.shape for type_ in facts.types)
    if len(input_) == 4 and len(filter_) == 4 and input_[3] != filter_[2]:
        yield f"the input has {input_[3]} channels, the filter is for {filter_[2]}"


@operation_rule("CNV04", "conv-strides", _LINEAR, "Conv2d")
def conv_strides(facts: OperationFacts) -> Iterator[str]:
    """The strides of a Conv2d are not two positive numbers."""
    strides = facts.ints("strides") or ()
    if len(strides) != 2 or min(strides) < 1:
        yield f"strides of `Conv2d` are {shape_text(strides)}, expected two positive numbers"


@operation_rule("CNV05", "conv-padding", _LINEAR, "Conv2d")
def conv_padding(facts: OperationFacts) -> Iterator[str]:
    """The padding of a Conv2d is not `Valid`, `Same` or `Custom` with two pairs of pads.

    `Custom([[top, bottom], [left, right]])`; pads are not negative.
    """
    padding = facts.attributes.get("padding")
    if _pads(facts) is not None or (isinstance(padding, Word) and padding in _PADDINGS):
        return
    expected = "expected `Valid`, `Same` or `Custom([[top, bottom], [left, right]])`"
    if isinstance(padding, Word):
        yield f"padding of `Conv2d` is {backquote(padding)}, {expected}"
    elif isinstance(padding, Custom):
        yield "`Custom` padding of `Conv2d` is not two pairs of integers from 0 on"
    else:
        yield f"padding of `Conv2d` is neither a word nor `Custom`, {expected}"


def _pads(facts: OperationFacts) -> tuple[Shape, Shape] | None:
    """The pairs of `Custom` padding; None where it is something else."""
    padding = facts.attributes.get("padding")
    if not isinstance(padding, Custom) or len(padding) != 2:
        return None
    first, second = padding
    return (first, second) if _is_pair(first) and _is_pair(second) else None


def _is_pair(pads: object) -> bool:
    if not isinstance(pads, tuple) or len(pads) != 2:
        return False
    return all(type(pad) is int and is_i64(pad) and pad >= 0 for pad in pads)


@operation_rule("CNV06", "conv-types", _LINEAR, "Conv2d")
def conv_types(facts: OperationFacts) -> Iterator[str]:
    """The input and the filter of a Conv2d differ in element type."""
    yield from _mixed_types(facts)


@operation_rule("CNV08", "conv-window", _LINEAR, "Conv2d")
def conv_window(facts: OperationFacts) -> Iterator[str]:
    """The window of a Conv2d is larger than its padded input: there is nothing to compute."""
    input_, filter_ = (type_.shape for type_ in facts.types)
    if len(input_) != 4 or len(filter_) != 4 or facts.attributes.get("padding") == "Same":
        return
    pads = _pads(facts) or ((0, 0), (0, 0))
    for axis, name in enumerate(("height", "width")):
        size = input_[1 + axis] + sum(pads[axis])
        if filter_[axis] > size:
            yield f"the window has {name} {filter_[axis]}, the padded input only {size}"
            return


_declare_behaviour = partial(declare_behaviour, _LINEAR)
DOT02 = _declare_behaviour(
    "DOT02",
    "dot-shape",
    """
    Dot of [n] and [n] is a scalar, of [m, n] and [n] is [m], of [m] and [m, n] is [n]; of two
    matrices it is their MatMul.
    """,
)
CNV07 = _declare_behaviour(
    "CNV07",
    "conv-shape",
    """
    A Conv2d has floor((size + pads - window) / stride) + 1 rows and columns.

    `Same` has ceil(size / stride); an odd pad goes to the end.
    """,
)
CNV09 = _declare_behaviour(
    "CNV09",
    "conv-combinations",
    """
    Every combination of strides and padding is either computed or diagnosed.
    """,
)
