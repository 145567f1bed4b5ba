"""The machine that runs a plan, and nothing but the plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.nac.format.values import Bytes, Plan
from nacre.nac.mep.actions import actions_of
from nacre.nac.mep.answers import Answers, Prompt, prompts_of, unconditional_prompts
from nacre.nac.mep.budget import Budget
from nacre.nac.mep.files import Folder
from nacre.nac.mep.operations.models import CalleeError
from nacre.nac.mep.program import Program, program_of
from nacre.nac.mep.values import Fault, Value, brief_error
from nacre.nac.mep.work import Mode, Model, Surroundings, Work, Written
from nacre.nac.rules.limits import require_plan_limits
from nacre.nac.rules.plans import NAC89, NAC91, NAC96, NAC97
from nacre.nac.rules.seeds import require_seed

MAX_STEPS = 1_000_000
MAX_BYTES = 1 << 30
# What arithmetic on values that nothing has foreseen ends in.
_MISHAPS = (ValueError, TypeError, ArithmeticError, IndexError, UnicodeError)


class Machine:
    """A plan with what it may use. `run` starts anew each time: the same seed, the same outputs.

    `models` are by the names that the plan loads them by; `tokenizer` is one, or several by the
    numbers of models; `resources` are files that it carries. `mode` is for plans that can train,
    and ask. Without `root` the plan has no other files; it writes none without `may_write`.
    `max_steps` and `max_bytes` are integers from 1 on.
    """

    def __init__(
        self,
        program: bytes | bytearray | memoryview | Plan | Program,
        *,
        models: Mapping[str, Model] | None = None,
        tokenizer: Any = None,  # noqa: ANN401 - a Tokenizer, or several
        root: str | os.PathLike[str] | None = None,
        seed: int = 0,
        max_steps: int = MAX_STEPS,
        max_bytes: int = MAX_BYTES,
        may_write: bool = False,
        arrays: Mapping[str, Any] | None = None,
        mode: Mode = "infer",
        resources: Mapping[str, Bytes] | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"the mode is {mode!r}, expected one of {', '.join(get_args(Mode))}")
        limits = require_plan_limits(max_steps=max_steps, max_bytes=max_bytes)
        self._program = program if isinstance(program, Program) else program_of(program)
        folder = Folder(root, may_write=may_write)
        self._surroundings = Surroundings(
            models or {}, tokenizer, arrays or {}, folder, mode, resources or {}
        )
        self._seed = require_seed(seed)
        self._limits = limits["max_steps"], limits["max_bytes"]
        self._actions = actions_of(self._program)
        self.written: tuple[Written, ...] = ()  # by the last run
        self.steps = 0  # of the last run
        self.peak_bytes = 0  # of the last run

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """What the plan may ask for, in the order of its instructions."""
        return prompts_of(self._program)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] | None = None) -> list[Value]:
        """The values that the plan returns; InputError says what stopped it, and where.

        Inputs answer prompts: by the text of the prompt, or one after the other.
        """
        answers = Answers(self.prompts, inputs)
        finding = self._program.finding
        wrong = [finding(None, NAC96, *said) for said in answers.wrong]
        # All in one go, and before the work that a plan does between its questions.
        for index, prompt in answers.unanswered(unconditional_prompts(self._program)):
            message = f"`src_user_prompt`: there is no answer to {backquote(prompt.text)}"
            wrong.append(finding(index, NAC96, message))
        if wrong:
            raise InputError(wrong)
        budget = Budget(*self._limits)
        chance = np.random.Generator(np.random.PCG64(self._seed))
        work = Work(self._surroundings, budget, chance, answers, self._seed)
        work.loop_ends = self._program.loop_ends
        try:
            with np.errstate(all="ignore"):
                self._run_actions(work)
        finally:
            self.written = tuple(work.written)
            self.steps, self.peak_bytes = budget.steps, budget.peak
        return work.outputs or []

    def _run_actions(self, work: Work) -> None:
        actions, end = self._actions, len(self._actions)
        while work.outputs is None and work.next < end:
            work.at = work.next
            work.next += 1
            try:
                work.budget.charge(steps=1)
                actions[work.at].perform(work)
            except Fault as fault:
                raise self._refusal(work.at, fault.rule, fault.message, fault.help) from None
            except CalleeError as refused:
                raise self._refusal(
                    work.at, NAC97, refused.message, said=refused.said.diagnostics
                ) from None
            except MemoryError:
                raise self._refusal(work.at, NAC89, "the system has no memory left") from None
            except _MISHAPS as error:
                raise self._refusal(work.at, NAC91, brief_error(error)) from None

    def _refusal(
        self,
        index: int,
        rule: Rule,
        message: str,
        help: str | None = None,
        said: Sequence[Diagnostic] = (),
    ) -> InputError:
        mnemonic = self._program.steps[index].row.mnemonic
        first = self._program.finding(index, rule, f"`{mnemonic}`: {message}", help)
        return InputError([first, *said])
