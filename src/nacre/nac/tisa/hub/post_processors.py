"""Post-processors as COMPOSE, and as what COMPOSE does not say: pairs, types, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.instructions import Instruction, Item, step
from nacre.nac.tisa.options import (
    EncodingOptions,
    SpecialTokens,
    Template,
    TextSlot,
    Trimming,
)

_MOST_ITEMS = 255
_PLAIN: Template = (TextSlot(0),)


@dataclass(frozen=True)
class PostProcessing:
    """What a post-processor does to one text and to two."""

    single: Template = _PLAIN
    pair: Template | None = None
    trimming: tuple[Trimming, ...] = ()
    numbers_pieces: bool = False
    is_template: bool = False

    def step(self, part: Part) -> list[Instruction]:
        """COMPOSE, for the ids of one text."""
        items: list[Item] = []
        for each in self.single:
            items += [Item()] if isinstance(each, TextSlot) else map(Item, each.ids)
        if items == [Item()]:
            return []
        if len(items) > _MOST_ITEMS:
            raise part.unsupported(f"COMPOSE has at most {_MOST_ITEMS} items, not {len(items)}")
        return [step("COMPOSE", tuple(items))]

    def options(self, ids: Mapping[str, int]) -> EncodingOptions:
        """The rest of it; COMPOSE says ids of type 0 with the tokens of the vocabulary."""
        is_said = all(
            item.type_id == 0
            and (isinstance(item, TextSlot) or item.ids == tuple(map(ids.get, item.tokens)))
            for item in self.single
        )
        single = None if is_said else self.single
        return EncodingOptions(single, self.pair, self.trimming, self.numbers_pieces)


def post_processing(part: Part) -> PostProcessing:
    """What a post-processor does; nothing for none."""
    if not part:
        return PostProcessing()
    kind = part["type"].text()
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(f"there is no post-processor `{kind}`")
    return make(part)


def _sequence(part: Part) -> PostProcessing:
    """Each one gets what those before it have made; two templates have no room for two texts."""
    parts = [post_processing(inner) for inner in part["processors"].list()]
    single = _PLAIN
    for each in parts:
        at = next(i for i, item in enumerate(each.single) if isinstance(item, TextSlot))
        single = each.single[:at] + single + each.single[at + 1 :]
    pairs = [each.pair for each in parts if each.pair is not None]
    pair = (pairs[0] if pairs else None) if len(pairs) < 2 else ()
    trimming = tuple(trim for each in parts for trim in each.trimming)
    kept = [each.single for each in parts if each.single != _PLAIN]
    numbers = any(each.is_template for each in parts[:-1]) and not parts[-1].is_template
    return PostProcessing(kept[0] if len(kept) == 1 else single, pair, trimming, numbers)


def _bert(part: Part) -> PostProcessing:
    """`[CLS] text [SEP]`, and behind a second text another `[SEP]`."""
    first, last = _special(part["cls"]), _special(part["sep"])
    second = SpecialTokens(last.ids, last.tokens, 1)
    return PostProcessing(
        (first, TextSlot(0), last), (first, TextSlot(0), last, TextSlot(1, 1), second)
    )


def _roberta(part: Part) -> PostProcessing:
    """The same with two `</s>` between texts, and one type for all."""
    first, last = _special(part["cls"]), _special(part["sep"])
    return PostProcessing(
        (first, TextSlot(0), last),
        (first, TextSlot(0), last, last, TextSlot(1, rest_type_id=0), last),
        trimming=_byte_level(part).trimming,
    )


def _byte_level(part: Part) -> PostProcessing:
    if not part.get("trim_offsets", True).flag():
        return PostProcessing()
    return PostProcessing(trimming=(Trimming(part.get("add_prefix_space", True).flag()),))


def _special(part: Part) -> SpecialTokens:
    pair = list(part.list())
    if len(pair) != 2:
        raise part.wrong("a token and its id are expected")
    return SpecialTokens((pair[1].integer(),), (pair[0].text(),))


def _template(part: Part) -> PostProcessing:
    single = tuple(_item(part, each) for each in part["single"].list())
    count = sum(isinstance(item, TextSlot) for item in single)
    if any(isinstance(item, TextSlot) and item.index for item in single):
        raise part["single"].unsupported("the template for one text has a second one")
    if count != 1:
        raise part.unsupported(f"the template has the text {count} times, not once")
    pair = tuple(_item(part, each) for each in part.get("pair", []).list())
    return PostProcessing(single, pair, is_template=True)


def _item(part: Part, each: Part) -> TextSlot | SpecialTokens:
    if each.has("Sequence"):
        name = each["Sequence"]["id"].text()
        if name not in ("A", "B"):
            raise each.wrong(f"a text is `A` or `B`, not `{name}`")
        return TextSlot(0 if name == "A" else 1, each["Sequence"].get("type_id", 0).integer())
    special = each["SpecialToken"]
    known = part["special_tokens"][special["id"].text()]
    ids = tuple(index.integer() for index in known["ids"].list())
    tokens = tuple(token.text() for token in known["tokens"].list())
    if len(ids) != len(tokens):
        raise known.wrong(f"{len(ids)} ids for {len(tokens)} tokens")
    return SpecialTokens(ids, tokens, special.get("type_id", 0).integer())


_MAKERS: Mapping[str, Callable[[Part], PostProcessing]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "TemplateProcessing": _template,
        "BertProcessing": _bert,
        "RobertaProcessing": _roberta,
        "ByteLevel": _byte_level,
    }
)
