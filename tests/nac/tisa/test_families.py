"""Real families: ids, places and texts are those of the library."""

from __future__ import annotations

from functools import cache

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.tisa.compared import require_equal
from tests.nac.tisa.corpus import CORPUS, OTHER_SCRIPTS, sample, strings
from tests.nac.tisa.families import FAMILIES, family

EVERY = pytest.mark.parametrize("name", FAMILIES)
_LONG = ("a" * 3000, "ab " * 800, " " * 2000, "\u4e2d" * 1500, "x\n\n  \t y  \n" * 100, "1" * 700)


@cache
def program(name: str) -> tisa.TisaProgram:
    return tisa.load(tisa.compile_tokenizer(family(name).to_str()))


@pytest.mark.sampled(3)
@EVERY
def test_ids_and_places_are_those_of_the_library(name: str) -> None:
    texts = [*CORPUS, *OTHER_SCRIPTS, *strings(20, seed=21)]
    pairs = list(zip(texts[:9], texts[9:18], strict=True))
    require_equal(family(name), program(name), [*sample(texts, 6), *sample(pairs, 3)])


@EVERY
def test_long_runs(name: str) -> None:
    for text in sample(_LONG, 3):
        assert program(name).encode(text) == family(name).encode(text).ids, text[:5]


@EVERY
def test_texts_of_ids_are_those_of_the_library(name: str) -> None:
    made, library = program(name), family(name)
    for text in sample([*CORPUS, *strings(40, seed=22)], 2):
        ids = library.encode(text).ids
        for skip in (True, False):
            expected = library.decode(ids, skip_special_tokens=skip)
            assert made.decode(ids, skip_special_tokens=skip) == expected, ascii(text)


@EVERY
def test_a_stream_gives_the_same_text(name: str) -> None:
    for text in sample((*CORPUS, *OTHER_SCRIPTS), 4):
        ids = program(name).encode(text)
        stream = program(name).stream()
        parts = [*map(stream.push, ids), stream.finish()]
        assert "".join(parts) == program(name).decode(ids), ascii(text)
        assert not any("\ufffd" in part for part in parts) or "\ufffd" in "".join(parts)


@EVERY
def test_half_of_a_pair_is_refused(name: str) -> None:
    for encode in (program(name).encode, program(name).encode_whole):
        with pytest.raises(InputError, match="NAC70"):
            encode("a \ud800 b")


@pytest.mark.full
@EVERY
def test_two_thousand_strings(name: str) -> None:
    require_equal(family(name), program(name), strings(2000, seed=23))
