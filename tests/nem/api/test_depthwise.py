"""`depthwise_conv2d` with its weights in either form: one meaning and one time."""

from __future__ import annotations

import numpy as np
import pytest

from neminterp import NemInterpreter

FORMS = ("[3, 3, 4, 2], layout=HWCM", "[3, 3, 1, 8], layout=HWIO")
WEIGHTS = np.random.default_rng(3).integers(-8, 8, (3, 3, 1, 8), dtype=np.int8)
PLANE = np.random.default_rng(4).integers(-8, 8, (1, 5, 5, 4), dtype=np.int8)


def program(opcode: str, weights: str, quant: str, attributes: str = "") -> str:
    return f"""
buffer S : L2 (size=172)
buffer M : L1 (size=376)
t = transfer.sync(dst=region(M, 0, 172), src=region(S, 0, 172))
let X = region(M, 0, 100) elem=i8, shape=[1, 5, 5, 4], layout=NHWC,
    quant=per_tensor(scale=1.0, zero_point=0)
let W = region(M, 100, 72) elem=i8, shape={weights}, quant={quant}
let Y = region(M, 176, 200) elem=i8, shape=[1, 5, 5, 8], layout=NHWC,
    quant=per_tensor(scale=4.0, zero_point=0)
c = {opcode}.sync in X, W out Y
    pads=[1, 1, 1, 1] strides=[1, 1] dilations=[1, 1] accum_type=i32 {attributes}
"""


def result(text: str) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int8]], int | None]:
    interp = NemInterpreter(device="npm4k")
    interp.set_mode("timed")
    interp.set_timing_profile({"NMU": {"lanes": [16, 32]}})
    loaded = interp.load_string(text)
    assert not [d for d in interp.validate(loaded) if d.severity == "error"]
    ran = interp.run(loaded, {"S": PLANE.tobytes() + WEIGHTS.tobytes()})
    assert ran.diagnostics == ()
    return np.asarray(ran.read_region("Y")), ran.cycle_count


def naive(scales: list[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """One output after the other: of two for each channel."""
    padded = np.pad(PLANE.astype(int), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = np.zeros((1, 5, 5, 8), np.int8)
    for row, column, channel in np.ndindex(5, 5, 8):
        window = padded[0, row : row + 3, column : column + 3, channel // 2]
        total = int((window * WEIGHTS[:, :, 0, channel].astype(int)).sum())
        y[0, row, column, channel] = np.clip(np.rint(total * scales[channel] / 4), -128, 127)
    return y


def test_both_forms_of_the_weights_give_the_same_at_the_same_cost() -> None:
    quant = "per_tensor(scale=0.5, zero_point=0)"
    by_form = [result(program("depthwise_conv2d", form, quant)) for form in FORMS]
    grouped = result(program("conv2d", FORMS[1], quant, "groups=4"))
    for values, cycles in (*by_form, grouped):
        np.testing.assert_array_equal(values, naive([0.5] * 8))
        assert cycles == grouped[1]  # groups stand side by side, whatever the opcode


@pytest.mark.parametrize(
    ("form", "axis", "scales", "of_channels"),
    [
        (FORMS[0], 3, [0.5, 2.0], [0.5, 2.0] * 4),
        (FORMS[0], 2, [0.5, 2.0, 1.0, 0.25], [0.5, 0.5, 2.0, 2.0, 1.0, 1.0, 0.25, 0.25]),
        (FORMS[1], 3, [0.5, 2.0, 1.0, 0.25] * 2, [0.5, 2.0, 1.0, 0.25] * 2),
    ],
)
def test_scales_go_with_the_axes_as_they_are_declared(
    form: str, axis: int, scales: list[float], of_channels: list[float]
) -> None:
    zeros = [0] * len(scales)
    quant = f"per_channel(axis={axis}, scales={scales}, zero_points={zeros})"
    values, _ = result(program("depthwise_conv2d", form, quant))
    np.testing.assert_array_equal(values, naive(of_channels))
