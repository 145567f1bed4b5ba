"""A template as statements: blocks put together from their tags."""

from __future__ import annotations

from nacre.llm.template.expressions import ExpressionParser
from nacre.llm.template.lexer import Tag, split_tags
from nacre.llm.template.limits import MAX_BLOCK_DEPTH
from nacre.llm.template.nodes import Expression, For, If, Jump, Output, Set, Statement, Text
from nacre.llm.template.problems import limit, syntax

# Blocks around a part of an answer that training looks at: their content is written as it is.
_TRANSPARENT = "generation"


def parse_template(template: str) -> tuple[Statement, ...]:
    """The statements; TemplateProblem where there are none."""
    return _BlockParser(split_tags(template)).whole()


class _BlockParser:
    def __init__(self, tags: list[Tag]) -> None:
        self._tags = tags
        self._at = 0
        self._depth = 0

    def whole(self) -> tuple[Statement, ...]:
        statements, tag, word = self._statements_until()
        if tag is not None:
            raise syntax(tag.line, f"`{word}` ends nothing")
        return statements

    def _statements_until(self, *ends: str) -> tuple[tuple[Statement, ...], Tag | None, str]:
        """Statements up to a block of one of some names, with that block and its name."""
        self._depth += 1
        if self._depth > MAX_BLOCK_DEPTH:
            raise limit(
                self._tags[self._at - 1].line, f"blocks lie more than {MAX_BLOCK_DEPTH} deep"
            )
        found: list[Statement] = []
        while self._at < len(self._tags):
            tag = self._tags[self._at]
            self._at += 1
            if tag.kind == "text":
                found.append(Text(tag.text, tag.line))
                continue
            words = ExpressionParser(tag.tokens)
            if tag.kind == "output":
                found.append(Output(words.listed(), tag.line))
                words.require_end()
                continue
            word = words.name()
            if word in ends or word.startswith(("end", "el")):
                self._depth -= 1
                return tuple(found), tag, word
            found += self._block(word, words, tag)
        self._depth -= 1
        return tuple(found), None, ""

    def _body(self, opening: Tag, *ends: str) -> tuple[tuple[Statement, ...], Tag, str]:
        statements, tag, word = self._statements_until(*ends)
        if tag is None:
            raise syntax(opening.line, f"a block has no end, expected `{ends[-1]}`")
        if word not in ends:
            raise syntax(tag.line, f"found `{word}`, expected {' or '.join(map(repr, ends))}")
        return statements, tag, word

    def _block(self, word: str, words: ExpressionParser, tag: Tag) -> list[Statement]:
        if word == "if":
            return [self._if(words, tag)]
        if word == "for":
            return [self._for(words, tag)]
        if word == "set":
            return [self._set(words, tag)]
        if word in ("break", "continue"):
            words.require_end()
            return [Jump(word == "break", tag.line)]
        if word == _TRANSPARENT:
            return list(self._body(tag, f"end{_TRANSPARENT}")[0])
        raise syntax(tag.line, f"`{word}` is no block of those that are run")

    def _if(self, words: ExpressionParser, tag: Tag) -> If:
        branches: list[tuple[Expression | None, tuple[Statement, ...]]] = []
        condition: Expression | None = words.expression()
        words.require_end()
        while True:
            ends = ("elif", "else", "endif") if condition is not None else ("endif",)
            body, following, word = self._body(tag, *ends)
            branches.append((condition, body))
            if word == "endif":
                return If(tuple(branches), tag.line)
            inner = ExpressionParser(following.tokens[1:])
            condition = inner.expression() if word == "elif" else None
            inner.require_end()

    def _for(self, words: ExpressionParser, tag: Tag) -> For:
        names = [words.name()]
        while words.try_take(","):
            names.append(words.name())
        words.expect("in")
        values, condition = _loop_values(words)
        words.require_end()
        body, _, word = self._body(tag, "else", "endfor")
        otherwise: tuple[Statement, ...] = ()
        if word == "else":
            otherwise = self._body(tag, "endfor")[0]
        return For(tuple(names), values, condition, body, otherwise, tag.line)

    def _set(self, words: ExpressionParser, tag: Tag) -> Set:
        name = words.name()
        field = words.name() if words.try_take(".") else None
        if words.try_take("="):
            value: Expression | tuple[Statement, ...] = words.listed()
            words.require_end()
        else:
            words.require_end()
            value = self._body(tag, "endset")[0]
        return Set(name, field, value, tag.line)


def _loop_values(words: ExpressionParser) -> tuple[Expression, Expression | None]:
    """What a loop goes over; its `if` is a condition, and not that of an expression."""
    values = words.without_choice()
    return values, words.expression() if words.try_take("if") else None
