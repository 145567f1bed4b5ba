"""An encoder-decoder with its weights: a module that reads a source, steps that write a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.excerpt import safe
from nacre.core.module import Module
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.encoder import (
    FEATURES,
    LENGTH,
    SOURCE,
    build_encoder,
    cross_names,
)
from nacre.llm.encoder_decoder.step import build_cross_step
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Runner, RunStep, StepAbilities, text_runner
from nacre.llm.model.step import Step
from nacre.llm.model.weights import Weights
from nacre.llm.rules.model import LLM07

Features = npt.NDArray[np.floating[Any]]
SourceInput = Sequence[int] | Features


class EncoderDecoder:
    """A model with its weights, from which modules are built."""

    abilities = StepAbilities()
    cache_dtype = np.dtype(np.float32)

    def __init__(self, config: EncoderDecoderConfig, weights: Weights) -> None:
        self.config, self._weights, self.name = config, weights, weights.name

    @classmethod
    def of(cls, config: EncoderDecoderConfig, weights: Weights) -> EncoderDecoder:
        """That of a file's weights, all of which it must use."""
        made = cls(config, weights)
        made.encoder()
        made.step(1)
        weights.require_all_used()
        return made

    def encoder(self) -> Module:
        """The module that reads a source."""
        return build_encoder(self.config, self._weights)

    def step(
        self,
        context: int,
        chunk: int = 1,
    ) -> Step:
        """The module that takes so many tokens at once, with a cache of so many rows."""
        return build_cross_step(self.config, self._weights, context, chunk, self.name)

    def runner(self, context: int, chunk: int = 1) -> SourceRunner:
        """A text that is written about a source."""
        runner = text_runner(self, context, chunk)
        return SourceRunner(self.config, self.encoder().session().run, runner)


class SourceRunner:
    """A text about a source: the source is read once, then tokens are fed as to a decoder."""

    def __init__(self, config: EncoderDecoderConfig, encoder: RunStep, runner: Runner) -> None:
        self._config, self._encoder, self._runner = config, encoder, runner
        self.context, self.start = runner.context, config.start

    @property
    def remaining(self) -> int:
        """How many tokens the context still takes."""
        return self._runner.remaining

    @property
    def position(self) -> int:
        """How many tokens were fed."""
        return self._runner.position

    def reset(self) -> None:
        """Begin a new text about the same source."""
        self._runner.reset()

    def read(self, source: SourceInput) -> None:
        """Begin a text about a source: tokens, or the features of a sound."""
        given = self._features(source) if self._config.mels else self._tokens(source)
        made = self._encoder(given)
        # In the type of the cache, so that no step converts all of them.
        dtype = self._runner.cache_dtype
        names = cross_names(self._config)
        fixed = {name: np.asarray(a, dtype) for name, a in zip(names, made, strict=True)}
        if LENGTH in given:
            fixed[LENGTH] = given[LENGTH]
        self._runner.begin(fixed)

    def feed(self, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
        """Read tokens of the text; the logits of what comes after the last."""
        return self._runner.feed(tokens)

    def _tokens(self, source: SourceInput) -> Mapping[str, Any]:
        name, rows, count = self._runner.name, self._config.source, len(source)
        found = np.asarray(source)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            message = f"the source is an array of {found.dtype} of shape {safe(str(found.shape))}"
            raise refusal(LLM07, name, f"{message}, expected tokens")
        if not 1 <= count <= rows:
            message = f"the source has {count:,} tokens, expected 1 to {rows:,}"
            raise refusal(LLM07, name, message, "build the model for longer sources: `source=`")
        ids = np.zeros(rows, np.int32)
        ids[:count] = source
        return {SOURCE: ids, LENGTH: np.array([count], np.int32)}

    def _features(self, source: SourceInput) -> Mapping[str, Any]:
        expected, found = (self._config.mels, 2 * self._config.source), np.asarray(source)
        if found.shape[-2:] != expected or found.size != expected[0] * expected[1]:
            message = f"the features are of shape {safe(str(found.shape))}, expected {expected}"
            raise refusal(LLM07, self._runner.name, message)
        return {FEATURES: np.asarray(found, np.float32).reshape(expected)}
