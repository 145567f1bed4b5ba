"""Findings about the NEM text of a module, at the operations that its statements are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source, Span

Place = tuple[int, int]


def move_to_operations(
    findings: Iterable[Diagnostic],
    text: Source,
    module: Source,
    places: Sequence[tuple[int, Place]],
) -> list[Diagnostic]:
    """Findings about a text, each at the operation whose statement it is about.

    `places` has where statements begin in the text, rising, and where their operations stand.
    Edits of a text that nobody wrote are left out.
    """
    starts = [start for start, _ in places]

    def move(span: Span) -> Span:
        if span.source is not text:
            return span
        at = max(bisect_right(starts, span.start) - 1, 0)
        return module.span(*places[at][1]) if places else module.span(0, 0)

    return [
        replace(
            found,
            span=move(found.span),
            related=tuple(replace(other, span=move(other.span)) for other in found.related),
            fix=None,
        )
        for found in findings
    ]
