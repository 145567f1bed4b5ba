"""A program beside the library: ids, places, types, masks, tokens and what is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.tisa.made import Made, Tokenizer

Json = dict[str, Any]
Text = str | tuple[str, str]


def both(whole: Json | str) -> tuple[Made, tisa.TisaProgram]:
    """The library's tokenizer and ours."""
    library = Tokenizer.from_str(whole if isinstance(whole, str) else json.dumps(whole))
    return library, tisa.load(tisa.compile_tokenizer(library.to_str()))


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
    assert found.ids == expected.ids, shown
    assert found.offsets == expected.offsets, shown
    assert found.type_ids == expected.type_ids, shown
    assert found.tokens == expected.tokens, shown
    assert found.word_ids == expected.word_ids, shown
    assert found.special_tokens_mask == expected.special_tokens_mask, shown
    assert found.attention_mask == expected.attention_mask, shown
    assert made.encode(*texts, add_special_tokens=special) == expected.ids, shown
    if len(texts) == 1:
        rest = [(part.ids, part.offsets) for part in expected.overflowing]
        assert [(part.ids, part.offsets) for part in found.overflowing] == rest, shown
