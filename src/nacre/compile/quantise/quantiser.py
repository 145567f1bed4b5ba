"""Post-training quantisation: a legal float module to one on integers of 8 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from msgspec import structs

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.compile.accuracy.measures import AccuracyMeter
from nacre.compile.legalise.contract import escapes_at
from nacre.compile.legalise.forms.masks.levelling import mask_values
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import complete_origins
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.options import Calibration
from nacre.compile.quantise import calibration as calibrating
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.calibration import (
    Observations,
    Sample,
    SampleFeeds,
    Samples,
    check_samples,
    mask_inputs,
)
from nacre.compile.quantise.channels.equalisation import equalise_channels
from nacre.compile.quantise.channels.smoothing import smooth_channels
from nacre.compile.quantise.correction import MOST_SAMPLES, correct_biases
from nacre.compile.quantise.float_notes import (
    hiding_values,
    notes_beyond_f16,
    notes_without_integers,
    round_to_half,
)
from nacre.compile.quantise.input_parts import takes_parts
from nacre.compile.quantise.islands import find_float_islands
from nacre.compile.quantise.names import forced_values, layer_name, note_name
from nacre.compile.quantise.observers import OBSERVERS
from nacre.compile.quantise.ports import Port, ports_of, stored_inputs
from nacre.compile.quantise.prequantised.imported_scales import QuantisedPort
from nacre.compile.quantise.report import (
    Output,
    Report,
    ReportScope,
    losses,
    lossy_layers,
)
from nacre.compile.quantise.rewrite import (
    Rewritten,
    is_bound_left_to_storage,
    rewrite_on_integers,
)
from nacre.compile.quantise.roles import Graph, bounds_of
from nacre.compile.quantise.rounding.data_rounding import METHODS, DataRounding
from nacre.compile.quantise.scales import Scales
from nacre.compile.quantise.sensitivity import noisiest_products
from nacre.compile.quantise.uneven import uneven_concats
from nacre.compile.quantise.walking import StorageScheme
from nacre.compile.rules import CMP10
from nacre.core.module import Module
from nacre.core.rewrite.dead_code import dead_code

_PLACE = whole_file("<quantise>")
_FEW = 4  # layers that go back together, and are not worth another try
_MOST_KEPT = 256  # layers that are put back into floats
_LEAST_GAIN = 3.0  # dB for which that is worth it where it does not reach its end
_MOST_REPORTED = 8  # samples that the report is taken from
_VERBS = {"SQNR": "has", "agreement": "agrees in"}  # outputs by how they are judged


@dataclass(frozen=True, eq=False)
class Quantised:
    """A legal module on integers, how its inputs and outputs are stored, what that costs."""

    legal: Legal
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    report: Report

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs, then outputs, those that feed state last."""
        return (*self.inputs, *self.outputs)

    def __str__(self) -> str:
        return f"{self.legal}{''.join(f'# {port}{chr(10)}' for port in self.ports)}"


