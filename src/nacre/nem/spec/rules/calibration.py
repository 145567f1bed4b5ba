"""CAL15: what lies beside a device that was fitted to measurements."""

from nacre.base.rules import declare

CAL15 = declare(
    "CAL15", "calibration-unreadable", "Timing / calibration",
    """
    The file beside a device that says how it was fitted, `NAME.calibration.json`, is damaged or was
    written by something else. `nacre calibrate` writes both anew.
    """, language="Calibration")  # fmt: skip
