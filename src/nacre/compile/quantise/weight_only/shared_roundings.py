"""Roundings that several plans of one model share: each weight is rounded once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from nacre.compile.quantise.weight_only.calibrated import CalibratedWeights


@dataclass(frozen=True)
class RoundingKey:
    """What decides how weights are rounded to the nearest integers."""

    fingerprint: bytes  # of the weights
    shape: tuple[int, ...]
    group: int
    bits: int


Roundings = dict[RoundingKey, CalibratedWeights]
_SHARED: ContextVar[Roundings | None] = ContextVar("shared_roundings", default=None)


@contextmanager
def share_roundings() -> Iterator[None]:
    """Plans that are compiled meanwhile round equal weights once."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def shared_roundings() -> Roundings | None:
    """What plans have rounded so far; None where they share nothing."""
    return _SHARED.get()
