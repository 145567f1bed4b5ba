"""A plan and its model over labelled samples, by a metric."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.stages import stage
from nacre.base.suggest import did_you_mean
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.labelled.metrics import Metric, Outputs, data_error
from nacre.compile.quantise.calibration import LABELLED, Samples, check_samples
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module
from nacre.core.values import Array

LABEL = "label"
_STEP = 64  # samples between words of progress


@dataclass(frozen=True)
class LabelledScores:
    """What a model has by a metric in its own precision, and a plan of it beside."""

    metric: Metric
    samples: int
    model: float | None  # None where it was not asked
    plan: float | None = None
    precision: str = ""  # of the plan
    agreement: float | None = None  # of samples whose highest score is the model's, where that is
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def lost(self) -> float | None:
        """How much worse the plan is, in the metric's own units."""
        if self.model is None or self.plan is None:
            return None
        worse = self.plan - self.model if self.metric.is_loss else self.model - self.plan
        return worse

    def __str__(self) -> str:
        parts = [f"{self.metric.name} over {self.samples:,} samples:"]
        found = [("the model", self.model), (self.precision or "the plan", self.plan)]
        parts.append(", ".join(f"{n} {self._text(v)}" for n, v in found if v is not None))
        if self.lost is not None:
            share = 100 * self.lost
            lost_text = f"{share:.2f} points" if self.metric.is_share else f"{self.lost:.4g}"
            parts.append(f"({lost_text} lost)")
        if self.agreement is not None:
            parts.append(f"the same choice in {100 * self.agreement:.4g} % of the samples")
        return " ".join(parts)

    def _text(self, value: float) -> str:
        return f"{100 * value:.2f} %" if self.metric.is_share else f"{value:.4g}"

    def as_json(self) -> dict[str, Any]:
        """Plain values; None for what is infinite or was not asked."""
        values = {"model": self.model, "plan": self.plan, "lost": self.lost}
        return {
            "metric": self.metric.name,
            "samples": self.samples,
            "precision": self.precision or None,
            **{n: v if v is not None and isfinite(v) else None for n, v in values.items()},
            "agreement": self.agreement,
        }


def evaluate_labelled(
    source: CompiledModel | Module,
    data: Mapping[str, Any],
    metric: Metric,
    *,
    label: str = LABEL,
    output: str | None = None,
    beside_model: bool = True,
) -> LabelledScores:
    """A bundle beside its model, or a model alone, over inputs by name with their labels.

    `data` has an array for each input and `label`, each with an axis of samples in front.
    """
    module = source if isinstance(source, Module) else source.source
    samples, labels = _split(module, data, label)
    names = _output_names(source)
    at = 0 if output is None else _position(output, names)
    is_plan = not isinstance(source, Module)
    plan = None if isinstance(source, Module) else _gather(source.run, samples, names[at])
    model = _gather_model(module, samples, at) if beside_model or not is_plan else None
    return LabelledScores(
        metric,
        samples.count,
        None if model is None else metric.measure(model, labels),
        None if plan is None else metric.measure(plan, labels),
        "" if isinstance(source, Module) else source.precision_text,
        None if plan is None or model is None else _agreement(plan, model),
    )


def _split(module: Module, data: Mapping[str, Any], label: str) -> tuple[Samples, Outputs]:
    inputs = {name: array for name, array in data.items() if name != label}
    if label not in data:
        hint = did_you_mean(label, list(data))
        option = setting("`--label NAME`", "`label=NAME`")
        raise data_error(
            f"the data has no labels {backquote(label)}", hint or f"name them with {option}"
        )
    samples = check_samples(module, inputs, origin=LABELLED)
    labels = np.asarray(data[label])
    if labels.ndim == 0 or len(labels) != samples.count:
        count = len(labels) if labels.ndim else 0
        raise data_error(f"{count} labels for {samples.count} samples")
    return samples, list(labels)


def _output_names(source: CompiledModel | Module) -> tuple[str, ...]:
    if isinstance(source, Module):
        return source.output_names
    return tuple(port.name for port in source.manifest.outputs[: len(source.source.outputs)])


def _position(output: str, names: tuple[str, ...]) -> int:
    if output not in names:
        hint = did_you_mean(output, names) or f"the outputs are {', '.join(names[:8])}"
        raise data_error(f"the model has no output {backquote(output)}", hint)
    return names.index(output)


def _gather(
    run: Callable[[Mapping[str, Any]], Mapping[str, Array]], samples: Samples, name: str
) -> list[Array]:
    made: list[Array] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="CMP1[23]")
        for index, inputs in enumerate(samples):
            if index % _STEP == 0:
                with stage(f"the plan: sample {index:,} of {samples.count:,}"):
                    pass
            made.append(run(inputs)[name])
    return made


def _gather_model(module: Module, samples: Samples, at: int) -> list[Array]:
    session, made = CoreSession(module), []
    with stage(f"the model over {samples.count:,} samples"):
        for inputs in samples:
            session.reset()
            made.append(np.array(session.run(inputs)[at]))
    return made


def _agreement(plan: Outputs, model: Outputs) -> float | None:
    """Of outputs that are scores of classes."""
    if not all(array.dtype.kind == "f" and array.size > 1 for array in model):
        return None
    pairs = zip(plan, model, strict=True)
    same = sum(int(np.array_equal(a.argmax(axis=-1), b.argmax(axis=-1))) for a, b in pairs)
    return same / len(model)
