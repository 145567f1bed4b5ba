"""Any member of a tokenizer.json in which something else stands: refused with a code, or taken."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.mep.carrying import tokenizer_json

ODD: tuple[Any, ...] = (None, True, 5, -1, 1.5, 10**30, "", "\ud800", "x", [], [1], {}, {"a": 1})
BPE = {
    "added_tokens": [{"id": 3, "content": "<s>", "special": True, "single_word": False,
                      "lstrip": False, "rstrip": False, "normalized": False}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                      "use_regex": True},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
                       "use_regex": True},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                "use_regex": True},
    "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": None,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
              "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "byte_fallback": False, "ignore_merges": False,
              "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Where something stands in a file."""
    if path:
        yield path
    if not isinstance(value, dict | list):
        return
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(member, (*path, key))


def with_odd(file: Any, path: tuple[Any, ...], odd: Any) -> Any:  # noqa: ANN401
    made = copy.deepcopy(file)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return made


@pytest.mark.heavy("every member with every odd value")
@pytest.mark.parametrize("file", [BPE, json.loads(tokenizer_json())], ids=["bpe", "letters"])
def test_something_else_stands_there(file: Any) -> None:  # noqa: ANN401
    changed = [with_odd(file, path, odd) for path in places(file) for odd in ODD]
    found = {code for each in changed for code in codes(json.dumps(each))}
    assert len(found) > 1, "refused for several reasons"
    assert all(code.startswith("NAC") for code in found)


def codes(text: str) -> set[str]:
    """Those of a refusal; nothing but a refusal may come of any text."""
    try:
        tisa.load(tisa.compile_tokenizer(text)).encode("ab a", pad_to=4, pad_id=0)
    except InputError as error:
        return {one.code for one in error.diagnostics}
    return set()
