"""Fixing a file: the sure remedies of its findings, kept where the file is better for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Edit
from nacre.base.fixes import apply_edits, moved_offset, overlaps
from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, CheckResult, check_source

# Every round checks the whole file once; what is left after so many is left to people.
_MOST_CHECKS = 200
_MOST_STEPS = 4  # of fixes that only go together, one after the other


class RefusedFix(Struct, frozen=True):
    """A remedy that was not kept, and the first finding that it would bring up."""

    diagnostic: Diagnostic
    because: Diagnostic | None  # None where it mends nothing


class FixResult(Struct, frozen=True):
    """A source after its fixes, what a check says about it now, and what was done."""

    source: Source
    checked: CheckResult
    applied: tuple[Diagnostic, ...] = ()
    refused: tuple[RefusedFix, ...] = ()


def fix_source(
    source: Source,
    options: CheckOptions,
    is_asked: Callable[[Diagnostic], bool] = lambda _: True,
) -> FixResult:
    """Apply what has one sure remedy, as long as that leaves fewer findings and no new one.

    Only the source itself changes, not what it includes. Findings that are not asked for are
    neither fixed nor counted.
    """
    return _Fixer(source, options, is_asked).run()


class _Fixer:
    """The source as far as it is fixed, and what was refused since it last changed."""

    def __init__(
        self, source: Source, options: CheckOptions, is_asked: Callable[[Diagnostic], bool]
    ) -> None:
        self._options, self._is_asked = options, is_asked
        self._source = source
        self._checked = check_source(source, options)
        self._applied: list[Diagnostic] = []
        self._refused: dict[Diagnostic, RefusedFix] = {}
        self._left = _MOST_CHECKS

    def run(self) -> FixResult:
        while self._left > 0 and (offered := self._offered_fixes()):
            while offered and not self._accepts(offered) and self._left > 0:
                if len(offered) == 1:
                    break
                offered = offered[: len(offered) // 2]  # one of many spoils the rest: find it
        refused = tuple(self._refused.values())
        return FixResult(self._source, self._checked, tuple(self._applied), refused)

    def _offered_fixes(self) -> list[Diagnostic]:
        left = (d for d in self._asked_findings(self._checked) if d not in self._refused)
        return _compatible_fixes(left, self._source)

    def _accepts(self, offered: Sequence[Diagnostic]) -> bool:
        """Take fixes over where the file is better for them; else note why one is refused.

        A fix may bring up what could not be seen before. Where that has a sure remedy as well, it
        is tried together with it.
        """
        known = [_KnownFinding.of(d, self._source) for d in self._asked_findings(self._checked)]
        source, applied, chosen = self._source, list[Diagnostic](), list(offered)
        for _ in range(_MOST_STEPS):
            self._left -= 1
            edits = _edits(chosen)
            source, known = apply_edits(source, edits), [one.move(edits) for one in known]
            checked = check_source(source, self._options)
            applied += chosen
            new, fewer = self._compare(known, checked, source)
            if not new:
                break
            chosen = _compatible_fixes(new, source)
            if len(chosen) < len(new) or self._left <= 0:
                break
        if not new and fewer:
            self._source, self._checked = source, checked
            self._applied += applied
            self._refused.clear()
            return True
        if len(offered) == 1:
            self._refused[offered[0]] = RefusedFix(offered[0], new[0] if new else None)
        return False

    def _compare(
        self, known: Sequence[_KnownFinding], checked: CheckResult, source: Source
    ) -> tuple[list[Diagnostic], bool]:
        """The findings that were not there before, and whether there are fewer than before."""
        left = Counter(one.finding_key(source) for one in known)
        asked = self._asked_findings(checked)
        new = []
        for one in asked:
            key = _KnownFinding.of(one, source).finding_key(source)
            left[key] -= 1
            if left[key] < 0:
                new.append(one)
        return new, len(asked) < len(known)

    def _asked_findings(self, checked: CheckResult) -> list[Diagnostic]:
        return [d for d in checked.diagnostics if self._is_asked(d)]


class _KnownFinding(Struct, frozen=True):
    """What a finding says, and where it stands in a text that changes."""

    says: tuple[str, ...]
    offset: int | None  # in the text itself
    line: int = 0  # in a file that it includes

    @staticmethod
    def of(finding: Diagnostic, source: Source) -> _KnownFinding:
        says = (finding.code, finding.severity, finding.message, finding.span.source.name)
        if finding.span.source is source:
            return _KnownFinding(says, finding.span.start)
        return _KnownFinding(says, None, finding.location.line)

    def move(self, edits: Sequence[Edit]) -> _KnownFinding:
        if self.offset is None:
            return self
        return _KnownFinding(self.says, moved_offset(edits, self.offset))

    def finding_key(self, source: Source) -> tuple[tuple[str, ...], int]:
        """What makes it the same finding before and after: what it says, and on which line."""
        return self.says, self.line if self.offset is None else source.position(self.offset)[0]


def _edits(chosen: Iterable[Diagnostic]) -> list[Edit]:
    return [edit for finding in chosen if finding.fix is not None for edit in finding.fix.edits]


def _compatible_fixes(findings: Iterable[Diagnostic], source: Source) -> list[Diagnostic]:
    """Findings of a source whose fixes do not overlap, the first ones first."""
    chosen: list[Diagnostic] = []
    edits: list[Edit] = []
    for finding in findings:
        if finding.fix is None or any(e.span.source is not source for e in finding.fix.edits):
            continue
        if not overlaps([*edits, *finding.fix.edits]):
            chosen.append(finding)
            edits += finding.fix.edits
    return chosen
