"""What parameters are called where the table of names in DATA is not enough.

A parameter that has the elements of another one is stored once, under one id with one name. Each is
loaded by instructions of its own all the same, so that either can change later. What the others are
called is written as the resource `nacre.parameters.json`, which other readers pass over:

    {"loads": {"17": "h.0.ln_2.weight"}, "tied": {"wte.weight": ["lm_head.weight"]}}

`loads` names the parameter that an instruction loads if it is another than DATA says, `tied` has
further names of the same parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import msgspec

from nacre.base.excerpt import backquote
from nacre.nac.format.values import NacFile
from nacre.nac.spec.instructions import INPUT, PARAMETER

PARAMETERS = "nacre.parameters.json"
_MOST_PROBLEMS = 20  # a table that is about another file has one for every name


class ParameterTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The resource."""

    loads: dict[int, str] = {}  # by instruction
    tied: dict[str, tuple[str, ...]] = {}


@dataclass(frozen=True)
class ParameterNames:
    """Every name that a parameter of a file has."""

    stored: Mapping[int, str] = field(default_factory=dict)  # by id, as DATA has them
    loaded: Mapping[int, int] = field(default_factory=dict)  # ids by the instruction that loads it
    table: ParameterTable = field(default_factory=ParameterTable)

    def of_load(self, instruction: int) -> str:
        """The name of the parameter that an instruction loads."""
        return self.table.loads.get(instruction) or self.stored[self.loaded[instruction]]

    def with_ties(self, name: str) -> tuple[str, ...]:
        """A name of a parameter, and what else the same one is called."""
        return name, *self.table.tied.get(name, ())

    @cached_property
    def ids(self) -> dict[str, int]:
        """Where each parameter is stored, by each of its names."""
        ids = {name: id_ for id_, name in self.stored.items()}
        for instruction, name in self.table.loads.items():
            ids.setdefault(name, self.loaded[instruction])
        for name, others in self.table.tied.items():
            for other in others:
                ids.setdefault(other, ids[name])
        return ids

    @cached_property
    def by_id(self) -> dict[int, tuple[str, ...]]:
        """The names of what is stored under each id, that of DATA first."""
        found = {id_: {name: None} for id_, name in self.stored.items()}  # sets in order
        for name, id_ in self.ids.items():
            found[id_][name] = None
        return {id_: tuple(names) for id_, names in found.items()}


def parameter_names(
    file: NacFile, table: ParameterTable | None
) -> tuple[ParameterNames, list[str]]:
    """The names of a file's parameters, and what is wrong with what a table says of them."""
    stored = {named.id: named.text for named in file.data.parameters}
    loaded = dict(_loads(file, stored))
    if table is None:
        return ParameterNames(stored, loaded), []
    problems = list(islice(_problems(table, stored, loaded), _MOST_PROBLEMS))
    return ParameterNames(stored, loaded, ParameterTable() if problems else table), problems


def _loads(file: NacFile, stored: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    for index, instruction in enumerate(file.instructions):
        is_load = (instruction.op, instruction.variant) == (INPUT, PARAMETER)
        if is_load and len(instruction.c) > 1 and instruction.c[1] in stored:
            yield index, instruction.c[1]


def _problems(
    table: ParameterTable, stored: Mapping[int, str], loaded: Mapping[int, int]
) -> Iterator[str]:
    for instruction, name in table.loads.items():
        if instruction not in loaded:
            yield f"{backquote(name)} names instruction {instruction}, which loads no parameter"
        elif not name:
            yield f"instruction {instruction} loads a parameter without a name"
    known = {*stored.values(), *table.loads.values()}
    taken = set(known)
    for name, others in table.tied.items():
        if name not in known:
            yield f"{backquote(name)} is tied, but no parameter is called so"
        for other in others:
            if other in taken or not other:
                yield f"{backquote(other)} is the name of another parameter too"
            taken.add(other)
