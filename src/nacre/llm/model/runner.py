"""A decoder that runs on Core IR's evaluator: a prompt in chunks, then tokens one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from nacre.llm.model.cache import CacheSizes, cache_names, cache_shape, cache_slices
from nacre.llm.model.config import Config, config_of
from nacre.llm.model.layers import DecoderWeights, decoder_weights
from nacre.llm.model.problems import refusal
from nacre.llm.model.step import (
    LAST,
    POSITION,
    TOKENS,
    Step,
    build_step,
    require_sizes,
)
from nacre.llm.model.weights import ModelFile, Weights
from nacre.llm.rules.model import LLM07

Logits = npt.NDArray[np.float32]
StepKind = Literal["chunk", "token", "check"]
# Inputs of a step by name; its outputs in order.
RunStep = Callable[[Mapping[str, Any]], Sequence[npt.NDArray[Any]]]


@dataclass(frozen=True)
class StepAbilities:
    """Which steps a decoder has beside those of one text that give the logits of one token."""

    several_texts: bool = False  # a token of each
    all_logits: bool = False  # those after every token


class StepDecoder(Protocol):
    """A model with its weights, from which steps of any size are built."""

    @property
    def name(self) -> str:
        """Where it came from, for messages."""
        ...

    @property
    def config(self) -> CacheSizes:
        """The model in numbers."""
        ...

    @property
    def abilities(self) -> StepAbilities:
        """Which other steps there are."""
        ...

    @property
    def cache_dtype(self) -> npt.DTypeLike:
        """The type of the caches that steps take."""
        ...

    def step(self, context: int, chunk: int = 1) -> Step:
        """The module that takes so many tokens at once, with a cache of so many rows."""
        ...


def text_runner(decoder: StepDecoder, context: int, chunk: int) -> Runner:
    """A text that is read and goes on, by a decoder's steps."""
    require_sizes(decoder.config, decoder.name, context, chunk)
    steps = {size: decoder.step(context, size).module.session().run for size in {1, chunk}}
    return Runner(decoder.name, decoder.config, context, steps, cache_dtype=decoder.cache_dtype)


class Decoder:
    """A decoder of a family with its weights, from which steps are built."""

    abilities = StepAbilities(several_texts=True, all_logits=True)
    cache_dtype = np.dtype(np.float32)

    def __init__(self, config: Config, weights: DecoderWeights, name: str) -> None:
        self.config, self.weights, self.name = config, weights, name

    @classmethod
    def from_gguf(cls, file: ModelFile) -> Decoder:
        """The model of a file, or of a checkpoint; InputError where it is none that is built."""
        config = config_of(file)
        return cls(config, decoder_weights(config, Weights(file)), file.name)

    def step(
        self,
        context: int,
        chunk: int = 1,
        *,
        keeps_blocks: bool = False,
        of_context: int | None = None,
        texts: int = 1,
        all_logits: bool = False,
    ) -> Step:
        """The module that takes so many tokens at once, with a cache of so many rows.

        With `keeps_blocks` weights of Q4_0, Q4_1 and Q8_0 are dequantised in it. `of_context` is
        what texts may come to where steps with more rows take them further. One of several `texts`
        takes a token of each; `all_logits` are those after every token.
        """
        return build_step(
            self.config, self.weights, context, chunk, self.name,
            keeps_blocks=keeps_blocks, of_context=of_context, texts=texts, all_logits=all_logits,
        )  # fmt: skip

    def runner(self, context: int, chunk: int = 1) -> Runner:
        """A text that is read and goes on."""
        return text_runner(self, context, chunk)


class TextRunner(Protocol):
    """A text that is read and goes on, however that is computed."""

    @property
    def context(self) -> int:
        """Tokens that there is room for."""
        ...

    @property
    def remaining(self) -> int:
        """How many more the context takes."""
        ...

    def reset(self) -> None:
        """Begin a new text."""
        ...

    def feed(self, tokens: Sequence[int]) -> Logits:
        """Read tokens; the logits of what comes after the last."""
        ...


