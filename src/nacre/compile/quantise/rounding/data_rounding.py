"""Weights of products on integers, rounded for the inputs that these have on calibration data.

Scales stay. For each channel of a result there are up to three roundings: to the nearest, one input
after the other with what is lost handed on (GPTQ), and up or down as learned (AdaRound); the one
that loses least on the data is kept, so that none loses more than the nearest does. Moments are
those of the inputs as integers, behind products that are rounded to the nearest; where biases give
back means afterwards, they are taken about the means, for that part of an error costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.quantise.affine import HIGH
from nacre.compile.quantise.calibration import Sample
from nacre.compile.quantise.rewrite import Rewritten, with_data
from nacre.compile.quantise.roles import Graph
from nacre.compile.quantise.rounding.adaptive_rounding import STEPS, round_adaptively
from nacre.compile.quantise.rounding.error_feedback import round_with_feedback
from nacre.compile.quantise.rounding.moments import (
    Moments,
    from_weight_rows,
    input_moments,
    weight_rows,
)
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array, Literal

METHODS = frozenset({"gptq", "adaround"})
_MOST_DEPTH = 2304  # the moments are a square of that
_MOST_MOMENTS = 1 << 27  # elements of moments that are held at a time
_MOST_GROUPS = 16  # of a convolution, one by one
_LEAST_ROWS = 0.5  # of the depth: fewer say more of the samples than of the model
# Multiplications that each way may take, of all products together.
_MOST_WORK = {"gptq": 2e10, "adaround": 1e10}
_LEAST_GAIN = 1e-4  # of what is lost: less is how sums of f32 are rounded

_Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A product whose weights may be rounded otherwise."""

    key: _Key
    op: CoreOperation
    scales: Array
    reals: Array  # the weights of the float module
    stored: Array  # the nearest integers

    @property
    def steps(self) -> Array:
        """Weights in units of their scales, [groups, columns, depth]."""
        rows = weight_rows(self.op, self.reals.astype(np.float32))
        made = rows / self.scales.reshape(*rows.shape[:2], 1)
        return np.asarray(np.clip(made, -HIGH, HIGH))


@dataclass(frozen=True, eq=False)
class DataRounding:
    """Rounds weights by these methods; remembers what it made from one try to the next."""

    graph: Graph  # of the float module
    methods: Set[str]
    is_centred: bool  # biases take back what weights do to means, so that these cost nothing
    made: dict[_Key, Array] = field(default_factory=dict)

    def apply(self, rewritten: Rewritten, samples: Sequence[Sample]) -> Rewritten:
        """The module with these weights."""
        candidates = tuple(self._candidates(rewritten))
        new = [one for one in candidates if one.key not in self.made]
        if new:
            moments = _moments(
                rewritten, {one.op.value_id: one for one in new}, samples, self.is_centred
            )
            self._round([(one, moments[one.op.value_id]) for one in new
                         if one.op.value_id in moments])  # fmt: skip
            for one in new:
                self.made.setdefault(one.key, one.stored)
        stored = {one.op.operands[1]: self.made[one.key] for one in candidates}
        operations = tuple(
            with_data(op, stored[op.value_id]) if op.value_id in stored else op
            for op in rewritten.module.operations
        )
        return replace(rewritten, module=replace(rewritten.module, operations=operations))

    def _candidates(self, rewritten: Rewritten) -> Iterator[_Candidate]:
        """Products whose weights nothing else has."""
        module = rewritten.module
        uses = Counter(operand for op in module.operations for operand in op.operands)
        for product in rewritten.products:
            op, graph = module.by_id[product.value], self.graph
            reals = graph.constants.get(graph.op(product.source).operands[1])
            data = module.by_id[op.operands[1]].attributes.get("data")
            if reals is None or uses[op.operands[1]] != 1 or not isinstance(data, Literal):
                continue
            is_last = OPS[op.opcode].with_defaults(op.attributes).get("layout", "NHWC") == "NHWC"
            if is_last and data.array.shape == reals.shape:
                given = (op.attributes["x_scale"], op.attributes["x_zero"])
                scales = op.attributes["w_scales"]
                yield _Candidate((product.source, *given, scales), op,
                                 np.array(scales, np.float32), reals, data.array)  # fmt: skip

    def _round(self, candidates: Sequence[tuple[_Candidate, Moments]]) -> None:
        """Those first that lose most; each method as far as its work goes."""
        left = dict(_MOST_WORK)
        found = [(one, moments, *_losses(one, moments)) for one, moments in candidates]
        for one, moments, lost, share in sorted(found, key=lambda each: -each[3]):
            stored, steps = weight_rows(one.op, one.stored).astype(np.float32), one.steps
            for method in sorted(self.methods):
                work = _work(method, steps)
                if share == 0 or work > left[method]:
                    continue
                left[method] -= work
                tried = _WAYS[method](steps, moments.sums)
                if tried is None:
                    continue
                own = _column_losses(steps, tried, moments.sums)
                is_better = own < lost * (1 - _LEAST_GAIN)
                stored = np.where(is_better[..., None], tried, stored)
                lost = np.where(is_better, own, lost)
            shaped = from_weight_rows(one.op, stored.astype(np.int8), one.stored.shape)
            self.made[one.key] = np.ascontiguousarray(shaped)


