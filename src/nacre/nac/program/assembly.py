"""Programs put together: ids are given at the end, the same for the same program each time.

Operations that are no standard ones are numbered in the order of their names, signatures in that of
their text, constants in that of their kind and bytes; constant 1 is null. Parameters are numbered
as they come, from 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.builder import dtype_name
from nacre.core.values import Array
from nacre.nac.format.packing import limit_error, name_place_of_refusal
from nacre.nac.format.values import (
    Constant,
    ConstantValue,
    Data,
    Header,
    Instruction,
    NacFile,
    NameEntry,
    Plan,
    Resource,
    Tensor,
    Tick,
    constant,
)
from nacre.nac.program.binding import Ref
from nacre.nac.spec.constants import NULL
from nacre.nac.spec.elements import DTYPE_CODES
from nacre.nac.spec.header import CURRENT, SECTIONS, Version
from nacre.nac.spec.instructions import (
    BRANCH,
    CONSTANT_CODES,
    CONTROL_FLOW,
    CONVERGENCE,
    FINAL,
    INPUT,
    LIFTED,
    MOST_ARGUMENTS,
    MOST_DISTANCE,
    MOST_ID,
    MOST_INSTRUCTIONS,
    MOST_OPERATION,
    MOST_SIGNATURES,
    OUTPUT,
    PARAMETER,
    STATE,
    USER,
)
from nacre.nac.spec.operations import STANDARD_NAMES

Argument = Ref | ConstantValue
_CODES = {bool: "b", int: "i", float: "f", str: "s", tuple: "S", type(None): "c", Ref: "T"}
_NULL_ID = 1
_Key: TypeAlias = tuple[int, bytes]  # a constant as it is stored: its tag and its bytes
_NULL: _Key = (NULL, b"")


@dataclass(frozen=True, slots=True)
class _Call:
    """A regular instruction before ids are given."""

    name: str
    codes: str
    arguments: tuple[Ref | _Key, ...]


@dataclass(frozen=True, slots=True)
class _LiftedConstant:
    """A lifted constant before ids are given."""

    value: _Key


@dataclass
class Assembler:
    """Collects instructions; each call says the index of the one that it has added."""

    version: Version = CURRENT
    _steps: list[Instruction | _Call | _LiftedConstant] = field(default_factory=list)
    _parameters: list[NameEntry] = field(default_factory=list)
    _inputs: list[NameEntry] = field(default_factory=list)
    _tensors: list[Tensor] = field(default_factory=list)
    # Names of parameters by the instruction that loads them, if DATA has another name for their id.
    load_names: dict[int, str] = field(default_factory=dict)
    # Loads of parameters far from the first, by id and name.
    _latest: dict[tuple[int, str], Ref] = field(default_factory=dict)
    # Lists that were given, which stay alive by that, as they are stored: many calls may share one.
    _lists: dict[int, tuple[ConstantValue, _Key]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many instructions there are so far."""
        return len(self._steps)

    def _add(self, step: Instruction | _Call | _LiftedConstant) -> Ref:
        self._steps.append(step)
        return Ref(len(self._steps) - 1)

    def input(self, name: str) -> Ref:
        """A user input."""
        made = self._add(Instruction(INPUT, USER))
        self._inputs.append(NameEntry(made.index, name))
        return made

    def weight(self, name: str, weight: Array | Tensor) -> int:
        """The id of a new parameter; a tensor given as such gets this id."""
        id_ = len(self._parameters) + 1
        if id_ > MOST_ID:
            raise limit_error("parameter id", f"parameter {id_:,}, at most {MOST_ID:,}")
        with name_place_of_refusal(lambda: f"weight {backquote(name)}"):
            tensor = tensor_of(id_, weight)
        self._parameters.append(NameEntry(id_, name))
        self._tensors.append(tensor)
        return id_

    def parameter(self, id_: int, name: str = "") -> Ref:
        """Load a parameter; it has a name of its own where another one's tensor is equal to its."""
        made = self._add(Instruction(INPUT, PARAMETER, (1, id_)))
        if name and name != self._parameters[id_ - 1].text:
            self.load_names[made.index] = name
        return made

    def state(self, id_: int, name: str = "") -> Ref:
        """Load a state."""
        made = self._add(Instruction(INPUT, STATE, (1, id_)))
        if name:
            self._inputs.append(NameEntry(made.index, name))
        return made

    def lift_constant(self, value: ConstantValue, name: str = "") -> Ref:
        """A constant that an input of that name may replace."""
        made = self._add(_LiftedConstant(self._stored_key(value)))
        if name:
            self._inputs.append(NameEntry(made.index, name))
        return made

    def call(self, name: str, *arguments: Argument, codes: str | None = None) -> Ref:
        """An operation by its name in CMAP, or of a standard one, with a code for each argument."""
        given = codes if codes is not None else "".join(_CODES[type(a)] for a in arguments)
        with name_place_of_refusal(
            lambda: f"instruction {len(self._steps)}, {backquote(name, 80)}"
        ):
            # A constant that does not fit is found where it stands.
            stored = [a if isinstance(a, Ref) else self._stored_key(a) for a in arguments]
            if len(given) > MOST_ARGUMENTS:
                raise limit_error("argument", f"{len(given):,} arguments, at most {MOST_ARGUMENTS}")
            first = self._first_in_reach(len(arguments))
            reached = tuple(
                self._reload_if_far(a, first) if isinstance(a, Ref) else a for a in stored
            )
        return self._add(_Call(name, given, reached))

    def _stored_key(self, value: ConstantValue) -> _Key:
        if not isinstance(value, tuple):
            return _key(value)
        if id(value) not in self._lists:
            self._lists[id(value)] = value, _key(value)
        return self._lists[id(value)][1]

    def _first_in_reach(self, operands: int) -> int:
        """The first instruction that the next one with so many operands surely reaches."""
        # What is loaded for one of them moves the instruction away from the others.
        return len(self._steps) + operands - MOST_DISTANCE

    def _reload_if_far(self, value: Ref, first: int) -> Ref:
        """An operand that is not too far back: a weight is loaded again."""
        if value.index >= first:
            return value
        step = self._steps[value.index]
        if isinstance(step, Instruction) and (step.op, step.variant) == (
            INPUT,
            PARAMETER,
        ):
            key = step.c[1], self.load_names.get(value.index, "")
            near = self._latest.get(key)
            if near is None or near.index < first:
                near = self._latest[key] = self.parameter(*key)
            return near
        distance = len(self._steps) - value.index
        if distance > MOST_DISTANCE:
            message = f"it uses what was made {distance:,} instructions before"
            raise limit_error("operand offset", f"{message}, at most {MOST_DISTANCE:,}")
        return value

    def output(self, *values: Ref) -> None:
        """The end of the program."""
        self._add(self._output(FINAL, values))

    def end_branch(self, *values: Ref) -> None:
        """The end of a branch."""
        self._add(self._output(BRANCH, values))

    def _output(self, variant: int, given: Sequence[Ref]) -> Instruction:
        first = self._first_in_reach(len(given))
        values = [self._reload_if_far(value, first) for value in given]
        here = len(self._steps)
        zeros = (0,) * len(values)
        return Instruction(OUTPUT, variant, (len(values), *zeros), _offsets(values, here))

    def branch(self, predicate: Ref, true_length: int, false_length: int) -> Ref:
        """A choice between two branches of so many instructions each, which follow."""
        offset = predicate.index - len(self._steps)
        return self._add(Instruction(CONTROL_FLOW, 0, (2, true_length, false_length), (offset,)))

    def begin_branches(self, predicate: Ref) -> Ref:
        """A choice between two branches that follow; how long they are is said at their end."""
        predicate = self._reload_if_far(predicate, self._first_in_reach(1))
        return self.branch(predicate, 0, 0)

    def end_branches(self, choice: Ref, true_length: int, false_length: int) -> None:
        """Say how many instructions each branch of a choice has."""
        made = self._steps[choice.index]
        assert isinstance(made, Instruction)
        for length in (true_length, false_length):
            if length > MOST_DISTANCE:
                message = f"a branch of {length:,} instructions, at most {MOST_DISTANCE:,}"
                raise limit_error("branch", message)
        lengths = (2, true_length, false_length)
        self._steps[choice.index] = Instruction(CONTROL_FLOW, 0, lengths, made.d)

    @contextmanager
    def inside_branch(self) -> Iterator[None]:
        """What is loaded again in a branch is not there behind it."""
        latest = dict(self._latest)
        yield
        self._latest = latest

    def converge(self, value: Ref, threshold: int, lengths: Sequence[int]) -> Ref:
        """A merge of branches of so many instructions each, which follow."""
        starts = [1 + sum(lengths[:place]) for place in range(len(lengths))]
        d = (1 + sum(lengths), len(lengths), *starts)
        offset = value.index - len(self._steps)
        return self._add(Instruction(CONVERGENCE, threshold, (1, offset), d))

    def file(
        self,
        *,
        schedule: Sequence[Tick] = (),
        resources: Sequence[Resource] = (),
        quant: int = 0,
        d_model: int = 0,
        manifest: bytes = b"",
        plan: Plan | None = None,
    ) -> NacFile:
        """The file of the program; InputError where it has more of something than fits."""
        if len(self._steps) > MOST_INSTRUCTIONS:
            message = f"{len(self._steps):,} instructions, at most {MOST_INSTRUCTIONS:,}"
            raise limit_error("instruction", message)
        ids = _Ids.of(self._steps, self.version)
        instructions = tuple(ids.encode(step, at) for at, step in enumerate(self._steps))
        sections = {
            "MMAP": tuple(schedule), "OPS ": instructions, "CMAP": ids.table("operations"),
            "CNST": ids.constant_table(), "PERM": ids.table("signatures"),
            "DATA": Data(tuple(self._parameters), tuple(self._inputs), tuple(self._tensors)),
            "PROC": manifest, "RSRC": tuple(resources), "ORCH": plan or Plan(),
        }  # fmt: skip
        kept = [tag for tag, row in SECTIONS.items() if row.is_always_written or sections.get(tag)]
        users = sum(isinstance(s, Instruction) and (s.op, s.variant) == (INPUT, USER)
                    for s in self._steps)  # fmt: skip
        last = instructions[-1] if instructions else Instruction(OUTPUT, FINAL, (0,))
        header = Header(
            self.version.byte,
            quant=quant,
            inputs=users,
            outputs=len(last.d),
            d_model=d_model,
            padding=bytes(self.version.padding),
        )
        return NacFile(header, {tag: sections[tag] for tag in kept})


