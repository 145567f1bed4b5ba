"""The accuracy that is lost: each layer's result on integers against the float module's."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import inf, log10
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from nacre.compile.accuracy.measures import SQNR_DB, Accuracy, AccuracyMeter
from nacre.compile.legalise.running import StepwiseRunner, Values
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.calibration import Sample
from nacre.compile.quantise.observers import Function
from nacre.compile.quantise.rewrite import Rewritten
from nacre.compile.quantise.roles import Graph, bounds_of
from nacre.compile.quantise.walking import QuantisedValue
from nacre.core.module import Module
from nacre.core.values import Array

_FAINT = 1e-20
# Layers that lose so much of what they are given are lossy ones, those that lose most first; one
# that has more left than the last number is not.
_LOSSY, _POOR = (8.0, 4.0, 2.0, 1.0), 30.0


class Loss(Struct, frozen=True):
    """A value of the float module and how well integers have it."""

    layer: str
    opcode: str
    value: int  # in the float module
    stored: int  # in the module on integers
    elem: str
    scale: float | None
    zero: int | None
    sqnr: float | None  # dB; None: nothing to lose, or the same to the bit

    def __str__(self) -> str:
        kept = f"{self.sqnr:6.1f} dB" if self.sqnr is not None else "     exact"
        scale = f"scale {self.scale:.4g}, zero {self.zero}" if self.scale is not None else ""
        return f"{kept}  {self.elem:4} {self.opcode:12} {self.layer}  {scale}".rstrip()


class Report(Struct, frozen=True):
    """Every layer, the outputs, and how many samples it was taken from."""

    layers: tuple[Loss, ...]
    outputs: Mapping[str, float | None]
    samples: int
    notes: tuple[str, ...] = ()
    accuracies: tuple[Accuracy, ...] = ()  # the outputs, each by the measure that fits it
    widened: frozenset[int] = frozenset()  # values that are made on integers and stored as floats

    def is_on_integers(self, loss: Loss) -> bool:
        """Whether a value is made on integers, which floats would mend."""
        return loss.elem == "i8" or loss.value in self.widened

    @property
    def missed_outputs(self) -> tuple[Accuracy, ...]:
        """The outputs that are too far from the float module's."""
        return tuple(output for output in self.accuracies if not output.is_met)

    @property
    def margin(self) -> float:
        """How far the output that loses most is from its bound, in dB."""
        return min((output.margin for output in self.accuracies), default=inf)

    @property
    def worst(self) -> tuple[Loss, ...]:
        """Layers by what they lose, those that lose most first."""
        return tuple(sorted(self.layers, key=lambda loss: inf if loss.sqnr is None else loss.sqnr))

    def __str__(self) -> str:
        lines = [f"accuracy on {self.samples} samples, signal over quantisation noise:"]
        lines += [f"  {loss}" for loss in self.layers]
        for output in self.accuracies:
            told = "exact" if output.margin == inf else f"{output.measure} {output.describe}"
            bound = "" if output.is_met else f", below {output.describe_bound}"
            lines.append(f"output `{output.name}`: {told}{bound}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"


class ReportScope(NamedTuple):
    """What a report looks at: values of the float module with their names.

    A scale that was chosen for what a function makes of a value is judged by that: `after`.
    """

    layers: Mapping[int, str]
    after: Mapping[int, Function]


class Output(NamedTuple):
    """An output: which value of the float module it is, how it is stored, how it is judged."""

    name: str
    value: int
    stored: QuantisedValue
    meter: AccuracyMeter


class _SignalAndNoise:
    """Sums of squares of a signal and of what was lost of it."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0

    def add(self, real: Array, found: Array) -> None:
        wanted, actual = real.ravel(), found.ravel()
        with np.errstate(all="ignore"):  # what is infinite is looked at again
            lost = np.subtract(actual, wanted, dtype=np.float32)
            signal, noise = float(np.dot(wanted, wanted)), float(np.dot(lost, lost))
        if not (_FAINT < signal < np.inf and noise < np.inf):  # f32 does not hold the squares
            is_number = np.isfinite(wanted) & np.isfinite(actual)
            exact = wanted[is_number].astype(np.float64)
            far = actual[is_number].astype(np.float64) - exact
            signal, noise = float(np.dot(exact, exact)), float(np.dot(far, far))
            if (np.isfinite(wanted) & ~np.isfinite(actual)).any():
                noise = np.inf  # nothing is left of a number that became none
        self.signal += signal
        self.noise += noise

    @property
    def sqnr(self) -> float | None:
        if self.noise == 0.0:
            return None
        ratio = self.signal / self.noise
        return 10.0 * log10(ratio) if ratio else -inf


def losses(
    floats: StepwiseRunner,
    rewritten: Rewritten,
    feeds: Iterable[tuple[Sample, Sample]],
    scope: ReportScope,
    outputs: Sequence[Output],
    notes: tuple[str, ...] = (),
) -> Report:
    """Both modules on the same samples, side by side.

    The modules run in step, so that no more than one value waits for its other.
    """
    integers = StepwiseRunner(rewritten.module)
    layers = scope.layers
    wanted = {value: rewritten.stored[value] for value in layers if value in rewritten.stored}
    powers = {value: _SignalAndNoise() for value in wanted}
    count = 0
    for real, stored in feeds:
        count += 1
        expected, actual = dict(floats.constants), dict(integers.constants)
        reals = _record_some(floats.run(real), {output.value for output in outputs}, expected)
        stream = _record_some(integers.run(stored), {o.stored.value for o in outputs}, actual)
        _compare(reals, stream, wanted, powers, scope.after)
        deque(stream, maxlen=0)  # no layer is behind, but outputs may be
        for output in outputs:
            array, affine = actual[output.stored.value], output.stored.affine
            array = array if affine is None else affine.real(array)
            output.meter.add(array, expected[output.value])
    ratios = {value: powers[value].sqnr for value in wanted}
    return Report(
        tuple(
            _loss(name, value, floats.module, rewritten, ratios[value])
            for value, name in layers.items()
            if value in wanted
        ),
        {output.name: ratios.get(output.value) for output in outputs},
        count,
        notes,
        tuple(output.meter.accuracy for output in outputs),
    )


def _record_some(
    run: Iterable[tuple[int, Array]], wanted: Set[int], into: Values
) -> Iterator[tuple[int, Array]]:  # fmt: skip
    """The values of a run; some of them are kept."""
    for value, array in run:
        if value in wanted:
            into[value] = array
        yield value, array


def lossy_layers(report: Report, graph: Graph, known: Set[int]) -> set[int]:
    """Products and functions to mend outputs that are too far off, but for known ones.

    Of choices first what they are made from: a step there decides them. Then layers that are much
    worse than what they are made of; where none loses much, those that lose less: many small
    losses add up as well.
    """
    outputs = zip(graph.module.outputs, report.accuracies, strict=False)
    missed = {value: accuracy for value, accuracy in outputs if not accuracy.is_met}
    choices = {value for value, accuracy in missed.items() if accuracy.measure == "agreement"}
    stored = {loss.value for loss in report.layers if report.is_on_integers(loss)}
    near = {
        _lossy_source(graph, v) for v in _sources_of_choices(graph, choices) if v in stored
    } - known
    if near:
        return near
    # A target above the usual one asks the same of the layers behind it.
    more = max((j.bound - SQNR_DB for j in missed.values() if j.measure == "SQNR"), default=0.0)
    poor = {
        **dict.fromkeys(_with_sources(graph, missed), _POOR + max(0.0, more)),
        **dict.fromkeys(_with_sources(graph, choices), inf),
    }
    ratios = {loss.value: loss.sqnr for loss in report.layers if loss.sqnr is not None}
    lost: dict[int, float] = {}
    for loss in report.layers:
        if loss.sqnr is None or not report.is_on_integers(loss):
            continue
        if loss.sqnr > poor.get(loss.value, -inf):
            continue
        sources = [
            ratios.get(value, inf) for value in graph.computed_operands(graph.op(loss.value))
        ]
        at = _lossy_source(graph, loss.value)
        if sources and at not in known:
            lost[at] = max(lost.get(at, 0.0), min(sources) - loss.sqnr)
    ways = ({value for value, size in lost.items() if size > least} for least in _LOSSY)
    found = next((found for found in ways if found), None)
    found = (
        found or {_lossy_source(graph, v) for v in _amplified_values(report, graph, poor)} - known
    )
    # Where none loses more than the others, a target that was asked for takes as many as it needs.
    return found or (set(lost) if more > 0 else found)


def _amplified_values(report: Report, graph: Graph, poor: Mapping[int, float]) -> set[int]:
    """Integers whose small errors functions of floats make large ones of."""
    losses = {loss.value: loss for loss in report.layers if loss.sqnr is not None}
    amplified: set[int] = set()
    for loss in losses.values():
        assert loss.sqnr is not None
        if report.is_on_integers(loss) or loss.sqnr > poor.get(loss.value, -inf):
            continue
        # All that goes into it, as far as it is floats.
        above, seen = graph.computed_operands(graph.op(loss.value)), {loss.value}
        while above:
            source = losses.get(above.pop())
            if source is None or source.sqnr is None or source.value in seen:
                continue
            seen.add(source.value)
            if not report.is_on_integers(source):
                above += graph.computed_operands(graph.op(source.value))
            elif source.sqnr - loss.sqnr > _LOSSY[-1]:
                amplified.add(source.value)
    return amplified


def _with_sources(graph: Graph, values: Iterable[int]) -> set[int]:
    """Values, and all that they are computed from."""
    found = set(values)
    for op in reversed(graph.module.operations):
        if op.value_id in found:
            found.update(op.operands)
    return found


def _sources_of_choices(graph: Graph, choices: Set[int]) -> set[int]:
    """The floats that indices and truth values are made of."""
    inside, found = set(choices), set()
    for op in reversed(graph.module.operations):
        if op.value_id in inside:
            found.update(graph.computed_operands(op))
            inside.update(operand for operand in op.operands if not graph.is_float(operand))
    return found


def _lossy_source(graph: Graph, value: int) -> int:
    """Where a value loses: what moves elements, or holds them between bounds, has its source's."""
    op = graph.op(value)
    while graph.roles[value] == "keep" or bounds_of(op) is not None:
        computed = graph.computed_operands(op)
        if len(computed) != 1:
            break
        value = computed[0]
        op = graph.op(value)
    return value


def _compare(
    reals: Iterable[tuple[int, Array]],
    integers: Iterable[tuple[int, Array]],
    wanted: Mapping[int, QuantisedValue],
    powers: Mapping[int, _SignalAndNoise],
    after: Mapping[int, Function],
) -> None:
    stream = iter(integers)
    done: dict[int, Array] = {}  # integers that later float values stand for too
    last = {stored.value: value for value, stored in wanted.items()}
    for value, array in reals:
        stored = wanted.get(value)
        if stored is None:
            continue
        if stored.value not in done:
            for at, integer in stream:
                if at in last:
                    done[at] = integer
                if at == stored.value:
                    break
        if stored.value in done:
            actual = _dequantise(done[stored.value], stored.affine)
            then = after.get(value)
            powers[value].add(*((array, actual) if then is None else (then(array), then(actual))))
            if last[stored.value] == value:
                del done[stored.value]


def _dequantise(array: Array, affine: Affine | None) -> Array:
    return np.asarray(array, np.float32) if affine is None else affine.real(array)


def _loss(
    name: str, value: int, module: Module, rewritten: Rewritten, sqnr: float | None
) -> Loss:  # fmt: skip
    stored = rewritten.stored[value]
    affine = stored.affine
    return Loss(
        name,
        module.by_id[value].opcode,
        value,
        stored.value,
        rewritten.module.by_id[stored.value].type.dtype,
        None if affine is None else affine.scale,
        None if affine is None else affine.zero,
        sqnr,
    )
