"""Long fragments of BPE are merged part by part, which must not be seen."""

from __future__ import annotations

import random

import pytest

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.models.boundaries import boundaries_of
from nacre.nac.tisa.models.bpe import Bpe, BpeOptions

LETTERS = "abcd\u00e9\u4e2d"
MERGES = (("a", "b"), ("ab", "a"), ("c", "c"), ("b", "\u00e9"), ("cc", "d"), ("a", "a"))
TOKENS = ["<unk>", *LETTERS, *(first + second for first, second in MERGES)]
IDS = {token: at for at, token in enumerate(TOKENS)}


def test_parts_join_to_the_fragment_and_no_token_crosses_them() -> None:
    boundaries = boundaries_of(IDS, MERGES, ())
    assert boundaries is not None
    assert boundaries.parts("dabaccdxyb") == ["d", "aba", "ccd", "xy", "b"]


@pytest.mark.parametrize(
    "options", [BpeOptions(0), BpeOptions(0, fuses_unknown=True), BpeOptions(0, has_bytes=True)]
)
@pytest.mark.parametrize("seed", range(5))
def test_ids_and_places_are_those_without_parts(options: BpeOptions, seed: int) -> None:
    ids = dict(IDS)
    if options.has_bytes:
        ids |= {f"<0x{byte:02X}>": len(ids) + byte for byte in range(0x80, 0x100)}
    model = Bpe(ids, MERGES, options)
    draw = random.Random(seed)
    text = "".join(draw.choices(LETTERS + "xy\u00fc\u03b1", k=700))
    assert model.extents(text, Budget(len(text))) == model._merge_extents(text)
    assert model(text, Budget(len(text))) == [e.id for e in model.extents(text, Budget(len(text)))]


@pytest.mark.parametrize("opaque", ["a", "cc"])
def test_a_merge_of_what_has_no_letters_forbids_parts(opaque: str) -> None:
    assert boundaries_of(IDS, MERGES, {opaque}) is None
