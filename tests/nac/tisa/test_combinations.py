"""Any normaliser with any pre-tokeniser, model, post-processor and added tokens: equal."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nac.tisa.compared import both, both_or_refused, require_equal, require_same_texts
from tests.nac.tisa.corpus import strings
from tests.nac.tisa.drawn import BEHAVIOURS, PATTERNS, drawn_tokenizer, small_tokenizer
from tests.nac.tisa.drawn_models import drawn_text
from tests.nac.tisa.made import tokenizer

_EDGES = ("", " a  the <mask> b [X] ", "e\u0301 \ufb01\u0301 q\r\nx", "a\u0301")


@pytest.mark.heavy("each example compiles a tokenizer")
@given(seed=st.integers(0, 2**32), text=st.text(max_size=20))
def test_any_combination(seed: int, text: str) -> None:
    draw = Random(seed)
    made = both_or_refused(drawn_tokenizer(draw))
    if made is None:
        return
    texts = [*strings(8, seed=draw.randrange(10**6)), *_EDGES, text]
    pairs = [(draw.choice(texts), draw.choice(texts)) for _ in range(3)]
    require_equal(*made, [*texts, *pairs])


def _require_small(seed: int) -> None:
    draw = Random(seed)
    made = both_or_refused(small_tokenizer(draw))
    if made is None:
        return
    texts = [drawn_text(draw) for _ in range(6)]
    pairs = [(drawn_text(draw), drawn_text(draw)) for _ in range(2)]
    require_equal(*made, [*texts, *pairs])
    require_same_texts(*made, [*texts, *pairs])


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
def test_any_combination_of_a_small_vocabulary(seed: int) -> None:
    _require_small(seed)


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_small_vocabularies(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        _require_small(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_combinations(seed: int) -> None:
    draw = Random(seed)
    for _ in range(50):
        made = both_or_refused(drawn_tokenizer(draw))
        texts = [*strings(10, seed=draw.randrange(10**6)), *_EDGES]
        if made is not None:
            require_equal(*made, texts)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pattern", [p["Regex"] for p in PATTERNS if "Regex" in p])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("invert", [False, True])
def test_every_pattern_with_every_behaviour(pattern: str, behaviour: str, invert: bool) -> None:
    whole = json.loads(tokenizer("gpt2").to_str())
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behaviour}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    whole["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [{**split, "invert": invert}, {**level, "use_regex": False}],
    }
    texts = [*strings(25, seed=4), "abcab b abbab 1234567 a,b"]
    require_equal(*both(whole), texts)
