"""Texts to ids and ids to texts, as a GGUF file says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from nacre.base.excerpt import backquote
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.tokenizer import LLM10, LLM12
from nacre.llm.tokenizer.byte_level import byte_level_program
from nacre.llm.tokenizer.sentences import sentences_program
from nacre.llm.tokenizer.tokenizer_json import json_program
from nacre.llm.tokenizer.vocabulary import TokenType, Vocabulary, read_vocabulary
from nacre.nac.tisa import TisaProgram
from nacre.nac.tisa.streaming import TextStream

_MODELS: MappingProxyType[str, Callable[[Vocabulary], TisaProgram]] = MappingProxyType(
    {"gpt2": byte_level_program, "huggingface": json_program, "llama": sentences_program}
)


class Tokenizer:
    """A tokenizer: a program of TISA, and the control tokens around what it encodes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.program = _program(vocabulary)
        self._control = vocabulary.ids_of_type(TokenType.CONTROL)

    @classmethod
    def from_gguf(cls, file: ModelFile) -> Tokenizer:
        """The tokenizer of a file; InputError where it has none that is built."""
        return cls(read_vocabulary(file))

    def encode(
        self, text: str, *, add_special_tokens: bool = True, parse_special: bool = False
    ) -> list[int]:
        """The ids of a text, with what the file wants at its ends.

        With `parse_special` names of control tokens in the text are those tokens, as templates
        write them; else they are text like any other.
        """
        known = self.vocabulary
        if parse_special and known.is_written:
            ids = self._finding.encode(text, add_special_tokens=False) if text else []
        else:
            ids = [i for part in self._parts(text, parse_special) for i in self._ids(part)]
        before = [known.begin] if add_special_tokens and known.adds_begin else []
        behind = [known.end] if add_special_tokens and known.adds_end else []
        if ids[:1] == before:  # a template that writes it itself
            before = []
        return [i for i in (*before, *ids, *behind) if i is not None]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; control tokens have none."""
        return self.program.decode([i for i in map(self._require_id, ids) if i not in self._silent])

    def stream(self) -> TextStream:
        """Text as it comes, one id after another."""
        return self.program.stream()

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """The ids of control tokens by their names."""
        return self._control

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end an answer."""
        return self.vocabulary.ends

    def is_silent(self, index: int) -> bool:
        """Whether an id is of a control token, which has no text, or of none."""
        return index in self._silent

    @cached_property
    def _finding(self) -> TisaProgram:
        """The program of a `tokenizer.json` that finds control tokens, too."""
        return json_program(self.vocabulary, finds_control=True)

    def _ids(self, part: str | int) -> list[int]:
        if isinstance(part, int):
            return [part]
        return self.program.encode(part, add_special_tokens=False)

    def _parts(self, text: str, parse_special: bool) -> Iterator[str | int]:
        """Texts, and ids of control tokens that stand in the text."""
        if not parse_special or not self._control:
            yield from [text] if text else []
            return
        for part in self._names.split(text):
            if part:
                yield self._control.get(part, part)

    def _require_id(self, index: int) -> int:
        count = len(self.vocabulary.tokens)
        if not 0 <= index < count:
            message = f"no token has the id {index!r}, expected 0 to {count - 1:,}"
            raise refusal(LLM12, self.vocabulary.file, message)
        return int(index)

    @cached_property
    def _silent(self) -> frozenset[int]:
        unused = self.vocabulary.ids_of_type(TokenType.UNUSED) if self.vocabulary.is_written else {}
        return frozenset({*self._control.values(), *unused.values()})

    @cached_property
    def _names(self) -> re.Pattern[str]:
        longest_first = sorted((name for name in self._control if name), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def _program(vocabulary: Vocabulary) -> TisaProgram:
    make = _MODELS.get(vocabulary.model)
    if make is None:
        message = f"the tokenizer is {backquote(vocabulary.model)}, which is not built"
        raise refusal(LLM10, vocabulary.file, message, f"built are {', '.join(_MODELS)}")
    return make(vocabulary)
