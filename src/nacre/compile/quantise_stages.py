"""What quantisation does beside rounding to the nearest: each by a name, and each can be left out.

The command line, Python, the manifest and the documentation have their names from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuantiseStage:
    """A stage, the precisions that have it, and what it does to a model."""

    name: str
    precisions: tuple[str, ...]
    effect: str


# In the order in which they work.
QUANTISE_STAGES = (
    QuantiseStage("smooth", ("i8",), "channels behind a norm are made alike, by a factor that goes "
                  "into the weights of the products that read them"),
    QuantiseStage("uneven", ("i8",), "parts that are joined though their sizes differ much are "
                  "joined in f16"),
    QuantiseStage("wide", ("i8",), "products before floats leave in 16 bits, where the device "
                  "lists `gemm.int8<i16>` or `conv2d.int8<i16>`"),
    QuantiseStage("parts", ("i8",), "where outputs miss their bound, products take their input in "
                  "16 bits, as two parts of 8, before any goes back to f16"),
    QuantiseStage("gptq", ("w8f16", "w4f16"), "with calibration data, weights are rounded one "
                  "input after the other, and those still to come take up what was lost"),
    QuantiseStage("bias", ("i8",), "biases take back what rounded weights do to the means of "
                  "channels"),
)  # fmt: skip
STAGE_NAMES = tuple(stage.name for stage in QUANTISE_STAGES)


def stages_of(precision: str) -> tuple[str, ...]:
    """The names of the stages that a precision has."""
    return tuple(stage.name for stage in QUANTISE_STAGES if precision in stage.precisions)
