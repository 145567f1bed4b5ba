"""What is wrong with a model: findings without a line, for a binary file has none."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.rules import Rule
from nacre.base.source import whole_file


def finding(rule: Rule, name: str, message: str, help: str | None = None) -> Diagnostic:
    """A finding about a model."""
    return rule.at(whole_file(name), message, help=help)


def refusal(rule: Rule, name: str, message: str, help: str | None = None) -> InputError:
    """The exception that carries one finding."""
    return InputError([finding(rule, name, message, help)])
