"""What bundles are asked for that they cannot do: batches, drafts of other tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nacre.compile.bundle.bundle import Bundle
from nacre.llm.gguf.file import GgufFile
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import StepDecoder
from nacre.llm.rules.model import LLM05, LLM06, LLM09

_TOKENS = "tokenizer.ggml.tokens"


class Vocabulary(Protocol):
    """What is looked at of a configuration."""

    @property
    def vocabulary(self) -> int:
        """How many tokens the model knows."""
        ...


class Model(Protocol):
    """What is looked at of a bundle."""

    @property
    def head(self) -> GgufFile:
        """What the model's file says."""
        ...

    @property
    def config(self) -> Vocabulary:
        """The model in numbers."""
        ...

    @property
    def encoder(self) -> Bundle | None:
        """The plan that reads a source, where the model has one."""
        ...

    @property
    def decode(self) -> Bundle:
        """The plan of one token."""
        ...

    @property
    def verify(self) -> Bundle | None:
        """The one that checks guesses."""
        ...

    @property
    def draft_tokens(self) -> int:
        """How many at once."""
        ...


def require_more_plans(name: str, context: int, batch: int, draft_tokens: int) -> None:
    """InputError where plans of several texts, or of a draft's guesses, cannot be made."""
    for what, size, least in (("batch", batch, 1), ("draft tokens", draft_tokens, 0)):
        if type(size) is not int or size < least:
            message = f"the {what} are {size!r:.40}, expected a whole number of {least} or more"
            raise refusal(LLM06, name, message)
    if draft_tokens >= context:
        message = f"{draft_tokens:,} draft tokens and one before them, the context is {context:,}"
        raise refusal(LLM06, name, message, "check fewer at a time")


def require_abilities(decoder: StepDecoder, batch: int, draft_tokens: int) -> None:
    """InputError where such plans are asked of a decoder that has no steps for them."""
    name, can = decoder.name, decoder.abilities
    if (batch > 1 and not can.several_texts) or (draft_tokens and not can.all_logits):
        message = "plans of several texts, and of a draft's guesses, are built of decoders alone"
        help_text = "which come from GGUF files and checkpoints"
        raise refusal(LLM05, name, message, help_text)


def require_draft(target: Model, draft: Model, count: int | None) -> Bundle:
    """The plan that checks guesses; InputError where these cannot be a draft's."""
    name = target.head.name
    if target.verify is None:
        message = "there is no plan that checks a draft's tokens"
        raise refusal(LLM09, name, message, "build the model with `draft_tokens`")
    most = target.draft_tokens
    if count is not None and not (type(count) is int and 1 <= count <= most):
        message = (
            f"{count!r:.40} draft tokens at a time, the plan that checks them takes 1 to {most:,}"
        )
        raise refusal(LLM09, name, message)
    if draft.encoder is not None:
        message = (
            f"the draft `{draft.head.name}` writes about a source, which this text has none of"
        )
        raise refusal(LLM09, name, message, "take a decoder as the draft")
    sizes = target.config.vocabulary, draft.config.vocabulary
    if sizes[0] != sizes[1]:
        message = f"the model has {sizes[0]:,} tokens, its draft {sizes[1]:,}"
        raise refusal(LLM09, name, message, "take a draft with the same tokenizer")
    known = [_tokens(one) for one in (target, draft)]
    if known[0] != known[1]:
        at = next(
            (n for n, (a, b) in enumerate(zip(*known, strict=False)) if a != b), len(known[0])
        )
        message = f"the tokens of the model and of its draft differ from id {at:,} on"
        raise refusal(LLM09, name, message, "take a draft with the same tokenizer")
    devices = [one.decode.manifest.device for one in (target, draft)]
    if devices[0] != devices[1]:
        message = f"the plans are for `{devices[0]}`, those of the draft for `{devices[1]}`"
        raise refusal(LLM09, name, message, "build both for one device")
    return target.verify


def _tokens(bundle: Model) -> Sequence[object]:
    tokens = bundle.head.metadata.get(_TOKENS, ())
    return tokens if isinstance(tokens, Sequence) else ()
