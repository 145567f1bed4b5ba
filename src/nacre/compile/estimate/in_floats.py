"""Whether a plan on integers is worth it: its time beside that of the same model in f16."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nacre.base.diagnostics import InputError
from nacre.base.stages import stage
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.target import Target, target_of
from nacre.core.module import Module
from nacre.nem.model.devices import Device

_LEAST_SHARE = 0.5  # of the cycles beside products: with less, integers are the faster ones


@dataclass(frozen=True)
class FloatComparison:
    """A plan on integers that is slower than one in f16."""

    cycles: int
    in_floats: int
    share: float  # of the cycles, in layers that have no product

    @property
    def sentence(self) -> str:
        """Both numbers, and why."""
        return (
            f"i8 takes {self.cycles:,} cycles, f16 would take {self.in_floats:,}: {self.share:.0%} "
            "of the cycles are in layers that convert or have no product"
        )


def compare_with_floats(
    bundle: Bundle, module: Module, device: str | Device, ddr_bytes: int
) -> FloatComparison | None:
    """The comparison, where a plan on integers is slower than one in f16; else None.

    Products are what integers are faster at: the model is compiled once more, in f16, only where
    other layers take most of the time.
    """
    if bundle.manifest.precision != "i8" or (plan := bundle.estimate().plan) is None:
        return None
    cycles = bundle.time().cycles
    share = sum(layer.cycles for layer in plan.layers if not layer.macs) / max(1, cycles)
    if share <= _LEAST_SHARE:
        return None
    target = target_of(device)
    with stage("comparing with f16"):
        in_floats = cycles_in_floats(module, target, Options(target.device, "i8", ddr_bytes))
    if in_floats is None or in_floats >= cycles:
        return None
    return FloatComparison(cycles, in_floats, share)


def cycles_in_floats(module: Module, target: Target, options: Options) -> int | None:
    """Cycles of a plan with every layer in f16; None where there is no such plan."""
    floats = replace(options, precision="f16", calibration=None, precision_map={})
    try:
        return compile_module(module, target, floats).time().cycles
    except InputError:
        return None
