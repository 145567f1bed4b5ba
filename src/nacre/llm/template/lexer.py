"""The text of a template as tags and what stands between them, white space taken away as asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nacre.llm.template.limits import MAX_TEMPLATE
from nacre.llm.template.problems import limit, syntax

_OPENINGS = re.compile(r"\{(?:\{|%|#)")
_CLOSINGS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_TOKEN = re.compile(
    r"""\s+|(?P<name>[A-Za-z_]\w*)|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?)|(?P<integer>\d+)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%~<>=|.,:()\[\]{}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an expression."""

    kind: Literal["name", "float", "integer", "string", "sign", "end"]
    text: str  # of a string its value
    line: int


@dataclass(frozen=True, slots=True)
class Tag:
    """`{{ ... }}` or `{% ... %}`, or the text between two of them."""

    kind: Literal["text", "output", "block"]
    text: str
    tokens: tuple[Token, ...]
    line: int


def split_tags(template: str) -> list[Tag]:
    """All tags and texts. A block that ends its line takes the line's end along.

    So does Jinja with the settings of chats: `trim_blocks`, `lstrip_blocks`.
    """
    if len(template) > MAX_TEMPLATE:
        message = (
            f"the template has {len(template):,} characters, at most {MAX_TEMPLATE:,} are read"
        )
        raise limit(1, message)
    template = template.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return [tag for tag in _tags(template) if tag.kind != "text" or tag.text]


def _tags(template: str) -> Iterator[Tag]:
    at, is_trimmed = 0, False
    while (opening := _OPENINGS.search(template, at)) is not None:
        sign, start = opening.group(), opening.end()
        line = template.count("\n", 0, opening.start()) + 1
        text = _trim_start(template[at : opening.start()], is_trimmed)
        flag = template[start : start + 1]
        if flag == "-":
            text = text.rstrip()
        elif sign != "{{" and flag != "+":
            blanks = len(text) - len(text.rstrip(" \t"))
            before = opening.start() - blanks
            if before == 0 or template[before - 1] == "\n":
                text = text[: len(text) - blanks]
        yield Tag("text", text, (), line)
        start += flag in ("-", "+") and flag != ""
        tokens, end = _read_tag(template, start, sign, line)
        if sign != "{#":
            yield Tag("output" if sign == "{{" else "block", "", tokens, line)
        is_trimmed = template[end - 3] == "-"
        takes_line_end = sign != "{{" and template[end - 3] not in "-+"
        at = end + (takes_line_end and template[end : end + 1] == "\n")
    yield Tag("text", _trim_start(template[at:], is_trimmed), (), template.count("\n", 0, at) + 1)


def _trim_start(text: str, is_trimmed: bool) -> str:
    return text.lstrip() if is_trimmed else text


def _read_tag(template: str, start: int, sign: str, line: int) -> tuple[tuple[Token, ...], int]:
    """The words of a tag, and where it ends."""
    closing = _CLOSINGS[sign]
    if sign == "{#":
        end = template.find(closing, start)
        if end < 0:
            raise syntax(line, "a comment has no end")
        return (), end + 2
    tokens: list[Token] = []
    closings = (closing, f"-{closing}", f"+{closing}")
    at, depth = start, 0
    while True:
        ends = (at + len(e) for e in closings if depth == 0 and template.startswith(e, at))
        if end := next(ends, 0):
            return (*tokens, Token("end", "", line)), end
        found = _TOKEN.match(template, at)
        if found is None:
            what = "has no end" if at >= len(template) else f"has {template[at]!r}"
            raise syntax(line, f"the tag `{sign}` {what}")
        if found.lastgroup is not None:
            token = _token(found, line)
            depth += (token.kind == "sign") * ((token.text in "([{") - (token.text in ")]}"))
            tokens.append(token)
        line += found.group().count("\n")
        at = found.end()


def _token(found: re.Match[str], line: int) -> Token:
    text = found.group()
    if found.lastgroup == "string":
        return Token("string", _ESCAPE.sub(_unescape, text[1:-1]), line)
    return Token(found.lastgroup, text, line)  # type: ignore[arg-type]


def _unescape(found: re.Match[str]) -> str:
    what = found.group(1)
    if len(what) > 1:
        return chr(int(what[1:], 16))
    # A sign that needs no escape keeps its backslash, as in Python.
    return _ESCAPES.get(what, what if what in "\\'\"" else f"\\{what}")