def quantise(
    legal: Legal,
    calibration: Calibration | None,
    *,
    source: Module,
    observer: str = "mse",
    precision_map: Mapping[str | int, str] | None = None,
    imported: QuantisedPort | None = None,
    without: Set[str] = frozenset(),
    wide: Set[str] = frozenset(),
    fallback: bool = True,
    accuracy_db: float | None = None,
) -> Quantised:
    """A legal float module on integers of 8 bits, with islands of f16 where that has no form.

    - `calibration`: inputs by name with an axis of samples in front, or a list of inputs. Without
      it only a model that brings its own scales can be quantised.
    - `source`: the module that was legalised, `imported`: the scales that it came with and its
      inputs and outputs of integers, which `unquantised` finds
    - `observer`: `minmax`, `percentile`, `mse` or `entropy`
    - `precision_map`: layers, by name or value of the source, that stay floats, and such that stay
      on integers whatever they lose: `{"head*": "f16", "stem": "i8"}`
    - `wide`: products whose results the device has in 16 bits, too
    - `without`: stages of `QUANTISE_STAGES` that are left out
    - `fallback`: whether layers go back to floats where outputs lose too much on the data
    - `accuracy_db`: the least ratio of signal to noise of the outputs; else that of `validate`
    """
    if observer not in OBSERVERS:
        hint = did_you_mean(str(observer), OBSERVERS)
        known = ", ".join(f"`{name}`" for name in OBSERVERS)
        raise _option_error(f"no observer `{observer}`, expected one of {known}", hint)
    if not imported:
        calibration = calibrating.data_of_only_run(source, calibration)
    if calibration is None and not imported:
        raise calibrating.missing_data_error()
    brought = imported or QuantisedPort()
    masks = mask_inputs(legal.module)
    data = (
        None if calibration is None else check_samples(source, calibration, brought.inputs, masks)
    )
    wide = frozenset() if brought or "wide" in without else wide
    if data is not None and not brought:
        legal = legal if "smooth" in without else smooth_channels(legal, data)
        legal = (
            legal if "equalise" in without else equalise_channels(legal, data, OBSERVERS[observer])
        )
    module = legal.module
    graph, runner = Graph(module, frozenset(brought.scales)), StepwiseRunner(module, legal)
    forced, integers = forced_values(legal, source, precision_map or {}, graph)
    observations = _observe(graph, runner, data)
    if not brought and "uneven" not in without:
        forced |= uneven_concats(graph, observations.histograms, OBSERVERS[observer]) - integers
    attempt = _Attempt(legal, source, graph, runner, data, observations, observer, brought, without,
                       integers, accuracy_db, wide)  # fmt: skip
    plain = attempt.quantise(forced)
    if plain.report.missed_outputs and data is not None and not brought:
        attempt, plain = _round_on_data(attempt, plain, forced)
    if not fallback or data is None or brought:
        return _add_notes(plain, set())
    return _refine_inputs(attempt, plain, forced) or _restore_floats(attempt, plain, forced)


def _round_on_data(
    attempt: _Attempt, plain: Quantised, forced: Set[int]
) -> tuple[_Attempt, Quantised]:
    """With weights that are rounded for the data, if outputs are nearer to their bounds by that."""
    methods = METHODS - attempt.without
    if not methods:
        return attempt, plain
    is_centred = "bias" not in attempt.without
    rounded = replace(attempt, rounding=DataRounding(attempt.graph, methods, is_centred))
    made = rounded.quantise(forced)
    is_nearer = made.report.margin > plain.report.margin
    return (rounded, made) if is_nearer else (attempt, plain)


def _refine_inputs(attempt: _Attempt, plain: Quantised, forced: Set[int]) -> Quantised | None:
    """With inputs of products in 16 bits, of as few as bring outputs within their bounds.

    Those that add most noise come first. None where that is not to be had so, or not needed.
    """
    graph, histograms = attempt.graph, attempt.observations.histograms
    if not plain.report.missed_outputs or "parts" in attempt.without:
        return None
    able = [v for v in graph.roles if v not in forced and takes_parts(graph, v, attempt.wide)]
    order = noisiest_products(graph, histograms, OBSERVERS[attempt.observer], able)
    best = attempt.quantise(forced, frozenset(order)) if order else plain
    if best.report.missed_outputs:
        return None
    too_few, enough = 0, len(order)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = attempt.quantise(forced, frozenset(order[:middle]))
        if tried.report.missed_outputs:
            too_few = middle
        else:
            enough, best = middle, tried
    note = f"{enough} product{'s' if enough > 1 else ''} given inputs of 16 bits, as two parts of 8"
    return replace(best, legal=replace(best.legal, notes=(*best.legal.notes, note)))


def _restore_floats(attempt: _Attempt, plain: Quantised, forced: Set[int]) -> Quantised:
    """With layers back in floats, as far as that brings outputs within their bounds."""
    best, kept = plain, set[int]()
    while best.report.missed_outputs:
        lossy = lossy_layers(best.report, attempt.graph, kept | forced | attempt.integers)
        if not lossy or len(kept) > _MOST_KEPT:
            break
        best = attempt.quantise(forced | kept | lossy)
        if best.report.missed_outputs:
            kept |= lossy
        else:
            best, kept = _fewest_float_layers(attempt, forced, kept, lossy, best)
    before, after = plain.report.margin, best.report.margin
    if best.report.missed_outputs and not (before < after and before + _LEAST_GAIN <= after):
        best, kept = plain, set()  # what amplifies every error is not mended by a few floats
    return _add_notes(best, kept)


