"""A program with its weights, verified and made ready: what every run of it shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.nac.format.external import External
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.values import NacFile
from nacre.nac.program.blocks import Blocks, blocks_of
from nacre.nac.program.interface import NacInput, ProgramInterface
from nacre.nac.run.memory import Schedule, schedule_of
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.weights import Weights
from nacre.nac.spec.instructions import INPUT, PARAMETER, USER


@dataclass(frozen=True, eq=False)
class LoadedProgram:
    """A program with its weights."""

    file: NacFile
    source: Source
    program: tuple[PreparedInstruction, ...]
    surroundings: ProgramInterface
    weights: Weights
    external: External | None = None  # where the weights lie beside the file
    max_bytes: int | None = None  # that a run may hold; see `limits` for what it is without
    max_work: int | None = None
    memory_limit: int | None = None  # that a run meets by loading weights when they are needed
    _lifted: dict[int, Any] = field(default_factory=dict, repr=False)  # constants that were loaded

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
    def has_opaque(self) -> bool:
        """Whether a call has no form in Core IR."""
        return any(instruction.opaque is not None for instruction in self.program)

    @cached_property
    def blocks(self) -> Blocks:
        """The branches of the program."""
        return blocks_of(self.file.instructions)

    @cached_property
    def schedule(self) -> Schedule:
        """What happens to memory after each instruction."""
        return schedule_of(self.file, self.program)

    def lifted_constant(self, id_: int) -> Any:  # noqa: ANN401 - a number or a tensor
        """The value of a lifted constant; a list is a tensor."""
        if id_ not in self._lifted:
            value: Any = self.file.constant_of[id_].value
            if isinstance(value, tuple):
                value = np.array(value, np.int64 if isinstance((*value, 0)[0], int) else np.float32)
                value.flags.writeable = False
            self._lifted[id_] = value
        return self._lifted[id_]

    def is_kept(self, instruction: PreparedInstruction) -> bool:
        """Whether an instruction loads a weight that stays between runs."""
        is_weight = instruction.kind == "input" and instruction.variant == PARAMETER
        return is_weight and self.weights.is_kept(instruction.id)

    def finding(
        self, instruction: int, rule: Rule, message: str, help: str | None = None
    ) -> Diagnostic:
        """A finding about an instruction."""
        offsets = self.file.record_offsets.get("OPS ", ())
        place = Position(offsets[instruction] if offsets else 0, "OPS ", instruction)
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
