"""What a file holds, as values. Bytes of weights and resources are views of the file."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec import Struct

from nacre.nac.spec.constants import BOOL, FLOAT, FLOATS, INT, INTS, NULL, STRING
from nacre.nac.spec.header import CURRENT, VERSIONS, Version
from nacre.nac.spec.instructions import FIRST_REGULAR

Bytes = bytes | memoryview
ConstantValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | None


class Header(Struct, frozen=True):
    """The header without its offsets, which follow from the sections."""

    version: int = CURRENT.byte
    is_internal: bool = True  # weights lie in this file
    has_training: bool = False
    quant: int = 0
    inputs: int = 0
    outputs: int = 0
    d_model: int = 0
    reserved: int = 0
    padding: bytes = bytes(CURRENT.padding)

    @property
    def rules(self) -> Version:
        """What the version says."""
        return VERSIONS[self.version]


class Instruction(Struct, frozen=True, gc=False):
    """One ABCD instruction; C has its length before it, as in the file."""

    op: int
    variant: int
    c: tuple[int, ...] = ()
    d: tuple[int, ...] = ()

    @property
    def is_system(self) -> bool:
        """Whether it is an input, an output or a branch."""
        return self.op < FIRST_REGULAR


class Command(Struct, frozen=True, gc=False):
    """A command of the memory coprocessor."""

    action: int
    target: int


class Tick(Struct, frozen=True, gc=False):
    """What happens to memory at an instruction."""

    tick: int
    commands: tuple[Command, ...]


class NameEntry(Struct, frozen=True, gc=False):
    """An id with a text: an operation, a signature, a parameter, an input."""

    id: int
    text: str


_SCALARS = {INT: "<q", FLOAT: "<d"}
_LISTS = {INTS: "i", FLOATS: "f"}


class Constant(Struct, frozen=True, gc=False):
    """A constant; equal to another when its bytes are, so that 0.0 is not -0.0."""

    id: int
    tag: int
    payload: bytes = b""
    ignored: int = 0  # the length of a null

    @property
    def value(self) -> ConstantValue:
        """The value; lists are tuples."""
        if self.tag == BOOL:
            return self.payload != b"\0"
        if self.tag in _SCALARS:
            number: int | float = struct.unpack(_SCALARS[self.tag], self.payload)[0]
            return number
        if self.tag == STRING:
            return self.payload.decode("utf-8")
        if self.tag in _LISTS:
            return struct.unpack(f"<{len(self.payload) // 4}{_LISTS[self.tag]}", self.payload)
        return None


def constant(id_: int, value: ConstantValue) -> Constant:
    """A constant of a value; InputError comes when it is written, should it be too long."""
    if value is None:
        return Constant(id_, NULL)
    if isinstance(value, bool):
        return Constant(id_, BOOL, bytes([value]))
    if isinstance(value, int):
        return Constant(id_, INT, struct.pack("<q", value))
    if isinstance(value, float):
        return Constant(id_, FLOAT, struct.pack("<d", value))
    if isinstance(value, str):
        return Constant(id_, STRING, value.encode())
    if all(isinstance(v, int) for v in value):
        return Constant(id_, INTS, struct.pack(f"<{len(value)}i", *value))
    return Constant(id_, FLOATS, struct.pack(f"<{len(value)}f", *value))


class Tensor(Struct, frozen=True):
    """A weight with what its metadata says."""

    id: int
    dtype: int
    shape: tuple[int, ...]  # as stored
    data: Bytes
    quant: int = 0
    scales: Bytes = b""  # f32; of INT4_GROUP f16, behind each a minimum
    axis: int = 0  # of INT8_CHANNEL
    block: int = 0  # of BLOCK_FP8 and INT4_GROUP
    true_shape: tuple[int, ...] = ()  # of these two


class Data(Struct, frozen=True):
    """The three blocks of DATA; without internal weights there is no third."""

    parameters: tuple[NameEntry, ...] = ()
    inputs: tuple[NameEntry, ...] = ()
    tensors: tuple[Tensor, ...] = ()


class Plan(Struct, frozen=True):
    """The bytecode of an execution plan and its constants."""

    bytecode: bytes = b""
    constants: tuple[Constant, ...] = ()


class Resource(Struct, frozen=True):
    """An embedded file."""

    name: str
    data: Bytes


@dataclass(frozen=True)
class NacFile:
    """A file: its header, its sections in their order, and bytes that belong to none."""

    header: Header
    sections: Mapping[str, Any]  # by tag, in the order in which they lie
    gaps: Mapping[str, Bytes] = field(default_factory=dict)  # before a section; "" behind all
    record_offsets: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )  # offsets of records by section, where the file was read

    @property
    def schedule(self) -> tuple[Tick, ...]:
        """MMAP."""
        found: tuple[Tick, ...] = self.sections.get("MMAP", ())
        return found

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """OPS."""
        found: tuple[Instruction, ...] = self.sections.get("OPS ", ())
        return found

    @property
    def operations(self) -> tuple[NameEntry, ...]:
        """CMAP."""
        found: tuple[NameEntry, ...] = self.sections.get("CMAP", ())
        return found

    @property
    def constants(self) -> tuple[Constant, ...]:
        """CNST."""
        found: tuple[Constant, ...] = self.sections.get("CNST", ())
        return found

    @property
    def signatures(self) -> tuple[NameEntry, ...]:
        """PERM."""
        found: tuple[NameEntry, ...] = self.sections.get("PERM", ())
        return found

    @property
    def data(self) -> Data:
        """DATA."""
        found: Data = self.sections.get("DATA", Data())
        return found

    @property
    def plan(self) -> Plan:
        """ORCH."""
        found: Plan = self.sections.get("ORCH", Plan())
        return found

    @property
    def resources(self) -> tuple[Resource, ...]:
        """RSRC."""
        found: tuple[Resource, ...] = self.sections.get("RSRC", ())
        return found

    @cached_property
    def signature_of(self) -> dict[int, str]:
        """Signatures by id."""
        return {named.id: named.text for named in self.signatures}

    @cached_property
    def name_of(self) -> dict[int, str]:
        """Names of operations by id, the standard ones included."""
        from nacre.nac.spec.operations import standard_ids

        standard = {row.id: row.name for row in standard_ids(self.header.version).values()}
        return {**{named.id: named.text for named in self.operations}, **standard}

    @cached_property
    def constant_of(self) -> dict[int, Constant]:
        """Constants by id."""
        return {constant.id: constant for constant in self.constants}

    @cached_property
    def user_counts(self) -> Counter[int]:
        """How many instructions use each result."""
        found: Counter[int] = Counter()
        for index, instruction in enumerate(self.instructions):
            found.update({index + offset for offset in instruction.d if offset < 0})
        return found

    def resource(self, name: str) -> Bytes | None:
        """An embedded file by name."""
        return next((r.data for r in self.resources if r.name == name), None)
