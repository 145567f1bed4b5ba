"""Characters against the library, code point by code point: its tables have several ages."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable

import pytest

from nacre.nac.tisa import character_data as data
from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.characters import category, code_points, lowercase, normal_form
from nacre.nac.tisa.instructions import CATEGORIES, MAJOR_CATEGORIES
from nacre.nac.tisa.patterns.nodes import WORD, Chars, PatternError
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.patterns.script_ranges import SCRIPT_RANGES
from nacre.nac.tisa.text.charsmap import Charsmap
from nacre.nac.tisa.text.scripts import script_starts
from tests.nac.tisa.charsmaps import charsmap, precompiled
from tests.nac.tisa.corpus import sample
from tests.nac.tisa.made import Regex, Tokenizer, models, normalizers, pre_tokenizers
from tests.nac.tisa.patterns.drawn_patterns import POSIX, PROPERTIES

EVERY = [chr(p) for p in range(sys.maxunicode + 1) if not 0xD800 <= p <= 0xDFFF]
SAMPLE = [c for c in EVERY if ord(c) < 0x1000 or ord(c) % 61 == 0]
# Where a Unicode version brought something: all of it, with what stands beside it.
YOUNG = [
    chr(point)
    for listed in (*data.SINCE_14.values(), data.SINCE_17, data.INERT)
    for first, last in listed
    for point in {first - 1, first, (first + last) // 2, last, last + 1}
]
TWO_PLANES = [c for c in EVERY if ord(c) < 0x20000 or ord(c) % 61 == 0]
CHARACTERS = [
    pytest.param([*SAMPLE, *YOUNG], id="sample"),
    pytest.param(EVERY, id="every", marks=pytest.mark.full),
]
EVERY_CHARACTER = pytest.mark.parametrize("characters", CHARACTERS)


def _removed_by(splitter: object, characters: Iterable[str]) -> set[str]:
    """What a pre-tokeniser drops."""
    text = "".join(characters)
    kept = splitter.pre_tokenize_str(text)  # type: ignore[attr-defined]
    return set(text).difference("".join(part for part, _ in kept))


def _matched(chars: Chars, characters: Iterable[str]) -> set[str]:
    text = "".join(characters)
    found = Scanner([chars]).matches(text, Budget(len(text)))
    return {text[start] for start, _, _ in found}


CLASSES = (
    *(rf"\p{{{name}}}" for name in (*SCRIPT_RANGES, *PROPERTIES)),
    *(rf"\p{{{name}}}" for name in sorted(CATEGORIES | MAJOR_CATEGORIES)),
    *(f"[[:{name}:]]" for name in POSIX), "[[:^alpha:]_]", "[^[:punct:][:^upper:]]",
    r"\s", r"\d", r"\w", r"\W", r"[\w]", r"[\W]", r"[^\w\s]", r"[\w&&[^\d_]]", r"[\p{Word}]", r"\h",
    r"\H", r"\N", r"\O", ".", "(?i)[a-z]", "(?i)[^k-s]", "(?i)s", r"(?i)[^\s!-~]",
    r"(?i)\p{Lu}",
    r"[\p{L}&&\p{Latin}&&[^a-z]]", r"[^\p{^L}]",
)  # fmt: skip


@pytest.mark.sampled(30)
@pytest.mark.parametrize(
    "characters",
    [
        pytest.param([*SAMPLE, *YOUNG], id="sample"),
        pytest.param(TWO_PLANES, id="every", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("source", CLASSES)
def test_classes_of_patterns(source: str, characters: list[str]) -> None:
    try:
        tree = parse_pattern(source, "hub")
    except PatternError:
        assert source in UNKNOWN_CLASSES
        return
    assert isinstance(tree, Chars)
    split = pre_tokenizers.Split(Regex(source), "removed")
    assert _matched(tree, characters) == _removed_by(split, characters)


UNKNOWN_CLASSES = (r"\p{Emoji}", r"\p{Script=Han}")


@EVERY_CHARACTER
def test_what_pre_tokenizers_call_punctuation_white_space_and_words(characters: list[str]) -> None:
    marks = {chr(point) for point in code_points(data.PUNCTUATION)}
    dropped = _removed_by(pre_tokenizers.Punctuation("removed"), characters)
    assert dropped == marks.intersection(characters)
    spaces = {chr(point) for point in code_points(data.WHITE_SPACE)}
    dropped = _removed_by(pre_tokenizers.WhitespaceSplit(), characters)
    assert dropped == spaces.intersection(characters)
    words = _matched(WORD, {*characters, "\x00"})
    for part, _ in pre_tokenizers.Whitespace().pre_tokenize_str("\x00".join(characters)):
        # Words hold words alone, and what stands between them none.
        assert words.issuperset(part) or words.isdisjoint(part), ascii(part)


@EVERY_CHARACTER
def test_what_digits_are(characters: list[str]) -> None:
    digits = Chars(data.DIGITS_BESIDE, ("N",))
    wanted = _matched(digits, characters)
    library = pre_tokenizers.Digits(individual_digits=True)
    found = {
        part for part, _ in library.pre_tokenize_str("\x00\x01".join(characters)) if len(part) == 1
    }
    assert found - {"\x00", "\x01"} == wanted


FORMS: dict[str, Callable[[str], str]] = {
    name: (lambda text, name=name: normal_form(name, text))  # type: ignore[misc]
    for name in ("NFC", "NFD", "NFKC", "NFKD")
}


@EVERY_CHARACTER
@pytest.mark.parametrize("form", FORMS)
def test_normal_forms(form: str, characters: list[str]) -> None:
    library = getattr(normalizers, form)()
    for pattern in ("{}", "a\u0345{}\u0334", "a{}\u0316\u0301", "{}\u0307"):
        for character in sample(characters, 6):
            text = pattern.format(character)
            assert FORMS[form](text) == library.normalize_str(text), ascii(text)


@EVERY_CHARACTER
def test_small_letters(characters: list[str]) -> None:
    library = normalizers.Lowercase()
    for character in characters:
        assert lowercase(character) == library.normalize_str(character), ascii(character)


@EVERY_CHARACTER
@pytest.mark.parametrize(
    ("normalizer", "removed"),
    [
        (normalizers.StripAccents(), data.ACCENTS),
        (
            normalizers.BertNormalizer(
                clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
            ),
            data.BERT_ACCENTS,
        ),
        (normalizers.Nmt(), data.NMT_REMOVED),
    ],
    ids=["StripAccents", "BertNormalizer", "Nmt"],
)
def test_what_normalizers_remove(
    normalizer: object, removed: data.Ranges, characters: list[str]
) -> None:
    gone = {c for c in characters if not normalizer.normalize_str(c)}  # type: ignore[attr-defined]
    assert gone == {chr(point) for point in code_points(removed)}.intersection(characters)


def test_a_sigma_is_the_same_everywhere() -> None:
    assert lowercase("ΟΔΥΣΣΕΥΣ Σ ΑΣ") == normalizers.Lowercase().normalize_str("ΟΔΥΣΣΕΥΣ Σ ΑΣ")


def test_ideographs_stay_ideographs_when_decomposed() -> None:
    """The cut that stands for spaces around them comes behind the normal form."""
    apart = set(code_points(data.IDEOGRAPHS))
    for character in filter(unicodedata.decomposition, EVERY):
        parts = normal_form("NFD", character)
        assert all((ord(part) in apart) == (ord(character) in apart) for part in parts)


def test_long_runs_of_marks_are_ordered_in_no_time() -> None:
    text = "a" + "\u0301\u0316\u0f73" * 30_000 + "\u00e9\u0316"
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert FORMS[form](text) == getattr(normalizers, form)().normalize_str(text)


def test_categories_do_not_move_with_the_version_of_python() -> None:
    assert category("\U0001fae8") == "So"  # 15.0
    assert category("\U00010d50") == "Lu"  # 16.0
    assert category("\ua7ce") == "Cn"  # 17.0


@EVERY_CHARACTER
def test_scripts_begin_where_they_do_in_the_library(characters: list[str]) -> None:
    text = "".join(characters)
    parts = pre_tokenizers.UnicodeScripts().pre_tokenize_str(text)
    assert script_starts(text) == [start for _, (start, _) in parts]


@EVERY_CHARACTER
@pytest.mark.parametrize("before", ["a", "\u0600", "\u0915", "\r", "\u200b"])
def test_graphemes_end_where_they_do_in_the_library(before: str, characters: list[str]) -> None:
    """A grapheme that begins with a text of the table becomes that text's, the rest goes away."""
    whole = json.loads(Tokenizer(models.BPE()).to_str())
    whole["normalizer"] = precompiled({before: "Z"})
    library = Tokenizer.from_str(json.dumps(whole)).normalizer
    table = Charsmap(charsmap({before: "Z"}))
    text = "|".join(f"{before}{character}x" for character in sample(characters, 6))
    assert table.apply(text) == library.normalize_str(text)
