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


class NoForm(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node that has no form in Core IR: why, and what would do instead."""

    def __init__(self, reason: str, rewrite: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rewrite = rewrite
