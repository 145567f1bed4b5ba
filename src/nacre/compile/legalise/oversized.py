"""Operations whose smallest step is too large for L1, as several smaller ones.

A task adds up all of its products, and NEM has none that goes on with the sum of another: rows and
columns that are too deep for L1 become several products whose results are added, each rounded to
the precision of the plan. Windows of poolings that are too large slide along one axis, then along
the other. The legal module is apply_once, so the plan still equals it; what was done is noted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from nacre.compile.legalise.contract import escapes_at
from nacre.compile.legalise.forms.windows.windows import slice_axis
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.long_rows import norm_of_parts, pool_axis
from nacre.compile.legalise.stage import without_labels
from nacre.compile.options import Options
from nacre.core.module import Labels
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.labels import complete_labels
from nacre.core.rewrite.site import RewriteSite, Rules

_COLUMNS = 16  # of a tile, the fewest that are any good
_FEW = 4  # of a product by weights, whose columns may be ever fewer
_SPARE = 0.9  # the part of L1 for operands and weights; results take the rest
_ISLANDS = frozenset({"LayerNorm", "RmsNorm"})
Room = Callable[
    [RewriteSite], int
]  # elements that fit in L1, of the type that an operation has there
Form = Callable[[Room, list[str], RewriteSite], int | None]


def split_deep_ops(legal: Legal, options: Options) -> Legal:
    """A legal module of operations that have a tile which fits in L1, as far as depth goes.

    Of i8 it is asked twice: of the floats that are to be quantised, without norms, whose parts
    would become integers; then of the islands of f16 that are left.
    """
    notes: list[str] = []
    is_open = options.precision == "i8" and legal.precision != "i8"  # yet to be quantised

    def room(site: RewriteSite) -> int:
        # What has no form in integers of 8 bits is computed in f16.
        narrow = 2 if site.op.opcode == "MatMul" else 1
        size = narrow if is_open else site.op.type.element.bits // 8
        return int(options.l1_bytes * _SPARE) // size

    forms: Rules = {
        opcode: [partial(form, room, notes)]
        for opcode, form in _FORMS.items()
        if not (is_open and opcode in _ISLANDS)
    }
    numbers = Labels(
        nodes={value: str(origins[0]) for value, origins in legal.origins.items()},
        fused={value: tuple(map(str, origins[1:])) for value, origins in legal.origins.items()},
    )
    split = apply_once(replace(legal.module, labels=numbers), forms)
    if not notes:
        return legal
    changed = replace(legal, module=complete_labels(split), notes=(*legal.notes, *notes))
    changed = without_labels(changed)
    return replace(changed, escaped=escapes_at(changed.precision, changed.module, changed.lacking))


def _linear(room: Room, notes: list[str], site: RewriteSite) -> int | None:
    """Products by weights: one row and one column have to fit."""
    depth = site.type(site.operands[0]).shape[-1]
    weights = site.constant(site.operands[1])
    have = room(site)
    if weights is None or 2 * depth <= have:
        return None
    part = max(1, have // (1 + 2 * _FEW))

    def product(first: int, end: int, bias: tuple[int, ...]) -> int:
        x = slice_axis(site, site.operands[0], site.type(site.operands[0]).rank - 1, first, end)
        part_of = site.literal(np.ascontiguousarray(weights[:, first:end]), site.op.type.dtype)
        return site.add("Linear", x, part_of, *bias)

    return _add_parts(site, notes, depth, part, product)


def _matmul(room: Room, notes: list[str], site: RewriteSite) -> int | None:
    """Products of two computed matrices: one row and some columns have to fit."""
    a, b = site.operands
    rank, (depth, columns) = site.type(b).rank, site.type(b).shape[-2:]
    columns, have = min(columns, _COLUMNS), room(site)
    if site.op.type.element.is_integer or depth * (1 + columns) <= have:
        return None
    part = max(1, have // (2 + 2 * columns))

    def product(first: int, end: int, bias: tuple[int, ...]) -> int:
        left = slice_axis(site, a, rank - 1, first, end)
        return site.add("MatMul", left, slice_axis(site, b, rank - 2, first, end))

    return _add_parts(site, notes, depth, part, product)


def _convolution(room: Room, notes: list[str], site: RewriteSite) -> int | None:
    """Convolutions: what one window sees and the weights of some columns have to fit."""
    weights = site.constant(site.operands[1])
    if weights is None or weights.ndim != 4 or site.attributes["groups"] != 1:
        return None
    height, width, depth, columns = weights.shape
    x = site.type(site.operands[0]).shape
    sizes = zip((height, width), _pair(site, "dilations"), x[1:3], strict=True)
    rows, across = (min(d * (k - 1) + 1, n) for k, d, n in sizes)
    taps, columns, have = height * width, min(columns, _COLUMNS), room(site)
    if depth * (rows * across + taps * columns) <= have:
        return None
    part = have // (rows * across + 2 * taps * columns)
    if part < 1 or part >= depth:
        return None

    def product(first: int, end: int, bias: tuple[int, ...]) -> int:
        channels = slice_axis(site, site.operands[0], 3, first, end)
        kept = np.ascontiguousarray(weights[:, :, first:end])
        literal = site.literal(kept, site.op.type.dtype)
        return site.add("Conv", channels, literal, *bias, **site.op.attributes)

    return _add_parts(site, notes, depth, part, product)


def _add_parts(
    site: RewriteSite,
    notes: list[str],
    depth: int,
    part: int,
    product: Callable[[int, int, tuple[int, ...]], int],
) -> int:
    """Products of parts of a depth, each added to the sum of those before."""
    count = -(-depth // part)
    part = -(-depth // count)
    total: int | None = None
    for first in range(0, depth, part):
        bias = site.operands[2:] if total is None else ()
        partial = product(first, min(first + part, depth), bias)
        total = partial if total is None else site.add("BinOp", partial, total, op="Add")
    assert total is not None
    notes.append(
        f"a `{site.op.opcode}` of depth {depth} is too deep for L1: {count} products are added, "
        "each rounded"
    )
    return total


def _pool(room: Room, notes: list[str], site: RewriteSite) -> int | None:
    """Poolings of large windows: along rows first, then down; long ones of all in two steps."""
    kernel, strides = _pair(site, "kernel"), _pair(site, "strides")
    x = site.type(site.operands[0]).shape
    seen = kernel[0] * kernel[1] * min(x[3], _COLUMNS)
    if 2 * seen <= room(site):
        return None
    pads = site.attributes["pads"] or (0, 0, 0, 0)
    assert isinstance(pads, tuple)
    given: dict[str, object] = dict(site.op.attributes)
    if min(kernel) > 1:
        notes.append(f"a `{site.op.opcode}` of windows too large for L1 runs along rows, then down")
        across = {"kernel": (1, kernel[1]), "strides": (1, strides[1]),
                  "pads": (0, pads[1], 0, pads[3])}  # fmt: skip
        down = {"kernel": (kernel[0], 1), "strides": (strides[0], 1),
                "pads": (pads[0], 0, pads[2], 0)}  # fmt: skip
        rows = site.add(site.op.opcode, site.operands[0], **{**given, **across})
        return site.add(site.op.opcode, rows, **{**given, **down})
    if site.op.type.shape[1:3] != (1, 1) or any(pads):
        return None
    notes.append(f"a `{site.op.opcode}` of windows too large for L1 is done part by part")
    return pool_axis(site, site.op.opcode, site.operands[0], 1 if kernel[0] > 1 else 2)


def _norm(room: Room, notes: list[str], site: RewriteSite) -> int | None:
    """Norms: a row has to fit, with what it is scaled by and what is added."""
    depth = site.op.type.shape[-1]
    if len(site.operands) * depth <= room(site):
        return None
    notes.append(
        f"a `{site.op.opcode}` of rows of {depth} elements, too long for L1, runs in steps"
    )
    return norm_of_parts(site)


def _pair(site: RewriteSite, name: str) -> tuple[int, int]:
    found = site.attributes.get(name) or (1, 1)
    assert isinstance(found, tuple)
    return found[0], found[1]


_FORMS: dict[str, Form] = {
    "Linear": _linear,
    "MatMul": _matmul,
    "Conv": _convolution,
    "MaxPool": _pool,
    "AvgPool": _pool,
    "LayerNorm": _norm,
    "RmsNorm": _norm,
}
