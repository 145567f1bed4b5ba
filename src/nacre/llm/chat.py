"""A model that speaks: its decoder, its tokenizer and its template, from one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.base.stages import stage
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Decoder, Runner
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.model import LLM07
from nacre.llm.sampling import Sampler, Sampling
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
        self, runner: Runner, ids: Sequence[int], max_tokens: int, sampling: Sampling
    ) -> Iterator[str]:
        """The text that goes on from tokens, piece by piece."""
        return iter(Generation(self.tokenizer, runner, ids, max_tokens, sampling))


class Generation:
    """A text that goes on, piece by piece, and what is known of it when it has ended.

    It ends with a token that ends answers, after so many tokens, or where the context is full.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        runner: Runner,
        ids: Sequence[int],
        max_tokens: int,
        sampling: Sampling,
    ) -> None:
        self._tokenizer, self._runner, self._ids = tokenizer, runner, ids
        self._max_tokens, self._sampling = max_tokens, sampling
        self.tokens = 0  # that were written, the one that ends an answer left out
        self.finish = "length"  # `stop` where the model ended it

    @property
    def prompt_tokens(self) -> int:
        """Tokens that it goes on from."""
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        sampler, runner = Sampler(self._sampling), self._runner
        with stage("reading the prompt"):
            logits = runner.feed(self._ids)
        stream = self._tokenizer.stream()
        while True:
            token = sampler.choose(logits)
            if token in self._tokenizer.ends:
                self.finish = "stop"
                break
            self.tokens += 1
            if not self._tokenizer.is_silent(token):
                yield stream.push(token)
            if self.tokens >= self._max_tokens or not runner.left:
                break
            logits = runner.feed([token])
        yield stream.finish()


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """Texts in, texts out, on Core IR's evaluator in f32."""

    decoder: Decoder
    text: TextInterface

    @classmethod
    def from_gguf(cls, file: ModelFile, *, with_template: bool = True) -> LanguageModel:
        """The model of a file, or of a checkpoint; InputError where a part of it is none."""
        text = TextInterface.from_gguf(file, with_template=with_template)
        with stage("reading the weights"):
            return cls(Decoder.from_gguf(file), text)

    def generate(
        self, ids: Sequence[int], *, max_tokens: int, context: int, sampling: Sampling
    ) -> Iterator[str]:
        """The text that goes on from tokens, piece by piece."""
        require_room(self.text.name, ids, context)
        with stage("building the steps"):
            runner = self.decoder.runner(context, min(CHUNK, context))
        return self.text.generate(runner, ids, max_tokens, sampling)


def require_room(name: str, ids: Sequence[int], context: int) -> None:
    """InputError where a prompt is longer than a context, before anything is built."""
    if len(ids) > context:
        message = f"the prompt has {len(ids):,} tokens, the context is {context:,}"
        raise refusal(LLM07, name, message, "ask for a larger context, or say less")
