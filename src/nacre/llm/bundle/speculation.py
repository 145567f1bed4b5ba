"""Tokens that a smaller model guesses, and that a larger one checks several at a time.

A step of several tokens reads the weights once, as a step of one does: guesses that are right are
written for next to nothing. What is written is what the larger model says, token for token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nacre.llm.model.runner import Logits, Runner, RunStep

# Logits of a step of several tokens are those of single ones but for roundings. Where the likeliest
# two are no further apart than this share of the largest, the step of one token decides.
_CLOSE = 2.0**-6


@dataclass(frozen=True)
class Check:
    """The step that checks guesses: logits after each of `size` tokens."""

    size: int
    step: RunStep


@dataclass(frozen=True)
class SpeculationCounts:
    """How guessing went."""

    tokens: int  # that were asked for after the prompt
    guessed: int
    accepted: int
    checks: int  # steps of several tokens
    singles: int  # steps of one token of the model itself

    @property
    def accepted_share(self) -> float:
        """Of what was guessed."""
        return self.accepted / max(1, self.guessed)


class SpeculativeRunner:
    """A text as a `Runner` reads it, whose next tokens a draft guesses.

    Guesses are checked together with the token before them. As long as they are what is fed next,
    the logits are known already; otherwise both models go back to where the texts part.
    """

    def __init__(self, target: Runner, draft: Runner, check: Check, guesses: int) -> None:
        self._target, self._draft = target, draft
        self._check, self._guesses = check, guesses
        self._text: list[int] = []  # as far as it was fed
        self._drafted: list[int] = []  # what the draft has read, its own guesses among it
        self._ahead: list[
            tuple[int, Logits]
        ] = []  # tokens that are likely to be fed, and after them
        self._tokens = self._guessed = self._accepted = self._checks = self._singles = 0

    @property
    def context(self) -> int:
        """Tokens that there is room for."""
        return self._target.context

    @property
    def remaining(self) -> int:
        """How many more the context takes."""
        return self.context - len(self._text)

    @property
    def counts(self) -> SpeculationCounts:
        """How guessing went since the last reset."""
        return SpeculationCounts(
            self._tokens, self._guessed, self._accepted, self._checks, self._singles
        )

    @property
    def runners(self) -> tuple[Runner, Runner]:
        """The text by the model and by its draft."""
        return self._target, self._draft

    def reset(self) -> None:
        """Begin a new text."""
        self._text, self._ahead = [], []
        self._tokens = self._guessed = self._accepted = self._checks = self._singles = 0

    def feed(self, tokens: Sequence[int]) -> Logits:
        """Read tokens; the logits of what comes after the last.

        InputError where they are too many.
        """
        if len(tokens) == 1 and self._text:
            return self._go_on(tokens[0])
        self._ahead = []
        self._target.go_back(len(self._text))
        logits = self._target.feed(tokens)
        self._text += tokens
        return logits

    def _go_on(self, token: int) -> Logits:
        self._tokens += 1
        if self._ahead and self._ahead[0][0] == token:
            self._accepted += 1
            return self._answer(*self._ahead.pop(0))
        self._ahead = []
        guesses = self._guess(token)
        if not guesses:
            self._target.go_back(len(self._text))
            self._singles += 1
            logits = self._target.feed([token])
            self._text.append(token)
            return logits
        self._target.go_back(len(self._text))
        self._checks += 1
        rows = self._target.feed_all([token, *guesses], self._check.size, self._check.step)
        self._ahead = list(zip(guesses, rows[1:], strict=True))
        return self._answer(token, rows[0])

    def _answer(self, token: int, logits: Logits) -> Logits:
        """The logits after a token that was checked; a close call is decided by a single step."""
        at = len(self._text)
        self._text.append(token)
        if not is_close_call(logits):
            return logits
        self._singles += 1
        self._target.go_back(at)
        return self._target.feed([token])

    def _guess(self, token: int) -> list[int]:
        """What the draft says after the text and a token; nothing where there is no room for it."""
        count = min(self._guesses, self._check.size - 1)
        room = self.remaining - self._check.size, self._draft.context - len(self._text) - 1 - count
        if min(room) < 0:
            return []
        text = [*self._text, token]
        same = min(_common(self._drafted, text), len(text) - 1)
        self._draft.go_back(same)
        logits = self._read(text[same:])
        guesses = [int(logits.argmax())]
        while len(guesses) < count:
            guesses.append(int(self._draft.feed(guesses[-1:]).argmax()))
        self._drafted = [*text, *guesses[:-1]]
        self._guessed += count
        return guesses

    def _read(self, tokens: Sequence[int]) -> Logits:
        """What the draft has missed: the prompt at first, then a token or two."""
        if len(tokens) > 2:
            return self._draft.feed(tokens)
        return [self._draft.feed([token]) for token in tokens][-1]


def is_close_call(logits: Logits) -> bool:
    """Whether roundings might decide which token is the likeliest."""
    if logits.size < 2:
        return False
    second, first = np.partition(logits, -2)[-2:]
    return not first - second > _CLOSE * np.abs(logits).max()


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two texts have in common from their beginning."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(a), len(b)))
