"""Fifth stage: where tensors and weights lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import whole_file
from nacre.compile.options import Options
from nacre.compile.partition import Layer, Partition
from nacre.compile.program import Buffer
from nacre.compile.rules import CMP05, CMP06
from nacre.compile.tile import Tiling, aligned, l1_bytes
from nacre.core.evaluation_plan import place as place_of
from nacre.core.module import Module, TensorType

WEIGHTS = "weights"
L1, L2, SPILL = "tiles_L1", "tensors_L2", "tensors_DDR"


@dataclass(frozen=True)
class Location:
    """Where a tensor lies."""

    buffer: str
    level: str
    offset: int


@dataclass(frozen=True, eq=False)
class Placement:
    """Every tensor's place, every block of weights, and the buffers that hold them."""

    tensors: Mapping[int, Location]
    blocks: Mapping[tuple[str, int], int]  # layer, block: where it begins in the weights
    weights: bytes
    buffers: tuple[Buffer, ...]
    inputs: Mapping[str, str]  # buffers by the name of the input
    outputs: tuple[str, ...]  # buffers in order
    l2_peak: int

    def __str__(self) -> str:
        lines = [f"{b.name}: {b.level}, {b.size} bytes" for b in self.buffers]
        lines += [f"%{v}: {p.buffer}@{p.offset}" for v, p in self.tensors.items()]
        return "\n".join(lines) + "\n"


def place(partition: Partition, tilings: tuple[Tiling, ...], options: Options) -> Placement:
    """Inputs, outputs and weights in DDR; tensors between layers in L2, in DDR where it is full."""
    module, layers = partition.legal.module, partition.layers
    names = _Names()
    given = {op.value_id: names.new(op.attributes["name"]) for op in module.inputs}
    tensors = {value: Location(name, "DDR", 0) for value, name in given.items()}
    buffers = [
        Buffer(given[op.value_id], "DDR", _bytes(op.type), f"input {op.type}")
        for op in module.inputs
    ]
    outputs: list[str] = []
    for index, value in enumerate(module.outputs):
        tensor = _made(partition, value, index)
        if tensor not in tensors:
            tensors[tensor] = Location(names.new(f"output{index}"), "DDR", 0)
            type_ = module.by_id[tensor].type
            buffers.append(Buffer(tensors[tensor].buffer, "DDR", _bytes(type_), f"output {type_}"))
        outputs.append(tensors[tensor].buffer)
    peak, spilled = _between(partition, tensors, options)
    blocks, weights = _packed(layers, tilings)
    buffers += [Buffer(SPILL, "DDR", spilled, "tensors between layers")] if spilled else []
    buffers += [Buffer(WEIGHTS, "DDR", len(weights), "packed by tiles")] if weights else []
    buffers += [Buffer(L2, "L2", peak, "tensors between layers")] if peak else []
    most = max((l1_bytes(x.geometry, t) for x, t in zip(layers, tilings, strict=True)), default=0)
    level = "L1[0]" if options.device.num_engines > 1 else "L1"
    buffers += [Buffer(L1, level, most, "tiles of the layer that runs")]
    _require_ddr(buffers, module, options)
    inputs = {str(op.attributes["name"]): given[op.value_id] for op in module.inputs}
    return Placement(tensors, blocks, weights, tuple(buffers), inputs, tuple(outputs), peak)


def _made(partition: Partition, value: int, index: int) -> int:
    """The tensor of an output, which a layer must make."""
    module = partition.legal.module
    tensor = partition.tensors[value]
    if all(layer.result != tensor for layer in partition.layers):
        op = module.by_id[tensor]
        where = place_of(module, module.operations.index(op))
        what = f"output {index}" if index < partition.legal.outputs else "the next value of a state"
        message = f"{what} is `{op.opcode}` %{tensor}: nothing computes it"
        raise InputError([CMP06.at(where, message)])
    return tensor


class _Names:
    """Names for buffers: those of the model as far as NEM can write them, each once."""

    def __init__(self) -> None:
        self._taken = {WEIGHTS, L1, L2, SPILL}

    def new(self, wanted: object) -> str:
        """A name like the one wanted."""
        word = re.sub(r"\W", "_", str(wanted), flags=re.ASCII)[:40]
        base = f"{word if word[:1].isalpha() else 'x' + word}_DDR"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}{number}"
        self._taken.add(name)
        return name


def _bytes(type_: TensorType) -> int:
    return prod(type_.shape) * type_.element.bits // 8


def _between(
    partition: Partition, tensors: dict[int, Location], options: Options
) -> tuple[int, int]:
    """Places for tensors between layers: the peak of L2, and bytes of DDR for the rest."""
    module, peak, spilled = partition.legal.module, 0, 0
    lives = _lifetimes(partition.layers)
    taken: list[tuple[int, int, int, int]] = []  # offset, end, first layer, last layer
    wanted = [value for value in lives if value not in tensors]
    # Large ones first: they find a gap last.
    for value in sorted(wanted, key=lambda v: (-_bytes(module.by_id[v].type), v)):
        size = aligned(_bytes(module.by_id[value].type))
        first, last = lives[value]
        offset = 0
        for start, end, begun, over in sorted(taken):
            if begun > last or over < first:
                continue
            if offset + size <= start:
                break
            offset = max(offset, end)
        if offset + size > options.l2_bytes:
            tensors[value] = Location(SPILL, "DDR", spilled)
            spilled += size
            continue
        taken.append((offset, offset + size, first, last))
        tensors[value] = Location(L2, "L2", offset)
        peak = max(peak, offset + size)
    return peak, spilled


def _lifetimes(layers: tuple[Layer, ...]) -> dict[int, tuple[int, int]]:
    """The layer that makes a tensor, and the last one that reads it."""
    lives: dict[int, tuple[int, int]] = {}
    for index, layer in enumerate(layers):
        lives[layer.result] = (index, index)
        for source in layer.sources:
            if source in lives:
                lives[source] = (lives[source][0], index)
    return lives


def _packed(
    layers: tuple[Layer, ...], tilings: tuple[Tiling, ...]
) -> tuple[dict[tuple[str, int], int], bytes]:
    """Weights as the tiles use them: a block of columns after the other, its bias behind it."""
    blocks: dict[tuple[str, int], int] = {}
    packed = bytearray()
    for layer, tiling in zip(layers, tilings, strict=True):
        if layer.weights is None:
            continue
        for number, (first, count) in enumerate(tiling.column_blocks(layer.geometry)):
            blocks[layer.name, number] = len(packed)
            taken = layer.weights[..., first : first + count]
            packed += np.ascontiguousarray(taken).tobytes()
            if layer.bias is not None:
                packed += layer.bias[first : first + count].tobytes()
            packed += bytes(aligned(len(packed)) - len(packed))
    return blocks, bytes(packed)


def _require_ddr(buffers: list[Buffer], module: Module, options: Options) -> None:
    held = [b for b in buffers if b.level == "DDR"]
    total = sum(b.size for b in held)
    if total <= options.ddr_bytes:
        return
    largest = ", ".join(f"`{b.name}` {b.size}" for b in sorted(held, key=lambda b: -b.size)[:3])
    message = f"DDR has {options.ddr_bytes} bytes, the model needs {total}: {largest}"
    found: Diagnostic = CMP05.at(whole_file("<model>"), message)
    raise InputError([found])