def _moments(
    rewritten: Rewritten,
    wanted: Mapping[int, _Candidate],
    samples: Sequence[Sample],
    is_centred: bool,
) -> dict[int, Moments]:
    """Moments of inputs by product, as far as there is room for them."""
    runner, room = StepwiseRunner(rewritten.module), _MOST_MOMENTS
    live = [runner.start(sample) for sample in samples]
    found: dict[int, Moments] = {}
    for step in runner.steps:
        one = wanted.get(step.op.value_id)
        if one is not None:
            groups, _, depth = weight_rows(step.op, one.stored).shape
            size = groups * depth * depth
            if depth <= _MOST_DEPTH and size <= room:
                inputs = [values[step.op.operands[0]] for values in live]
                own = input_moments(step.op, one.stored.shape[:2], inputs, is_centred=is_centred)
                if own.rows >= _LEAST_ROWS * depth:
                    found[step.op.value_id] = own
                    room -= size
        for values in live:
            values[step.op.value_id] = runner.compute(step, values)
            for value in step.dead:
                del values[value]
    return found


def _losses(one: _Candidate, moments: Moments) -> tuple[Array, float]:
    """What the nearest integers lose for each column, and how much of the product that is."""
    steps = one.steps
    lost = _column_losses(steps, weight_rows(one.op, one.stored).astype(np.float32), moments.sums)
    units = np.square(one.scales.astype(np.float64)).reshape(lost.shape)
    signal = float((_column_losses(steps, np.zeros_like(steps), moments.sums) * units).sum())
    return lost, float((lost * units).sum()) / signal if signal > 0 else 0.0


def _column_losses(steps: Array, tried: Array, moments: Array) -> Array:
    """What each column [groups, columns] loses, in units of its scale."""
    errors = tried - steps
    return np.asarray(
        np.einsum("gcd,gcd->gc", np.matmul(errors, moments), errors, dtype=np.float64)
    )


def _work(method: str, steps: Array) -> float:
    groups, columns, depth = map(float, steps.shape)
    once = 1.0 * groups * columns * depth**2
    return STEPS * once if method == "adaround" else once + 3.0 * groups * depth**3


def _round_by_feedback(steps: Array, moments: Array) -> Array | None:
    """One input after the other; None of many groups, of which each is its own sum."""
    if len(steps) > _MOST_GROUPS:
        return None
    made = [
        round_with_feedback(own, each, own.shape[1], lambda parts, _: np.ones(len(parts)),
                            (-HIGH, HIGH))
        for own, each in zip(steps, moments, strict=True)
    ]  # fmt: skip
    kept = [own if one is None else one[0] for own, one in zip(np.rint(steps), made, strict=True)]
    return np.stack(kept).astype(np.float32)


def _round_by_learning(steps: Array, moments: Array) -> Array:
    return np.clip(round_adaptively(steps, moments), -HIGH, HIGH)


_WAYS = {"gptq": _round_by_feedback, "adaround": _round_by_learning}
