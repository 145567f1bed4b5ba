"""Weights of few values: a palette of a device holds them, at the price of some accuracy.

The elements of a constant are gathered around as many numbers as a table has entries, by k-means on
the line; what is 0 stays so. It is judged as integers of 8 bits are, by the outputs against the
model's, on the calibration data or on random inputs: where they are too far off, tables are larger,
then the half of the constants that change most stays as it was, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nacre.base.compression_forms import CompressionForm, size_bounds
from nacre.base.elements import GRAPH_TYPES
from nacre.base.weight_compression import best_form, compress
from nacre.compile.accuracy.measures import Accuracy, AccuracyMeter, sqnr
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.narrowing import store_floats
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.options import Options
from nacre.compile.quantise.calibration import Sample, check_samples
from nacre.compile.quantise.quantiser import Quantised
from nacre.compile.sampling.draw import draw_inputs
from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Literal, attributes
from nacre.nem.plan.decompression import decompression_figure

_PRODUCTS = frozenset({"Linear", "MatMul", "Conv", "Conv2d", "ConvTranspose", "QConv", "QLinear"})
_WEIGHTS = 1  # their operand
_LEAST_ELEMENTS = 1024  # that are worth a table
_BITS = (4, 5, 6, 7, 8)
_TRIED = 2  # sizes of tables
_SAMPLES = 4
_SEED = 1
_ROUNDS = 30  # of k-means


@dataclass(frozen=True)
class _Comparison:
    """The model's outputs on some inputs, and how a module of the compiler comes near them."""

    source: Module
    quantised: Quantised | None
    samples: tuple[Sample, ...]
    expected: tuple[list[Array], ...]
    accuracy_db: float | None

    def worst(self, legal: Legal) -> Accuracy:
        """The output that is nearest to its bound, or furthest behind it."""
        names = self.source.output_names
        meters = {
            name: AccuracyMeter(name, self.source, value, "i8", self.accuracy_db)
            for name, value in zip(names, self.source.outputs, strict=True)
        }
        runner = StepwiseRunner(legal.module, legal)
        for sample, expected in zip(self.samples, self.expected, strict=True):
            found = dict(runner.run(self._quantise_inputs(legal.module, sample)))
            for name, value, wanted in zip(names, legal.module.outputs, expected, strict=False):
                meters[name].add(self._dequantise_output(name, found[value], wanted), wanted)
        return min((meter.accuracy for meter in meters.values()), key=lambda one: one.margin)

    def _quantise_inputs(self, module: Module, sample: Sample) -> Sample:
        """Inputs as the module takes them."""
        ports = {port.name: port for port in self.quantised.inputs} if self.quantised else {}
        return {
            name: ports[name].to_memory(sample[name])
            if name in ports
            else store_floats(np.asarray(sample[name]), GRAPH_TYPES[type_.dtype])
            for name, type_ in module.input_types.items()
        }

    def _dequantise_output(self, name: str, found: Array, wanted: Array) -> Array:
        """An output as the model has it."""
        ports = self.quantised.outputs if self.quantised else ()
        port = next((port for port in ports if port.name == name), None)
        affine = port.affine if port is not None else None
        array = found if affine is None else affine.real(found)
        return np.asarray(array).astype(wanted.dtype).reshape(wanted.shape)


def cluster_weights(
    legal: Legal, source: Module, options: Options, quantised: Quantised | None
) -> Legal:
    """The module with weights that tables of the device hold, as far as outputs allow."""
    entries = decompression_figure(options.device, "palette_entries")
    sizes = [bits for bits in _BITS if 1 << bits <= entries][:_TRIED]
    weights = {
        value: array
        for value, array in _weights(legal.module).items()
        if sizes and _gets_smaller(array, sizes[-1], options)
    }
    if not weights or not sizes or source.states:
        why = "a model with state is left as it is" if source.states else "none would get smaller"
        return _with_note(legal, f"no weights are clustered: {why}", 0)
    comparison = _comparison_with(source, options, quantised)
    chosen, found = sorted(weights), comparison.worst(legal)
    if not found.is_met:
        return _with_note(legal, f"no weights are clustered: {_describe(found)} without", 0)
    made, bits = legal, sizes[0]
    for bits in sizes:
        made = _cluster_weights(legal, weights, chosen, bits)
        found = comparison.worst(made)
        if found.is_met:
            break
    while not found.is_met and len(chosen) > 1:
        chosen = _least_changed(weights, chosen, bits)
        made = _cluster_weights(legal, weights, chosen, bits)
        found = comparison.worst(made)
    if not found.is_met:
        return _with_note(legal, f"no weights are clustered: {_describe(found)} with", 0)
    what = f"{len(chosen)} of {len(weights)} weights have {1 << bits} values at most"
    return _with_note(made, f"{what}: {_describe(found)}", len(chosen))


