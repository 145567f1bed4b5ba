"""Texts that are cut and padded, and the pieces that are cut off: as the library has them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.effort import scaled
from tests.nac.tisa.compared import both, require_equal

Json = dict[str, Any]
ENDS = {"sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
LEVEL: Json = {
    "type": "ByteLevel", "trim_offsets": True, "add_prefix_space": True, "use_regex": True,
}  # fmt: skip


def _template(single: list[tuple[str, int]], pair: list[tuple[str, int]]) -> Json:
    def item(name: str, type_id: int) -> Json:
        if name in "AB":
            return {"Sequence": {"id": name, "type_id": type_id}}
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    return {
        "type": "TemplateProcessing",
        "single": [item(*each) for each in single],
        "pair": [item(*each) for each in pair],
        "special_tokens": {
            "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
            "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]},
        },
    }


PLAIN = _template(
    [("[CLS]", 0), ("A", 0), ("[SEP]", 0)],
    [("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)],
)
POST_PROCESSORS: dict[str, Json | None] = {
    "none": None,
    "template": PLAIN,
    "a template with types of its own": _template(
        [("[CLS]", 3), ("A", 2)], [("A", 2), ("[SEP]", 4), ("B", 5)]
    ),
    "the second text first": _template([("A", 0)], [("B", 7), ("[SEP]", 1), ("A", 0)]),
    "bert": {"type": "BertProcessing", **ENDS},
    "roberta": {
        "type": "RobertaProcessing", **ENDS, "trim_offsets": True, "add_prefix_space": True,
    },
    "bytes": LEVEL,
    "bytes, then a template": {"type": "Sequence", "processors": [LEVEL, PLAIN]},
    "a template, then bytes": {"type": "Sequence", "processors": [PLAIN, LEVEL]},
}  # fmt: skip
TEXTS = ("t h e q", "t h e q c d s", ("t h e q", "c d s"), ("a", "t h e q"), ("t h e", "q"), "")


NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdehqst")
BASE: Json = {
    "version": "1.0", "added_tokens": [], "normalizer": None, "decoder": None,
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": {name: at for at, name in enumerate(NAMES)},
    },
}  # fmt: skip


def _require_equal(post_processor: str, **parts: Json) -> None:
    lengths = {"truncation": None, "padding": None, **parts}
    whole = BASE | lengths | {"post_processor": POST_PROCESSORS[post_processor]}
    require_equal(*both(whole), TEXTS)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", POST_PROCESSORS)
@pytest.mark.parametrize("strategy", ["LongestFirst", "OnlyFirst", "OnlySecond"])
@pytest.mark.parametrize("direction", ["Left", "Right"])
def test_every_length_and_stride(name: str, strategy: str, direction: str) -> None:
    sizes = [(most, stride) for most, stride in product(range(13), range(5)) if stride < most]
    for most, stride in [(0, 0), *sizes[:: 60 // scaled(60)]]:
        cut = {"max_length": most, "stride": stride, "strategy": strategy, "direction": direction}
        _require_equal(name, truncation=cut)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", POST_PROCESSORS)
@pytest.mark.parametrize("direction", ["Left", "Right"])
def test_what_is_cut_off_is_padded(name: str, direction: str) -> None:
    cut = {"max_length": 8, "stride": 1, "strategy": "LongestFirst", "direction": "Right"}
    for strategy, multiple in product(("BatchLongest", {"Fixed": 9}), (None, 5)):
        padding = {
            "strategy": strategy, "direction": direction, "pad_to_multiple_of": multiple,
            "pad_id": 1, "pad_type_id": 3, "pad_token": "P",
        }  # fmt: skip
        _require_equal(name, truncation=cut, padding=padding)
