"""Promises of operands: where their bytes lie, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite, prod

from nacre.base.compression_forms import MAX_PALETTE_BITS, size_bounds
from nacre.base.elements import ELEMENT_TYPES, ElementType, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.tcb.image import STREAM, Operand, Quant
from nacre.tcb.judging.memories import unknown_memory
from nacre.tcb.judging.problems import Problem, Problems
from nacre.tcb.judging.ranges import Scope, outside, term_problem
from nacre.tcb.rules.image import TCB22, TCB23, TCB27
from nacre.tcb.text.disassembly import Place


def judge_operand(
    operand: Operand, name: str, scope: Scope, known: Mapping[str, int], place: Place
) -> Problems:
    """One operand, which messages call by its name."""
    problem = next(_layout_problems(operand), None)
    if problem is not None:
        message, help_ = problem
        yield Problem(TCB23, place, f"{name} {message}", help_)
    unsound = term_problem(operand.address, scope.depth)
    if unsound is not None:
        yield Problem(TCB27, place, f"the address of {name}: {unsound}")
    if operand.memory == STREAM:
        return
    if operand.memory not in known:
        yield unknown_memory(operand.memory, known, place)
    elif problem is None and unsound is None:
        yield from _judge_bytes(operand, name, scope, known[operand.memory], place)


def _judge_bytes(
    operand: Operand, name: str, scope: Scope, capacity: int, place: Place
) -> Problems:
    size = size_bytes(operand)
    found = outside(operand.address, scope, 0, capacity - size)
    if isinstance(found, str):
        yield Problem(TCB27, place, f"the address of {name}: {found}")
    elif found is not None:
        low, high = found
        begins = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        message = f"{name} begins at byte {begins} of `{operand.memory}`, has {size:,} and "
        yield Problem(TCB22, place, f"{message}leaves its {capacity:,} bytes")


def size_bytes(operand: Operand) -> int:
    """The bytes from the first to the last, of a sound layout."""
    element = ELEMENT_TYPES[operand.elem]
    if operand.compressed_bytes is not None:
        return operand.compressed_bytes
    count = prod(operand.dims)
    if operand.compression is not None:
        return size_bounds(operand.compression, count, element.bits)[1]
    if operand.strides is None:
        return bytes_needed(count, element)
    last = sum((dim - 1) * step for dim, step in zip(operand.dims, operand.strides, strict=True))
    return bytes_needed(last + 1, element)


_Wrong = tuple[str, str | None]  # a message behind the operand's name, and a help


def _layout_problems(operand: Operand) -> Iterator[_Wrong]:
    element = ELEMENT_TYPES.get(operand.elem)
    if element is None:
        message = f"has the element type {backquote(operand.elem)}, which there is not"
        yield message, did_you_mean(operand.elem, ELEMENT_TYPES)
        return
    if min(operand.dims, default=1) < 1 or prod(operand.dims) >= 1 << 62:
        yield f"has the dimensions {list(operand.dims)}", None
        return
    strides = operand.strides
    if strides is not None and len(strides) != len(operand.dims):
        yield f"has {len(strides)} strides for {len(operand.dims)} dimensions", None
    elif strides is not None and min(strides, default=0) < 0:
        yield f"has the strides {list(strides)}", None
    if operand.quant is not None:
        yield from _quant_problems(operand.quant, operand.dims)
    yield from _compression_problems(operand, element)


def _quant_problems(quant: Quant, dims: tuple[int, ...]) -> Iterator[_Wrong]:
    if not all(isfinite(scale) and scale > 0 for scale in quant.scales):
        yield "has a scale that is no number above 0", None
    parts = 1
    if quant.axis is not None:
        if not 0 <= quant.axis < len(dims) or quant.group_size < 1:
            message = f"has scales along axis {quant.axis} in groups of {quant.group_size}"
            yield f"{message}, and {len(dims)} dimensions", None
            return
        parts = -(-dims[quant.axis] // quant.group_size)
    if not len(quant.scales) == len(quant.zero_points) == parts:
        counts = f"{len(quant.scales)} scales and {len(quant.zero_points)} zero points"
        yield f"has {counts}, expected {parts} of each", None


def _compression_problems(operand: Operand, element: ElementType) -> Iterator[_Wrong]:
    form, size = operand.compression, operand.compressed_bytes
    if form is None:
        if size is not None:
            yield "has a compressed size, and is not compressed", None
        return
    count = prod(operand.dims)
    is_palette = form.name == "palette"
    if is_palette and not (1 <= form.bits <= MAX_PALETTE_BITS and 1 <= form.tables <= count):
        yield f"has {form.tables} palettes of {form.bits} bits", None
        return
    if count % form.tables if is_palette else (form.bits, form.tables) != (0, 1):
        yield f"has {count:,} elements, which {form.tables} tables do not fit", None
        return
    low, high = size_bounds(form, count, element.bits)
    if operand.strides is not None or (size is not None and not low <= size <= high):
        yield f"is compressed, and takes {low:,} to {high:,} bytes without strides", None
