"""A program that has been read, and what checking it brings up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.nem.checks.engine import (
    CheckOptions,
    CheckResult,
    ResolvedSource,
    check_resolved,
    resolve_source,
)
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.model.devices import Device
from nacre.nem.model.imports import Import
from nacre.nem.plan.plan import Plan
from nacre.nem.run.machine.machine import unrunnable_finding
from nacre.nem.run.memory.host import host_error
from nacre.nem.syntax.ast import Document
from nacre.nem.syntax.parser import ParseResult, parse

if TYPE_CHECKING:
    from nacre.nem.api.token_verdict import TokenVerdict


class LoadedProgram:
    """A program as an interpreter holds it. Checking happens once, when it is first needed."""

    def __init__(self, source: Source, options: CheckOptions, *, was_checked: bool = False) -> None:
        """With `was_checked` it is known to have no errors, and runs without another check."""
        self.source = source
        self.options = options
        self._was_checked = was_checked

    @property
    def name(self) -> str:
        """The name in its header; else the file's."""
        header = self.document.header
        return (
            header.name.name if header is not None and header.name is not None else self.source.name
        )

    @cached_property
    def _parsed(self) -> ParseResult:
        return parse(self.source)

    @property
    def document(self) -> Document:
        """The syntax tree."""
        return self._parsed.document

    @property
    def is_program(self) -> bool:
        """Whether it holds statements, not only devices and families."""
        return self.document.is_program

    def valid_document(self) -> Document:
        """The syntax tree; syntax errors raise InputError."""
        if not self._parsed.is_valid:
            raise InputError([d for d in self._parsed.diagnostics if d.severity == "error"])
        return self.document

    @cached_property
    def _resolved(self) -> ResolvedSource:
        return resolve_source(self.source, self.options)

    @cached_property
    def _checked(self) -> CheckResult:
        return check_resolved(self._resolved, self.options)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Every finding, in order."""
        return list(self._checked.diagnostics)

    @property
    def device(self) -> Device:
        """The device that it is for."""
        return self._resolved.device

    @property
    def needed(self) -> tuple[Path, ...]:
        """The files that it includes, and that of its device."""
        return self._resolved.needed

    @property
    def facts(self) -> ProgramFacts:
        """The resolved program; a document that holds none raises InputError."""
        facts = self._resolved.facts
        if facts is None:
            raise host_error(f"`{self.source.name}` holds no program, only devices or families")
        return facts

    @property
    def plan(self) -> Plan:
        """The program expanded."""
        return self.facts.plan

    @cached_property
    def tokens(self) -> TokenVerdict:
        """Whether it can run out of tokens: safe, deadlock or unknown."""
        from nacre.nem.api.token_verdict import token_verdict

        verdict = token_verdict(self._checked)
        if verdict is None:
            raise host_error(f"`{self.source.name}` has no task that takes a token")
        return verdict

    def with_host_filled(self, names: Iterable[str]) -> LoadedProgram:
        """The program as it is where the host fills buffers; L1 then holds more than it says."""
        filled = self.options.host_filled | {str(name).partition("@")[0] for name in names}
        facts = self._resolved.facts
        in_l1 = {b.name for b in facts.program.buffers if b.level == "L1"} if facts else set()
        if filled & in_l1 <= self.options.host_filled:
            return self
        options = msgspec.structs.replace(self.options, host_filled=filled)
        return LoadedProgram(self.source, options)

    def with_imports(self, imports: tuple[Import, ...]) -> LoadedProgram:
        """The program with further buffers that the host provides."""
        if not imports:
            return self
        marks = {mark.name: mark for mark in (*self.options.imports, *imports)}
        options = msgspec.structs.replace(self.options, imports=tuple(marks.values()))
        return LoadedProgram(self.source, options)

    @property
    def is_known_sound(self) -> bool:
        """Whether a check, now or before, has found no error in it."""
        if self._was_checked:
            return True
        return "_checked" in vars(self) and not has_errors(self.diagnostics)

    def require_runnable(self, allow: Iterable[str] = ()) -> tuple[Diagnostic, ...]:
        """The errors of allowed codes or groups; any other raises InputError."""
        prefixes = tuple(known_codes(allow))
        if self._was_checked:
            return ()
        errors = [d for d in self.diagnostics if d.severity == "error"]
        allowed = tuple(d for d in errors if prefixes and d.code.startswith(prefixes))
        if len(errors) > len(allowed):
            raise InputError([d for d in errors if d not in allowed])
        return allowed

    def __repr__(self) -> str:
        return f"<Program {self.name} of {self.source.name}>"


@contextmanager
def report_allowed_errors(allowed: tuple[Diagnostic, ...]) -> Iterator[None]:
    """What errors that were allowed through make of the work inside is a finding (RUN12)."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not allowed or isinstance(error, MemoryError):
            raise
        finding = unrunnable_finding(allowed, f"the program cannot run: {error}")
        raise InputError([finding]) from None


def known_codes(codes: Iterable[str] | str) -> Sequence[str]:
    """Codes or groups as they are registered; InputError for one that is not."""
    named = [codes] if isinstance(codes, str) else [str(code) for code in codes]
    known = {*RULES, *(rule.group for rule in RULES.values())}
    for code in named:
        if code.upper() not in known:
            hint = did_you_mean(code.upper(), known)
            raise host_error(f"no rule or group `{code}`", hint)
    return [code.upper() for code in named]
