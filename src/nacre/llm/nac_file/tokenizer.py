"""A tokenizer as a file of NAC carries it: it finds control tokens, and says what begins a text."""

from __future__ import annotations

from nacre.llm.tokenizer.tokenizer import Tokenizer
from nacre.nac.tisa import Bundle, compile_bundle
from nacre.nac.tisa.files.written import WrittenTokenizer
from nacre.nac.tisa.instructions import Instruction, Item, SoughtToken, step


def tokenizer_bundle(tokenizer: Tokenizer) -> Bundle:
    """The manifest and its resources."""
    known = tokenizer.vocabulary
    if known.is_written:
        return compile_bundle(known.document, unlimited=True)
    program = tokenizer.program
    steps = (*_control_token_search(tokenizer), *program.instructions, *_composition(tokenizer))
    return WrittenTokenizer(steps, program.vocabulary, program.token_decoder).bundle(known.file)


def _control_token_search(tokenizer: Tokenizer) -> list[Instruction]:
    tokens = [SoughtToken(text, at) for text, at in tokenizer.control_tokens.items() if text]
    return [step("FIND_TOKENS", tuple(tokens))] if tokens else []


def _composition(tokenizer: Tokenizer) -> list[Instruction]:
    known = tokenizer.vocabulary
    before = [Item(known.begin)] if known.adds_begin and known.begin is not None else []
    behind = [Item(known.end)] if known.adds_end and known.end is not None else []
    return [step("COMPOSE", (*before, Item(), *behind))] if before or behind else []
