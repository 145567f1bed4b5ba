"""The least that steps take on a device: bytes over its DDR, MACs over its NMUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from nacre.compile.estimate.assumptions import clock_of
from nacre.compile.estimate.bounds_rates import Rates
from nacre.compile.options import GROUP_SIZE
from nacre.core.constants import kernel_type
from nacre.core.module import TensorType
from nacre.kernels.interface.call import Call
from nacre.llm.estimate.sizes import ModelSizes, Precision
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import timing_profile

Limit = Literal["DDR", "NMU"]
# What activations of a step take beside weights and cache: a few rows of the widest layer.
_F16_BYTES = 2


@dataclass(frozen=True)
class StepBound:
    """A step at its least."""

    tokens: int
    context: int  # tokens that are before it, and its own
    ddr_bytes: int
    macs: int
    ddr_cycles: int
    mac_cycles: int
    plan_cycles: int | None = None  # of the plans that take it, where they were asked for

    @property
    def cycles(self) -> int:
        """The larger of both."""
        return max(self.ddr_cycles, self.mac_cycles)

    @property
    def expected_cycles(self) -> int:
        """Those of plans, or else the least."""
        return self.cycles if self.plan_cycles is None else self.plan_cycles

    @property
    def limit(self) -> Limit:
        """What holds it back."""
        return "DDR" if self.ddr_cycles >= self.mac_cycles else "NMU"


@dataclass(frozen=True)
class ModelEstimate:
    """A model on a device: whether it fits, and the least time of its steps."""

    device: str
    precision: Precision
    clock_mhz: float
    ddr_capacity: int
    weight_bytes: int
    cache_bytes: int
    activation_bytes: int
    prefill: tuple[StepBound, ...]
    decode: tuple[StepBound, ...]

    @property
    def needed_bytes(self) -> int:
        """What lies in DDR."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes

    @property
    def fits(self) -> bool:
        """Whether DDR holds it."""
        return self.needed_bytes <= self.ddr_capacity

    def milliseconds(self, step: StepBound) -> float:
        """The time of a step, the least where plans were not asked for."""
        return step.expected_cycles / self.clock_mhz / 1000

    def tokens_per_second(self, step: StepBound) -> float:
        """Tokens a second, the most where plans were not asked for."""
        return 1000 * step.tokens / self.milliseconds(step)


def estimate_model(
    sizes: ModelSizes,
    device: Device,
    precision: Precision = "f16",
    *,
    context: int = 2048,
    prompts: Sequence[int] = (128, 1024),
    group_size: int | None = None,
    ddr_bytes: int,
    clock_mhz: float | None = None,
    rows: Sequence[int] = (128, 1024, 4096, 16_384, 65_536),
) -> ModelEstimate:
    """The least that a model takes on a device, from its numbers alone.

    Tokens are weighed after the whole context, and after so many `rows` of it.
    """
    group = group_size or GROUP_SIZE.get(precision, 1)
    rates = _StepRates(sizes, device, precision, group)
    steps = sorted({n for n in rows if n < context} | {context})
    c = sizes.config
    widest = max(c.ff * 2, c.vocabulary, 3 * c.width)
    return ModelEstimate(
        device=device.name,
        precision=precision,
        clock_mhz=clock_mhz or clock_of(device),
        ddr_capacity=ddr_bytes,
        weight_bytes=sizes.stored_bytes(precision, group),
        cache_bytes=sizes.cache_row_bytes * context,
        activation_bytes=_F16_BYTES * (widest + max(prompts, default=1) * 4 * c.width),
        prefill=tuple(rates.prefill(tokens) for tokens in prompts if tokens <= context),
        decode=tuple(rates.decode(count) for count in steps),
    )


class _StepRates:
    """What a device does in a cycle with a model's operands."""

    def __init__(self, sizes: ModelSizes, device: Device, precision: Precision, group: int) -> None:
        self._sizes, self._rates = sizes, Rates(device, timing_profile(device))
        self._weights = sizes.weight_bytes(precision, group)
        self._weight_macs = self._rate("i8" if precision == "i8" else "f16")
        self._attention_macs = self._rate("f16")

    def decode(self, rows: int) -> StepBound:
        """A token after others: weights once, the cache once, a row written."""
        sizes = self._sizes
        moved = self._weights + sizes.cache_bytes(rows) + sizes.cache_row_bytes
        products = sizes.layer_weights + sizes.head_weights
        return self._bound(1, rows, moved, products, sizes.attention_macs(1, rows))

    def prefill(self, tokens: int) -> StepBound:
        """A prompt at once: weights once, its rows written, logits of the last token."""
        sizes = self._sizes
        moved = self._weights + sizes.cache_row_bytes * tokens
        products = sizes.layer_weights * tokens + sizes.head_weights
        return self._bound(tokens, tokens, moved, products, sizes.attention_macs(tokens, tokens))

    def _rate(self, element: str) -> Fraction:
        square = kernel_type(TensorType(element, (32, 32)))
        return self._rates.macs(Call((square, square), (square,)))

    def _bound(
        self, tokens: int, context: int, moved: int, products: int, attention: int
    ) -> StepBound:
        cycles = products / self._weight_macs + attention / self._attention_macs
        return StepBound(
            tokens,
            context,
            moved,
            products + attention,
            ceil(Fraction(moved) / Fraction(self._rates.ddr)),
            ceil(cycles),
        )
