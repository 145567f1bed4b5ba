"""What the proof says of an image, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from nacre.base.diagnostics import Diagnostic, has_errors
from nacre.nem.plan.plan import Plan
from nacre.tcb.image import Image
from nacre.tcbcheck.target import Target
from nacre.tcbcheck.verify import verify_image


@dataclass(frozen=True)
class Proof:
    """The findings; none: the image means what its program means."""

    findings: tuple[Diagnostic, ...]
    seconds: float

    @property
    def is_proved(self) -> bool:
        """Whether it does."""
        return not has_errors(self.findings)

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "is_proved": self.is_proved,
            "seconds": round(self.seconds, 3),
            "findings": [f"{finding.code}: {finding.message}" for finding in self.findings],
        }


def prove_image(
    plan: Plan, image: Image, constants: Mapping[str, bytes], target: Target | None = None
) -> Proof:
    """Prove an image against the plan of its program, whose buffers hold constants."""
    began = perf_counter()
    findings = tuple(verify_image(plan, image, constants, target))
    return Proof(findings, perf_counter() - began)
