"""What a template is written for: a device, how it is named, and how much its memories hold."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.nem.model.builtins import builtin_file, builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_L1_BYTES, DEFAULT_L2_BYTES


@dataclass(frozen=True, slots=True)
class Setting:
    """The name of the new program, and its device."""

    name: str
    device: str  # as the program names it: a built-in one, or a file
    memory_bytes: int  # that a program may count on, in L1 and in L2
    engines: int

    @property
    def directive(self) -> str:
        """The lines that name the device."""
        if self.device in builtin_names():
            return f'include "{builtin_file(self.device)}"\n\ndevice {self.device}'
        quoted = self.device.replace("\\", "\\\\").replace('"', '\\"')
        return f'device "{quoted}"'

    @property
    def l1(self) -> str:
        """The L1 of the engine that does the work."""
        return "L1" if self.engines == 1 else "L1[0]"

    @property
    def engine_remark(self) -> str:
        """What is said about the engines that the program leaves idle."""
        if self.engines == 1:
            return ""
        return (
            f"#\n# All of it runs on engine 0 of {self.engines}. "
            "The others need buffers in their L1, and their tiles in\n"
            "# the same loop body, where nothing orders them.\n"
        )


def setting_for(name: str, device_name: str, device: Device) -> Setting:
    """A setting; a device without figures counts as the default one, and the check refuses it."""
    topology = device.topology
    l1 = (topology and topology.l1_size_bytes) or DEFAULT_L1_BYTES
    l2 = (topology and topology.l2_size_bytes) or DEFAULT_L2_BYTES
    return Setting(name, device_name, min(l1, l2), device.num_engines)


def power_of_two(most: int) -> int:
    """The greatest power of two that is not above a number; 1 where there is none."""
    return 1 << (max(1, most).bit_length() - 1)


def near_square(elements: int) -> tuple[int, int]:
    """Two powers of two with a product that is one, the first the greater where they differ."""
    exponent = elements.bit_length() - 1
    return 1 << (exponent - exponent // 2), 1 << (exponent // 2)
