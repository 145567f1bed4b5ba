"""The chat template of a file: messages in, a prompt out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.base.source import Source
from nacre.llm.model.weights import ModelFile
from nacre.llm.template.evaluate import run_template
from nacre.llm.template.nodes import Statement
from nacre.llm.template.parser import parse_template
from nacre.llm.template.problems import TemplateProblem, limit

KEY = "tokenizer.chat_template"
Message = Mapping[str, str]  # `role` and `content`


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    """A template that was read, and the tokens that it may name."""

    source: Source
    statements: tuple[Statement, ...]
    tokens: Mapping[str, str]  # `bos_token`, `eos_token`

    def prompt(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """A conversation up to where an answer begins; InputError where it is not taken."""
        variables = {
            "messages": [dict(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            **self.tokens,
        }
        try:
            return run_template(self.statements, variables)
        except TemplateProblem as problem:
            raise _refusal(problem, self.source) from None
        except RecursionError:
            raise _refusal(_depth_problem(), self.source) from None


def chat_template(file: ModelFile) -> ChatTemplate | None:
    """The template of a file, None where it has none; InputError where it cannot be read."""
    text = file.metadata.get(KEY)
    if not isinstance(text, str):
        return None
    return read_template(text, f"{file.name}: {KEY}", _tokens(file))


def read_template(text: str, name: str, tokens: Mapping[str, str] | None = None) -> ChatTemplate:
    """A template from its text."""
    source = Source(name, text)
    try:
        return ChatTemplate(source, parse_template(text), tokens or {})
    except TemplateProblem as problem:
        raise _refusal(problem, source) from None
    except RecursionError:
        raise _refusal(_depth_problem(), source) from None


def _depth_problem() -> TemplateProblem:
    return limit(1, "expressions of the template lie too deep")


def _tokens(file: ModelFile) -> dict[str, str]:
    """The texts of the tokens that templates name."""
    listed = file.metadata.get("tokenizer.ggml.tokens")
    found = {}
    for name in ("bos", "eos"):
        index = file.metadata.get(f"tokenizer.ggml.{name}_token_id")
        is_known = isinstance(listed, list) and isinstance(index, int) and 0 <= index < len(listed)
        found[f"{name}_token"] = str(listed[index]) if is_known else ""  # type: ignore[index]
    return found


def _refusal(problem: TemplateProblem, source: Source) -> InputError:
    starts = source.line_starts
    start = starts[min(problem.line, len(starts)) - 1]
    end = min(start + len(source.line_text(min(problem.line, len(starts)))), source.size)
    finding = problem.rule.at(source.span(start, end), safe(problem.message), help=problem.help)
    return InputError([finding])
