"""A binding measured: cycles against the program's and why they differ, banks, compression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nacre.bind.measure.bank_map import BankMap, PlacedBuffer, bank_maps
from nacre.bind.measure.compressed_reads import CompressedRead, compressed_reads
from nacre.bind.measure.cycle_causes import CycleSteps, cycle_steps
from nacre.bind.request import BindRequest, Bound
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import time_steps
from nacre.tcb.machine.timing import ImageTiming


@dataclass(frozen=True, eq=False)
class MeasuredBinding:
    """What a bound program costs, worked out when it is asked for."""

    request: BindRequest
    bound: Bound

    @cached_property
    def program(self) -> TimedResult:
        """The program on NEM's timed machine."""
        device = self.request.device
        steps = number_steps(self.request.plan)
        return TimedResult(time_steps(steps, device, timing_profile(device)))

    @cached_property
    def steps(self) -> CycleSteps:
        """The way from its cycles to the image's."""
        return cycle_steps(self.request, self.bound, self.program.cycles)

    @property
    def timing(self) -> ImageTiming:
        """The image on its hardware."""
        return self.steps.timing

    @cached_property
    def banks(self) -> tuple[BankMap, ...]:
        """Where buffers lie, and who meets there."""
        return bank_maps(self.timing)

    @cached_property
    def compressed(self) -> tuple[CompressedRead, ...]:
        """What the WDM decompresses."""
        return compressed_reads(self.timing.instances)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        steps = self.steps
        return {
            "uarch_hash": self.bound.image.machine.uarch_hash,
            "cycles": {
                "program": steps.program,
                "ideal": steps.ideal,
                "image": steps.image,
                "ratio": steps.image / steps.program if steps.program else None,
            },
            "causes": [
                {
                    "cause": c.cause, "title": c.title, "because": c.meaning, "added": c.added,
                    "cycles": c.cycles,
                }
                for c in steps.causes
            ],
            "stalls": self.timing.stall_totals,
            "memories": [_memory_json(one) for one in self.banks],
            "compressed": [_compressed_json(one, self._names) for one in self.compressed],
        }  # fmt: skip

    @cached_property
    def _names(self) -> dict[int, str]:
        return {origin.position: origin.name for origin in self.bound.image.origins}


def _memory_json(one: BankMap) -> dict[str, Any]:
    return {
        **one.figures,
        "buffers": [_buffer_json(buffer) for buffer in one.buffers],
        "banks": [
            {
                "first": bank.first, "last": bank.last, "bytes": bank.bytes,
                "buffers": bank.buffers, "uses": bank.uses, "busy": bank.busy,
                "conflicts": bank.conflicts, "lost": bank.lost,
            }
            for bank in one.banks
        ],
    }  # fmt: skip


def _buffer_json(buffer: PlacedBuffer) -> dict[str, Any]:
    return {
        "buffer": buffer.buffer, "address": buffer.address, "bytes": buffer.bytes,
        "first": buffer.first, "last": buffer.last, "banks": buffer.banks[2],
        "first_bank": buffer.banks[0], "last_bank": buffer.banks[1],
    }  # fmt: skip


def _compressed_json(one: CompressedRead, names: dict[int, str]) -> dict[str, Any]:
    return {
        "task": names.get(one.position, ""), "buffer": one.buffer, "mode": one.mode,
        "elem": one.elem, "times": one.times, "bytes": one.bytes,
        "compressed_bytes": one.compressed_bytes,
    }  # fmt: skip
