"""How fast all units of a device are together, and operations as their primitives see them."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from nacre.compile.estimate.bounds_traffic import MOVES
from nacre.core.constants import kernel_type
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Call
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.costs import macs_per_two_cycles
from nacre.nem.run.timing.profile import TimingProfile

CONVERSIONS = frozenset({"Quantize", "Dequantize", "Cast"})
_PASSES = {"Softmax": 3, "LogSoftmax": 3}  # over the result, where the graph's own count differs


class Rates:
    """What all units of a kind do in a cycle."""

    def __init__(self, device: Device, profile: TimingProfile) -> None:
        engines = device.num_engines
        cstls = engines * max(1, device.count("CSTL"))
        self._nmus = engines * max(1, device.count("NMU"))
        self._profile = profile
        self.elements = cstls * profile.rate("CSTL", "eltwise_throughput")
        self.help = engines * device.count("VPU") * profile.rate("VPU", "throughput")
        self.stored = cstls * profile.rate("CSTL", "store_bandwidth")
        ports = max(1, device.count("sDMA")) * profile.rate("sDMA", "bandwidth")
        is_shared = profile.get("DDR", "bandwidth") is not None
        self.ddr = min(ports, profile.rate("DDR", "bandwidth")) if is_shared else ports

    def latency(self, unit: str) -> int:
        """The least latency of a task that a unit, or a VPU instead of it, takes."""
        units = (unit,) if unit not in ("NMU", "CSTL") or not self.help else (unit, "VPU")
        return min(self._profile.at(one, "latency") for one in units)

    def macs(self, call: Call) -> Fraction:
        """MACs a cycle for the types of a product."""
        return Fraction(self._nmus * macs_per_two_cycles(call, self._profile), 2)


def call_of(module: Module, op: CoreOperation) -> tuple[str, Call]:
    """An operation as its primitive sees it."""
    spec = OPS[op.opcode]
    inputs = tuple(kernel_type(_stored_type(module, operand)) for operand in op.operands)
    call = Call(inputs, (kernel_type(op.type),), spec.with_defaults(op.attributes))
    return spec.primitive or op.opcode, call


def _stored_type(module: Module, value: int) -> TensorType:
    """The type of an operand; of bytes that are widened, and moved by a zero point, theirs."""
    op = module.by_id[value]
    inner = op
    if op.opcode == "BinOp" and op.attributes["op"] == "Sub":
        inner = module.by_id[op.operands[0]]
    if inner.opcode != "Cast" or op.type.dtype != "i32":
        return op.type
    before = module.by_id[inner.operands[0]].type
    return TensorType(before.dtype, op.type.shape) if before.dtype in ("i8", "u8") else op.type


def element_passes(op: CoreOperation, primitive: str, call: Call) -> int:
    """How often a CSTL goes over an element, summed over all of them."""
    if op.opcode in MOVES or op.opcode in CONVERSIONS:
        return 0
    if op.opcode in _PASSES:
        return _PASSES[op.opcode] * prod(op.type.shape)
    work = PRIMITIVES[primitive].work(call)
    return 0 if work.macs else work.elements
