"""CAL01-CAL17: measurements that no device can be fitted to, and fits that say too little."""

from __future__ import annotations

from nacre.base.rules import declare

_CLAUSE = "Timing / calibration"
_LANGUAGE = "Calibration"

CAL01 = declare(
    "CAL01", "table-unreadable", _CLAUSE,
    """
    A table of measurements cannot be read: it is missing, too large or no UTF-8 text, has no
    header or no row, names a column twice, or has rows with more or fewer cells than its header.
    """, language=_LANGUAGE)  # fmt: skip
CAL02 = declare(
    "CAL02", "column-unknown", _CLAUSE,
    """
    A table of measurements has a column that nothing is known about, or lacks one that is needed:
    what was measured (`operation`, `program` or `model`), and how long it took (`time` with `unit`,
    or one of `cycles`, `ns`, `us`, `ms`, `s`). Columns for people begin with `note`.
    """, language=_LANGUAGE)  # fmt: skip
CAL03 = declare(
    "CAL03", "time-invalid", _CLAUSE,
    """
    A measured time is missing, no number, zero or negative, or absurd: below a nanosecond, above a
    million seconds, or beyond 2^53 cycles.
    """, language=_LANGUAGE)  # fmt: skip
CAL04 = declare(
    "CAL04", "units-disagree", _CLAUSE,
    """
    A unit of time is unknown, or times cannot be compared: some are seconds and no clock says how
    many cycles they are.
    """, language=_LANGUAGE)  # fmt: skip
CAL05 = declare(
    "CAL05", "workload-unknown", _CLAUSE,
    """
    A row does not say what was measured: its operation is no opcode, it names no workload or more
    than one, or a cell of it is no shape, number or memory.
    """, language=_LANGUAGE)  # fmt: skip
CAL06 = declare(
    "CAL06", "workload-invalid", _CLAUSE,
    """
    What a row names cannot run on the device: its shapes do not fit each other or the memory, the
    device lacks the element type, the program has errors or never ends, the model does not compile.
    """, language=_LANGUAGE)  # fmt: skip
CAL07 = declare(
    "CAL07", "too-few-rows", _CLAUSE,
    """
    There are fewer than five rows for each free figure: a fit would follow the noise.
    """, language=_LANGUAGE)  # fmt: skip
CAL08 = declare(
    "CAL08", "figure-unknown", _CLAUSE,
    """
    A figure that is to be fitted or set is none of the timed machine's, is named twice, or no
    figure is free at all.
    """, language=_LANGUAGE)  # fmt: skip
CAL09 = declare(
    "CAL09", "range-invalid", _CLAUSE,
    """
    The range of a free figure is empty, or leaves what the figure can be.
    """, language=_LANGUAGE)  # fmt: skip
CAL10 = declare(
    "CAL10", "edge-of-range", _CLAUSE,
    """
    The best value of a figure lies at the edge of its range: the true one is likely beyond, or the
    model lacks what the chip does. Nothing is written.
    """, language=_LANGUAGE)  # fmt: skip
CAL11 = declare(
    "CAL11", "rows-contradict", _CLAUSE,
    """
    Two rows of one workload differ by more than a factor of two: one of them is likely wrong.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CAL12 = declare(
    "CAL12", "figure-without-effect", _CLAUSE,
    """
    No measured time depends on a free figure: it stays as it was, and counts as not fitted.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CAL13 = declare(
    "CAL13", "figures-alike", _CLAUSE,
    """
    The rows cannot tell figures apart: changing them together leaves the times nearly as they are.
    Fix one of them, or measure workloads in which only one matters.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CAL14 = declare(
    "CAL14", "model-far-off", _CLAUSE,
    """
    Times that were left out of the fit are missed by a factor of two in the median: the device as
    it is declared is another machine than the one that was measured.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CAL16 = declare(
    "CAL16", "plans-depend-on-it", _CLAUSE,
    """
    Models are among the rows, and their plans depend on a free figure: those that were timed are
    plans for the device as it was, and a model that is compiled for the fitted one may get another.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CAL17 = declare(
    "CAL17", "row-far-off", _CLAUSE,
    """
    The time of a row is a hundred times what the fit says of it, or a hundredth, while others are
    near: most likely a unit or a digit is wrong. Mend or remove the row. Nothing is written.
    """, language=_LANGUAGE)  # fmt: skip
