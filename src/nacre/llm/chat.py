"""A model that speaks: its decoder, its tokenizer and its template, from one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nacre.base.stages import stage
from nacre.llm.encoder_decoder.model import EncoderDecoder, SourceInput
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Logits, TextRunner
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.model import LLM07
from nacre.llm.sampling import Sampler, Sampling
from nacre.llm.sources import AnyDecoder, decoder_of
from nacre.llm.template.chat import ChatTemplate, Message, chat_template
from nacre.llm.tokenizer.tokenizer import Tokenizer

# Prompts are read in chunks of so many tokens.
CHUNK = 32


@dataclass(frozen=True, eq=False)
class TextInterface:
    """Texts as tokens and back: a tokenizer and a chat template."""

    name: str  # of the file that it is from
    tokenizer: Tokenizer
    template: ChatTemplate | None

    @classmethod
    def from_gguf(cls, file: ModelFile, *, with_template: bool = True) -> TextInterface:
        """That of a file; InputError where a part of it is none."""
        with stage("reading the tokenizer"):
            tokenizer = Tokenizer.from_gguf(file)
        return cls(file.name, tokenizer, chat_template(file) if with_template else None)

    def prompt_ids(self, prompt: str, system: str | None = None) -> list[int]:
        """The tokens of a prompt: a message by the file's template, plain text without one."""
        if self.template is None:
            return self.tokenizer.encode(prompt) or self.beginning
        messages: list[Message] = [{"role": "user", "content": prompt}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self.chat_ids(messages)

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a conversation by the file's template, which must be there."""
        if self.template is None:
            raise ValueError("the file has no chat template")
        text = self.template.prompt(messages)
        begins = not self.tokenizer.vocabulary.is_written
        ids = self.tokenizer.encode(text, add_special_tokens=begins, parse_special=True)
        return ids or self.beginning

    @property
    def beginning(self) -> list[int]:
        """What a text without any tokens begins with."""
        begin = self.tokenizer.vocabulary.begin
        return [] if begin is None else [begin]

    def generate(
        self, runner: TextRunner, ids: Sequence[int], max_tokens: int, sampling: Sampling
    ) -> Iterator[str]:
        """The text that goes on from tokens, piece by piece."""
        return iter(Generation(self.tokenizer, runner, ids, max_tokens, sampling))


class Continuation:
    """Tokens that are chosen one after another, and what they are as text.

    A text ends with a token that ends answers, after so many tokens, or where the context is full.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, sampling: Sampling) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._sampler, self._stream = Sampler(sampling), tokenizer.stream()
        self.tokens = 0  # that were written, the one that ends an answer left out
        self.finish = "length"  # `stop` where the model ended it

    def take(self, logits: Logits, left: int) -> tuple[str, int | None]:
        """The next piece, and the token to go on with; None where the text ends.

        There is room for so many tokens more.
        """
        token = self._sampler.choose(logits)
        if token in self._tokenizer.ends:
            self.finish = "stop"
            return "", None
        self.tokens += 1
        piece = "" if self._tokenizer.is_silent(token) else self._stream.push(token)
        is_over = self.tokens >= self._max_tokens or not left
        return piece, None if is_over else token

    def rest(self) -> str:
        """What is left where a text ends within a character."""
        return self._stream.finish()


class Generation:
    """A text that goes on, piece by piece, and what is known of it when it has ended."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        runner: TextRunner,
        ids: Sequence[int],
        max_tokens: int,
        sampling: Sampling,
    ) -> None:
        self._runner, self._ids = runner, ids
        self._text = Continuation(tokenizer, max_tokens, sampling)

    @property
    def prompt_tokens(self) -> int:
        """Tokens that it goes on from."""
        return len(self._ids)

    @property
    def tokens(self) -> int:
        """Tokens that were written, the one that ends an answer left out."""
        return self._text.tokens

    @property
    def finish(self) -> str:
        """Why it ended: `stop` where the model ended it, else `length`."""
        return self._text.finish

    def __iter__(self) -> Iterator[str]:
        runner, text = self._runner, self._text
        with stage("reading the prompt"):
            logits = runner.feed(self._ids)
        while True:
            piece, token = text.take(logits, runner.remaining)
            yield piece
            if token is None:
                break
            logits = runner.feed([token])
        yield text.rest()


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """Texts in, texts out, on Core IR's evaluator in f32."""

    decoder: AnyDecoder
    text: TextInterface

    @classmethod
    def from_gguf(cls, file: ModelFile, *, with_template: bool = True) -> LanguageModel:
        """The model of a file, or of a checkpoint; InputError where a part of it is none."""
        text = TextInterface.from_gguf(file, with_template=with_template)
        with stage("reading the weights"):
            return cls(decoder_of(file), text)

    def generate(
        self, ids: SourceInput, *, max_tokens: int, context: int, sampling: Sampling
    ) -> Iterator[str]:
        """The text that goes on from tokens, or is about a source, piece by piece."""
        if isinstance(self.decoder, EncoderDecoder):
            with stage("building the steps"):
                about = self.decoder.runner(context)
            about.read(ids)
            return self.text.generate(about, [about.start], max_tokens, sampling)
        if isinstance(ids, np.ndarray):
            message = "the model has no encoder, so that there is no sound to hear"
            raise refusal(LLM07, self.text.name, message, "give it a prompt")
        require_room(self.text.name, ids, context)
        with stage("building the steps"):
            runner = self.decoder.runner(context, min(CHUNK, context))
        return self.text.generate(runner, ids, max_tokens, sampling)


def require_room(name: str, ids: Sequence[int], context: int) -> None:
    """InputError where a prompt is longer than a context, before anything is built."""
    if len(ids) > context:
        message = f"the prompt has {len(ids):,} tokens, the context is {context:,}"
        raise refusal(LLM07, name, message, "ask for a larger context, or say less")
