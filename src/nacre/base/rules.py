"""The registry of rules: every code that a diagnostic can carry, declared once.

A rule is declared in one of two ways. `declare` makes a rule that a reader or resolver emits
where it meets the mistake; `rule` decorates a function that looks at facts and yields
diagnostics. Both carry the same: a stable code, a name, a severity, the clause of the
specification, and a page that `nacre rule CODE` prints.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Generic, TypeVar

from nacre.base.diagnostics import Diagnostic, Fix, InternalError, Related, Severity
from nacre.base.hints import text_for_reader
from nacre.base.source import Span

_CODE = re.compile(r"[A-Z]{3,4}[0-9]{2,3}")
_EXAMPLE = re.compile(r"^Bad \(-\) and good \(\+\):\n\n((?:    .*\n|\n(?=    ))+)", re.MULTILINE)
_REGISTERED: dict[str, Rule] = {}

RULES: Mapping[str, Rule] = MappingProxyType(_REGISTERED)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as data. A `behaviour` rule is a promise that tests prove; nothing emits it."""

    code: str
    name: str
    severity: Severity
    spec: str
    source_text: str = field(repr=False)  # the page as its declaration indents it
    behaviour: bool = False
    strict_only: bool = False
    language: str = "NEM"  # that it is about
    fix: str = ""  # what `nacre check --fix` does about it; empty where no remedy is sure

    @property
    def page(self) -> str:
        """What `nacre rule CODE` prints; unindented only when somebody reads it."""
        return _EXAMPLE.sub(_show_both, inspect.cleandoc(self.source_text) + "\n").rstrip("\n")

    @property
    def group(self) -> str:
        """The letters of the code: `HAZ` of `HAZ01`."""
        return self.code.rstrip("0123456789")

    @property
    def summary(self) -> str:
        """The first paragraph of the page, on one line."""
        return " ".join(self.page.split("\n\n", 1)[0].split())

    def at(
        self,
        span: Span,
        message: str,
        *,
        related: tuple[Related, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
    ) -> Diagnostic:
        """A diagnostic of this rule."""
        if self.behaviour:
            raise InternalError(f"{self.code} describes behaviour; no diagnostic carries it")
        if fix is not None and not self.fix:
            raise InternalError(f"{self.code} does not say what its fix does")
        told = text_for_reader(message)
        advice = None if help is None else text_for_reader(help)
        return Diagnostic(self.code, self.severity, told, span, related, advice, fix=fix)


def _show_both(example: re.Match[str]) -> str:
    """The two programs of an example whose lines are marked as those of a diff."""
    lines = example[1].splitlines()
    bad = "\n".join(line[:4] + line[6:] for line in lines if line[4:5] != "+")
    good = "\n".join(line[:4] + line[6:] for line in lines if line[4:5] != "-")
    return f"Bad:\n\n{bad}\n\nGood:\n\n{good}\n"


Facts = TypeVar("Facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Rule, Generic[Facts]):
    """A rule together with the function that finds its violations."""

    find: Callable[[Facts], Iterator[Diagnostic]] = field(repr=False, compare=False)

    def __call__(self, facts: Facts) -> Iterator[Diagnostic]:
        """Every violation in `facts`."""
        return self.find(facts)


def declare(
    code: str,
    name: str,
    spec: str,
    page: str,
    *,
    severity: Severity = "error",
    behaviour: bool = False,
    strict_only: bool = False,
    language: str = "NEM",
    fix: str = "",
) -> Rule:
    """Register a rule that is emitted where the mistake is met, or a promised behaviour."""
    new_rule = Rule(code, name, severity, spec, page, behaviour, strict_only, language, fix)
    _register(new_rule)
    return new_rule


def rule(
    code: str,
    name: str,
    spec: str,
    *,
    severity: Severity = "error",
    strict_only: bool = False,
    language: str = "NEM",
    fix: str = "",
) -> Callable[[Callable[[Facts], Iterator[Diagnostic]]], Check[Facts]]:
    """Register a function as the rule `code`; its docstring is the rule's page."""

    def register(find: Callable[[Facts], Iterator[Diagnostic]]) -> Check[Facts]:
        page = find.__doc__ or ""
        check = Check(
            code,
            name,
            severity,
            spec,
            page,
            strict_only=strict_only,
            language=language,
            fix=fix,
            find=find,
        )
        _register(check)
        return check

    return register


def checks_in(*modules: ModuleType) -> tuple[Check[Any], ...]:
    """The checks that modules define, in the order in which they stand there."""
    return tuple(
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Check) and value.find.__module__ == module.__name__
    )


def _register(new_rule: Rule) -> None:
    if not _CODE.fullmatch(new_rule.code):
        raise InternalError(f"{new_rule.code!r} does not look like a rule code")
    if new_rule.code in _REGISTERED:
        raise InternalError(f"rule {new_rule.code} is declared twice")
    if not new_rule.source_text.strip():
        raise InternalError(f"rule {new_rule.code} has no page")
    _REGISTERED[new_rule.code] = new_rule
