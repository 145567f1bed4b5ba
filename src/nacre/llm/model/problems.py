"""How what is wrong with a model becomes a finding: by its file, and a code."""

from __future__ import annotations

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import whole_file


def refusal(rule: Rule, name: str, message: str, help: str | None = None) -> InputError:
    """An error about a file as a whole."""
    return InputError([rule.at(whole_file(name), message, help=help)])
