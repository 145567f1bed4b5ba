"""What is wrong with a template, and where, until it becomes a finding."""

from __future__ import annotations

from nacre.base.rules import Rule
from nacre.llm.rules.template import LLM20, LLM21, LLM22


class TemplateProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A template that cannot be read or run; `line` is of its text."""

    def __init__(self, rule: Rule, line: int, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule, self.line, self.message, self.help = rule, line, message, help


_LEFT_OUT = "give the prompt as it is, without the template: `--raw`"


def syntax(line: int, message: str) -> TemplateProblem:
    """A text that is no template, or beyond the part that is built."""
    return TemplateProblem(LLM20, line, message, _LEFT_OUT)


def failure(line: int, message: str) -> TemplateProblem:
    """A template that does not take its messages."""
    return TemplateProblem(LLM21, line, message)


def limit(line: int, message: str) -> TemplateProblem:
    """A template that does too much."""
    return TemplateProblem(LLM22, line, message)
