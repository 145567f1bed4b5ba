"""The steps and bytes that a run may take."""

from __future__ import annotations

from nacre.nac.mep.values import Fault
from nacre.nac.rules.plans import NAC88, NAC89

_STEP_BYTES = 4096  # that an instruction works on for one step
CALL_STEPS = 100  # of running or loading a model


class Budget:
    """The steps and bytes that a run may still take."""

    def __init__(self, steps: int, bytes_: int) -> None:
        self.max_steps = steps
        self.max_bytes = bytes_
        self.steps = 0
        self.live = 0  # bytes that slots hold
        self.peak = 0

    def require_room(self, bytes_: int) -> None:
        """Refuse an instruction that needs more bytes than are left, before it takes them."""
        if self.live + bytes_ > self.max_bytes:
            message = (
                f"{bytes_:,} bytes are needed beside {self.live:,} in slots,"
                f" at most {self.max_bytes:,}"
            )
            raise Fault(NAC89, message)
        self.peak = max(self.peak, self.live + bytes_)

    def charge(self, bytes_: int = 0, steps: int = 0) -> None:
        """Pay for the work of an instruction."""
        self.steps += steps + bytes_ // _STEP_BYTES
        if self.steps > self.max_steps:
            raise Fault(NAC88, f"all {self.max_steps:,} steps are used up")

    def take(self, bytes_: int) -> None:
        """Pay for work on so many bytes, and see that there is room for them."""
        self.require_room(bytes_)
        self.charge(bytes_)
