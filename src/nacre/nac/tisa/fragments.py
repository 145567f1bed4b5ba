"""Steps on fragments: texts that change or are cut until something makes tokens of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import cast

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.character_data import IDEOGRAPHS
from nacre.nac.tisa.characters import CharacterSet, Form, byte_letters, category, lowercase
from nacre.nac.tisa.cuts import CUTS, checked_pattern
from nacre.nac.tisa.instructions import Instruction
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.text.charsmap import Charsmap
from nacre.nac.tisa.text.normal_forms import normal_form_change
from nacre.nac.tisa.text.sentences import SentenceText
from nacre.nac.tisa.text.spans import Spans, is_at_start, move_spans
from nacre.nac.tisa.text.tracing import (
    TextChange,
    characterwise,
    literal_matches,
    put_in_front,
    replace_matches,
)

# A text; the id of the token that it is (-1: the one of its text), None: of none yet; its places.
Fragment = tuple[str, int | None, Spans]
Step = Callable[[list[Fragment], Budget], list[Fragment]]


def fragment_steps(instructions: Iterable[Instruction]) -> list[Step]:
    """What a program does to fragments, in order."""
    steps: list[Step] = []
    single = _SingleReplacements()
    for instruction in instructions:
        if single.take(instruction):
            continue
        if single.table:
            steps.append(_translation(single.table))
            single = _SingleReplacements()
            if single.take(instruction):
                continue
        steps.append(_MAKERS[instruction.operation.name](instruction))
    return [*steps, _translation(single.table)] if single.table else steps


class _SingleReplacements:
    """REPLACE of one character by another one or none, as many as can go together, in one walk."""

    def __init__(self) -> None:
        self.table: dict[int, str] = {}
        self._values: set[str] = set()

    def take(self, instruction: Instruction) -> bool:
        """Whether an instruction goes together with those before it."""
        if instruction.operation.name != "REPLACE":
            return False
        pattern, value = cast(tuple[str, str], instruction.operands)
        if len(pattern) != 1 or len(value) > 1:
            return False
        if ord(pattern) in self.table or pattern in self._values:
            return False
        self.table[ord(pattern)] = value
        self._values.add(value)
        return True


def _text_step(change: TextChange) -> Step:
    """A step that changes the text of every fragment that is no token yet."""

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        fragments_out: list[Fragment] = []
        size = 0
        for text, token, spans in fragments:
            if token is not None:
                changed = text
            elif spans is None:
                changed = change.change(text)
            else:
                changed, origins = change.trace(text)
                spans = move_spans(spans, origins)
            size += len(changed) + 1
            if changed:
                fragments_out.append((changed, token, spans))
        budget.hold(size)
        return fragments_out

    return run


def _growing_step(change: TextChange, growth: Callable[[str], int]) -> Step:
    """A step whose texts may grow: judged before it is run."""
    run = _text_step(change)

    def run_judged(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        budget.hold(sum(growth(text) for text, token, _ in fragments if token is None))
        return run(fragments, budget)

    return run_judged


def _translation(table: dict[int, str]) -> Step:
    return _text_step(characterwise(lambda text: text.translate(table)))


def _replacement(instruction: Instruction) -> Step:
    pattern, value = cast(tuple[str, str], instruction.operands)
    if len(pattern) == 1 and len(value) <= 1:
        return _translation({ord(pattern): value})
    change = TextChange(
        lambda text: text.replace(pattern, value),
        lambda text: replace_matches(text, literal_matches(text, pattern), value),
    )
    return _growing_step(change, lambda text: text.count(pattern) * len(value))


def _pattern_replacement(instruction: Instruction) -> Step:
    pattern, value = cast(tuple[str, str], instruction.operands)
    scanner = Scanner([checked_pattern(0, pattern)])

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        fragments_out: list[Fragment] = []
        for text, token, spans in fragments:
            if token is None:
                matches = [(start, end) for start, end, _ in scanner.matches(text, budget)]
                budget.hold(len(text) + len(matches) * len(value))
                text, origins = replace_matches(text, matches, value)
                spans = move_spans(spans, origins)
            if text:
                fragments_out.append((text, token, spans))
        return fragments_out

    return run


def _filter(instruction: Instruction) -> Step:
    names = frozenset(cast(tuple[str, ...], instruction.operands[0]))

    def change(text: str) -> str:
        dropped = {ord(c): None for c in set(text) if category(c) in names}
        return text.translate(dropped) if dropped else text

    return _text_step(characterwise(change))


def _prefix(instruction: Instruction) -> Step:
    value = cast(str, instruction.operands[0])
    change = TextChange(
        lambda text: text if text.startswith(value) else value + text,
        lambda text: (text, None) if text.startswith(value) else put_in_front(text, value),
    )
    return _growing_step(change, lambda _: len(value))


def _insertion(instruction: Instruction) -> Step:
    value = cast(str, instruction.operands[0])
    change = TextChange(lambda text: value + text, lambda text: put_in_front(text, value))
    return _growing_step(change, lambda _: len(value))


def _first_prefix(instruction: Instruction) -> Step:
    value = cast(str, instruction.operands[0])

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        budget.hold(len(value))
        return [
            (text, token, spans)
            if token is not None or not is_at_start(spans) or text.startswith(value)
            else (value + text, token, move_spans(spans, put_in_front(text, value)[1]))
            for text, token, spans in fragments
        ]

    return run


def _spaced_ideographs(text: str) -> str:
    ideographs = {ord(c): f" {c} " for c in set(text) if ord(c) in _IDEOGRAPHS}
    return text.translate(ideographs) if ideographs else text


_IDEOGRAPHS = CharacterSet(IDEOGRAPHS)
_MAKERS: Mapping[str, Callable[[Instruction], Step]] = MappingProxyType(
    {
        "LOWERCASE": lambda _: _text_step(characterwise(lowercase)),
        "UNICODE_NORM": lambda i: _text_step(normal_form_change(cast(Form, i.operands[0]))),
        "REPLACE": _replacement,
        "REPLACE_PATTERN": _pattern_replacement,
        "FILTER_CATEGORY": _filter,
        "PREPEND": _prefix,
        "INSERT": _insertion,
        "INSERT_FIRST": _first_prefix,
        "MAP_TEXTS": lambda i: _text_step(Charsmap(cast(bytes, i.operands[0])).change),
        "SPACE_IDEOGRAPHS": lambda _: _text_step(characterwise(_spaced_ideographs)),
        "SENTENCE_TEXT": SentenceText,
        "BYTE_ENCODE": lambda _: _text_step(characterwise(byte_letters)),
        **CUTS,
    }
)
