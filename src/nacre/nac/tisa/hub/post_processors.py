"""Post-processors as COMPOSE. Types and offsets are none of TISA's business; ids are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.instructions import Instruction, Item, step

_MOST_ITEMS = 255


def post_processor_steps(part: Part) -> list[Instruction]:
    """What a post-processor does to the ids of one text."""
    items = _items(part)
    if items == [Item()]:
        return []
    if len(items) > _MOST_ITEMS:
        raise part.unsupported(f"COMPOSE has at most {_MOST_ITEMS} items, not {len(items)}")
    return [step("COMPOSE", tuple(items))]


def _items(part: Part) -> list[Item]:
    if not part:
        return [Item()]
    kind = part["type"].text()
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(f"TISA has no instruction for `{kind}`")
    return make(part)


def _sequence(part: Part) -> list[Item]:
    """Each one gets what those before it have made."""
    made = [Item()]
    for inner in part["processors"].list():
        outer = _items(inner)
        at = outer.index(Item())
        made = outer[:at] + made + outer[at + 1 :]
    return made


def _pair(part: Part) -> list[Item]:
    """`[CLS] text [SEP]`."""
    return [_id(part["cls"]), Item(), _id(part["sep"])]


def _id(part: Part) -> Item:
    pair = list(part.list())
    if len(pair) != 2:
        raise part.wrong("a token and its id are expected")
    return Item(pair[1].integer())


def _template(part: Part) -> list[Item]:
    items: list[Item] = []
    for each in part["single"].list():
        if each.has("Sequence"):
            if each["Sequence"]["id"].value != "A":
                raise each.unsupported("the template for one text has a second one")
            items.append(Item())
        else:
            name = each["SpecialToken"]["id"].text()
            known = part["special_tokens"][name]["ids"]
            items += [Item(index.integer()) for index in known.list()]
    if items.count(Item()) != 1:
        count = items.count(Item())
        raise part.unsupported(f"the template has the text {count} times, not once")
    return items


_MAKERS: Mapping[str, Callable[[Part], list[Item]]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "TemplateProcessing": _template,
        "BertProcessing": _pair,
        "RobertaProcessing": _pair,
        "ByteLevel": lambda _: [Item()],
    }
)
