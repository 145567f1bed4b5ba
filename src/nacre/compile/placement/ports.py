"""The buffers in DDR of a model's inputs and outputs, and the names of all buffers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nacre.compile.partition.stage import Partition
from nacre.compile.program import Buffer

WEIGHTS = "weights"
L2, SPILL = "tensors_L2", "tensors_DDR"
COMPRESSED = "compressed_L2"  # weights that wait to be decompressed


@dataclass(frozen=True, eq=False)
class Ports:
    """What a host fills before a run and reads after it."""

    tensors: Mapping[int, str]  # the buffer of each tensor that is an input or an output
    inputs: Mapping[str, str]  # buffers by the name of the input
    outputs: tuple[str, ...]  # buffers in order
    buffers: tuple[Buffer, ...]


def ports_of(partition: Partition) -> Ports:
    """A buffer for each input, and for each tensor that is an output and no input."""
    module, names = partition.legal.module, Names()
    tensors = {op.value_id: names.new(op.attributes["name"]) for op in module.inputs}
    inputs = {str(op.attributes["name"]): tensors[op.value_id] for op in module.inputs}
    buffers = [
        Buffer(
            tensors[op.value_id], "DDR", partition.tensors[op.value_id].bytes, f"input {op.type}"
        )
        for op in module.inputs
    ]
    outputs: list[str] = []
    for index, view in enumerate(partition.outputs):
        if view.tensor not in tensors:
            tensors[view.tensor] = names.new(f"output{index}")
            size = partition.tensors[view.tensor].bytes
            what = f"output {module.by_id[module.outputs[index]].type}"
            buffers.append(Buffer(tensors[view.tensor], "DDR", size, what))
        outputs.append(tensors[view.tensor])
    return Ports(tensors, inputs, tuple(outputs), tuple(buffers))


class Names:
    """Names for buffers: those of the model as far as NEM can write them, each once."""

    def __init__(self) -> None:
        self._taken = {WEIGHTS, L2, SPILL}

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
