"""A program beside the library: ids, places, types, masks, tokens and what is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.tisa.made import Made, Tokenizer, tokenizer

Json = dict[str, Any]
Text = str | tuple[str, str]
_LISTS = (
    "ids", "offsets", "tokens", "type_ids", "word_ids", "special_tokens_mask", "attention_mask",
    "sequence_ids",
)  # fmt: skip


@cache
def program(name: str) -> tisa.TisaProgram:
    """The program of a tokenizer that is trained here, compiled once."""
    return tisa.load(tisa.compile_tokenizer(tokenizer(name)))


def both(whole: Json | str) -> tuple[Made, tisa.TisaProgram]:
    """The library's tokenizer and ours."""
    library = Tokenizer.from_str(whole if isinstance(whole, str) else json.dumps(whole))
    return library, tisa.load(tisa.compile_tokenizer(library.to_str()))


def both_or_refused(whole: Json) -> tuple[Made, tisa.TisaProgram] | None:
    """The same; None where the library cannot read it, or a program cannot say it (NAC69)."""
    try:
        library = Tokenizer.from_str(json.dumps(whole))
    except Exception:
        return None
    try:
        return library, tisa.load(tisa.compile_tokenizer(library.to_str()))
    except InputError as error:
        if {each.code for each in error.diagnostics} != {"NAC69"}:
            raise
        return None


def require_same_texts(library: Made, made: tisa.TisaProgram, texts: Iterable[Text]) -> None:
    """What ids become, with special tokens and without; where the library panics, ours is ours."""
    for each in texts:
        parts = (each,) if isinstance(each, str) else each
        try:
            ids = made.encode(*parts)
        except InputError:
            continue
        if any(library.id_to_token(index) is None for index in ids):
            continue
        for skip in (True, False):
            try:
                expected = library.decode(ids, skip_special_tokens=skip)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                continue
            assert made.decode(ids, skip_special_tokens=skip) == expected, ascii((parts, ids))


def require_equal(library: Made, made: tisa.TisaProgram, texts: Iterable[Text]) -> None:
    """Everything that both say of each text or pair, with special tokens and without."""
    for each in texts:
        for special in (True, False):
            _compare(library, made, (each,) if isinstance(each, str) else each, special)


def _compare(library: Made, made: tisa.TisaProgram, texts: tuple[str, ...], special: bool) -> None:
    try:
        expected = library.encode(*texts, add_special_tokens=special)
    except BaseException as error:
        # What the library cannot do it ends with a panic, which is no Exception.
        if isinstance(error, KeyboardInterrupt):
            raise
        with pytest.raises(InputError, match="NAC70"):
            made.encode_whole(*texts, add_special_tokens=special)
        return
    found = made.encode_whole(*texts, add_special_tokens=special)
    shown = ascii(texts)
    assert _described(found) == _described(expected), shown
    assert made.encode(*texts, add_special_tokens=special) == expected.ids, shown


def _described(encoding: Any) -> Json:  # noqa: ANN401 - of the library or ours
    """All that is known of an encoding, and of what was cut off."""
    described = {name: list(getattr(encoding, name)) for name in _LISTS}
    return described | {"overflowing": [_described(each) for each in encoding.overflowing]}
