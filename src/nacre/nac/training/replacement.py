"""Other elements for parameters: those that shared a tensor get one each where they now differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from nacre.nac.format.packing import limit_error
from nacre.nac.format.values import Data, Instruction, NacFile, NameEntry, Resource, Tensor
from nacre.nac.program.interface import encode_record
from nacre.nac.program.parameters import PARAMETERS, ParameterNames, ParameterTable
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.save import move_weights
from nacre.nac.spec.instructions import MOST_ID

Weight = tuple[int, str]  # the id of a parameter, and what it is called


def with_tensors(model: NacModel, given: Mapping[Weight, Tensor]) -> NacModel:
    """A model with other weights, which lie in its file from now on."""
    file = model.file if model.file.header.is_internal else move_weights(model, True)
    made = _TensorReplacer(file, model.surroundings.parameters, given)
    for tensor in file.data.tensors:
        made.store(tensor)
    return model_of(made.build())


@dataclass
class _TensorReplacer:
    """Deals out ids to what is no longer equal."""

    file: NacFile
    names: ParameterNames
    given: Mapping[Weight, Tensor]
    _tensors: list[Tensor] = field(default_factory=list)
    _split: list[Tensor] = field(default_factory=list)  # under new ids
    _stored: dict[int, str] = field(default_factory=dict)  # names of new ids
    _ids: dict[Weight, int] = field(default_factory=dict)  # where a parameter lies now

    def __post_init__(self) -> None:
        self._last = max(self.names.stored, default=0)
        self._taken = set(self.names.stored.values())
        self._loads: dict[int, list[str]] = {}
        for instruction, id_ in self.names.loaded.items():
            self._loads.setdefault(id_, []).append(self.names.of_load(instruction))

    def store(self, tensor: Tensor) -> None:
        """Store what is loaded from one tensor, each different one once."""
        groups: dict[object, tuple[Tensor, list[str]]] = {}
        for name in self._in_order(tensor.id):
            stored = self.given.get((tensor.id, name), tensor)
            groups.setdefault(_elements(stored), (stored, []))[1].append(name)
        if not groups:
            self._tensors.append(tensor)
        for number, (stored, names) in enumerate(groups.values()):
            id_ = tensor.id if number == 0 else self._new_id(names[0])
            (self._tensors if number == 0 else self._split).append(replace(stored, id=id_))
            self._ids.update({(tensor.id, name): id_ for name in names})

    def _in_order(self, id_: int) -> Sequence[str]:
        """The parameters that are loaded from a tensor: that after which it is called first."""
        names = dict.fromkeys(self._loads.get(id_, ()))
        own = self.names.stored[id_]
        return [own, *(name for name in names if name != own)] if own in names else list(names)

    def _new_id(self, wanted: str) -> int:
        id_ = self._last = self._last + 1
        if id_ > MOST_ID:
            raise limit_error("parameter id", f"parameter {id_:,}, at most {MOST_ID:,}")
        name, count = wanted, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}.{count}"
        self._taken.add(name)
        self._stored[id_] = name
        return id_

    def build(self) -> NacFile:
        """The whole of it."""
        old = self.file.data
        new = tuple(NameEntry(id_, name) for id_, name in self._stored.items())
        data = Data((*old.parameters, *new), old.inputs, (*self._tensors, *self._split))
        instructions = tuple(self._instructions())
        sections = {**self.file.sections, "OPS ": instructions, "DATA": data}
        if self._stored:
            sections["RSRC"] = tuple(self._resources())
        return NacFile(self.file.header, sections, self.file.gaps)

    def _instructions(self) -> Iterator[Instruction]:
        for index, instruction in enumerate(self.file.instructions):
            id_ = self._id_of(index)
            yield instruction if id_ is None else replace(instruction, c=(instruction.c[0], id_))

    def _id_of(self, index: int) -> int | None:
        before = self.names.loaded.get(index)
        return None if before is None else self._ids.get((before, self.names.of_load(index)))

    def _resources(self) -> Iterator[Resource]:
        stored = {**self.names.stored, **self._stored}
        loads = {
            index: name
            for index, name in self.names.table.loads.items()
            if stored[self._id_of(index) or 0] != name
        }
        table = ParameterTable(loads, self.names.table.tied)
        yield from (r for r in self.file.resources if r.name != PARAMETERS)
        if table != ParameterTable():
            yield Resource(PARAMETERS, encode_record(table))


def _elements(tensor: Tensor) -> object:
    """What tells a tensor from others, whatever its id is."""
    kind = tensor.dtype, tensor.shape, tensor.quant, tensor.axis, tensor.block, tensor.true_shape
    return *kind, bytes(tensor.data), bytes(tensor.scales)