class Runner:
    """A text as far as it was read: the cache, and how many of its rows are filled."""

    def __init__(
        self,
        name: str,
        config: CacheSizes,
        context: int,
        steps: Mapping[int, RunStep],
        shorter: Mapping[int, RunStep] | None = None,
        cache_dtype: npt.DTypeLike = np.float32,
        caches: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        self.name, self.context, self._steps = name, context, steps
        # Steps of one token that take fewer rows, the least first.
        self._shorter = sorted((shorter or {}).items())
        self._caches = caches or {
            cache: np.zeros(cache_shape(config, cache, context), cache_dtype)
            for cache in cache_names(config)
        }
        self._chunk = max(steps)
        self.cache_dtype = np.dtype(cache_dtype)
        self._fixed: Mapping[str, npt.NDArray[Any]] = {}
        self.position = 0
        self.step_counts: Counter[tuple[StepKind, int]] = (
            Counter()
        )  # steps by kind and rows of the cache

    @property
    def remaining(self) -> int:
        """How many tokens the context still takes."""
        return self.context - self.position

    def reset(self) -> None:
        """Begin a new text."""
        self.position = 0

    def begin(self, fixed: Mapping[str, npt.NDArray[Any]]) -> None:
        """Begin a new text with inputs that stay the same for all of it."""
        self._fixed = fixed
        self.reset()

    def feed(self, tokens: Sequence[int]) -> Logits:
        """Read tokens; the logits of what comes after the last. InputError where they are too many.

        As many as a chunk takes are read at once, the rest one by one.
        """
        self.require_room(tokens)
        logits: Logits = np.zeros(0, np.float32)
        at = 0
        while at < len(tokens):
            # A chunk that is not full is read whole: what is behind the last token is overwritten.
            is_whole = len(tokens) - at > 1 and self.remaining >= self._chunk > 1
            size = self._chunk if is_whole else 1
            logits = self._run(tokens[at : at + size], size)
            at += size
        return logits

    def feed_all(self, tokens: Sequence[int], size: int, step: RunStep) -> Logits:
        """Read tokens by a step of `size` that gives the logits after each; of all of these."""
        self.require_room([0] * size)
        self.step_counts["check", self.context] += 1
        logits, *made = step(self.inputs(tokens, size, self.context))
        self.store_rows(made, len(tokens))
        found: Logits = logits[: len(tokens)]
        return found

    def go_back(self, position: int) -> None:
        """Go on behind so many tokens of the text."""
        self.position = position

    def require_room(self, tokens: Sequence[int]) -> None:
        """InputError where there are no tokens, or more than the context takes."""
        if not tokens:
            raise refusal(LLM07, self.name, "there is no token to go on from")
        if len(tokens) > self.remaining:
            message = (
                f"{len(tokens):,} tokens, the context of {self.context:,} takes {self.remaining:,}"
            )
            raise refusal(LLM07, self.name, message, "ask for a larger context, or say less")

    def _run(self, tokens: Sequence[int], size: int) -> Logits:
        rows, step = self._step(size)
        given = self.inputs(tokens, size, rows)
        if size > 1:
            given[LAST] = np.array([len(tokens) - 1], np.int32)
        self.step_counts["chunk" if size > 1 else "token", rows] += 1
        logits, *made = step(given)
        self.store_rows(made, len(tokens))
        last: Logits = logits[0]
        return last

    def inputs(self, tokens: Sequence[int], size: int, rows: int) -> dict[str, npt.NDArray[Any]]:
        """What a step of so many tokens takes that reads so many rows of the cache."""
        ids = np.zeros(size, np.int32)
        ids[: len(tokens)] = tokens
        return {
            TOKENS: ids,
            POSITION: np.array([self.position], np.int32),
            **{name: cache[cache_slices(name, 0, rows)] for name, cache in self._caches.items()},
            **self._fixed,
        }

    def store_rows(self, made: Sequence[npt.NDArray[Any]], count: int) -> None:
        """Put the first rows that a step made into the cache, and go on behind them."""
        end = self.position + count
        for (name, cache), row in zip(self._caches.items(), made, strict=True):
            cache[cache_slices(name, self.position, end)] = row[cache_slices(name, 0, count)]
        self.position = end

    def _step(self, size: int) -> tuple[int, RunStep]:
        """The step of so many tokens that takes no more rows than it must, and their number."""
        if size == 1:
            for rows, step in self._shorter:
                if self.position < rows:
                    return rows, step
        return self.context, self._steps[size]
