"""A file that can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError, has_errors, in_order
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.core.values import Array
from nacre.nac.format.external import External
from nacre.nac.format.file import FileSource
from nacre.nac.format.places import BinarySource, Place, finding
from nacre.nac.format.values import NacFile
from nacre.nac.program.blocks import Blocks, blocks_of
from nacre.nac.program.interface import NacInput, Surroundings, surroundings
from nacre.nac.run.memory import Schedule, schedule_of
from nacre.nac.run.optimised import OptimisedPrograms
from nacre.nac.run.program import Prepared, prepared, schema_of
from nacre.nac.run.session import NacSession
from nacre.nac.run.weights import Weights
from nacre.nac.spec.instructions import INPUT, USER
from nacre.nac.verify import judged


@dataclass(frozen=True, eq=False)
class NacModel:
    """A program with its weights, verified and ready to run."""

    file: NacFile
    source: Source
    program: tuple[Prepared, ...]
    surroundings: Surroundings
    weights: Weights
    external: External | None = None  # where the weights lie beside the file
    max_bytes: int | None = None  # that a run may hold; see `limits` for what it is without
    max_work: int | None = None
    optimised: OptimisedPrograms = field(default_factory=OptimisedPrograms, repr=False)
    # Sessions that nobody is using. A run takes one out of here, so that several may go on at once.
    _idle: list[NacSession] = field(default_factory=list, repr=False)
    _lifted: dict[int, Any] = field(default_factory=dict, repr=False)  # constants that were loaded

    def __repr__(self) -> str:
        given = ", ".join(made.name for made in self.inputs)
        return f"<NacModel {self.source.name}: {len(self.program)} instructions, inputs {given}>"

    @property
    def inputs(self) -> tuple[NacInput, ...]:
        """The user inputs in order; what the file does not say about their types is None."""
        instructions = self.file.instructions
        return tuple(
            made
            for made in self.all_inputs
            if (instructions[made.instruction].op, instructions[made.instruction].variant)
            == (INPUT, USER)
        )

    @property
    def all_inputs(self) -> tuple[NacInput, ...]:
        """The same with lifted constants and states, which may be given too."""
        return self.surroundings.inputs

    @property
    def parameter_ids(self) -> dict[str, int]:
        """The ids of parameters by all of their names: equal ones and tied ones share an id."""
        return dict(self.surroundings.parameters.ids)

    @cached_property
    def blocks(self) -> Blocks:
        """The branches of the program."""
        return blocks_of(self.file.instructions)

    @cached_property
    def schedule(self) -> Schedule:
        """What happens to memory after each instruction."""
        return schedule_of(self.file, self.program)

    def run(self, inputs: Mapping[str, Any] | None = None) -> list[Array]:
        """The outputs in order; state starts from its initial value. InputError says why not.

        The program is run as in a `session()`, which says what that means for the last bits.
        """
        try:
            session = self._idle.pop()
        except IndexError:
            session = self.session()
        session.reset()
        try:
            return session.run(inputs)
        finally:
            self._idle.append(session)

    def session(
        self,
        *,
        max_bytes: int | None = None,
        max_work: int | None = None,
        timed: bool = False,
        optimise: bool = True,
    ) -> NacSession:
        """A session that keeps state between runs.

        It may hold at most so many bytes at a time and take so many steps a run. Where nobody says
        how many, this follows from the sizes of the file and of the inputs. The program is
        rewritten for inference, once for a model and the types of its inputs, which changes the
        last bits of floats. `optimise=False` runs it as it is written, instruction by instruction,
        with the bits that `lift` has; what is timed is run so in any case.
        """
        return NacSession(
            self, max_bytes=max_bytes, max_work=max_work, timed=timed, optimise=optimise
        )

    def lifted(self, id_: int) -> Any:  # noqa: ANN401 - a number or a tensor
        """The value of a lifted constant; a list is a tensor."""
        if id_ not in self._lifted:
            value: Any = self.file.constant_of[id_].value
            if isinstance(value, tuple):
                value = np.array(value, np.int64 if isinstance((*value, 0)[0], int) else np.float32)
                value.flags.writeable = False
            self._lifted[id_] = value
        return self._lifted[id_]

    def order(self, call: str, names: Sequence[str]) -> list[str]:
        """The names of arguments in the order of their schema."""
        schema = schema_of(call)
        assert schema is not None
        return [p.name for p in schema.parameters if p.name in names]

    def finding(
        self, instruction: int, rule: Rule, message: str, help: str | None = None
    ) -> Diagnostic:
        """A finding about an instruction."""
        offsets = self.file.places.get("OPS ", ())
        place = Place(offsets[instruction] if offsets else 0, "OPS ", instruction)
        return finding(rule, self.source, place, message, help)

    def fault(
        self, instruction: int, rule: Rule, message: str, help: str | None = None
    ) -> InputError:
        """The refusal to go on at an instruction."""
        return InputError([self.finding(instruction, rule, message, help)])

    @cached_property
    def file_bytes(self) -> int:
        """The size of the file and of the weights beside it, these as the program takes them.

        So a file may take as much however its weights are stored.
        """
        inside = sum(len(tensor.data) for tensor in self.file.data.tensors)
        rest = max(len(self.source.text) - inside, 0)
        beside = 0 if self.external is None else self.external.size
        return rest + max(self.weights.wide_bytes, inside + beside)


def load(
    path: FileSource,
    *,
    max_bytes: int | None = None,
    max_work: int | None = None,
    keep_bytes: int | None = None,
) -> NacModel:
    """A file ready to run; InputError has all that is wrong with it, unknown operations included.

    Weights are mapped: none is copied before it is used. What a run may take at most follows from
    the sizes of the file and of the inputs, unless it is said here; so does `keep_bytes`, how much
    a model keeps between runs of weights that do not lie in the file as kernels take them.
    """
    examined, external, found = judged(path)
    if examined.file is None or has_errors(found):
        raise InputError(in_order(d for d in found if d.severity == "error"))
    made = made_model(examined.file, examined.source, external, keep_bytes)
    return replace(made, max_bytes=max_bytes, max_work=max_work)


def made_model(
    file: NacFile,
    source: Source | None = None,
    external: External | None = None,
    keep_bytes: int | None = None,
) -> NacModel:
    """A model of a file that is sound; InputError where the runtime cannot run it."""
    place = source or BinarySource("<nac>", 0)
    program, found = prepared(file, place)
    around, wrong = surroundings(file, place, external)
    if found or wrong:
        raise InputError(in_order([*found, *wrong]))
    return NacModel(file, place, program, around, Weights(file, external, keep_bytes), external)
