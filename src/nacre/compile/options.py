"""How a model is compiled, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

if TYPE_CHECKING:
    from nacre.nem.run.timing.profile import TimingProfile

# Arrays by name with one more axis in front, or inputs of several runs.
Calibration = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Precision = Literal["f16", "f32", "i8", "w8f16", "w4f16"]
PRECISIONS: tuple[Precision, ...] = ("f16", "f32", "i8", "w8f16", "w4f16")
# What others call a precision of ours.
PRECISION_ALIASES: Mapping[str, Precision] = {"w8a16": "w8f16", "w4a16": "w4f16"}
# Bits of weights, where all else is f16.
WEIGHT_BITS: Mapping[str, int] = {"w8f16": 8, "w4f16": 4}
GROUP_SIZES = (32, 64, 128)  # neighbours along a sum whose weights share a scale
# Where nobody says: 8 bits in smaller groups come near f16, and pay with half a bit of eight.
GROUP_SIZE: Mapping[str, int] = {"w8f16": 32, "w4f16": 64}
# Weights as they are, in fewer bytes; or such that they take fewer.
Compress = Literal["exact", "cluster"]
COMPRESS: tuple[Compress, ...] = ("exact", "cluster")
# In which order memory has the axes of inputs and outputs: the model's, or the device's.
IoLayout = Literal["model", "native"]
IO_LAYOUTS: tuple[IoLayout, ...] = ("model", "native")
MOST_DB = 120.0  # the highest ratio of signal to noise that can be asked for
OBSERVERS = ("minmax", "percentile", "mse", "entropy")
# Tensors that stay in L1, several tiles at a time, weights that are loaded a layer ahead, layers
# that run together.
FEATURES = ("residency", "slots", "ahead", "groups")
# In their order; each is a file of that name.
STAGES = (
    "legalise",
    "layout",
    "quantise",
    "partition",
    "tile",
    "place",
    "schedule",
    "emit",
)


@dataclass(frozen=True)
class Options:
    """For which device, in which precision."""

    device: Device
    precision: Precision = "f16"
    ddr_bytes: int = DEFAULT_DDR_BYTES
    calibration: Calibration | None = None  # what inputs look like
    observer: str = "mse"  # how a range becomes a scale
    precision_map: Mapping[str | int, str] = field(default_factory=dict)
    fallback: bool = True  # whether layers stay floats where outputs on integers lose too much
    accuracy_db: float | None = None  # the least ratio of signal to noise of outputs on integers
    token_reserve: int = 0  # with tokens: 1 waits between layers, 2 also between tiles
    disabled: frozenset[str] = frozenset()  # of FEATURES: what a plan does without, to compare
    compress: Compress | None = None  # weights that a device decompresses on their way
    group_size: int | None = None  # of weights that share a scale, at the most
    quantise_without: frozenset[str] = frozenset()  # of QUANTISE_STAGES
    io_layout: IoLayout = "model"

    @property
    def arithmetic(self) -> Precision:
        """What a plan computes in: weights of few bits meet f16."""
        return "f16" if self.precision in WEIGHT_BITS else self.precision

    @property
    def l1_bytes(self) -> int:
        """L1 of one engine."""
        return (self.device.topology and self.device.topology.l1_size_bytes) or 0

    @property
    def l2_bytes(self) -> int:
        """L2 of the device."""
        return (self.device.topology and self.device.topology.l2_size_bytes) or 0

    @property
    def tokens(self) -> int:
        """How many tokens an engine keeps at a time; where nothing says so, any number."""
        limit = self.device.characteristics.get("SEQ", {}).get("max_active_tokens")
        return int(limit) if limit else 1 << 16

    @cached_property
    def profile(self) -> TimingProfile:
        """How fast the device is."""
        # Imported here: the command line reads the names above before it needs NumPy.
        from nacre.nem.run.timing.profile import timing_profile

        return timing_profile(self.device)


def is_judged(precision: str, compress: object) -> bool:
    """Whether outputs are judged by their ratio of signal to noise: integers, and clusters."""
    return precision in ("i8", *WEIGHT_BITS) or compress == "cluster"


def uses_calibration(precision: str, compress: object) -> bool:
    """Whether inputs as the model will see them change a plan."""
    return is_judged(precision, compress)
