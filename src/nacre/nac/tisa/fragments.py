"""Steps on fragments: texts that change or are cut until something protects them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.characters import Form, byte_letters, category, lowercase, normal_form
from nacre.nac.tisa.instructions import REMOVE, CutRule, Instruction
from nacre.nac.tisa.patterns import Node, PatternError, only_character, parse_pattern
from nacre.nac.tisa.patterns import Sequence as InOrder
from nacre.nac.tisa.scanner import Scanner, require_not_empty

Fragment = tuple[str, bool]  # a text, and whether it is protected
Step = Callable[[list[Fragment], Budget], list[Fragment]]
_MOST_LITERALS = 64
_LONGEST_SHOWN = 60


def fragment_steps(instructions: Iterable[Instruction]) -> list[Step]:
    """What a program does to fragments, in order."""
    steps: list[Step] = []
    single: dict[int, str] = {}  # characters that REPLACE makes another one or none, up to here
    for instruction in instructions:
        if _joins_translation(instruction, single):
            continue
        if single:
            steps.append(_translation(single))
            single = {}
            if _joins_translation(instruction, single):
                continue
        steps.append(_MAKERS[instruction.operation.name](instruction))
    return [*steps, _translation(single)] if single else steps


def _joins_translation(instruction: Instruction, single: dict[int, str]) -> bool:
    """Whether a REPLACE of one character can go together with those before it, in one walk."""
    if instruction.operation.name != "REPLACE":
        return False
    pattern, value = cast(tuple[str, str], instruction.operands)
    if len(pattern) != 1 or len(value) > 1 or ord(pattern) in single or pattern in single.values():
        return False
    single[ord(pattern)] = value
    return True


def _text_step(change: Callable[[str], str]) -> Step:
    """A step that changes the text of every fragment that is not protected."""

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        fragments_out: list[Fragment] = []
        size = 0
        for text, protected in fragments:
            changed = text if protected else change(text)
            size += len(changed) + 1
            if changed:
                fragments_out.append((changed, protected))
        budget.hold(size)
        return fragments_out

    return run


def _translation(table: dict[int, str]) -> Step:
    return _text_step(lambda text: text.translate(table))


def _replacement(instruction: Instruction) -> Step:
    pattern, value = cast(tuple[str, str], instruction.operands)

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        growth = sum(t.count(pattern) * len(value) for t, p in fragments if not p)
        budget.hold(growth)
        return change(fragments, budget)

    change = _text_step(lambda text: text.replace(pattern, value))
    return run


def _filter(instruction: Instruction) -> Step:
    names = frozenset(cast(tuple[str, ...], instruction.operands[0]))

    def change(text: str) -> str:
        dropped = {ord(c): None for c in set(text) if category(c) in names}
        return text.translate(dropped) if dropped else text

    return _text_step(change)


def _prefix(instruction: Instruction) -> Step:
    value = cast(str, instruction.operands[0])
    change = _text_step(lambda text: text if text.startswith(value) else value + text)

    def run(fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        budget.hold(len(value) * len(fragments))
        return change(fragments, budget)

    return run


def _form(instruction: Instruction) -> Step:
    form = cast(Form, instruction.operands[0])
    return _text_step(lambda text: normal_form(form, text))


class _PartitionStep:
    """PARTITION_RULES."""

    def __init__(self, instruction: Instruction) -> None:
        self._rules = cast(tuple[CutRule, ...], instruction.operands[0])
        trees = [_checked_pattern(index, rule.pattern) for index, rule in enumerate(self._rules)]
        self._scanner = Scanner(trees)
        needed = [needed_text(tree) for tree in trees]
        # A text without any of these has no match: it is looked at no further.
        self._needed = needed if all(needed) and len(needed) <= _MOST_LITERALS else None

    def __call__(self, fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        parts: list[Fragment] = []
        for text, protected in fragments:
            if protected or self._has_none(text, budget):
                parts.append((text, protected))
            else:
                self._cut(text, parts, budget)
        budget.spend(len(parts))
        return parts

    def _has_none(self, text: str, budget: Budget) -> bool:
        if self._needed is None:
            return False
        budget.spend(len(self._needed))
        budget.hold(len(text))
        return not any(part in text for part in self._needed)

    def _cut(self, text: str, parts: list[Fragment], budget: Budget) -> None:
        at = 0
        for start, end, index in self._scanner.matches(text, budget):
            rule = self._rules[index]
            gap = text[at:start]
            if rule.trim and gap.endswith(rule.trim):
                gap = gap[: -len(rule.trim)]
            if gap:
                parts.append((gap, False))
            if rule.behaviour != REMOVE:
                parts.append((text[start:end], rule.protected))
            at = end
        if at < len(text):
            parts.append((text[at:], False))


def _checked_pattern(index: int, pattern: str) -> Node:
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


_MAKERS: Mapping[str, Callable[[Instruction], Step]] = MappingProxyType(
    {
        "LOWERCASE": lambda _: _text_step(lowercase),
        "UNICODE_NORM": _form,
        "REPLACE": _replacement,
        "FILTER_CATEGORY": _filter,
        "PREPEND": _prefix,
        "PARTITION_RULES": _PartitionStep,
        "BYTE_ENCODE": lambda _: _text_step(byte_letters),
    }
)