def _describe(found: Accuracy) -> str:
    return f"output `{found.name}` has {found.describe_with_bound}"


def _with_note(legal: Legal, note: str, clustered: int) -> Legal:
    return replace(legal, notes=(*legal.notes, note), clustered=clustered)


def _comparison_with(source: Module, options: Options, quantised: Quantised | None) -> _Comparison:
    if options.calibration is not None:
        data = check_samples(source, options.calibration)
        samples = tuple(sample for _, sample in zip(range(_SAMPLES), data, strict=False))
    else:
        samples = tuple(draw_inputs(source, _SEED + number) for number in range(_SAMPLES))
    session = CoreSession(source)
    expected = tuple(session.run(sample) for sample in samples)
    return _Comparison(source, quantised, samples, expected, options.accuracy_db)


def _weights(module: Module) -> dict[int, Array]:
    """The constants that are weights of products and nothing else."""
    uses: dict[int, set[bool]] = {}
    for op in module.operations:
        for place, operand in enumerate(op.operands):
            is_weight = op.opcode in _PRODUCTS and place == _WEIGHTS
            uses.setdefault(operand, set()).add(is_weight)
    found = {value: constant_array(module.by_id[value]) for value, ways in uses.items()
             if ways == {True}}  # fmt: skip
    return {
        value: array
        for value, array in found.items()
        if array is not None and array.size >= _LEAST_ELEMENTS and value not in module.outputs
    }


def _gets_smaller(array: Array, bits: int, options: Options) -> bool:
    """Whether a table of so many bits takes fewer bytes than the elements as they are can."""
    plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    width = 8 * array.dtype.itemsize
    entries, tables, sparse = (
        decompression_figure(options.device, key)
        for key in ("palette_entries", "palette_tables", "sparse")
    )
    size = size_bounds(CompressionForm("palette", bits), array.size, width)[0]
    form = best_form(plain, array.size, width, entries, tables, sparse > 0)
    exact = plain if form is None else compress(plain, array.size, width, form)
    return exact is not None and size < exact.size


def _cluster_weights(
    legal: Legal, weights: Mapping[int, Array], chosen: Sequence[int], bits: int
) -> Legal:
    arrays = {value: clustered_elements(weights[value], 1 << bits) for value in chosen}
    operations = tuple(
        _with_data(op, arrays[op.value_id]) if op.value_id in arrays else op
        for op in legal.module.operations
    )
    return replace(legal, module=replace(legal.module, operations=operations))


def _with_data(op: CoreOperation, array: Array) -> CoreOperation:
    given = attributes({**op.attributes, "data": Literal(array)})
    return CoreOperation(op.value_id, op.opcode, op.operands, given, op.type)


def _least_changed(weights: Mapping[int, Array], chosen: Sequence[int], bits: int) -> list[int]:
    """The half of them whose elements stay nearest to what they were."""
    ratios = {v: sqnr(clustered_elements(weights[v], 1 << bits), weights[v]) for v in chosen}
    return sorted(sorted(chosen, key=lambda v: (-ratios[v], v))[: len(chosen) // 2])


def clustered_elements(array: Array, most: int) -> Array:
    """The elements as the nearest of at most so many values, 0 among them."""
    known, inverse, counts = np.unique(
        array.reshape(-1).astype(np.float64), return_inverse=True, return_counts=True
    )
    if known.size <= most:
        return array
    moving = known != 0
    centres = _k_means(known[moving], counts[moving], most - 1)
    middles = (centres[1:] + centres[:-1]) / 2
    values = known.copy()
    values[moving] = centres[np.searchsorted(middles, known[moving])]
    if np.issubdtype(array.dtype, np.integer):
        values = np.rint(values)
    # One number in the array's own type is one value, so there are not more than were asked for.
    return values.astype(array.dtype)[inverse].reshape(array.shape)


def _k_means(known: Array, counts: Array, clusters: int) -> Array:
    """The centres of clusters on a line; elements are sorted, and each stands for so many."""
    weights = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    sums = np.concatenate([[0.0], np.cumsum(known * counts)])
    ends = np.searchsorted(weights[1:], weights[-1] * (np.arange(clusters) + 0.5) / clusters)
    centres = np.unique(known[np.minimum(ends, known.size - 1)])
    for _ in range(_ROUNDS):
        cuts = np.searchsorted(known, (centres[1:] + centres[:-1]) / 2)
        edges = np.concatenate([[0], cuts, [known.size]])
        mass = np.diff(weights[edges])
        moved = np.where(mass > 0, np.diff(sums[edges]) / np.maximum(mass, 1), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres
