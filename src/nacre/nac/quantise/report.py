"""What quantisation does to each weight."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10

import numpy as np

from nacre.base.excerpt import safe
from nacre.core.values import Array
from nacre.nac.spec.elements import QUANTIZATIONS


@dataclass(frozen=True)
class WeightError:
    """One weight: how it is stored, and how far that is from what it was."""

    name: str
    shape: tuple[int, ...]
    stored: str  # the name of a quantisation, or `kept`
    reason: str  # why it was kept
    bytes_before: int
    bytes_after: int  # with scales
    max_error: float = 0.0
    rms_error: float = 0.0
    sqnr_db: float = inf  # the signal over the error, both squared

    def __str__(self) -> str:
        dims = "x".join(map(str, self.shape)) or "scalar"
        head = f"{safe(self.name)}  {dims}  {self.bytes_before:,} -> {self.bytes_after:,} bytes"
        if self.reason:
            return f"{head}  kept: {self.reason}"
        ratio = "exact" if self.sqnr_db == inf else f"{self.sqnr_db:.1f} dB"
        return f"{head}  {self.stored}  max {self.max_error:.3g}  rms {self.rms_error:.3g}  {ratio}"


@dataclass(frozen=True)
class QuantisationReport:
    """Every weight of a file, in its order."""

    quant: str
    weights: tuple[WeightError, ...] = ()

    @property
    def worst(self) -> WeightError | None:
        """The weight that lost most of its signal."""
        changed = [weight for weight in self.weights if not weight.reason]
        return min(changed, key=lambda weight: weight.sqnr_db, default=None)

    @property
    def bytes_before(self) -> int:
        """All weights as they were."""
        return sum(weight.bytes_before for weight in self.weights)

    @property
    def bytes_after(self) -> int:
        """All weights as they are stored."""
        return sum(weight.bytes_after for weight in self.weights)

    def __str__(self) -> str:
        lines = [str(weight) for weight in self.weights]
        total = f"{self.quant}: {self.bytes_before:,} -> {self.bytes_after:,} bytes"
        if self.worst is not None and self.worst.sqnr_db < inf:
            total += f", least {self.worst.sqnr_db:.1f} dB ({safe(self.worst.name)})"
        return "\n".join([*lines, total])


def weight_error(
    name: str, quant: int, before: Array, after: Array, bytes_after: int
) -> WeightError:
    """A weight before and after; errors are computed in f64, of what is finite."""
    finite = np.isfinite(before)
    was = before[finite].astype(np.float64)
    error = after[finite].astype(np.float64) - was
    count = max(was.size, 1)
    noise, signal = (float(np.square(x).sum()) / count for x in (error, was))
    ratio = signal / noise if noise else inf
    sqnr = 10 * log10(ratio) if 0 < ratio < inf else inf if ratio else -inf
    return WeightError(
        name, before.shape, QUANTIZATIONS[quant].name, "", before.nbytes, bytes_after,
        float(np.abs(error).max(initial=0)), noise**0.5, sqnr,
    )  # fmt: skip
