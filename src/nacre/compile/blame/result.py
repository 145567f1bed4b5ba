"""What blame finds, as values: the noise of every tensor, the first that is lost, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from nacre.compile.accuracy.measures import Accuracy
from nacre.compile.blame.measures import Histogram


@dataclass(frozen=True)
class TensorNoise:
    """A tensor of the plan beside the same in f32; ratios of signal to noise in dB."""

    layer: str  # of the plan; empty for what the host gives, and for views
    node: str  # as the model calls what makes it
    opcode: str  # in the legalised module
    elem: str
    shape: tuple[int, ...]
    before: float  # of the worst tensor that goes in; infinite where nothing is lost
    added: float  # of what it leaves, were all that goes in exact
    stored: float  # of exact numbers put into its storage: rounding and ends alone
    weights: float | None  # of its weights, where they are no floats
    after: float  # of what it leaves in the run
    saturated: float  # the share of elements that lie beyond the ends of its storage
    scale: float | None
    zero: int | None
    histogram: Histogram
    changes: tuple[str, ...]  # what stages of the compiler did to it
    source: int  # the number of what it stands for, in what was legalised

    @property
    def lost(self) -> float:
        """How much worse it is than what goes in, in dB."""
        return min(self.before, _EXACT) - max(min(self.after, _EXACT), -_EXACT)

    def as_json(self) -> dict[str, Any]:
        """Plain values; None for what is exact."""
        ratios = ("before", "added", "stored", "weights", "after")
        return {**asdict(self), **{name: _finite(getattr(self, name)) for name in ratios}}


_EXACT = 120.0  # dB: nobody asks for more


@dataclass(frozen=True)
class Remedy:
    """A layer kept in f16: what that costs, and what it brings, both measured."""

    layer: str
    node: str
    cycles: int  # more than without; fewer where it is below 0
    gains: Mapping[str, float]  # dB by output

    def as_json(self) -> dict[str, Any]:
        """Plain values; None where a ratio is infinite."""
        gains = {name: _finite(gain) for name, gain in self.gains.items()}
        return {**asdict(self), "gains": gains}


@dataclass(frozen=True)
class Blame:
    """Where a plan loses what it loses, on given inputs."""

    device: str
    precision: str
    least: float  # dB that outputs are to have
    outputs: tuple[Accuracy, ...]
    tensors: tuple[TensorNoise, ...]  # in the order in which the plan makes them
    remedies: tuple[Remedy, ...] = ()
    cycles: int | None = None  # of the plan that remedies are compared with
    notes: tuple[str, ...] = ()
    ranges: str = ""  # what the scales of plans with remedies come from

    @property
    def first_divergence(self) -> TensorNoise | None:
        """The first tensor that has less left than outputs are to have."""
        return next((tensor for tensor in self.tensors if tensor.after < self.least), None)

    @property
    def worst(self) -> tuple[TensorNoise, ...]:
        """Tensors by what they add themselves, those that add most first."""
        return tuple(sorted(self.tensors, key=lambda tensor: tensor.added))

    def with_remedies(self, remedies: tuple[Remedy, ...], cycles: int | None, ranges: str) -> Blame:
        """The same with what would help."""
        return replace(self, remedies=remedies, cycles=cycles, ranges=ranges)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        first = self.first_divergence
        return {
            "device": self.device,
            "precision": self.precision,
            "least_db": self.least,
            "outputs": [output.as_json() for output in self.outputs],
            "first_divergence": None
            if first is None
            else {"layer": first.layer, "node": first.node},
            "tensors": [tensor.as_json() for tensor in self.tensors],
            "cycles": self.cycles,
            "ranges": self.ranges,
            "remedies": [remedy.as_json() for remedy in self.remedies],
            "notes": list(self.notes),
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or abs(value) == inf else value
