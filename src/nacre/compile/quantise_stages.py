"""What quantisation does beside rounding to the nearest: each by a name, and each can be left out.

The command line, Python, the manifest and the documentation have their names from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean


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
    QuantiseStage("equalise", ("i8",), "channels between two products that only a ReLU or the like "
                  "parts are made alike, by factors in the weights of both"),
    QuantiseStage("uneven", ("i8",), "parts that are joined though their sizes differ much are "
                  "joined in f16"),
    QuantiseStage("wide", ("i8",), "products before floats leave in 16 bits, where the device "
                  "lists `gemm.int8<i16>` or `conv2d.int8<i16>`"),
    QuantiseStage("gptq", ("i8", "w8f16", "w4f16"), "with calibration data, weights are rounded "
                  "one input after the other, and those still to come take up what was lost; at i8 "
                  "where outputs miss their bound"),
    QuantiseStage("adaround", ("i8",), "where outputs miss their bound, whether weights go up or "
                  "down is learned on the data, in the products that lose most"),
    QuantiseStage("parts", ("i8",), "where outputs miss their bound, products take their input in "
                  "16 bits, as two parts of 8, before any goes back to f16"),
    QuantiseStage("bias", ("i8",), "biases take back what rounded weights do to the means of "
                  "channels"),
)  # fmt: skip
STAGE_NAMES = tuple(stage.name for stage in QUANTISE_STAGES)


def stages_of(precision: str) -> tuple[str, ...]:
    """The names of the stages that a precision has."""
    return tuple(stage.name for stage in QUANTISE_STAGES if precision in stage.precisions)


def stage_problem(names: Iterable[object], precision: str) -> tuple[str, str | None] | None:
    """What is wrong with stages that are to be left out, and a hint; None where nothing is."""
    for name in names:
        if name not in STAGE_NAMES:
            message = f"no stage of quantisation is called {backquote(str(name))}"
            hint = did_you_mean(str(name), STAGE_NAMES) or None
            return f"{message}, there are {', '.join(STAGE_NAMES)}", hint
        if name not in stages_of(precision):
            known = ", ".join(stages_of(precision)) or "none"
            message = f"the precision {precision} has no stage `{name}` to leave out"
            return f"{message}, it has {known}", None
    return None
