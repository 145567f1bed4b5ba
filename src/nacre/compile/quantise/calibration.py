"""Calibration data: what is accepted, what is wrong with it, and what it shows of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.hints import setting
from nacre.base.packing import as_nibbles, restore_type
from nacre.base.source import Span, whole_file
from nacre.base.suggest import did_you_mean
from nacre.compile.legalise.forms.masks.levelling import mask_values
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.options import Calibration
from nacre.compile.quantise.observers import Histogram
from nacre.compile.quantise.prequantised.imported_scales import ImportedScales
from nacre.compile.rules import CMP08, CMP09
from nacre.core.evaluation.plan import initial_values
from nacre.core.module import Module, TensorType
from nacre.core.values import Array

Sample = dict[str, Array]
Problem = tuple[str, str | None]  # a message, and what helps


@dataclass(frozen=True)
class SamplesOrigin:
    """What samples are given as: how messages call them, where they are, how to give them."""

    name: str
    place: Span
    help: str

    def error(self, problems: Iterable[Problem]) -> InputError:
        """The exception for everything that is wrong with them."""
        return InputError(
            [CMP09.at(self.place, message, help=help_) for message, help_ in problems]
        )


CALIBRATION = SamplesOrigin(
    "calibration data",
    whole_file("<calibration>"),
    "give inputs as the model will see them: "
    + setting(
        "`--calibrate FILE.npz`, an array for each input with one more axis in front",
        "`calibration={name: array}` with one more axis in front, or a list of inputs",
    ),
)
LABELLED = SamplesOrigin(
    "labelled data",
    whole_file("<labelled data>"),
    "give an array for each input of the model and one of labels, with one more axis in front",
)
_PLACE = CALIBRATION.place
_NOT_FINITE = (
    "leave such samples out, or give the numbers that the model will see there; infinities are "
    "taken only of inputs that are added before a softmax, as masks are"
)


def missing_data_error() -> InputError:
    """The exception where there is no data, and the model brings no scales of its own."""
    message = "i8 needs calibration data: the model does not say which ranges its values have"
    return InputError([CMP08.at(_PLACE, message, help=CALIBRATION.help)])


@dataclass(frozen=True)
class Samples:
    """Checked data: inputs of one run each, made when they are asked for."""

    source: Module
    given: Calibration
    count: int
    imported: Mapping[str, ImportedScales] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Sample]:
        for index in range(self.count):
            yield {
                name: self._dequantise_input(name, np.asarray(value))
                for name, value in _sample_at(self.given, index).items()
            }

    def _dequantise_input(self, name: str, array: Array) -> Array:
        """An input; of stored integers the reals that they stand for."""
        type_, imported = self.source.input_types[name], self.imported.get(name)
        if imported is None:
            return _reshape(_restore_type(array, type_), type_)
        stored = _restore_type(array, TensorType(imported.dtype, type_.shape))
        return imported.affine.real(imported.shift.quantise(_reshape(stored, type_)))


def check_samples(
    source: Module,
    given: Calibration | None,
    imported: Mapping[str, ImportedScales] | None = None,
    masks: frozenset[str] = frozenset(),
    origin: SamplesOrigin = CALIBRATION,
) -> Samples:
    """The data for a model; InputError lists everything that is wrong with it.

    `imported` are inputs that the model takes as stored integers, and `source` as floats; `masks`
    are inputs that hide something, and may do so with infinities.
    """
    if origin is CALIBRATION:
        given = data_of_only_run(source, given)
    if given is None:
        raise missing_data_error()
    types = dict(source.input_types)
    for name, own in (imported or {}).items():
        types[name] = TensorType(own.dtype, types[name].shape)
    states = frozenset(state.name for state in source.states)
    problems, count = _check_given(_ExpectedInputs(types, states, masks, origin), given)
    if problems:
        raise origin.error(problems)
    return Samples(source, given, count, imported or {})


def data_of_only_run(source: Module, given: Calibration | None) -> Calibration | None:
    """The data; where the model takes no input, and none can be given, that of its only run."""
    states = {state.name for state in source.states}
    is_empty = given is None or (isinstance(given, Mapping) and not given)
    return [{}] if is_empty and source.input_types.keys() <= states else given


@dataclass(frozen=True)
class _ExpectedInputs:
    """What every sample has: inputs of these types, of which states may be left out."""

    types: Mapping[str, TensorType]
    states: frozenset[str]
    masks: frozenset[str]  # which may be infinite
    origin: SamplesOrigin


def _check_given(wanted: _ExpectedInputs, given: object) -> tuple[list[Problem], int]:
    if isinstance(given, Mapping):
        return _check_stack(wanted, given)
    if not isinstance(given, list | tuple):
        name, kind = wanted.origin.name, type(given).__name__
        message = f"{name} is a {kind}, expected arrays by name or a list"
        return [(message, wanted.origin.help)], 0
    if not given:
        return [(f"{wanted.origin.name} has no sample", wanted.origin.help)], 0
    problems: list[Problem] = []
    for index, sample in enumerate(given):
        where = f"sample {index}: "
        if not isinstance(sample, Mapping):
            problems.append((f"{where}a {type(sample).__name__}, expected arrays by name", None))
            continue
        problems += [(where + message, help_) for message, help_ in _check_sample(wanted, sample)]
    return problems, len(given)


def _check_stack(wanted: _ExpectedInputs, given: Mapping[str, Any]) -> tuple[list[Problem], int]:
    """Arrays whose first axis counts samples."""
    problems = list(_names(wanted, given))
    counts: dict[str, int] = {}
    for name in wanted.types:
        if name not in given:
            continue
        array = _array(given[name])
        if array is None or array.ndim == 0:
            problems.append((f"`{name}` is no array with an axis of samples", wanted.origin.help))
            continue
        counts[name] = len(array)
        if len(array) == 0:
            problems.append((f"`{name}` has no sample", None))
        else:
            problems += _check_array(wanted, name, array, array.shape[1:], " a sample")
    if len(set(counts.values())) > 1:
        counts_text = ", ".join(f"`{name}` {count}" for name, count in counts.items())
        problems.append((f"inputs have different numbers of samples: {counts_text}", None))
    if not given:
        problems.append((f"{wanted.origin.name} has no input", wanted.origin.help))
    return problems, next(iter(counts.values()), 0)


def _check_sample(wanted: _ExpectedInputs, sample: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _names(wanted, sample)
    for name in wanted.types:
        if name in sample:
            array = _array(sample[name])
            if array is None:
                yield f"`{name}` is no array", None
            else:
                yield from _check_array(wanted, name, array, array.shape, "")


def _names(wanted: _ExpectedInputs, given: Mapping[str, Any]) -> Iterator[Problem]:
    for name, type_ in wanted.types.items():
        if name not in given and name not in wanted.states:
            yield f"input `{name}` is missing, expected {type_}", None
    for name in given:
        if name not in wanted.types:
            hint = did_you_mean(str(name), wanted.types)
            yield f"the model has no input `{name}`", hint or None


def _check_array(
    wanted: _ExpectedInputs, name: str, array: Array, shape: tuple[int, ...], each: str
) -> Iterator[Problem]:
    type_ = wanted.types[name]
    try:
        array = _restore_type(array, type_)
    except ValueError as error:
        yield f"`{name}` does not fit: {error}", None
        return
    if array.dtype != type_.element.dtype:
        yield _wrong_elements(name, array, type_), None
    if shape not in _shapes(type_):
        shape_problem = f"`{name}` has the shape [{', '.join(map(str, shape))}]{each}"
        fits = (s for s in _shapes(type_) if len(s) == len(shape))
        yield f"{shape_problem}, expected [{', '.join(map(str, next(fits, type_.shape)))}]", None
    if array.dtype.kind == "f":
        yield from _check_numbers(name, array, may_hide=name in wanted.masks)


def _restore_type(array: Array, type_: TensorType) -> Array:
    """Elements whose type a file lost, and bytes that 4 bits hold, in the type that is wanted."""
    return as_nibbles(restore_type(array, type_.element.dtype), type_.element)


def _wrong_elements(name: str, array: Array, type_: TensorType) -> str:
    element = type_.element
    if element.bits < 8 and array.dtype.name in ("int8", "uint8") and array.size:
        at = np.argwhere((array < element.lowest) | (array > element.highest))[0]
        told = f"`{name}` has {array[tuple(at)]} at [{', '.join(map(str, at))}]"
        return f"{told}, {element.name} holds {element.lowest} to {element.highest}"
    return f"`{name}` has elements of {array.dtype.name}, expected {element.dtype.name}"


def _check_numbers(name: str, array: Array, *, may_hide: bool) -> Iterator[Problem]:
    wrong = np.isnan(array) if may_hide else ~np.isfinite(array)
    if not bool(wrong.any()):
        return
    at = np.argwhere(wrong)[0]
    told = f"`{name}` has {array[tuple(at)]} at [{', '.join(map(str, at))}]"
    yield f"{told}, expected {'numbers' if may_hide else 'finite numbers'}", _NOT_FINITE


def _shapes(type_: TensorType) -> tuple[tuple[int, ...], ...]:
    """A first axis of one element may be left out: it counts samples already."""
    shape = type_.shape
    return (shape, shape[1:]) if shape[:1] == (1,) else (shape,)


def _array(value: object) -> Array | None:
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return None
    if found.dtype == object:
        return None
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _sample_at(given: Calibration, index: int) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return {name: array[index] for name, array in given.items()}
    return given[index]


def _reshape(array: Array, type_: TensorType) -> Array:
    return np.ascontiguousarray(array).reshape(type_.shape)


def mask_inputs(module: Module) -> frozenset[str]:
    """The names of inputs that are masks, which stay f32 and may be infinite."""
    wide = mask_values(module)
    return frozenset(str(op.attributes["name"]) for op in module.inputs if op.value_id in wide)


class SampleFeeds:
    """Samples as the legal module takes them: in its types, and state from run to run."""

    def __init__(self, data: Samples, legal: Module) -> None:
        self._data = data
        self._types = legal.input_types
        self._start = initial_values(data.source)
        count = len(data.source.outputs)
        self._nexts = {
            state.name: legal.outputs[count + index]
            for index, state in enumerate(data.source.states)
        }
        self._state = dict(self._start)

    def __iter__(self) -> Iterator[Sample]:
        self._state = dict(self._start)
        for index, sample in enumerate(self._data):
            given = {**self._state, **sample}
            yield {name: self._cast_input(index, name, array) for name, array in given.items()}

    def _cast_input(self, index: int, name: str, array: Array) -> Array:
        """An input in the type of the legal module, which has fewer integers than the model's."""
        element = self._types[name].element
        if array.dtype.kind in "iu" and element.is_integer:
            beyond = (array < element.lowest) | (array > element.highest)
            if beyond.any():
                at = np.argwhere(beyond)[0]
                raise _calibration_error(
                    f"sample {index}: `{name}` has {array[tuple(at)]} at "
                    f"[{', '.join(map(str, at))}], and the device holds it in {element.name}, up "
                    f"to {element.highest}"
                )
        return array.astype(element.dtype, copy=False)

    def keep(self, value: int, array: Array) -> None:
        """Take up a value that is the next one of a state."""
        for name, found in self._nexts.items():
            if found == value:
                self._state[name] = array


