"""Is the plan right? Every layer compared with the legalised module, the outputs with the model.

There are three answers: outputs that are close to a reference which is the same everywhere, or no
number at all, prove nothing, and what proves nothing is not valid.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nacre.base.hints import setting
from nacre.compile.accuracy.measures import (
    SQNR_DB,
    TOLERANCES,
    Accuracy,
    comparison_precision,
    measure_accuracy,
    relative_error,
    rounds_to_integers,
    sqnr,
)
from nacre.compile.accuracy.references import depends_on_input
from nacre.compile.bundle.differences import Difference, first_difference
from nacre.compile.target import request_error
from nacre.core.evaluation.evaluate import check_inputs, evaluate
from nacre.core.evaluation.plan import initial_values
from nacre.core.module import Module
from nacre.core.values import Array

if TYPE_CHECKING:
    from nacre.compile.bundle.compiled_model import CompiledModel
    from nacre.compile.bundle.lost_layers import LostLayer

_EXPECTED = setting("`--expect`", "`expected`")
__all__ = ["Validation", "relative_error", "sqnr", "validate_bundle"]
Verdict = Literal["valid", "not valid", "inconclusive"]
VERDICTS: Mapping[Verdict, str] = {  # in the first word of the text
    "valid": "valid",
    "not valid": "NOT VALID",
    "inconclusive": "INCONCLUSIVE",
}
ASK_FOR_DATA = "give inputs as the model will see them"
MODEL, GIVEN = "an evaluation of the model as it came", "the outputs that were given"
NOTHING = "nothing else: the bundle was written without the model as it came"


@dataclass(frozen=True)
class Validation:
    """Two numbers: against the legalised module, and against the model."""

    ok: bool
    first_difference: Difference | None
    error_by_output: Mapping[str, float]  # of the largest magnitude
    sqnr_by_output: Mapping[str, float]  # signal to quantisation noise in dB
    tolerance: float  # of the errors; of the ratios where the plan runs on integers of 8 bits
    precision: str = "f16"
    outputs: tuple[Accuracy, ...] = ()  # each by the measure that fits it, with its bound
    compared_with: str = MODEL
    is_quantised: bool = False  # the model rounds to integers, and the plan computes in floats
    lost_most: LostLayer | None = None  # where an output misses its bound

    @property
    def verdict(self) -> Verdict:
        """The answer; inconclusive where nothing is wrong and something was not put to the test."""
        if self.ok:
            return "valid"
        return "not valid" if self.first_difference is not None or self.missed else "inconclusive"

    @property
    def unproven(self) -> tuple[Accuracy, ...]:
        """The outputs whose reference proves nothing."""
        return tuple(output for output in self.outputs if output.problem)

    @property
    def missed(self) -> tuple[Accuracy, ...]:
        """The outputs that are too far from the model's."""
        return tuple(output for output in self.outputs if not output.is_met)

    def __str__(self) -> str:
        held = self.first_difference or "the plan equals the legalised module"
        parts = [f"{VERDICTS[self.verdict]}: {held}"]
        for measure in dict.fromkeys(output.measure for output in self.outputs):
            alike = [output for output in self.outputs if output.measure == measure]
            parts.append(f"{measure} of {', '.join(f'{o.name} {o.describe}' for o in alike)}")
        if any(error == float("inf") for error in self.error_by_output.values()):
            parts[-1] += " (a number on one side, NaN or an infinity on the other)"
        parts += [f"{o.name} misses its bound: {o.describe_with_bound}" for o in self.missed]
        if self.lost_most is not None:
            parts.append(str(self.lost_most))
        parts += [output.describe_problem for output in self.unproven]
        if self.verdict == "inconclusive":
            parts.append(ASK_FOR_DATA)
        if self.compared_with == NOTHING:
            parts.append(f"compared with {NOTHING}")
        if self.is_quantised:
            parts.append("the model rounds to integers, a step more or less of which is noise")
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; what is infinite or no number is None."""
        outputs = [
            {
                **output.as_json(),
                "error": _finite(self.error_by_output[output.name]),
                "sqnr_db": _finite(self.sqnr_by_output[output.name]),
            }
            for output in self.outputs
        ]
        first = self.first_difference
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "precision": self.precision,
            "first_difference": None if first is None else asdict(first),
            "lost_most": None if self.lost_most is None else _lost_layer_as_json(self.lost_most),
            "compared_with": self.compared_with,
            "outputs": outputs,
        }


def _lost_layer_as_json(lost: LostLayer) -> dict[str, Any]:
    return {**asdict(lost), "before": _finite(lost.before), "after": _finite(lost.after)}


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def validate_bundle(
    bundle: CompiledModel,
    inputs: Mapping[str, Any],
    expected: object | None = None,
    others: Mapping[str, Any] | None = None,
) -> Validation:
    """Run the plan, the legalised module layer by layer, and the model on the same inputs.

    Reals that the model makes of `others` too, to the bit, say nothing about the inputs.
    """
    source, precision = bundle.source, bundle.accuracy_precision
    state = initial_values(source)
    arrays = {**state, **check_inputs(source, inputs, state)}
    least_db = bundle.manifest.accuracy_db or SQNR_DB
    tolerance = (
        least_db if precision == "i8" else TOLERANCES[comparison_precision(source, precision)]
    )
    if expected is None and not bundle.has_reference:
        found = first_difference(bundle, arrays)
        return Validation(found is None, found, {}, {}, tolerance, precision, (), NOTHING)
    wanted = evaluate(source, inputs) if expected is None else _expected_outputs(bundle, expected)
    difference = first_difference(bundle, arrays)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="CMP13")  # the verdict says it
        got = bundle.run(inputs)
    pairs = {name: (got[name], w) for name, w in zip(got, wanted, strict=True)}
    outputs = tuple(
        measure_accuracy(
            name, source, value, precision, *pair, least_db=bundle.manifest.accuracy_db
        )
        for value, (name, pair) in zip(source.outputs, pairs.items(), strict=True)
    )
    if others is not None:
        outputs = _mark_independent_of_inputs(source, outputs, wanted, evaluate(source, others))
    return Validation(
        difference is None and all(output.is_met and not output.problem for output in outputs),
        difference,
        {name: relative_error(a, b) for name, (a, b) in pairs.items()},
        {name: sqnr(a, b) for name, (a, b) in pairs.items()},
        tolerance,
        precision,
        outputs,
        MODEL if expected is None else GIVEN,
        precision != "i8" and rounds_to_integers(source),
        _find_worst_layer(bundle, arrays) if not all(output.is_met for output in outputs) else None,
    )


def join_validations(found: Sequence[Validation]) -> Validation:
    """Several runs of one bundle as one: each output by the first run that proves something of it.

    Later inputs are larger or smaller than what models are usually given: what was put to the test
    before is not held to them.
    """
    first = found[0]
    chosen = [
        next((at for at, one in enumerate(found) if not one.outputs[index].problem), 0)
        for index in range(len(first.outputs))
    ]
    outputs = tuple(found[at].outputs[index] for index, at in enumerate(chosen))
    run_of = {output.name: found[at] for output, at in zip(outputs, chosen, strict=True)}
    missed = [run_of[output.name] for output in outputs if not output.is_met]
    difference = next((o.first_difference for o in found if o.first_difference is not None), None)
    return replace(
        first,
        ok=difference is None and not missed and not any(output.problem for output in outputs),
        first_difference=difference,
        error_by_output={name: run.error_by_output[name] for name, run in run_of.items()},
        sqnr_by_output={name: run.sqnr_by_output[name] for name, run in run_of.items()},
        outputs=outputs,
        lost_most=missed[0].lost_most if missed else None,
    )


def _find_worst_layer(bundle: CompiledModel, arrays: Mapping[str, Array]) -> LostLayer | None:
    from nacre.compile.bundle.lost_layers import find_worst_layer

    return find_worst_layer(bundle, arrays)


def _mark_independent_of_inputs(
    source: Module, outputs: tuple[Accuracy, ...], wanted: list[Array], again: list[Array]
) -> tuple[Accuracy, ...]:
    """Outputs, those that no input moves marked so."""
    problem = "the reference is the same for other inputs"
    return tuple(
        replace(output, problem=problem)
        if not output.problem
        and one.dtype.kind not in "iub"
        and depends_on_input(source, value)
        and np.array_equal(one, other)
        else output
        for output, value, one, other in zip(outputs, source.outputs, wanted, again, strict=True)
    )


def _expected_outputs(bundle: CompiledModel, given: object) -> list[Array]:
    """Outputs that somebody else has computed: by name, or all of them in order."""
    ports = bundle.manifest.outputs[: len(bundle.source.outputs)]
    names = [port.name for port in ports]
    if isinstance(given, Mapping):
        if set(given) != set(names):
            message = f"found {', '.join(map(str, given))}, expected {', '.join(names)}"
            raise request_error(f"{_EXPECTED} has other outputs than the model: {message}")
        arrays = [np.asarray(given[name]) for name in names]
    elif isinstance(given, list | tuple) and len(given) == len(names):
        arrays = [np.asarray(array) for array in given]
    else:
        raise request_error(
            f"{_EXPECTED} is neither a mapping nor a list of {len(names)} arrays",
            f"the model's outputs are {', '.join(names)}",
        )
    for port, array in zip(ports, arrays, strict=True):
        if array.dtype.kind in "OSUMmc":
            message = f"{_EXPECTED} has `{port.name}` in elements of {array.dtype.name}"
            raise request_error(f"{message}, the model makes {port.dtype}")
        if array.shape != port.shape:
            raise request_error(
                f"{_EXPECTED} has `{port.name}` in the shape {list(array.shape)}, "
                f"the model makes {list(port.shape)}"
            )
    return arrays
