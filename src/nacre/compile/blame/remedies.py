"""What keeping a layer in f16 costs and brings: the model compiled again, and measured.

Scales come from the inputs at hand where no calibration data is given; the plan that remedies are
compared with is made the same way, so that only the layer differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from nacre.base.stages import stage
from nacre.compile.accuracy.measures import AccuracyMeter
from nacre.compile.blame.result import Blame, Remedy, TensorNoise
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.options import Calibration, Options
from nacre.compile.pipeline import compile_module, float_source
from nacre.compile.quantise.calibration import check_samples
from nacre.compile.target import request_error, target_of
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Labels, Module
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.values import Array

MOST_REMEDIES = 64
_MORE_RUNS = 7  # of the calibration data, that outputs are judged by too
_FROM_INPUTS = "the inputs of this run"
_FROM_DATA = "the calibration data that was given"


def add_remedies(
    blame: Blame,
    bundle: CompiledModel,
    inputs: Mapping[str, object],
    count: int,
    calibration: Calibration | None = None,
) -> Blame:
    """With the layers of an i8 plan that add most noise, each kept in f16."""
    if type(count) is not int or not 0 <= count <= MOST_REMEDIES:
        raise request_error(f"remedies are {count!r}, expected a number up to {MOST_REMEDIES}")
    if not count:
        return blame
    if bundle.manifest.precision != "i8":
        raise request_error(
            f"layers are kept in f16 of plans in i8, and the precision is {blame.precision}"
        )
    trial = _Trial(bundle, inputs, calibration)
    plain = trial.compile({})
    before, cycles = trial.ratios(plain), plain.time().cycles
    found = []
    for tensor in _candidates(blame)[:count]:
        with stage(f"keeping {tensor.node} in f16"):
            tried = trial.compile({_name(tensor): "f16"})
        gains = {name: ratio - before[name] for name, ratio in trial.ratios(tried).items()}
        found.append(Remedy(tensor.layer, tensor.node, tried.time().cycles - cycles, gains))
    ranges = _FROM_INPUTS if calibration is None else _FROM_DATA
    return blame.with_remedies(tuple(found), cycles, ranges)


def _candidates(blame: Blame) -> Sequence[TensorNoise]:
    """Layers on integers, those that add most first, each once."""
    by_layer: dict[str, TensorNoise] = {}
    for tensor in blame.worst:
        if tensor.layer and tensor.scale is not None:
            by_layer.setdefault(tensor.layer, tensor)
    return tuple(by_layer.values())


def _name(tensor: TensorNoise) -> str | int:
    """A layer as a precision map names it."""
    return tensor.source if tensor.node.startswith("%") else tensor.node


@dataclass(frozen=True, eq=False)
class _Trial:
    """Plans of one model that differ in what stays in f16."""

    bundle: CompiledModel
    inputs: Mapping[str, object]
    calibration: Calibration | None

    def compile(self, more: Mapping[str | int, str]) -> CompiledModel:
        """A plan with further layers in f16, and nothing put back for the outputs' sake."""
        manifest = self.bundle.manifest
        target = target_of(self.bundle.runnable_program.device)
        known: dict[str | int, str] = {}
        known.update(manifest.precision_map.items())
        known.update(more)  # the last that names a layer counts
        options = Options(
            target.device,
            "i8",
            manifest.ddr_bytes,
            [self.inputs] if self.calibration is None else self.calibration,
            precision_map=known,
            fallback=False,
            accuracy_db=manifest.accuracy_db,
        )
        return compile_module(self._source, target, options)

    @cached_property
    def _source(self) -> Module:
        """The model with the names of its nodes, which folders do not keep."""
        source, manifest = self.bundle.source, self.bundle.manifest
        if source.labels is not None and source.labels.nodes:
            return source
        if float_source(source, "i8").module is not source:
            return source  # what came quantised has other numbers
        nodes = {one.source: one.node for one in manifest.stands_for if one.node}
        names = tuple(port.name for port in manifest.outputs[: len(source.outputs)])
        return replace(hoist_inputs(source), labels=Labels(names, nodes))

    @cached_property
    def _runs(self) -> list[Mapping[str, object]]:
        """The run itself, and some of the calibration data: one run alone says little."""
        more = () if self.calibration is None else check_samples(self._source, self.calibration)
        return [self.inputs, *islice(more, _MORE_RUNS)]

    @cached_property
    def _source_outputs(self) -> list[list[Array]]:
        return [evaluate(self._source, inputs) for inputs in self._runs]

    def ratios(self, plan: CompiledModel) -> dict[str, float]:
        """What outputs of reals have of the model's in all runs together, in dB."""
        source, ports = self._source, self.bundle.manifest.outputs
        meters = [
            AccuracyMeter(port.name, source, value, "i8")
            for port, value in zip(ports, source.outputs, strict=False)
        ]
        for inputs, wanted in zip(self._runs, self._source_outputs, strict=True):
            for meter, found, expected in zip(
                meters, plan.run(inputs).values(), wanted, strict=True
            ):
                meter.add(found, expected)
        made = [meter.accuracy for meter in meters]
        return {one.name: one.sqnr for one in made if one.sqnr is not None}
