"""Stores that quantise on their way to L2: the last step of a tile that they take over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nacre.compile.options import Options
from nacre.compile.partition.items import Quant
from nacre.compile.partition.layers import Access, Layer, Size, Step, tile_shape
from nacre.compile.program import Region
from nacre.nem.model.devices import Device

_ONE = Quant((1.0,), (0,))  # a cast counts in steps from zero on


@dataclass(frozen=True)
class QuantisingStore:
    """A step whose result only leaves for L2, and how its operand becomes it."""

    step: Step
    quant: Quant
    access: Access  # of the result

    def typed_region(self, region: Region, size: Size, layouts: Mapping[int, str]) -> Region:
        """Where the result lies, with its type: a store quantises by what its destination says."""
        shape = tile_shape(self.access.axes, size)
        layout = "" if region.strides else layouts[max(1, len(shape))]
        return replace(region, elem=self.access.elem, shape=shape, layout=layout, quant=self.quant)


def quantising_store(layer: Layer, options: Options) -> QuantisingStore | None:
    """The step of a layer that a store can do, where the device has such a store.

    It is the last of its tile, so that nothing takes the place of what it reads, and its result is
    read by nobody in the tile.
    """
    if not layer.steps or len(layer.steps[-1].inputs) != 1:
        return None
    step = layer.steps[-1]
    source, target = layer.locals[step.inputs[0].local], layer.locals[step.output.local]
    leaving = [result.access for result in layer.results if result.local == step.output.local]
    is_plain = source.axes == target.axes and not (step.inputs[0].axes or step.output.axes)
    if step.nem not in ("cast", "quantize") or len(leaving) != 1 or not is_plain:
        return None
    if not _has_store(options.device, source.elem, target.elem) or leaving[0].axes != target.axes:
        return None
    quant = _ONE if step.nem == "cast" else step.output.quant
    return None if quant is None else QuantisingStore(step, quant, leaving[0])


def _has_store(device: Device, source: str, target: str) -> bool:
    types = {"src": source, "dst": target}
    return any(i.operands == types for i in device.effective_by_opcode.get("store", ()))
