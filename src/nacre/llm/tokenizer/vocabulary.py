"""What a file says of its tokenizer: tokens and what each is for, scores or merges, roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from nacre.base.excerpt import backquote
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.tokenizer import LLM10, LLM11

_PREFIX = "tokenizer.ggml."
DOCUMENT = "tokenizer.huggingface.json"  # where a file has a tokenizer as `tokenizers` writes it
_Kind = TypeVar("_Kind", str, int, float, bool)
# What ends an answer, where files name it with no key of its own.
_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>")


class TokenType(IntEnum):
    """What a token is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer as a file has it."""

    file: str
    model: str  # `llama`, `gpt2`, `huggingface`
    pattern: str  # the name of how texts are cut, of `gpt2`
    tokens: tuple[str, ...]
    types: tuple[TokenType, ...]
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    unknown: int | None
    begin: int | None
    end: int | None
    adds_begin: bool
    adds_end: bool
    adds_space: bool  # before a text
    turn_ends: tuple[int, ...] = ()  # that end an answer beside `end`
    document: str = ""  # the text of a `tokenizer.json`

    def ids_of_type(self, kind: TokenType) -> dict[str, int]:
        """The ids of tokens of a kind."""
        pairs = zip(self.tokens, self.types, strict=True)
        return {text: at for at, (text, type_) in enumerate(pairs) if type_ == kind}

    @property
    def is_written(self) -> bool:
        """Whether it is a `tokenizer.json`, whose templates begin texts themselves."""
        return bool(self.document)

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end an answer."""
        control = self.ids_of_type(TokenType.CONTROL)
        named = {control[text] for text in _ENDS if text in control}
        named.update(self.turn_ends)
        return frozenset(named | ({self.end} if self.end is not None else set()))


def has_tokenizer(metadata: Mapping[str, Value]) -> bool:
    """Whether a file says anything of a tokenizer."""
    return DOCUMENT in metadata or f"{_PREFIX}model" in metadata


def read_vocabulary(file: ModelFile) -> Vocabulary:
    """The tokenizer of a file; InputError where there is none, or its parts do not fit."""
    reader = _Reader(file)
    document = file.metadata.get(DOCUMENT)
    model = reader.one("model", str, "huggingface" if isinstance(document, str) else "")
    if not model:
        raise refusal(LLM10, file.name, "the file has no tokenizer: `tokenizer.ggml.model`")
    tokens = reader.list_of("tokens", str)
    if not tokens:
        raise refusal(LLM10, file.name, "the file has no tokens: `tokenizer.ggml.tokens`")
    is_sentences = model == "llama"
    return Vocabulary(
        file=file.name,
        model=model,
        pattern=reader.one("pre", str, ""),
        tokens=reader.distinct(tokens),
        types=reader.types(len(tokens)),
        scores=reader.sized_list("scores", float, len(tokens), 0.0),
        merges=tuple(reader.list_of("merges", str)),
        unknown=reader.id("unknown_token_id", len(tokens)),
        begin=reader.id("bos_token_id", len(tokens)),
        end=reader.id("eos_token_id", len(tokens)),
        adds_begin=reader.one("add_bos_token", bool, is_sentences),
        adds_end=reader.one("add_eos_token", bool, False),
        adds_space=reader.one("add_space_prefix", bool, is_sentences),
        turn_ends=reader.turn_ends(len(tokens)),
        document=document if isinstance(document, str) and model == "huggingface" else "",
    )


class _Reader:
    """Keys of a tokenizer with the types that they must have."""

    def __init__(self, file: ModelFile) -> None:
        self._name = file.name
        self._values: Mapping[str, Value] = file.metadata

    def one(self, key: str, kind: type[_Kind], default: _Kind) -> _Kind:
        value = self._values.get(_PREFIX + key, default)
        if type(value) is not kind:
            raise self._list_refusal(key, value, kind)
        return value

    def list_of(self, key: str, kind: type[_Kind]) -> list[_Kind]:
        value = self._values.get(_PREFIX + key, [])
        if not isinstance(value, list) or not all(type(element) is kind for element in value):
            raise self._list_refusal(key, value, kind)
        return value  # type: ignore[return-value]

    def sized_list(
        self, key: str, kind: type[_Kind], count: int, default: _Kind
    ) -> tuple[_Kind, ...]:
        values = self.list_of(key, kind) or [default] * count
        if len(values) != count:
            message = f"`{_PREFIX}{key}` has {len(values):,} values for {count:,} tokens"
            raise refusal(LLM11, self._name, message)
        return tuple(values)

    def types(self, count: int) -> tuple[TokenType, ...]:
        values = self.sized_list("token_type", int, count, TokenType.NORMAL)
        known = {int(kind): kind for kind in TokenType}
        odd = next((value for value in values if value not in known), None)
        if odd is not None:
            message = f"a token is of type {odd}, expected 1 to {max(known)}"
            raise refusal(LLM11, self._name, message)
        return tuple(known[value] for value in values)

    def id(self, key: str, count: int) -> int | None:
        if _PREFIX + key not in self._values:
            return None
        value = self.one(key, int, 0)
        # An id behind all tokens is how some tools say that there is none.
        if value == 0xFFFFFFFF:
            return None
        if not 0 <= value < count:
            message = f"`{_PREFIX}{key}` is {value:,}, expected 0 to {count - 1:,}"
            raise refusal(LLM11, self._name, message)
        return value

    def turn_ends(self, count: int) -> tuple[int, ...]:
        """The ids of tokens that end a turn or a message, and so an answer."""
        ids = (self.id(f"{role}_token_id", count) for role in ("eot", "eom"))
        return tuple(at for at in ids if at is not None)

    def distinct(self, tokens: list[str]) -> tuple[str, ...]:
        seen: set[str] = set()
        for token in tokens:
            if token in seen:
                raise refusal(LLM11, self._name, f"two tokens are {backquote(token)}")
            seen.add(token)
        return tuple(tokens)

    def _list_refusal(self, key: str, value: Value, kind: type[object]) -> Exception:
        wanted = {str: "texts", int: "integers", float: "numbers", bool: "true or false"}[kind]
        found = f"a list of {len(value):,}" if isinstance(value, list) else backquote(str(value))
        return refusal(LLM11, self._name, f"`{_PREFIX}{key}` is {found}, expected {wanted}")