def _offsets(values: Sequence[Ref], here: int) -> tuple[int, ...]:
    return tuple(value.index - here for value in values)


def tensor_of(id_: int, weight: Array | Tensor) -> Tensor:
    """A weight as it is stored when nothing is quantised."""
    if isinstance(weight, Tensor):
        return Tensor(id_, *(getattr(weight, name) for name in Tensor.__struct_fields__[1:]))
    array = np.ascontiguousarray(weight)
    name = dtype_name(array.dtype)
    if name not in DTYPE_CODES:
        raise limit_error(
            "element type", f"its elements are {name}, which the format does not have"
        )
    dtype = GRAPH_TYPES[name].dtype
    stored = array.astype(dtype.newbyteorder("<")) if dtype.kind in "iuf" else array
    return Tensor(id_, DTYPE_CODES[name], tuple(weight.shape), stored.tobytes())


@dataclass(frozen=True)
class _Ids:
    """The ids of everything that a program uses."""

    operations: Mapping[str, int]
    signatures: Mapping[str, int]
    constants: Mapping[_Key, int]
    version: Version

    @staticmethod
    def of(steps: Sequence[Instruction | _Call | _LiftedConstant], version: Version) -> _Ids:
        calls = [step for step in steps if isinstance(step, _Call)]
        names = sorted({c.name for c in calls if not _is_standard(c.name, version)})
        signatures = sorted({c.codes for c in calls if c.codes})
        lifted = [step.value for step in steps if isinstance(step, _LiftedConstant)]
        values = [a for c in calls for a in c.arguments if not isinstance(a, Ref)]
        used = {*values, *lifted}
        keys = sorted(used - {_NULL})
        null = {_NULL: _NULL_ID} if _NULL in used else {}
        ids = _Ids(
            {name: version.first_custom_id + at for at, name in enumerate(names)},
            {text: 1 + at for at, text in enumerate(signatures)},
            {**null, **{key: _NULL_ID + 1 + at for at, key in enumerate(keys)}},
            version,
        )
        for table, most, what in (
            (ids.operations, MOST_OPERATION, "operation"),
            (ids.signatures, MOST_SIGNATURES, "signature"),
            (ids.constants, MOST_ID, "constant id"),
        ):
            last = max(table.values(), default=0)
            if last > most:
                raise limit_error(what, f"the last {what} would be {last:,}, at most {most:,}")
        return ids

    def table(self, table: str) -> tuple[NameEntry, ...]:
        """CMAP or PERM."""
        found: Mapping[str, int] = getattr(self, table)
        return tuple(NameEntry(id_, text) for text, id_ in found.items())

    def constant_table(self) -> tuple[Constant, ...]:
        """CNST."""
        return tuple(Constant(id_, tag, raw) for (tag, raw), id_ in self.constants.items())

    def encode(self, step: Instruction | _Call | _LiftedConstant, at: int) -> Instruction:
        """An instruction with its ids."""
        if isinstance(step, Instruction):
            return step
        if isinstance(step, _LiftedConstant):
            return Instruction(INPUT, LIFTED, (1, self.constants[step.value]))
        op = (
            STANDARD_NAMES[step.name].id
            if _is_standard(step.name, self.version)
            else self.operations[step.name]
        )
        ids = [self.constants[a] for a in step.arguments if not isinstance(a, Ref)]
        d = tuple(a.index - at if isinstance(a, Ref) else 0 for a in step.arguments)
        # Where a signature has constants, C is there even if every one is computed.
        has_field = any(code in CONSTANT_CODES for code in step.codes)
        return Instruction(
            op,
            self.signatures.get(step.codes, 0),
            (len(ids), *ids) if has_field else (),
            d,
        )


def _is_standard(name: str, version: Version) -> bool:
    row = STANDARD_NAMES.get(name)
    return row is not None and row.since <= version.byte


def _key(value: ConstantValue) -> _Key:
    try:
        made = constant(0, value)
    except struct.error as error:  # an integer of more bits than lists or numbers have
        raise limit_error("list", f"the constant {value} does not fit: {error}") from None
    return made.tag, made.payload
