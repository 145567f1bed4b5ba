"""What hides scores before a softmax, in whatever way it is spelt, as one mask that is added.

`where(causal, scores, least) + padding` hides twice: f16 neither has `least` nor its sum with the
padding, and which of two hidden scores is larger decides what a row becomes that is masked whole.
As `scores + (where(causal, 0, least) + padding)` the sum of what hides is a value of its own, which
stays f32 and is levelled (`levelling.py`). Choices alone are left as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nacre.compile.legalise.forms.masks.levelling import (
    ABSORBING,
    addend_kind,
    has_hiding_numbers,
    likeliest_scores,
)
from nacre.core.module import CoreOperation, Module, Shape
from nacre.core.ops import OPS
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.site import RewriteSite

_MOST_DEPTH, _MOST_FACTOR = 32, 1e30
_VIEWS = ("Reshape", "ExpandDims", "Squeeze")
_MOVES = (*_VIEWS, "Transpose", "Slice")
_SPELLING = ("BinOp", "Where", "Clip", "Concat", "Pad", *_MOVES)


class _MaskedScores(NamedTuple):
    """The sum of scores and a mask, either of which may be missing."""

    scores: int | None = None
    mask: int | None = None
    is_added: bool = False  # whether more hides than choices do


def fold_masks(module: Module) -> Module:
    """The module with one sum of scores and a mask before each softmax that has masks."""
    module = apply_once(module, {"Softmax": [_drop_subtracted_maximum]})
    return apply_once(module, {"Softmax": [_fold_mask]})


def _drop_subtracted_maximum(site: RewriteSite) -> int | None:
    """A softmax of x less its largest is one of x."""
    less = site.only(site.operands[0], "BinOp", op="Sub")
    top = None if less is None else site.maker(less.operands[1], "Reduce", op="Max", keepdims=True)
    if less is None or top is None or top.operands[0] != less.operands[0]:
        return None
    rank = site.op.type.rank
    axes = top.attributes.get("axes") or tuple(range(rank))
    if {axis % rank for axis in axes} != {int(str(site.attributes["axis"])) % rank}:
        return None
    return site.add("Softmax", less.operands[0], **site.op.attributes)


def _fold_mask(site: RewriteSite) -> int | None:
    value = _before_views(site)
    folder = _MaskFolder(site)
    masked = folder.read(value)
    if masked.scores is None and folder.leaves:
        folder = _MaskFolder(site, likeliest_scores(site, folder.leaves))
        masked = folder.read(value)
    is_due = folder.is_spelt_otherwise or value != site.operands[0]
    is_mixed = masked.is_added or len(folder.fills) > 1
    if masked.scores is None or masked.mask is None or not (is_due and is_mixed):
        return None
    total = site.add("BinOp", masked.scores, masked.mask, op="Add")
    axis = site.attributes["axis"] if value == site.operands[0] else site.type(total).rank - 1
    return site.reshape(site.add("Softmax", total, axis=axis), site.op.type.shape)


def _before_views(site: RewriteSite) -> int:
    """What a softmax is of, before its rows are counted otherwise."""
    value = site.operands[0]
    rank = site.type(value).rank
    if not rank or int(str(site.attributes["axis"])) % rank != rank - 1:
        return value
    while True:
        view = site.only(value, *_VIEWS)
        source = None if view is None else view.operands[0]
        if source is None or site.type(source).shape[-1:] != site.type(value).shape[-1:]:
            return value
        value = source


class _MaskFolder:
    """Reads one value as scores and a mask; where there are no scores, `forced` are some."""

    def __init__(self, site: RewriteSite, forced: int | None = None) -> None:
        self._site, self._forced = site, forced
        self._is_inside = False  # a choice
        self.fills: set[float | None] = set()  # of choices; None where it is no number
        self.leaves: list[int] = []  # those of choices first: they are the likelier scores
        self.is_spelt_otherwise = False  # than as a sum

    def read(self, value: int, depth: int = 0) -> _MaskedScores:
        """A value; the operations for what it comes to are added."""
        op = self._site.maker(value, *_SPELLING)  # others may use it: a sum more costs little
        if op is None or value == self._forced or depth > _MOST_DEPTH:
            return self._leaf(value)
        if op.opcode == "Where":
            return self._choice(op, depth)
        if op.opcode == "Clip":
            least = float(str(OPS["Clip"].with_defaults(op.attributes)["min"]))
            return self._bounded(op, op.operands[0], least, depth)
        if op.opcode == "Concat":
            return self._concat(op, depth)
        if op.opcode == "Pad" or op.opcode in _MOVES:
            return self._mask_through_move(op, depth)
        return self._binary(op, depth)

    def _leaf(self, value: int) -> _MaskedScores:
        self.leaves.insert(0 if self._is_inside else len(self.leaves), value)
        kind = "scores" if value == self._forced else addend_kind(self._site, value)
        if kind == "scores":
            return _MaskedScores(scores=value)
        return _MaskedScores(mask=value, is_added=kind == "hides")

    def _binary(self, op: CoreOperation, depth: int) -> _MaskedScores:
        name, (a, b) = op.attributes["op"], op.operands
        if name in ("Add", "Sub"):
            left, right = self.read(a, depth + 1), self.read(b, depth + 1)
            return self._sum(left, right if name == "Add" else self._negative(right))
        split = self._site.split(op)
        number = None if split is None else self._site.number(b if split[0] == a else a)
        if split is not None and number is not None:
            if name == "Mul" or (name == "Div" and split[0] == a and number):
                return self._scale(op, split[0], number if name == "Mul" else 1 / number, depth)
            if name == "Max":
                return self._bounded(op, split[0], number, depth)
        return self._leaf(op.value_id)

    def _sum(self, a: _MaskedScores, b: _MaskedScores) -> _MaskedScores:
        scores, mask = self._add(a.scores, b.scores), self._add(a.mask, b.mask)
        return _MaskedScores(scores, mask, a.is_added or b.is_added)

    def _add(self, a: int | None, b: int | None) -> int | None:
        if a is None or b is None:
            return a if b is None else b
        return self._site.add("BinOp", a, b, op="Add")

    def _negative(self, inner: _MaskedScores) -> _MaskedScores:
        self.is_spelt_otherwise = True
        made = [None if one is None else self._site.add("Neg", one) for one in inner[:2]]
        return _MaskedScores(made[0], made[1], inner.is_added)

    def _scale(self, op: CoreOperation, value: int, factor: float, depth: int) -> _MaskedScores:
        """A number times scores and a mask."""
        inner = self._site.maker(value, *_SPELLING)
        masked = (
            self.read(value, depth + 1)
            if inner is not None and 0 < factor < _MOST_FACTOR
            else _MaskedScores()
        )
        if masked.scores is None or masked.mask is None:
            return self._leaf(op.value_id)
        self.is_spelt_otherwise = True
        known = self._site.literal(np.array(factor), op.type.dtype)
        both = (masked.scores, masked.mask)
        scores, mask = (self._site.add("BinOp", one, known, op="Mul") for one in both)
        return _MaskedScores(scores, mask, masked.is_added)

    def _bounded(self, op: CoreOperation, value: int, low: float, depth: int) -> _MaskedScores:
        """Held above a number beside which scores drop out."""
        most = float(op.attributes.get("max", np.inf)) if op.opcode == "Clip" else np.inf
        is_beyond = low <= -ABSORBING and most >= ABSORBING
        masked = self.read(value, depth + 1) if is_beyond else _MaskedScores()
        if masked.scores is None or masked.mask is None:
            return self._leaf(op.value_id)
        self.is_spelt_otherwise = True
        return masked._replace(mask=self._site.add("Clip", masked.mask, min=low, max=most))

    def _choice(self, op: CoreOperation, depth: int) -> _MaskedScores:
        """Scores where a condition holds, or where it does not, and what hides elsewhere."""
        condition, *sides = op.operands
        before, self._is_inside = self._is_inside, True
        read = [self.read(side, depth + 1) for side in sides]
        self._is_inside = before
        with_scores = [at for at, one in enumerate(read) if one.scores is not None]
        if len(with_scores) != 1:
            return self._leaf(op.value_id)
        at = with_scores[0]
        fill = sides[1 - at]
        if read[at].mask is None and not self._is_hiding_fill(fill):
            return self._leaf(op.value_id)
        self.is_spelt_otherwise = True
        self.fills.add(self._site.number(fill))
        return self._mask_of_choice(
            op, condition if at == 0 else self._negate(condition), read[at], fill
        )

    def _is_hiding_fill(self, fill: int) -> bool:
        known = self._site.constant(fill)
        return known is None or has_hiding_numbers(known) or bool(np.isinf(known).any())

    def _negate(self, condition: int) -> int:
        return self._site.add("Unary", condition, op="Not")

    def _mask_of_choice(
        self, op: CoreOperation, seen: int, inner: _MaskedScores, fill: int
    ) -> _MaskedScores:
        site, dtype = self._site, op.type.dtype
        scores = inner.scores
        assert scores is not None
        scores = self._zero_hidden_scores(scores, seen, fill, dtype)
        if site.number(fill) == -np.inf:
            hidden = site.add("Log", site.add("Cast", seen, to=dtype))  # 0 of true, -inf of false
            return _MaskedScores(scores, self._add(inner.mask, hidden), inner.is_added)
        mask = site.literal(np.array(0.0), dtype) if inner.mask is None else inner.mask
        return _MaskedScores(scores, site.add("Where", seen, mask, fill), inner.is_added)

    def _zero_hidden_scores(self, scores: int, seen: int, fill: int, dtype: str) -> int:
        """Scores, 0 where they are hidden: there they may be NaN, as of a cache that is not full.

        What a known condition hides has been computed: f32 drops it beside a large number.
        """
        site, known = self._site, self._site.constant(fill)
        if not self._is_known(seen):
            return site.add("Where", seen, scores, site.literal(np.array(0.0), dtype))
        if known is not None and bool((np.abs(known) >= ABSORBING).all()):
            return scores
        return site.add("BinOp", scores, site.add("Cast", seen, to=dtype), op="Mul")

    def _is_known(self, condition: int) -> bool:
        negated = self._site.maker(condition, "Unary", op="Not")
        source = condition if negated is None else negated.operands[0]
        return self._site.constant(source) is not None

    def _concat(self, op: CoreOperation, depth: int) -> _MaskedScores:
        """Parts side by side: scores of a cache and of what is new, or a sink beside them."""
        read = [self.read(value, depth + 1) for value in op.operands]
        if all(part.mask is None for part in read) or all(part.scores is None for part in read):
            return self._leaf(op.value_id)
        self.is_spelt_otherwise = True
        site, axis = self._site, int(op.attributes["axis"]) % op.type.rank
        shapes = [site.type(value).shape for value in op.operands]
        common = self._common_shape([part.mask for part in read], op.type.shape)
        masks, scores = list[int](), list[int]()
        for part, shape in zip(read, shapes, strict=True):
            mask_shape = (*common[:axis], shape[axis], *common[axis + 1 :])
            masks.append(self._broadcast_or_zeros(part.mask, mask_shape, op.type.dtype))
            scores.append(self._broadcast_or_zeros(part.scores, shape, op.type.dtype))
        whole, mask = (site.add("Concat", *values, axis=axis) for values in (scores, masks))
        return _MaskedScores(whole, mask, any(part.is_added for part in read))

    def _common_shape(self, masks: list[int | None], shape: Shape) -> Shape:
        """The shape that all masks have in common; the axis along which they are joined is not."""
        known = [self._site.type(mask).shape for mask in masks if mask is not None]
        padded = [(1,) * (len(shape) - len(one)) + one for one in known]
        return tuple(max(dims) for dims in zip(*padded, strict=True))

    def _broadcast_or_zeros(self, value: int | None, shape: Shape, dtype: str) -> int:
        """A value in a shape, or zeros."""
        site = self._site
        if value is None:
            return site.literal(np.zeros(shape), dtype)
        return (
            value if site.type(value).shape == shape else site.add("Broadcast", value, shape=shape)
        )

    def _mask_through_move(self, op: CoreOperation, depth: int) -> _MaskedScores:
        """Elements in other places; of what is padded, the scores are 0."""
        masked = self.read(op.operands[0], depth + 1)
        is_filled = (
            op.opcode != "Pad" or OPS["Pad"].with_defaults(op.attributes)["mode"] == "constant"
        )
        if masked.scores is None or masked.mask is None or not is_filled:
            return self._leaf(op.value_id)
        self.is_spelt_otherwise = True
        site, shape = self._site, self._site.type(op.operands[0]).shape
        filled = dict[str, object]()
        if op.opcode == "Pad":
            self.fills.add(float(str(OPS["Pad"].with_defaults(op.attributes)["value"])))
            filled = {"value": 0.0}
        scores, mask = (
            self._broadcast_or_zeros(value, shape, op.type.dtype) for value in masked[:2]
        )
        scores = site.add(op.opcode, scores, **{**op.attributes, **filled})
        return masked._replace(scores=scores, mask=site.add(op.opcode, mask, **op.attributes))
