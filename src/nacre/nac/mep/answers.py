"""The caller's answers to what a plan asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.base.excerpt import backquote
from nacre.base.suggest import Suggestions
from nacre.nac.mep.actions import actions_of
from nacre.nac.mep.program import Program
from nacre.nac.mep.values import Fault
from nacre.nac.rules.plans import NAC96

_MOST_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Prompt:
    """Something that a plan may ask for."""

    text: str
    type: str  # `str`, `int` or `float`


class Answers:
    """Answers by the text of a prompt, or one after the other."""

    def __init__(
        self, prompts: Sequence[Prompt], inputs: Mapping[str, Any] | Sequence[Any] | None
    ) -> None:
        self.wrong: tuple[tuple[str, str | None], ...] = ()  # messages, each with a hint
        self._by_name = {} if inputs is None else inputs if isinstance(inputs, Mapping) else None
        is_list = isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes)
        in_order = inputs if is_list and inputs is not None else ()
        self._in_order, self._count = iter(in_order), len(in_order)
        if self._by_name is not None:
            self.wrong = _unused_answers(prompts, self._by_name)
        elif inputs is not None and not is_list:
            name = type(inputs).__name__
            self.wrong = ((f"the inputs are a {name}, expected answers by prompt or a list", None),)

    def unanswered(self, asked: Sequence[tuple[int, Prompt]]) -> Iterator[tuple[int, Prompt]]:
        """Of instructions that ask in this order, those that get no answer."""
        if self._by_name is None:
            yield from () if self.wrong else asked[self._count :]
            return
        seen: set[str] = set()
        for index, prompt in asked:
            if prompt.text not in self._by_name and prompt.text not in seen:
                seen.add(prompt.text)
                yield index, prompt

    def __call__(self, prompt: str) -> object:
        """The answer to a prompt; Fault where there is none."""
        if self._by_name is not None and prompt in self._by_name:
            return self._by_name[prompt]
        for answer in self._in_order:
            return answer
        raise Fault(NAC96, f"there is no answer to {backquote(prompt)}")


def prompts_of(program: Program) -> tuple[Prompt, ...]:
    """What a plan may ask for, in the order of its instructions."""
    return tuple(dict.fromkeys(prompt for _, prompt in _prompts(program)))


def unconditional_prompts(program: Program) -> tuple[tuple[int, Prompt], ...]:
    """What a plan asks for whatever happens: before it jumps for the first time."""
    jumps = [at for at, step in enumerate(program.steps) if step.row.is_jump]
    end = min(jumps, default=len(program.steps))
    return tuple((index, prompt) for index, prompt in _prompts(program) if index < end)


def _prompts(program: Program) -> Iterator[tuple[int, Prompt]]:
    pairs = zip(program.steps, actions_of(program), strict=True)
    for index, (step, action) in enumerate(pairs):
        if step.row.mnemonic == "src_user_prompt":
            yield index, Prompt(str(action.fixed["prompt"]), str(action.fixed["type"]))


def _unused_answers(
    prompts: Sequence[Prompt], given: Mapping[str, Any]
) -> tuple[tuple[str, str | None], ...]:
    asked = {prompt.text for prompt in prompts}
    hints = Suggestions(asked)
    unasked = [str(name) for name in given if name not in asked][:_MOST_FINDINGS]
    return tuple((f"the plan never asks for {backquote(n)}", hints.help(n)) for n in unasked)