def _fewest_float_layers(
    attempt: _Attempt, forced: Set[int], in_floats: Set[int], lossy: Set[int], quantised: Quantised
) -> tuple[Quantised, set[int]]:
    """As few of some layers as it takes, found by halves; those next to the outputs come first."""
    last = sorted(lossy, reverse=True)
    too_few, enough = 0, len(last)
    while enough - too_few > 1 and enough >= _FEW:
        middle = (too_few + enough) // 2
        tried = attempt.quantise({*forced, *in_floats, *last[:middle]})
        if tried.report.missed_outputs:
            too_few = middle
        else:
            enough, quantised = middle, tried
    return quantised, {*in_floats, *last[:enough]}


@dataclass(frozen=True, eq=False)
class _Attempt:
    """Everything that stays the same from one try to the next."""

    legal: Legal
    source: Module
    graph: Graph
    runner: StepwiseRunner
    data: Samples | None
    observations: Observations
    observer: str
    imported: QuantisedPort
    without: Set[str]
    integers: Set[int]
    accuracy_db: float | None
    wide: Set[str]
    rounding: DataRounding | None = None

    def quantise(self, forced: Set[int], parts: Set[int] = frozenset()) -> Quantised:
        """The module with these values in floats, and inputs of these products in 16 bits."""
        legal, graph, source = self.legal, self.graph, self.source
        histograms = self.observations.histograms
        fixed = _imported_affines(graph, self.imported)
        is_own = bool(self.imported)  # the model's own scales are taken as they are
        states = _states(source, graph)
        own = set(fixed) if is_own else None
        islands = find_float_islands(
            graph, histograms, forced, states, own, self.integers, self.wide, parts
        )
        scales = Scales(graph, islands, histograms, OBSERVERS[self.observer], fixed)
        searched = self.observer == "mse" and not is_own
        value_text = partial(note_name, legal, source)
        scheme = StorageScheme(
            scales, self.imported, searched=searched, on_grid=is_own, value_text=value_text
        )
        rewritten = rewrite_on_integers(graph, islands, scheme, legal.outputs)
        if self.data is not None and not is_own:
            pairs = islice(_paired_samples(self.data, self.runner, rewritten), MOST_SAMPLES)
            samples = [stored for _, stored in pairs]
            rewritten = self.rounding.apply(rewritten, samples) if self.rounding else rewritten
            if "bias" not in self.without:
                rewritten = correct_biases(rewritten, self.observations.means, samples)
        rewritten = replace(rewritten, module=dead_code(rewritten.module))
        layers = {
            value: layer_name(legal, source, value)
            for value, own in rewritten.stored.items()
            if value not in scales.bounded
            and not is_bound_left_to_storage(graph, rewritten, value)
            and graph.is_float(value)
            and own.value in rewritten.module.by_id
        }
        hiding = dict.fromkeys(hiding_values(graph.module), round_to_half)
        scope = ReportScope(layers, {**hiding, **scales.functions})
        report = _report(self.runner, rewritten, self.data, scope, legal, source, self.accuracy_db)
        report = structs.replace(report, widened=frozenset(islands.widened | islands.parts))
        inputs, outputs = ports_of(source, graph.module, rewritten, self.imported)
        notes = (
            *self.imported.notes,
            *notes_beyond_f16(graph, islands, self.observations, value_text),
            *notes_without_integers(graph, islands, value_text),
        )
        return Quantised(_legal_on_integers(legal, rewritten, notes), inputs, outputs, report)


