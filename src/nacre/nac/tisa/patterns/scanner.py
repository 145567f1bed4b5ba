"""Matching in linear time: rules as one automaton that is built while it is used.

A match is the one that a backtracking engine finds, the first alternative that leads to one, but
nothing is tried twice. Where a scan went on behind its match in vain, it says so to later ones
(T. Reps, "Maximal-munch tokenization in linear time"), so that a text of n characters costs at most
n times the number of states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.characters import CharacterSet, category
from nacre.nac.tisa.patterns.network import Network, is_nullable, network
from nacre.nac.tisa.patterns.nodes import Chars, Node, PatternError

_END = -1  # stands for the edges of a text among the kinds of characters
_DEAD = -1
_SHORT = 8  # a scan may go on in vain so far without saying it
_STATE_BITS = 16
_MOST_LISTED = 256  # kinds of characters that have a byte each


def require_not_empty(rule: Node) -> None:
    """Refuse a rule that may match nothing at all, which would be everywhere."""
    if is_nullable(rule):
        raise PatternError("a match of the empty text", 0)


class Membership:
    """Whether a character is in a class."""

    def __init__(self, chars: Chars) -> None:
        self._set = CharacterSet(chars.ranges)
        self._names = frozenset(chars.categories)
        self._inner = tuple(Membership(part) for part in chars.inner)
        self._negated = chars.negated

    def __call__(self, character: str, name: str) -> bool:
        """Whether a character of that category is."""
        found = (
            ord(character) in self._set
            or name in self._names
            or name[0] in self._names
            or any(part(character, name) for part in self._inner)
        )
        return found is not self._negated


class Scanner:
    """Rules that are matched together; earlier ones win where both match."""

    def __init__(self, rules: Sequence[Node]) -> None:
        for rule in rules:
            require_not_empty(rule)
        self._network: Network = network(rules)
        self._members = [Membership(chars) for chars in self._network.classes]
        self._kinds: dict[str, int] = {}
        self._kind_numbers: dict[int, int] = {}
        self._kind_bits: list[int] = []
        self._numbers: dict[tuple[tuple[int, ...], int], int] = {}
        self._states: list[tuple[tuple[int, ...], int]] = []
        self._rows: list[dict[int, tuple[int, int]]] = []
        self._begun: tuple[int, re.Pattern[bytes] | None] = 0, None  # for so many kinds

    def matches(self, text: str, budget: Budget) -> Iterator[tuple[int, int, int]]:
        """Start, end and rule of every match, from the left."""
        kinds = self._kinds_of(text)
        barren: set[int] = set()  # places and states from where no match comes any more
        beginning = self._beginning(kinds, budget)
        listed = bytes(kinds[:-1]) if beginning else b""
        at = 0
        while at < len(text):
            if beginning:
                found = beginning.search(listed, at)
                if found is None:
                    return
                at = found.start()
            end, rule, seen = self._scan(kinds, at, barren, budget)
            budget.spend(seen - at + 1)
            if rule < 0:
                at += 1
                continue
            yield at, end, rule
            at = end

    def _beginning(self, kinds: list[int], budget: Budget) -> re.Pattern[bytes] | None:
        """Finds characters that a match may begin with, where some are none and that is plain."""
        if self._network.looks_back or len(self._kind_bits) > _MOST_LISTED:
            return None
        if len(self._kind_bits) != self._begun[0]:
            row = self._state((self._network.start,), _END)
            following = (self._step(row, kind, budget) for kind in range(len(self._kind_bits)))
            begins = bytes(kind for kind, step in enumerate(following) if step != (_DEAD, -1))
            is_every = len(begins) == len(self._kind_bits)
            # A class without members is one that is not closed.
            pattern = b"".join(rb"\x%02x" % kind for kind in begins)
            source = b"[%s]" % pattern if begins else rb"[^\x00-\xff]"
            found = None if is_every else re.compile(source)
            self._begun = len(self._kind_bits), found
        budget.hold(len(kinds))
        return self._begun[1]

    def _kinds_of(self, text: str) -> list[int]:
        known = self._kinds
        for character in set(text).difference(known):
            known[character] = self._kind(character)
        made = [known[character] for character in text]
        made.append(_END)
        return made

    def _kind(self, character: str) -> int:
        """The number of the classes that a character is in, taken together."""
        name = category(character)
        bits = 0
        for index, member in enumerate(self._members):
            bits |= member(character, name) << index
        if bits not in self._kind_numbers:
            self._kind_numbers[bits] = len(self._kind_bits)
            self._kind_bits.append(bits)
        return self._kind_numbers[bits]

    def _scan(
        self, kinds: list[int], start: int, barren: set[int], budget: Budget
    ) -> tuple[int, int, int]:
        """The end and rule of the match at a place, and how far was looked."""
        before = kinds[start - 1] if start and self._network.looks_back else _END
        state = self._state((self._network.start,), before)
        rows = self._rows
        at, end, rule = start, start, -1
        path: list[int] = []
        behind = 1  # what the last state of the path lacks to the place where the scan ends
        while True:
            if barren and (at << _STATE_BITS | state) in barren:
                behind = 0
                break
            path.append(state)
            known = rows[state].get(kinds[at])
            if known is None:
                known = self._step(state, kinds[at], budget)
            following, accepted = known
            if accepted >= 0:
                end, rule = at, accepted
                path.clear()
            if following == _DEAD:
                break
            state = following
            at += 1
        if len(path) > _SHORT:
            first = at + behind - len(path)
            budget.remember(len(barren) + len(path))
            barren.update(first + index << _STATE_BITS | seen for index, seen in enumerate(path))
        return end, rule, at

    def _state(self, threads: tuple[int, ...], before: int) -> int:
        key = threads, before
        number = self._numbers.get(key)
        if number is None:
            if len(self._states) >> _STATE_BITS:
                raise BudgetError("an automaton of more than 65,536 states")
            number = self._numbers[key] = len(self._states)
            self._states.append(key)
            self._rows.append({})
        return number

    def _step(self, state: int, kind: int, budget: Budget) -> tuple[int, int]:
        """Where a state goes with the next character, and the rule that has matched before it."""
        threads, before = self._states[state]
        reached, accepted, cost = self._network.closure(
            threads, self._bits(before), self._bits(kind)
        )
        budget.spend(cost)
        following = _DEAD
        if kind != _END:
            bits = self._kind_bits[kind]
            goes_on = dict.fromkeys(target for member, target in reached if bits >> member & 1)
            if goes_on:
                following = self._state(tuple(goes_on), kind if self._network.looks_back else _END)
        step = following, accepted
        self._rows[state][kind] = step
        return step

    def _bits(self, kind: int) -> int | None:
        return None if kind == _END else self._kind_bits[kind]
