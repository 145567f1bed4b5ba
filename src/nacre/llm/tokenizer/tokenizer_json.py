"""A tokenizer that a `tokenizer.json` says, as a program, without what control tokens do."""

from __future__ import annotations

import json

from nacre.llm.model.problems import refusal
from nacre.llm.rules.tokenizer import LLM10
from nacre.llm.tokenizer.vocabulary import Vocabulary
from nacre.nac.tisa import TisaProgram, compile_tokenizer, load


def json_program(vocabulary: Vocabulary, *, finds_control: bool = False) -> TisaProgram:
    """The program; InputError for what is not known.

    Control tokens are put around texts by whoever encodes. They are found where asked for, with
    the white space that each takes along.
    """
    try:
        parsed = json.loads(vocabulary.document)
    except (ValueError, RecursionError) as error:
        raise refusal(LLM10, vocabulary.file, f"the tokenizer is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise refusal(LLM10, vocabulary.file, "the tokenizer is no mapping of names to values")
    added = parsed.get("added_tokens")
    kept = [
        row
        for row in (added if isinstance(added, list) else ())
        if finds_control or not (isinstance(row, dict) and row.get("special") is True)
    ]
    plain = {**parsed, "added_tokens": kept, "post_processor": None}
    plain |= {"truncation": None, "padding": None}
    return load(compile_tokenizer(json.dumps(plain)))
