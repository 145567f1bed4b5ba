"""The grammar of networks: what stands where how often, in the files that it was learned from.

A production says what a place may become, with a count: `network` the first block, `after X` what
stands behind a block, `X.kernel` a setting of one, `X.repeat` how often it stands in a row,
`X.growth` its width over that before it. Joints need no productions: a block takes what it takes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.nac.rules.synthesis import NAC56, NAC58
from nacre.nac.synthesis.blocks import BLOCKS, CLASSIFIER, JOINTS
from nacre.nac.synthesis.layers import ACTIVATIONS, NORMS
from nacre.nac.synthesis.reading import Chain, Link, read_chain
from nacre.nac.synthesis.tiles import Specimen

FORMAT = "nacre.grammar.1"
NETWORK = "network"
Choice = str | int | float | bool

# What each setting may be: a least and a most number, or words.
_RANGES: Mapping[str, tuple[float, float] | tuple[str, ...]] = {
    "kernel": (1, 31), "stride": (1, 16), "ratio": (1 / 64, 64.0), "squeeze": (1 / 64, 4.0),
    "heads": (1, 64), "act": ACTIVATIONS, "norm": NORMS, "pool": ("max", "mean"),
    "repeat": (1, 64), "growth": (1 / 64, 64.0), "width": (1, 65536), "stages": (1, 256),
    "classes": (1, 1_000_000),
}  # fmt: skip
_FRACTIONS = ("ratio", "squeeze", "growth")


class Production(Struct, frozen=True, order=True):
    """What a place may become, and how often it did."""

    place: str
    choice: Choice
    count: int


class Grammar(Struct, frozen=True, dict=True):
    """Productions, sorted, and what they were learned from."""

    networks: tuple[str, ...]
    productions: tuple[Production, ...]

    @cached_property
    def choices(self) -> dict[str, list[tuple[Choice, int]]]:
        """Choices with their counts, by place."""
        made: dict[str, list[tuple[Choice, int]]] = {}
        for one in self.productions:
            made.setdefault(one.place, []).append((one.choice, one.count))
        return made

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that it knows, in the order of their table."""
        places = [self.choices.get(NETWORK, [])]
        places += [self.choices.get(f"after {block}", []) for block in BLOCKS]
        known = {choice for place in places for choice, _ in place}
        return tuple(block for block in BLOCKS if block in known)

    def draw(
        self, place: str, random: np.random.Generator, among: Sequence[Choice] | None = None
    ) -> Choice | None:
        """A choice by its count, of some alone where they are named; None where there is none."""
        known = self.choices.get(place, [])
        rows = [row for row in known if among is None or row[0] in among]
        if not rows:
            return None
        weights = np.array([count for _, count in rows], np.float64)
        return rows[int(random.choice(len(rows), p=weights / weights.sum()))][0]

    def to_json(self) -> str:
        """As text that `read_grammar` reads."""
        table = {
            place: [{"choice": choice, "count": count} for choice, count in rows]
            for place, rows in self.choices.items()
        }
        return json.dumps(
            {"format": FORMAT, "networks": list(self.networks), "productions": table}, indent=1
        )


def learn(specimens: Iterable[Specimen]) -> Grammar:
    """The grammar of some programs; InputError where they teach nothing."""
    counts: Counter[tuple[str, Choice]] = Counter()
    names = []
    for one in specimens:
        found = list(_facts(one))
        if found:
            names.append(one.name)
            counts.update(found)
    grammar = _grammar(names, counts)
    if not grammar.choices.get(NETWORK):
        place = whole_file("<grammar>")
        message = "none of the files begins with a block that is known"
        help_ = "`nacre nac genome FILE` says which patterns a file has"
        raise InputError([NAC56.at(place, message, help=help_)])
    return grammar


def _grammar(names: Sequence[str], counts: Mapping[tuple[str, Choice], int]) -> Grammar:
    rows = [Production(place, choice, count) for (place, choice), count in counts.items()]
    rows.sort(key=lambda row: (row.place, str(type(row.choice)), row.choice))
    return Grammar(tuple(names), tuple(rows))


