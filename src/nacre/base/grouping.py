"""Findings and notes with one cause shown as one: the same sentence about many places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nacre.base.diagnostics import Diagnostic

_FEWEST = 3  # two are read as quickly as one and a note
_MOST_LINES = 12
_MOST_NAMES = 4
_MOST_OF_A_NAME = 200
_QUOTED = re.compile(r"`([^`]*)`")
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Group:
    """The first finding of a cause, and the others."""

    first: Diagnostic
    others: tuple[Diagnostic, ...] = ()

    @property
    def note(self) -> str | None:
        """`and 17 more like it: lines 4, 5, ...`; None where it is the only one."""
        if not self.others:
            return None
        lines = list(dict.fromkeys(d.location.line for d in self.others))
        listed = ", ".join(map(str, lines[:_MOST_LINES]))
        more = ", ..." if len(lines) > _MOST_LINES else ""
        word = "line" if len(lines) == 1 else "lines"
        return f"and {len(self.others)} more like it: {word} {listed}{more}"


def group_by_cause(diagnostics: Iterable[Diagnostic]) -> list[Group]:
    """Groups in the order of their first findings; those of fewer than three stay apart.

    Findings of one code and file have one cause where they are alike but for numbers, or but for
    names, or where they point at one place and are alike but for both.
    """
    listed = list(diagnostics)
    keys_of = [_cause_keys(finding) for finding in listed]
    sizes = Counter(key for keys in keys_of for key in keys)
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for finding, keys in zip(listed, keys_of, strict=True):
        groups.setdefault(max(keys, key=sizes.__getitem__), []).append(finding)
    joined = {id(group[0]): group for group in groups.values() if len(group) >= _FEWEST}
    left_out = {id(finding) for group in joined.values() for finding in group[1:]}
    return [
        Group(finding, tuple(joined.get(id(finding), [])[1:]))
        for finding in listed
        if id(finding) not in left_out
    ]


def _cause_keys(finding: Diagnostic) -> list[tuple[object, ...]]:
    """What other findings must have to be of one cause with this one; any of them will do."""
    kind = (finding.code, finding.severity, finding.span.source.name)
    text = f"{finding.message}\n{finding.help or ''}"
    pointed_at = finding.span.source.text[finding.span.start : finding.span.end][:_MOST_OF_A_NAME]
    unnamed = _QUOTED.sub(lambda name: name[0] if name[1] == pointed_at else "`", text)
    bare = _NUMBER.sub("#", unnamed)
    spans = {(p.source.name, p.start, p.end) for p in (r.span for r in finding.related)}
    spans.add((finding.span.source.name, finding.span.start, finding.span.end))
    return [
        (*kind, "numbers", _NUMBER.sub("#", text)),
        (*kind, "names", unnamed),
        *((*kind, span, bare) for span in sorted(spans)),
    ]


def merge_notes(notes: Iterable[str]) -> list[str]:
    """One line for the notes that differ in names and numbers alone, in the order of the first.

    The line is the first of them, with how many there are and what some of the others are about.
    """
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_note_pattern(note), []).append(note)
    return [line for kind in kinds.values() for line in _merge(kind)]


def _note_pattern(note: str) -> str:
    """A note without names, numbers and the forms of a verb that follow from a number."""
    bare = re.sub(r"[0-9][0-9.,e+-]*", "#", _QUOTED.sub("`", note))
    return re.sub(r"\b(element|lie|is|are|it|they)s?\b", "_", bare)


def _merge(notes: list[str]) -> list[str]:
    if len(notes) < _FEWEST:
        return notes
    names = list(dict.fromkeys(match[1] for note in notes[1:] if (match := _QUOTED.search(note))))
    listed = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    more = ", ..." if len(names) > _MOST_NAMES else ""
    about = f": {listed}{more}" if names else ""
    return [f"{notes[0]} (and {len(notes) - 1} more notes of this kind{about})"]
