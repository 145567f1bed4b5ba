"""Truncation and padding of `tokenizer.json`."""

from __future__ import annotations

from typing import Literal, cast

from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.options import Padding, Truncation, padding_problem, truncation_problem

_STRATEGIES = ("LongestFirst", "OnlyFirst", "OnlySecond")


def truncation_of(part: Part) -> Truncation | None:
    """How texts are cut; None where they are not."""
    if not part:
        return None
    strategy = part.get("strategy", "LongestFirst").text()
    if strategy not in _STRATEGIES:
        raise part.wrong(f"`{strategy}` is none of {', '.join(_STRATEGIES)}")
    length, stride = part["max_length"].integer(), part.get("stride", 0).integer()
    named = cast(Literal["LongestFirst", "OnlyFirst", "OnlySecond"], strategy)
    cut = Truncation(length, stride, named, _direction(part))
    if reason := truncation_problem(cut):
        raise part.wrong(f"the file {reason}")
    return cut


def padding_of(part: Part) -> Padding | None:
    """How texts are padded; None where they are not."""
    if not part:
        return None
    strategy = part["strategy"]
    length = strategy["Fixed"].integer() if strategy.has("Fixed") else None
    if length is None and strategy.value != "BatchLongest":
        raise strategy.wrong("texts are padded to a length or to the longest of a batch")
    multiple = part.get("pad_to_multiple_of")
    padding = Padding(
        length, part.get("pad_id", 0).integer(), part.get("pad_type_id", 0).integer(),
        part.get("pad_token", "[PAD]").text(), _direction(part),
        multiple.integer() if multiple and multiple.value else None,
    )  # fmt: skip
    if reason := padding_problem(padding):
        raise part.wrong(f"the file {reason}")
    return padding


def _direction(part: Part) -> Literal["Left", "Right"]:
    name = part.get("direction", "Right").text()
    if name not in ("Left", "Right"):
        raise part.wrong(f"`{name}` is neither Left nor Right")
    return cast(Literal["Left", "Right"], name)
