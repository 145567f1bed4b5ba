"""What is wrong with a file of a tokenizer."""

from __future__ import annotations

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.nac.rules.tokenizer import NAC68, NAC69
from nacre.nac.tisa.bundle import refusal


class FileProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A file that is malformed, or that says what no program can do."""

    def __init__(self, message: str, rule: Rule = NAC68, help: str | None = None) -> None:
        super().__init__(message)
        self._rule = rule
        self._help = help

    def refusal(self, name: str) -> InputError:
        """What users see."""
        return refusal(self._rule, str(self), self._help, name)


def unsupported(message: str, help: str | None = None) -> FileProblem:
    """A file that is well-formed, and nothing here means the same."""
    return FileProblem(message, NAC69, help)
