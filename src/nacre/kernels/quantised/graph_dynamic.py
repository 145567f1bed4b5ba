"""Dynamic quantisation in few passes: what a chain of primitives gives, with the same bits.

A quantised model finds the range of a tensor, turns it to bytes, takes the zero point off again
and multiplies. The integers in between are small enough for f32 to hold each of them, so that the
whole way may go by floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.runs import present, quiet
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.products.graph_products import reach
from nacre.kernels.products.products import F32_EXACT
from nacre.kernels.quantised.graph_quantized import range_of, zero_of

HIGHEST = 255  # of u8; no centred value is further from 0
_NOTHING = np.array(0.0, np.float32)


def centring_run(dtype: np.dtype[Any]) -> Run:
    """From x in f32 the scale of u8, and what x is quantised to less the zero point.

    That is written as i32, or as f32 that holds the same integers; 0 may then be -0.
    """

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, (y_scale, y) = present(inputs[0]), outputs
        scale, low, high = range_of(x)
        zero = zero_of(scale, low)
        y_scale[...] = scale
        steps = y if dtype == np.float32 else scratch("steps", x.shape, x.dtype)
        np.rint(np.divide(x, scale, out=steps), out=steps)
        # Both functions are monotone: where the ends of the range are inside, everything is.
        if not (np.rint(low / scale) >= -zero and np.rint(high / scale) <= HIGHEST - zero):
            np.copyto(steps, 0, where=np.isnan(steps))
            steps.clip(np.float32(-zero), np.float32(HIGHEST - zero), out=steps)
        if steps is not y:
            np.copyto(y, steps, casting="unsafe")
        return None

    return quiet(run)


def _round_run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
    """Integers that f32 holds, as a `Cast` from i32 gives them: without a -0."""
    np.add(present(inputs[0]), _NOTHING, out=outputs[0])
    return None


def _shift_run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
    """Integers that f32 holds, plus others in i32, as a `Cast` of the sum to f32 gives them."""
    sums, more = present(inputs[0]), present(inputs[1])
    if reach(more) <= F32_EXACT:  # then the sum of floats is rounded once, as a `Cast` does
        np.add(sums, more.astype(np.float32), out=outputs[0])
    else:
        exact = sums.astype(np.int64) + more
        outputs[0][...] = exact.astype(np.int32)  # modulo 2^32
    return None


ROUNDING: Run = quiet(_round_run)
MOVING: Run = quiet(_shift_run)