def _add_notes(quantised: Quantised, in_floats: Set[int]) -> Quantised:
    """With notes on layers that went back to floats, and on outputs that are still far off."""
    notes = []
    if in_floats:
        count = f"{len(in_floats)} layer{'s' if len(in_floats) > 1 else ''}"
        notes.append(f"{count} kept in f16: on integers of 8 bits the outputs lose too much")
    for output in quantised.report.missed_outputs:
        notes.append(
            f"output `{output.name}` {_VERBS[output.measure]} {output.describe} on the calibration "
            f"data, less than {output.describe_bound}: a precision map can keep more layers in f16"
        )
    if not notes:
        return quantised
    return replace(
        quantised, legal=replace(quantised.legal, notes=(*quantised.legal.notes, *notes))
    )


def _option_error(message: str, hint: str | None = None) -> InputError:
    return InputError([CMP10.at(_PLACE, message, help=hint or None)])


def _states(source: Module, graph: Graph) -> frozenset[int]:
    """Inputs that keep a value between runs: floats, for their errors would add up."""
    names = {state.name for state in source.states}
    inputs = graph.module.inputs
    return frozenset(op.value_id for op in inputs if op.attributes["name"] in names)


def _observe(graph: Graph, runner: StepwiseRunner, data: Samples | None) -> Observations:
    if data is None:
        return Observations({}, {})
    products = frozenset(v for v, role in graph.roles.items() if role == "product")
    return calibrating.observe(runner, SampleFeeds(data, graph.module), products, MOST_SAMPLES)


def _imported_affines(graph: Graph, imported: QuantisedPort) -> dict[int, Affine]:
    """The scales that the model came with: of bounds, of rows of tables, and of inputs."""
    affines: dict[int, Affine] = {}
    for op in graph.module.operations:
        bounds = bounds_of(op) or graph.table_bounds(op)
        own = imported.inputs.get(str(op.attributes.get("name")))
        if bounds is not None and bounds in imported.scales:
            affines[op.value_id] = imported.scales[bounds]
        elif op.opcode == "Input" and own is not None:
            affines[op.value_id] = own.affine
    return affines


def _paired_samples(
    data: Samples, runner: StepwiseRunner, rewritten: Rewritten
) -> Iterator[tuple[Sample, Sample]]:  # fmt: skip
    """Samples for the float module, and the same for the module on integers.

    State goes on from sample to sample, as it did when ranges and means were taken.
    """
    feeds = SampleFeeds(data, runner.module)
    for sample in feeds:
        yield sample, stored_inputs(runner.module, rewritten, sample)
        if data.source.states:
            for value, array in runner.run(sample):
                feeds.keep(value, array)


def _report(
    runner: StepwiseRunner,
    rewritten: Rewritten,
    data: Samples | None,
    scope: ReportScope,
    legal: Legal,
    source: Module,
    accuracy_db: float | None,
) -> Report:
    if data is None:
        return Report((), {}, 0, rewritten.notes)
    values = zip(source.output_names, source.outputs, strict=True)
    stored = zip(legal.module.outputs, rewritten.outputs, strict=True)
    outputs = [
        Output(name, value, own, AccuracyMeter(name, source, model, "i8", accuracy_db))
        for (name, model), (value, own) in zip(values, stored, strict=False)
    ]
    pairs = islice(_paired_samples(data, runner, rewritten), _MOST_REPORTED)
    return losses(runner, rewritten, pairs, scope, outputs, rewritten.notes)


def _legal_on_integers(legal: Legal, rewritten: Rewritten, more: tuple[str, ...]) -> Legal:
    """The module on integers, with where each of its operations comes from."""
    origins: dict[int, tuple[int, ...]] = {}
    escaped: dict[int, str] = {}
    for value, stored in rewritten.stored.items():
        if value in legal.origins:  # bounds that a scale keeps are part of what they bound
            own = (*origins.get(stored.value, ()), *legal.origins[value])
            origins[stored.value] = tuple(dict.fromkeys(own))
        if value in legal.escaped:
            escaped[stored.value] = legal.escaped[value]
    notes = (*legal.notes, *more, *rewritten.notes)
    wide, by_name = mask_values(rewritten.module), escapes_at("i8", rewritten.module, legal.lacking)
    escaped |= {value: reason for value, reason in by_name.items() if value in wide}
    return replace(
        legal,
        module=rewritten.module,
        origins=complete_origins(rewritten.module, origins),
        notes=notes,
        escaped=escaped,
        precision="i8",
    )
