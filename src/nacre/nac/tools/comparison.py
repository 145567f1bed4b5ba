"""The outputs of a file beside those of the model that it was made of.

Floats are measured by their largest error, as a part of the largest magnitude, and where weights
are integers by the ratio of signal to noise; integers and truth values by how many are the same. An
output of the model that is one number everywhere, or not finite, has nothing to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.core.builder import dtype_name
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.nac.program.interface import NacInput
from nacre.nac.rules.running import NAC46
from nacre.nac.run.model import NacModel
from nacre.nac.spec.elements import FP16, QUANTIZATIONS

_PLAIN_ERROR, _HALF_ERROR = 1e-4, 1e-2
_SQNR_DB = 15.0  # of weights that are integers
_AGREEMENT: Mapping[str, float] = MappingProxyType({"error": 0.999, "SQNR": 0.9})


@dataclass(frozen=True)
class OutputComparison:
    """An output beside the model's: what was measured, and what is accepted."""

    name: str
    measure: str  # `error`, `SQNR` or `agreement`
    value: float
    bound: float
    max_difference: float
    problem: str | None = None  # why there is nothing to compare

    @property
    def is_close(self) -> bool:
        """Whether the output is close enough."""
        if self.problem is not None:
            return False
        return self.value <= self.bound if self.measure == "error" else self.value >= self.bound

    def __str__(self) -> str:
        if self.problem is not None:
            return self.problem
        limit = "at most" if self.measure == "error" else "at least"
        found, bound = (_format_value(self.measure, value) for value in (self.value, self.bound))
        return (
            f"{self.measure} {found}, {limit} {bound}; largest difference {self.max_difference:g}"
        )


def _format_value(measure: str, value: float) -> str:
    if measure == "agreement":
        return f"{100 * value:.4g} %"
    return f"{value:.2e}" if measure == "error" else f"{value:.1f} dB"


def compare(
    model: NacModel,
    module: Module,
    inputs: Mapping[str, Any],
    tolerance: float | None = None,
) -> list[OutputComparison]:
    """Every output of a file beside the model's, for inputs by the names of the model.

    `tolerance` is the largest error that is accepted, as a part of the output's largest magnitude;
    without it the bound follows from how weights are stored. InputError where inputs or outputs do
    not fit each other.
    """
    names = paired_inputs(model, module)
    expected = CoreSession(module).run(inputs)
    outputs = model.run({names[name]: array for name, array in inputs.items()})
    if len(outputs) != len(expected):
        message = f"the file has {len(outputs)} outputs, the model has {len(expected)}"
        raise InputError([model.finding(len(model.program) - 1, NAC46, message)])
    labels = module.labels.outputs if module.labels is not None else ()
    rows = zip(outputs, expected, _names(len(outputs), labels), strict=True)
    return [_compare(name, a, b, model.file.header.quant, tolerance) for a, b, name in rows]


def _names(count: int, labels: Sequence[str]) -> list[str]:
    return [labels[i] if i < len(labels) and labels[i] else str(i) for i in range(count)]


def paired_inputs(model: NacModel, module: Module) -> dict[str, str]:
    """The names that the inputs of a model have in the file: the same, else by their order."""
    states = {state.name for state in module.states}
    wanted = [name for name in module.input_types if name not in states]
    given = model.inputs
    known = {one.name for one in given}
    if set(wanted) == known:
        return {name: name for name in wanted}
    types = module.input_types
    if len(wanted) != len(given) or not all(
        _accepts(one, types[name].dtype, types[name].shape)
        for name, one in zip(wanted, given, strict=True)
    ):
        shown = [", ".join(map(backquote, names)) or "none" for names in (known, wanted)]
        message = f"the file has the inputs {shown[0]}, the model {shown[1]}, of other types"
        raise InputError([model.finding(0, NAC46, message)])
    return {name: one.name for name, one in zip(wanted, given, strict=True)}


def _accepts(one: NacInput, dtype: str, shape: tuple[int, ...]) -> bool:
    return one.dtype in (None, dtype) and one.shape in (None, shape)


def _compare(
    name: str, found: Array, expected: Array, quant: int, tolerance: float | None
) -> OutputComparison:
    measure, bound = _measure(quant, tolerance)
    problem = _problem(found, expected)
    if problem is not None:
        return OutputComparison(name, measure, inf, bound, inf, problem)
    if expected.dtype.kind in "iub":
        same = float(np.mean(found == expected))
        wide = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        least = _AGREEMENT[measure] if tolerance is None else 1 - tolerance
        return OutputComparison(name, "agreement", same, least, float(wide.max()))
    wide, true = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        noise = np.nan_to_num(np.abs(wide - true), nan=inf, posinf=inf)
        largest = float(noise.max())
        value = largest / float(np.abs(true).max())
        if measure == "SQNR":
            power = float(np.square(noise).sum())
            value = 10 * log10(float(np.square(true).sum()) / power) if power else inf
            value = -inf if power == inf else value
    return OutputComparison(name, measure, value, bound, largest)


def _measure(quant: int, tolerance: float | None) -> tuple[str, float]:
    if tolerance is not None:
        return "error", tolerance
    if QUANTIZATIONS[quant].is_scaled:
        return "SQNR", _SQNR_DB
    return "error", _HALF_ERROR if quant == FP16 else _PLAIN_ERROR


def _problem(found: Array, expected: Array) -> str | None:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        types = [f"{dtype_name(a.dtype)}{list(a.shape)}" for a in (found, expected)]
        return f"is {types[0]}, the model's {types[1]}"
    if expected.dtype.kind not in "iub" and not np.isfinite(expected.astype(np.float64)).all():
        return "the model's own is not finite: give inputs that the network is made for"
    if expected.size > 1 and (expected == expected.reshape(-1)[0]).all():
        number = expected.reshape(-1)[0]
        return f"the model's own is {number} everywhere: give inputs that reach the network"
    return None
