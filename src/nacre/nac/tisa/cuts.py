"""Steps that cut fragments: by rules, by tokens, by patterns, scripts and lengths."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import cast

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.character_data import WHITE_SPACE
from nacre.nac.tisa.characters import CharacterSet, category
from nacre.nac.tisa.instructions import (
    INVERTED,
    REMOVE,
    SPLITS,
    TAKES_LEFT,
    TAKES_RIGHT,
    WHOLE_WORD,
    CutRule,
    Instruction,
    SoughtToken,
)
from nacre.nac.tisa.patterns.nodes import WORD, Node, PatternError, only_character
from nacre.nac.tisa.patterns.nodes import Sequence as InOrder
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Membership, Scanner, require_not_empty
from nacre.nac.tisa.text.scripts import script_starts
from nacre.nac.tisa.text.spans import Spans, cut_spans
from nacre.nac.tisa.trie import Trie

Fragment = tuple[str, int | None, Spans]
Cut = tuple[int, int, int | None]  # start, end, and the token of a part (see `Fragment`)
_MOST_LITERALS = 64
_MOST_CACHED = 1 << 16
_LONGEST_CACHED = 64
_LONGEST_SHOWN = 60
BY_TEXT = -1  # a token whose id is that of its text


class _CutStep(ABC):
    """A step that makes parts of every fragment that is no token.

    It keeps what short fragments became, since texts repeat their words.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[Cut]] = {}

    def __call__(self, fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        parts: list[Fragment] = []
        for fragment in fragments:
            text, token, spans = fragment
            if token is not None or self.leaves_whole(text, budget):
                parts.append(fragment)
                continue
            cuts = self._known.get(text)
            if cuts is None:
                cuts = self._find(text, budget)
            if len(cuts) == 1 and cuts[0] == (0, len(text), None):
                parts.append(fragment)
            elif spans is None:
                parts += [(text[a:b], t, None) for a, b, t in cuts]
            else:
                parts += [(text[a:b], t, cut_spans(spans, a, b)) for a, b, t in cuts]
        budget.spend(len(parts))
        return parts

    def _find(self, text: str, budget: Budget) -> list[Cut]:
        cuts = [(a, b, t) for a, b, t in self.cut(text, budget) if a < b]
        if len(text) <= _LONGEST_CACHED:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[text] = cuts
        return cuts

    def leaves_whole(self, text: str, budget: Budget) -> bool:
        """Whether it is plain that a text is not cut."""
        return False

    @abstractmethod
    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """The parts of a text."""


class _PartitionStep(_CutStep):
    """PARTITION_RULES."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__()
        self._rules = cast(tuple[CutRule, ...], instruction.operands[0])
        trees = [checked_pattern(index, rule.pattern) for index, rule in enumerate(self._rules)]
        self._scanner = Scanner(trees)
        needed = [needed_text(tree) for tree in trees]
        # A text without any of these has no match: it is looked at no further.
        self._needed = needed if all(needed) and len(needed) <= _MOST_LITERALS else None

    def leaves_whole(self, text: str, budget: Budget) -> bool:
        """Whether every rule needs a text that is not there."""
        if self._needed is None:
            return False
        budget.spend(len(self._needed))
        budget.hold(len(text))
        return not any(part in text for part in self._needed)

    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """Gaps and matches."""
        at = 0
        for start, end, index in self._scanner.matches(text, budget):
            rule = self._rules[index]
            gap = start
            if rule.trim and text.endswith(rule.trim, at, start):
                gap -= len(rule.trim)
            yield at, gap, None
            if rule.behaviour != REMOVE:
                yield start, end, BY_TEXT if rule.protected else None
            at = end
        yield at, len(text), None


def checked_pattern(index: int, pattern: str) -> Node:
    """The tree of a pattern; PatternError where it may not be matched."""
    try:
        tree = parse_pattern(pattern)
        require_not_empty(tree)
    except PatternError as error:
        shown = pattern if len(pattern) <= _LONGEST_SHOWN else f"{pattern[:_LONGEST_SHOWN]}..."
        raise PatternError(f"rule {index} `{shown}` has {error.reason}", error.at) from None
    return tree


def needed_text(tree: Node) -> str:
    """A text that is part of every match; empty where there may be none."""
    parts: Sequence[Node] = tree.parts if isinstance(tree, InOrder) else (tree,)
    best = run = ""
    for part in parts:
        only = only_character(part)
        run = run + only if only else ""
        best = max(best, run, key=len)
    return best


class _TokenStep(_CutStep):
    """FIND_TOKENS: the longest from the left, then its conditions and the white space around it."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__()
        tokens = cast(tuple[SoughtToken, ...], instruction.operands[0])
        # Of two with the same text the first one counts.
        self._tokens = {token.text: token for token in reversed(tokens)}
        self._trie = Trie((text, index) for index, text in enumerate(self._tokens))
        self._listed = list(self._tokens.values())
        firsts = "".join(sorted({re.escape(text[0]) for text in self._tokens}))
        self._first = re.compile(f"[{firsts}]") if firsts else None
        self._word = Membership(WORD)
        self._space = CharacterSet(WHITE_SPACE)

    def leaves_whole(self, text: str, budget: Budget) -> bool:
        """Whether no token can begin."""
        return self._first is None or self._first.search(text) is None

    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """Gaps and tokens."""
        done = at = 0  # what is cut already; where the next token is looked for
        while (match := cast(re.Pattern[str], self._first).search(text, at)) is not None:
            at, index = self._trie.longest(text, match.start())
            budget.spend(at - match.start() + 1)
            if index < 0:
                at += 1
                continue
            token = self._listed[index]
            if token.flags & WHOLE_WORD and not self._is_alone(text, match.start(), at):
                continue
            start, end = self._with_spaces(text, match.start(), at, done, token.flags, budget)
            yield done, start, None
            yield start, end, token.id
            done = end
        yield done, len(text), None

    def _with_spaces(
        self, text: str, start: int, end: int, done: int, flags: int, budget: Budget
    ) -> tuple[int, int]:
        first, last = start, end
        if flags & TAKES_LEFT:
            while first > done and ord(text[first - 1]) in self._space:
                first -= 1
        if flags & TAKES_RIGHT:
            while last < len(text) and ord(text[last]) in self._space:
                last += 1
        budget.spend(start - first + last - end)
        return max(first, done) if flags & TAKES_LEFT else first, last

    def _is_alone(self, text: str, start: int, end: int) -> bool:
        neighbours = text[start - 1 : start] if start else "", text[end : end + 1]
        return not any(c and self._word(c, category(c)) for c in neighbours)


class _SplitStep(_CutStep):
    """SPLIT."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__()
        pattern, behaviour = cast(tuple[str, int], instruction.operands)
        tree = checked_pattern(0, pattern)
        self._scanner = Scanner([tree])
        self._needed = needed_text(tree)
        self._inverted = bool(behaviour & INVERTED)
        self._join = _JOINS[behaviour & ~INVERTED]

    def leaves_whole(self, text: str, budget: Budget) -> bool:
        """Whether the pattern needs a text that is not there."""
        budget.hold(len(text))
        return bool(self._needed) and not self._inverted and self._needed not in text

    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """Matches and gaps as the behaviour has them."""
        parts: list[_Part] = []
        at = 0
        for start, end, _ in self._scanner.matches(text, budget):
            if at < start:
                parts.append((at, start, self._inverted))
            parts.append((start, end, not self._inverted))
            at = end
        if at < len(text):
            parts.append((at, len(text), self._inverted))
        return ((start, end, None) for start, end in self._join(parts))


_Part = tuple[int, int, bool]  # start, end, and whether it is a match


def _contiguous(parts: list[_Part]) -> list[tuple[int, int]]:
    """Matches in a row are one."""
    joined: list[tuple[int, int]] = []
    before = False
    for start, end, is_match in parts:
        if is_match == before and joined:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
        before = is_match
    return joined


def _with_previous(parts: list[_Part]) -> list[tuple[int, int]]:
    """A match goes with the gap before it."""
    joined: list[tuple[int, int]] = []
    before = False
    for start, end, is_match in parts:
        if is_match and not before and joined:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
        before = is_match
    return joined


def _with_next(parts: list[_Part]) -> list[tuple[int, int]]:
    """A match goes with the gap behind it."""
    turned = [(-end, -start, is_match) for start, end, is_match in reversed(parts)]
    return [(-end, -start) for start, end in reversed(_with_previous(turned))]


_JOINS: Mapping[int, Callable[[list[_Part]], list[tuple[int, int]]]] = MappingProxyType(
    {
        SPLITS["Removed"]: lambda parts: [(a, b) for a, b, is_match in parts if not is_match],
        SPLITS["Isolated"]: lambda parts: [(a, b) for a, b, _ in parts],
        SPLITS["MergedWithPrevious"]: _with_previous,
        SPLITS["MergedWithNext"]: _with_next,
        SPLITS["Contiguous"]: _contiguous,
    }
)


class _ScriptStep(_CutStep):
    """SPLIT_SCRIPTS."""

    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """From script to script."""
        budget.spend(len(text))
        starts = script_starts(text)
        return ((a, b, None) for a, b in pairwise([*starts, len(text)]))


class _LengthStep(_CutStep):
    """SPLIT_LENGTH."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__()
        self._length = cast(int, instruction.operands[0])

    def cut(self, text: str, budget: Budget) -> Iterable[Cut]:
        """So many characters each."""
        budget.spend(len(text) // self._length + 1)
        size, length = len(text), self._length
        return ((at, min(at + length, size), None) for at in range(0, size, length))


CUTS: Mapping[str, Callable[[Instruction], _CutStep]] = MappingProxyType(
    {
        "PARTITION_RULES": _PartitionStep,
        "FIND_TOKENS": _TokenStep,
        "SPLIT": _SplitStep,
        "SPLIT_SCRIPTS": lambda _: _ScriptStep(),
        "SPLIT_LENGTH": _LengthStep,
    }
)
