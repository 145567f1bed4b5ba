"""What users hold: a compiled model that is saved, loaded, validated and estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.validation import Validation, validate_bundle
from nacre.compile.options import Calibration
from nacre.compile.target import request_error

if TYPE_CHECKING:
    from nacre.compile.blame.comparison import PlanComparison
    from nacre.compile.blame.result import Blame
    from nacre.compile.estimate.result import Estimate
    from nacre.compile.labelled.evaluation import LabelledScores


@dataclass(frozen=True, eq=False, repr=False)
class Bundle(CompiledModel):
    """A model for a device."""

    @staticmethod
    def of(model: CompiledModel) -> Bundle:
        """The same model; what is known of its program by now, checks above all, goes along."""
        if isinstance(model, Bundle):
            return model
        bundle = Bundle(*(getattr(model, field.name) for field in fields(model)))
        vars(bundle).update(vars(model))
        return bundle

    def estimate(self, clock_mhz: float | None = None) -> Estimate:
        """How fast the plan is, layer by layer, with the bounds of the model on the device."""
        from nacre.compile.estimate.from_bundle import estimate_bundle

        return estimate_bundle(self, clock_mhz)

    def validate(
        self, inputs: Mapping[str, Any], expected: Mapping[str, Any] | list[Any] | None = None
    ) -> Validation:
        """Compare a run with the legalised module and with the model as it came.

        `expected` is what something else makes of the inputs, by name or in order: the outputs of
        onnxruntime or of PyTorch. Without it the model is evaluated.
        """
        return validate_bundle(self, inputs, expected)

    def blame(
        self,
        inputs: Mapping[str, Any],
        *,
        remedies: int = 0,
        calibration: Calibration | None = None,
    ) -> Blame:
        """Where the plan loses its accuracy on some inputs, tensor by tensor.

        Of an i8 plan also what keeping so many layers in f16 costs and brings, each: the model is
        compiled again for it, with scales from `calibration`, or from the inputs.
        """
        from nacre.compile.blame.noise import find_blame
        from nacre.compile.blame.remedies import add_remedies

        return add_remedies(find_blame(self, inputs), self, inputs, remedies, calibration)

    def evaluate(
        self,
        data: Mapping[str, Any],
        metric: str = "top1",
        *,
        label: str = "label",
        output: str | None = None,
    ) -> LabelledScores:
        """The plan beside its model on labelled data, samples along the first axis of each array.

        Metrics are those of `nacre evaluate`, by name.
        """
        from nacre.compile.labelled.evaluation import evaluate_labelled
        from nacre.compile.labelled.metrics import metric_of

        return evaluate_labelled(
            self, data, metric_of(metric), label=label, output=output,
            beside_model=self.has_reference,
        )  # fmt: skip

    def compare(self, other: Bundle, inputs: Mapping[str, Any]) -> PlanComparison:
        """This plan and another of the same model on the same inputs, layer by layer."""
        from nacre.compile.blame.comparison import compare_plans

        return compare_plans(self, other, inputs)

    def save(
        self,
        folder: str | Path,
        *,
        force: bool = False,
        reference: bool = True,
        bytecode: bool = False,
        cache: bool = False,
    ) -> None:
        """Write the bundle into a folder, which is made.

        A bundle that is there is replaced; a folder with anything else in it is refused, unless
        `force` says that it may be written into. Without `reference` the model as it came is left
        out: `validate` then has the legalised module alone. With `bytecode` the program is kept as
        `model.nemb` instead of text. With `cache` it is remembered that it was checked.
        """
        from nacre.compile.storage.checked_bundles import checked_bundles
        from nacre.compile.storage.folder import save

        if not str(folder):
            raise request_error("the name of the folder is empty", "give one, or `.` for this one")
        checked = checked_bundles() if cache else None
        save(self, Path(folder), force=force, reference=reference, bytecode=bytecode,
             checked=checked)  # fmt: skip

    @staticmethod
    def load(folder: str | Path, *, cache: bool = False) -> Bundle:
        """Read a bundle; InputError says what is wrong with it.

        With `cache` its program is not checked again where this nacre has done that before.
        """
        from nacre.compile.storage.checked_bundles import checked_bundles
        from nacre.compile.storage.folder import load

        return Bundle.of(load(Path(folder), checked=checked_bundles() if cache else None))
