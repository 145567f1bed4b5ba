"""Any normaliser with any pre-tokeniser, model, post-processor and added tokens: equal."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nac.tisa.compared import both, require_equal
from tests.nac.tisa.corpus import strings
from tests.nac.tisa.drawn import BEHAVIOURS, PATTERNS, drawn_tokenizer
from tests.nac.tisa.made import tokenizer

_EDGES = ("", " a  the <mask> b [X] ", "e\u0301 \ufb01\u0301 q\r\nx", "a\u0301")


@pytest.mark.heavy("each example compiles a tokenizer")
@given(seed=st.integers(0, 2**32), text=st.text(max_size=20))
def test_any_combination(seed: int, text: str) -> None:
    draw = Random(seed)
    library, made = both(drawn_tokenizer(draw))
    texts = [*strings(8, seed=draw.randrange(10**6)), *_EDGES, text]
    pairs = [(draw.choice(texts), draw.choice(texts)) for _ in range(3)]
    require_equal(library, made, [*texts, *pairs])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_combinations(seed: int) -> None:
    draw = Random(seed)
    for _ in range(50):
        library, made = both(drawn_tokenizer(draw))
        require_equal(library, made, [*strings(10, seed=draw.randrange(10**6)), *_EDGES])


@pytest.mark.sampled(4)
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
