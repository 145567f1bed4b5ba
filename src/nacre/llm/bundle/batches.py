"""Several texts that go on together: a step reads the weights once and writes a token of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.core.values import Array
from nacre.llm.chat import Continuation
from nacre.llm.model.cache import CacheSizes, cache_names, cache_shape
from nacre.llm.model.runner import Logits, Runner, RunStep
from nacre.llm.model.step import POSITION, TOKENS
from nacre.llm.sampling import Sampling
from nacre.llm.tokenizer.tokenizer import Tokenizer


class BatchRunner:
    """Texts with a cache each, all in one array: prompts are read one by one, tokens together."""

    def __init__(
        self,
        config: CacheSizes,
        context: int,
        count: int,
        step: RunStep,
        runner_of: Callable[[Mapping[str, Array]], Runner],
        cache_dtype: npt.DTypeLike,
    ) -> None:
        self._step = step
        self._caches: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(cache_shape(config, name, context, count), cache_dtype)
            for name in cache_names(config)
        }
        self.texts = [
            runner_of({name: cache[at] for name, cache in self._caches.items()})
            for at in range(count)
        ]
        self.steps = 0  # of all texts together

    def feed(self, tokens: Mapping[int, int]) -> dict[int, Logits]:
        """A token each of some texts, by their numbers; the logits of what comes after them."""
        for at, token in tokens.items():
            self.texts[at].require_room([token])
        if len(tokens) == 1:  # alone it is soonest done
            return {at: self.texts[at].feed([token]) for at, token in tokens.items()}
        count = len(self.texts)
        ids, positions = np.zeros(count, np.int32), np.zeros(count, np.int32)
        for at, token in tokens.items():
            ids[at], positions[at] = token, self.texts[at].position
        self.steps += 1
        logits, *made = self._step({TOKENS: ids, POSITION: positions, **self._caches})
        for at in tokens:
            self.texts[at].store_rows([rows[at] for rows in made], 1)
        return {at: logits[at] for at in tokens}


def generate_all(
    tokenizer: Tokenizer,
    runner: BatchRunner,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    sampling: Sampling,
) -> list[str]:
    """The texts that go on from prompts, as many at a time as the runner has."""
    found: list[str] = []
    count = len(runner.texts)
    for first in range(0, len(prompts), count):
        some = prompts[first : first + count]
        found += _generate_together(tokenizer, runner, some, max_tokens, sampling)
    return found


def _generate_together(
    tokenizer: Tokenizer,
    runner: BatchRunner,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    sampling: Sampling,
) -> list[str]:
    texts = [Continuation(tokenizer, max_tokens, sampling) for _ in prompts]
    pieces: list[list[str]] = [[] for _ in prompts]
    logits: dict[int, Logits] = {}
    for at, ids in enumerate(prompts):
        runner.texts[at].reset()
        logits[at] = runner.texts[at].feed(ids)
    while logits:
        tokens: dict[int, int] = {}
        for at, found in logits.items():
            piece, token = texts[at].take(found, runner.texts[at].remaining)
            pieces[at].append(piece)
            if token is not None:
                tokens[at] = token
        logits = runner.feed(tokens) if tokens else {}
    return ["".join([*some, text.rest()]) for some, text in zip(pieces, texts, strict=True)]
