"""What fitted Hexagon devices say of networks that were left out, beside two simpler models.

`call + MACs / rate` and the first edition's cycles (built-in figures, nothing of the chip) have a
factor and a cost per call fitted to the same rows, the same groups left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.silicon.fits import Errors, Rows, cross_validate, errors_of, fit_call_cost
from benchmarks.silicon.hexagon import CHIP_LIST, Chip, plan_of
from benchmarks.silicon.kept_plans import KeptPlan
from benchmarks.silicon.tasks import Row
from nacre.calibrate import Fit, Measurement, NemText
from nacre.calibrate.subjects import load_subjects
from nacre.calibrate.timed_rows import Floats
from nacre.compile.target import target_of
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.spec.figures import PARAMETERS, is_absent_at_zero

RATIOS = (
    ("mobilenet_v2", "resnet50"),
    ("efficientnet_b4", "resnet101"),
    ("densenet121", "resnet50"),
    ("resnext101", "wideresnet50"),
    ("swin_tiny", "resnet101"),
    ("vit", "wideresnet50"),
)
LEAST_FACTOR = 3.0  # of a device's least latency, below which the call hides the network


@dataclass(frozen=True)
class Network:
    """What simpler models have of a network."""

    macs: float
    first_edition: float  # cycles with the built-in figures


def simple_networks(rows: Sequence[Row], chip: Chip) -> list[Network]:
    """MACs of the plans of rows, and their cycles where nothing is known of the chip."""
    return [simple_network(plan_of(row, chip)) for row in rows]


@cache
def simple_network(plan: KeptPlan) -> Network:
    """The same of one plan, which all chips share."""
    device = target_of(CHIP_LIST[0].file).device
    (subject,), _ = load_subjects([Measurement(NemText("plan", plan.text), 1)], device)
    cycles = subject.time(timing_profile(device, _built_in_figures())).cycles
    return Network(float(plan.macs), float(cycles))


def _built_in_figures() -> dict[str, dict[str, int]]:
    """The figures of a device that nobody has calibrated, at the MACs of these chips."""
    usual: dict[str, dict[str, int]] = {}
    for parameter in PARAMETERS:
        unit, key = parameter.unit, parameter.key
        if parameter.default is not None:
            usual.setdefault(unit, {})[key] = parameter.default
        elif is_absent_at_zero(unit, key):
            usual.setdefault(unit, {})[key] = 0
    usual["NMU"] |= {"int8_macs": 16384, "fp16_macs": 8192}
    return usual


def error_lines(found: Fit, networks: list[Network]) -> Iterator[tuple[str, Errors]]:
    """By class: errors of rows left out, of ours and of the simpler models."""
    kinds = np.array([row.class_name for row in found.rows])
    columns = {
        "call + MACs / rate": np.array([one.macs for one in networks]),
        "first edition": np.array([one.first_edition for one in networks]),
    }
    for kind in sorted(set(kinds.tolist())):
        own = kinds == kind
        groups = tuple(r.group_name for r, is_own in zip(found.rows, own, strict=True) if is_own)
        measured = found.measured[own]
        yield f"{kind}: ours", errors_of(found.predicted[own], measured)
        for name, modelled in columns.items():
            errors = cross_validate(Rows(modelled[own], measured, groups), fit_call_cost)
            yield f"{kind}: {name}", errors


@dataclass(frozen=True)
class Ratio:
    """A ratio of two networks: measured, and as rows that were left out have it."""

    name: str
    measured: float
    modelled: float

    def __str__(self) -> str:
        off = self.modelled / self.measured - 1
        return f"{self.name:<44}{self.measured:9.2f}{self.modelled:9.2f}{off:+9.0%}"


def ratios(found: Fit) -> Iterator[Ratio]:
    """Ratios of latencies less the fitted cost of a call, where both are large enough."""
    call = _call_us(found)
    for kind in sorted({row.class_name for row in found.rows}):
        places = {_network_name(row.subject): p for p, row in enumerate(found.rows)
                  if row.class_name == kind}  # fmt: skip
        least = LEAST_FACTOR * min(found.measured[p] for p in places.values())
        for names in RATIOS:
            if not all(name in places for name in names):
                continue
            a, b = (places[name] for name in names)
            if min(found.measured[a], found.measured[b]) > least:
                pair = [_ratio(times, a, b, call) for times in (found.measured, found.predicted)]
                yield Ratio(f"{kind}: {names[0]} / {names[1]}", *pair)


def _ratio(times: Floats, a: int, b: int, call: float) -> float:
    return float((times[a] - call) / (times[b] - call))


def _call_us(found: Fit) -> float:
    fitted = {one.figure.name: one.value for one in found.figures}
    known = timing_profile(found.device)
    clock = fitted.get("NMU.clock") or known.get("NMU", "clock") or 1000
    return (fitted.get("SEQ.call") or known.get("SEQ", "call") or 0) / clock


def _network_name(subject: object) -> str:
    if not isinstance(subject, NemText):
        raise TypeError("a network is expected")
    return subject.name
