"""Which opcodes a device has in which element types."""

from __future__ import annotations

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.devices import Device
from nacre.nem.spec.opcodes import OPCODES

_MOVES = ("gather", "transpose")


def supports(device: Device, opcode: str, elem: str, form: str) -> bool:
    """Whether an opcode has a variant for an element type in a form."""
    if opcode not in OPCODES or not OPCODES[opcode].families:
        return True  # such an opcode takes every type
    ending = (
        ".with_bias" if "with a bias" in form else ".no_bias" if "without a bias" in form else ""
    )
    variants = (instance.id for instance in device.effective_by_opcode.get(opcode, ()))
    return any(_accepts_type(variant, elem) and variant.endswith(ending) for variant in variants)


def _accepts_type(variant: str, elem: str) -> bool:
    """Whether a variant names an element type; one that names none takes every type but of i4."""
    _, mark, named = variant.partition("<")
    if not mark:
        return ".int4" not in variant
    return elem in named.partition(">")[0].split(", ")


def lacking(device: Device, elem: str) -> frozenset[str]:
    """The opcodes that a device does not have for an element type, in any form."""
    return frozenset(name for name in OPCODES if not supports(device, name, elem, ""))


def wide_products(device: Device) -> frozenset[str]:
    """The operations of Core IR that the device has with integers of 16 bits as the result."""
    opcodes = {"Linear": "gemm", "Conv": "conv2d"}
    return frozenset(
        name for name, opcode in opcodes.items() if supports(device, opcode, "i16", "with a bias")
    )


def carriers(device: Device) -> dict[tuple[str, str], str]:
    """In which element type a device moves another one of the same size, by opcode and type.

    What only moves elements keeps their bytes, so a type that it has does for one that it has not.
    """
    wider = {}
    for opcode in _MOVES:
        known = [e for e in ELEMENT_TYPES.values() if supports(device, opcode, e.name, "")]
        for elem in ELEMENT_TYPES.values():
            alike = [other.name for other in known if other.bits == elem.bits]
            if alike:
                wider[opcode, elem.name] = elem.name if elem.name in alike else alike[0]
    return wider


def repeatable_types(device: Device) -> frozenset[str]:
    """The element types that a task can repeat: a device without needs them copied in full."""
    return frozenset(elem for elem in ELEMENT_TYPES if supports(device, "pad", elem, "`pad`"))
