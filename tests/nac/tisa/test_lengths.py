"""Texts that are cut and padded, and the pieces that are cut off: as the library has them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
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


def _padded(name: str, **parts: Json) -> tuple[Any, tisa.TisaProgram]:
    """A file whose vocabulary has a special token of that name, not first, read by both."""
    vocabulary = {token: id_ for token, id_ in BASE["model"]["vocab"].items() if id_}
    vocabulary |= {"zero": 0, name: 40}
    token = {
        "id": 40, "content": name, "special": True, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False,
    }  # fmt: skip
    whole = BASE | {"truncation": None, "padding": None, "post_processor": None, **parts}
    return both(whole | {"added_tokens": [token], "model": {**BASE["model"], "vocab": vocabulary}})


@pytest.mark.parametrize("direction", ["Left", "Right"])
def test_a_call_pads_with_what_the_file_pads_with(direction: str) -> None:
    padding = {
        "strategy": {"Fixed": 6}, "direction": direction, "pad_to_multiple_of": None,
        "pad_id": 5, "pad_type_id": 3, "pad_token": "b",
    }  # fmt: skip
    library, program = _padded("[PAD]", padding=padding)
    assert program.pad_id == 5
    assert program.encode("t h e", pad_to=6) == library.encode("t h e").ids
    assert program.encode("t h e", pad_to=6, pad_on="right", pad_id=7)[3:] == [7, 7, 7]


@pytest.mark.parametrize("name", ["[PAD]", "<pad>"])
def test_a_special_token_for_padding_is_known_by_its_name(name: str) -> None:
    library, program = _padded(name)
    library.enable_padding(length=6, pad_id=library.token_to_id(name), pad_token=name)
    assert program.encode("t h e", pad_to=6) == library.encode("t h e").ids
    assert program.pad_id == 40


def test_the_first_id_is_no_padding_unless_the_call_says_so() -> None:
    """Where the library takes 0 in silence, as it has no other default, 0 is a token like any."""
    library, program = _padded("<fill>")
    assert program.pad_id is None
    with pytest.raises(InputError, match="names no token to pad with") as caught:
        program.encode("t h e", pad_to=6)
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == (
        "NAC70", "say which id, `pad_id=0`, if the model knows it as padding"
    )  # fmt: skip
    library.enable_padding(length=6)
    assert program.encode("t h e", pad_to=6, pad_id=0) == library.encode("t h e").ids