def _facts(one: Specimen) -> Iterator[tuple[str, Choice]]:
    """What a program is an example of."""
    chain = read_chain(one)
    if not any(link.stage for link in chain.links) or len(one.shape(one.cuts[0])) not in JOINTS:
        return
    known = [link.stage for link in chain.links if link.stage is not None]
    first = chain.links[0].stage
    if first is not None:
        yield NETWORK, first.block
        yield f"{NETWORK}.width", next((s.width for s in known if s.kind.sets_width), first.width)
        yield f"{NETWORK}.stages", min(256, len(known))
        if chain.classes:
            yield f"{NETWORK}.classes", chain.classes
    yield from _follow_facts(chain)
    for link in chain.links:
        yield from _block_facts(link)


def _follow_facts(chain: Chain) -> Iterator[tuple[str, Choice]]:
    for first, second in zip(chain.links, chain.links[1:], strict=False):
        if first.stage is not None and second.stage is not None:
            yield f"after {first.stage.block}", second.stage.block
    last = chain.links[-1].stage
    if last is not None and chain.is_closed:
        yield f"after {last.block}", CLASSIFIER


def _block_facts(link: Link) -> Iterator[tuple[str, Choice]]:
    stage = link.stage
    if stage is None:
        return
    for name in stage.kind.settings:
        yield f"{stage.block}.{name}", getattr(stage.settings, name)
    if stage.kind.may_repeat:
        yield f"{stage.block}.repeat", stage.repeat
    if stage.kind.sets_width:
        yield f"{stage.block}.growth", link.growth


def read_grammar(text: str | bytes, name: str = "<grammar>") -> Grammar:
    """A grammar that was written as JSON; InputError has all that is wrong with it."""
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise _refusal(name, [f"expected a grammar as JSON: {error}"]) from None
    problems = [] if found.format == FORMAT else [f"format {found.format!r}, expected {FORMAT}"]
    counts: Counter[tuple[str, Choice]] = Counter()
    for place, rows in found.productions.items():
        for row in rows:
            problem = _problem(place, row.choice, row.count)
            if problem:
                problems.append(f"{backquote(place)}: {problem}")
            else:
                counts[place, _number(place, row.choice)] += row.count
    if not any(place == NETWORK for place, _ in counts):
        problems.append(f"no production of `{NETWORK}`, the first block")
    if problems:
        raise _refusal(name, problems)
    return _grammar(found.networks, counts)


class _Row(Struct, frozen=True):
    choice: Choice
    count: int


class _File(Struct, frozen=True):
    format: str
    networks: tuple[str, ...]
    productions: dict[str, list[_Row]]


def _refusal(name: str, problems: Sequence[str]) -> InputError:
    help_ = "`nacre nac grammar FILE... -o grammar.json` writes one"
    return InputError([NAC58.at(whole_file(name), text, help=help_) for text in problems])


def _number(place: str, choice: Choice) -> Choice:
    """Ratios are floats, however JSON spells them."""
    return float(choice) if place.rpartition(".")[2] in _FRACTIONS else choice


def _problem(place: str, choice: Choice, count: int) -> str:
    """What is wrong with a production; nothing where it is right."""
    if not 1 <= count <= 1 << 40:
        return f"the count {count}, expected a positive integer"
    block, _, setting = place.rpartition(".")
    if place == NETWORK or place.startswith("after "):
        before = place.removeprefix("after ")
        if place != NETWORK and before not in BLOCKS:
            return "there is no such block"
        return "" if choice in BLOCKS or choice == CLASSIFIER else f"there is no block {choice!r}"
    if block != NETWORK and (block not in BLOCKS or setting not in _settings_of(block)):
        return "there is no such place"
    return _range_problem(setting, choice)


def _settings_of(block: str) -> tuple[str, ...]:
    return (*BLOCKS[block].settings, "repeat", "growth")


def _range_problem(setting: str, choice: Choice) -> str:
    if setting == "is_gated":
        return "" if type(choice) is bool else f"{choice!r}, expected true or false"
    allowed = _RANGES.get(setting)
    if allowed is None:
        return "there is no such place"
    if isinstance(allowed[0], str):
        words = ", ".join(map(str, allowed))
        return "" if choice in allowed else f"{choice!r}, expected one of {words}"
    is_number = type(choice) is int or (setting in _FRACTIONS and type(choice) is float)
    least, most = float(allowed[0]), float(allowed[1])
    if is_number and least <= float(choice) <= most:
        return ""
    return f"{choice!r}, expected a number from {least:g} to {most:g}"
