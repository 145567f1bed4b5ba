"""Masks that are added before a softmax, where the plan is in f16.

Models hide with numbers that f16 does not have (-1e9, the least f32), and where a whole row is
hidden the sum in f32 decides what comes out: scores beside -1e4 keep their digits, beside -1e9 they
drop out. A softmax sees differences only. So the largest of each row of a mask is taken off it in
f32, before the rest becomes f16, and scores that f32 would lose beside it are multiplied by 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

import numpy as np

from nacre.compile.legalise.forms.masks.level_rows import has_level_rows
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast"})
# What a mask is made by; other operations are data that it is added to.
_MAKING = _VIEWS | {"BinOp", "Clip", "Neg", "Concat", "Pad", "Where", "Cast", "Tile", "Log"}
# Numbers that hide, truth values and bounds as minus infinity and 0, and all else.
Kind = Literal["hides", "condition", "scores"]
_PRODUCTS = frozenset({"MatMul", "Linear", "Conv", "Einsum"})
_HIDING = 1e3  # what is added to hide something is beyond
_NEAR = 16.0  # beside numbers up to this, f16 keeps scores as well as anywhere
ABSORBING = 2.0**26  # beside it f32 counts in steps of 8, and scores drop out
_MOST = float(np.finfo(np.float32).max)


def level_masks(module: Module) -> Module:
    """The module with the largest of each row taken off masks."""
    return apply_once(module, {"Softmax": [_MaskLeveller().softmax]})


def mask_values(module: Module) -> frozenset[int]:
    """The values that masks are made of, which stay f32 until the largest is taken off."""
    values: set[int] = set()
    waiting = [
        op.operands[0]
        for op in module.operations
        if op.opcode == "Cast" and _is_levelled_mask(module, op)
    ]
    while waiting:
        op = module.by_id[waiting.pop()]
        is_known = constant_array(op) is not None or op.value_id in values
        if is_known or op.type.dtype != "f32":
            continue
        if op.opcode == "Input" or op.opcode in _MAKING or op.opcode in ("Reduce", "Unary"):
            values.add(op.value_id)
            waiting += op.operands
    return frozenset(values)


def _is_levelled_mask(module: Module, cast: CoreOperation) -> bool:
    """Whether a cast to f16 is one of those that this file adds."""
    source = module.by_id[cast.operands[0]]
    if cast.type.dtype != "f16" or source.type.dtype != "f32":
        return False
    if source.opcode == "BinOp" and source.attributes["op"] == "Sub":
        source = module.by_id[source.operands[1]]
        return source.opcode == "Clip" and source.attributes.get("min") == -_MOST
    less = module.by_id[source.operands[0]] if source.opcode == "Clip" else source
    known = constant_array(module.by_id[less.operands[0]]) if less.opcode == "BinOp" else None
    return known is not None and known.size == 1 and float(known.flat[0]) == ABSORBING


class _MaskLeveller:
    """One walk over a module; layers that have a mask in common have its level in common."""

    def __init__(self) -> None:
        self._levelled: dict[tuple[object, ...], tuple[int, int]] = {}

    def softmax(self, site: RewriteSite) -> int | None:
        """Softmax(scores + masks)."""
        leaves = list(_addends(site, site.operands[0]))
        kinds = {leaf: addend_kind(site, leaf) for leaf in leaves}
        if "scores" not in kinds.values():
            kinds[likeliest_scores(site, leaves)] = "scores"
        if "hides" not in kinds.values():
            return None
        scores = [leaf for leaf in leaves if kinds[leaf] == "scores"]
        masks = [leaf for leaf in leaves if kinds[leaf] != "scores"]
        arrays = [site.constant(mask) for mask in masks]
        known = [array for array in arrays if array is not None]
        total = _sum(site, scores)
        axis = int(str(site.attributes["axis"])) % site.op.type.rank - site.op.type.rank
        if len(known) == len(masks):
            total = _add_known_masks(site, total, known, axis)
        elif axis == -1 and has_level_rows(site, masks, _NEAR):
            return None
        else:
            total = self._add_computed_masks(site, total, masks, axis)
        return site.add("Softmax", total, **site.op.attributes)

    def _add_computed_masks(
        self, site: RewriteSite, scores: int, masks: list[int], axis: int
    ) -> int:
        key = (*masks, axis)
        if key not in self._levelled:
            self._levelled[key] = _level_mask(site, _sum(site, masks), axis)
        level, factor = self._levelled[key]
        scores = site.add("BinOp", scores, factor, op="Mul")
        return site.add("BinOp", scores, level, op="Add")


def _level_mask(site: RewriteSite, mask: int, axis: int) -> tuple[int, int]:
    """A mask less the largest of each row, and 0 for rows whose scores drop out beside that."""
    type_, top = site.type(mask), mask
    if type_.rank >= -axis and type_.shape[axis] > 1:
        top = site.add("Reduce", mask, op="Max", axes=(type_.rank + axis,), keepdims=True)
    top = site.add("Clip", top, min=-_MOST, max=_MOST)
    level = _round_to_half(site, site.add("BinOp", mask, top, op="Sub"))
    size = site.add("Unary", top, op="Abs")
    less = site.add("BinOp", site.literal(np.array(ABSORBING), "f32"), size, op="Sub")
    return level, _round_to_half(site, site.add("Clip", less, min=0.0, max=1.0))


def _round_to_half(site: RewriteSite, value: int) -> int:
    """What is f16 from here on; the module is still one of f32."""
    return site.add("Cast", site.add("Cast", value, to="f16"), to="f32")


def _add_known_masks(site: RewriteSite, scores: int, masks: list[Array], axis: int) -> int:
    """Scores and masks that are constants: the same before the run."""
    with np.errstate(over="ignore", invalid="ignore"):
        mask = np.asarray(sum(masks[1:], masks[0]), np.float32)
        top = mask.max(axis=axis, keepdims=True) if mask.ndim >= -axis else mask
        top = np.where(np.isfinite(top) & (np.abs(top) > _NEAR), top, np.float32(0))
        level = (mask - top).astype(np.float32)
    dtype, factor = site.op.type.dtype, np.abs(top) < ABSORBING
    if not factor.all():
        known = site.literal(factor.astype(np.float32), dtype)
        scores = site.add("BinOp", scores, known, op="Mul")
    return site.add("BinOp", scores, site.literal(level, dtype), op="Add")


def _sum(site: RewriteSite, values: list[int]) -> int:
    total = values[0]
    for value in values[1:]:
        total = site.add("BinOp", total, value, op="Add")
    return total


def _addends(site: RewriteSite, value: int) -> Iterator[int]:
    """What is added up to a value."""
    found = site.maker(value, "BinOp", op="Add")  # others may use it, too
    if found is None:
        yield value
        return
    for operand in found.operands:
        yield from _addends(site, operand)


def likeliest_scores(site: RewriteSite, values: list[int]) -> int:
    """What is most like scores among values that could all be masks."""
    return max(values, key=lambda v: (site.constant(v) is None, prod(site.type(v).shape)))


def addend_kind(site: RewriteSite, value: int) -> Kind:
    """What an addend is, by what it is made of."""
    waiting, seen = [value], {value}
    hides = is_other = False
    while waiting:
        op = site.maker(waiting.pop())
        assert op is not None
        known = constant_array(op)
        if op.opcode in _PRODUCTS:
            return "scores"
        if op.type.element.kind != "float":
            continue
        if known is not None:
            hides |= has_hiding_numbers(known)
        elif op.opcode == "Input":
            hides = True
        elif op.opcode in _MAKING:
            waiting += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
        else:
            is_other = True
    if hides:
        return "hides"
    return "scores" if is_other else "condition"


def has_hiding_numbers(array: Array) -> bool:
    """Whether a constant has finite numbers that are added to hide something."""
    finite = array[np.isfinite(array)]
    return bool(finite.size) and bool((np.abs(finite.astype(np.float64)) > _HIDING).any())
