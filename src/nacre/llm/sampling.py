"""Which token comes next: the likeliest, or one drawn by its share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are chosen."""

    temperature: float = 0.0  # 0: the likeliest; above, shares are evened out
    top_k: int = 0  # of so many likeliest; 0: of all
    top_p: float = 1.0  # of the likeliest that have this share together
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature}, expected a number of 0 or more")
        if self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"top_k is {self.top_k} and top_p {self.top_p}, expected 0 or more and up to 1"
            )


class Sampler:
    """Chooses tokens one after another; the same seed gives the same ones."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._draw = np.random.default_rng(sampling.seed)

    def choose(self, logits: npt.NDArray[np.float32]) -> int:
        """The next token."""
        if self._sampling.temperature == 0:
            return int(logits.argmax())
        ids, shares = self._shares(logits)
        place = np.searchsorted(np.cumsum(shares), self._draw.random() * shares.sum(), "right")
        return int(ids[min(int(place), len(ids) - 1)])

    def _shares(
        self, logits: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Tokens that may be drawn, the likeliest first, and the share of each."""
        order = np.argsort(-logits, kind="stable")
        if self._sampling.top_k:
            order = order[: self._sampling.top_k]
        scaled = logits[order].astype(np.float64) / self._sampling.temperature
        shares = np.exp(scaled - scaled[0])
        shares /= shares.sum()
        before = np.cumsum(shares) - shares
        kept = max(1, int((before < self._sampling.top_p).sum()))
        return order[:kept], shares[:kept]