@dataclass(frozen=True)
class Observations:
    """What calibration saw: a histogram of each float value, and means of channels of products."""

    histograms: Mapping[int, Histogram]
    means: Mapping[int, Array]


def observe(
    runner: StepwiseRunner, feeds: SampleFeeds, products: frozenset[int], most: int
) -> Observations:
    """Run every sample and look at every float value.

    Of products also at each channel's mean, over that many samples at most.
    """
    module = runner.module
    floats = {op.value_id for op in module.operations if op.type.element.kind == "float"}
    histograms: dict[int, Histogram] = {}
    totals: dict[int, Array] = {}
    count = 0
    for sample in feeds:
        count += 1
        for value, array in _run_sample(runner, sample, count - 1):
            feeds.keep(value, array)
            if value in floats:
                histograms.setdefault(value, Histogram()).add(array)
            if value in products and count <= most:
                mean = channel_means(array)
                totals[value] = totals[value] + mean if value in totals else mean
    return Observations(
        histograms, {value: total / min(count, most) for value, total in totals.items()}
    )


def _run_sample(runner: StepwiseRunner, sample: Sample, index: int) -> Iterator[tuple[int, Array]]:
    """Every value of a sample; what a kernel refuses is a mistake of the sample."""
    try:
        yield from runner.run(sample)
    except InputError as error:
        raise _calibration_error(f"sample {index}: {error.diagnostics[0].message}") from None


def _calibration_error(message: str) -> InputError:
    return CALIBRATION.error([(message, None)])


def channel_means(array: Array) -> Array:
    """The mean of each channel, which is the last axis."""
    rows = array.reshape(-1, array.shape[-1])
    made: Array = rows.mean(axis=0, dtype=np.float64)
    return made
