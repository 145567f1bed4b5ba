"""Texts of MLIR from strangers, read by xDSL's parser: bounded, and every refusal has a place."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Source, Span, whole_file
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.spec.rules.mlir import MLR02, MLR06

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

# `mlir-opt` writes aliases of locations behind the module; xDSL wants them before their use.
_ALIAS = re.compile(r"^#loc[0-9]*[ ]*=[^\n]*$", re.MULTILINE)
# A chain of as many operators as a program may have is as many levels deep, some frames each.
_FRAMES = 20_000
_LONGEST_REASON = 300


class ReadModule:
    """A module, and where its operations stand in the text."""

    def __init__(self, module: ModuleOp, source: Source, starts: dict[int, int]) -> None:
        self.module = module
        self._source = source
        self._starts = starts

    def span(self, op: Operation) -> Span:
        """The line of an operation, from where it begins."""
        start = self._starts.get(id(op), 0)
        end = self._source.text.find("\n", start)
        return self._source.span(start, end if end >= 0 else len(self._source.text))


def require_xdsl(name: str) -> None:
    """Raise InputError where xDSL is missing."""
    if find_spec("xdsl") is None:
        message, help_ = "modules of MLIR need the package `xdsl`", 'pip install "nacre[mlir]"'
        raise InputError([MLR06.at(whole_file(name), message, help=help_)])


def read_module(source: Source, context: Context, *, has_aliases: bool = False) -> ReadModule:
    """The module of a text; InputError where it is none (MLR02)."""
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    class PlacedParser(Parser):  # type: ignore[misc] # xDSL may be missing
        """Remembers where operations begin."""

        def parse_operation(self) -> Operation:
            start = self.pos
            op = super().parse_operation()
            starts[id(op)] = max(start - shift, 0)
            return op

        def resolve_operand(self, operand: Any, type: Any) -> Any:  # noqa: ANN401 - xDSL's
            if operand.operand_name not in self.ssa_values:
                uses.setdefault(operand.operand_name, max(operand.span.start - shift, 0))
            return super().resolve_operand(operand, type)

        def _parse_alias_def(self) -> None:
            # An alias of aliases can stand for more than any memory holds.
            if not has_aliases and not self._current_token.text.startswith("#loc"):
                self.raise_error("only locations may have aliases")
            super()._parse_alias_def()

        def _parse_location(self) -> Attribute:
            # xDSL reads neither names of files that are not ASCII nor what fused ones are tagged
            # with: both are common in what `mlir-opt` writes.
            if (name := self.parse_optional_bytes_literal()) is not None:
                return _file_location(self, name)
            if self.parse_optional_keyword("fused"):
                return _fused_location(self)
            return super()._parse_location()

    starts: dict[int, int] = {}
    uses: dict[str, int] = {}  # the first ones of values that were not defined yet
    text, shift = _with_aliases_first(source.text)
    parser: PlacedParser | None = None
    try:
        parser = PlacedParser(context, text, source.name)  # which reads a first token already
        with deep_recursion():
            module = parser.parse_module()
    except ParseError as error:
        forward = () if parser is None else parser.forward_ssa_references
        undefined = {name: uses[name] for name in forward}
        refused = _refuse_values(source, undefined, error.msg)
        raise refused or _refuse(source, error.span.start - shift, error.msg) from None
    except Exception as error:  # xDSL on a text from a stranger: any exception is about the text
        is_deep = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if is_deep else str(error) or type(error).__name__
        at = 0 if parser is None else parser.pos - shift
        raise _refuse(source, at, reason) from None
    return ReadModule(module, source, starts)


def _file_location(parser: Any, name: bytes) -> Attribute:  # noqa: ANN401 - a parser of xDSL
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, NoneAttr, StringAttr

    file_name = StringAttr(name.decode("utf-8", "replace"))
    if parser.parse_optional_punctuation(":") is None:
        return NameLoc(file_name, NoneAttr())
    line = parser.parse_integer(False, False)
    parser.parse_punctuation(":")
    return FileLineColLoc(file_name, IntAttr(line), IntAttr(parser.parse_integer(False, False)))


def _fused_location(parser: Any) -> Attribute:  # noqa: ANN401
    from xdsl.dialects.builtin import FusedLoc, NoneAttr

    if parser.parse_optional_punctuation("<") is not None:
        parser.parse_attribute()
        parser.parse_punctuation(">")
    brackets = parser.Delimiter.SQUARE
    locations = parser.parse_comma_separated_list(brackets, parser._parse_location)
    return FusedLoc(tuple(locations), NoneAttr())


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for expressions of as many operators as a program may have."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _with_aliases_first(text: str) -> tuple[str, int]:
    """The text with its aliases of locations copied before it, and how long they are."""
    aliases = _ALIAS.findall(text)
    if not aliases:
        return text, 0
    head = "\n".join(aliases) + "\n"
    return head + _ALIAS.sub(lambda found: " " * len(found[0]), text), len(head)


def _refuse(source: Source, start: int, reason: str) -> InputError:
    if _is_program(source):
        message, help_ = (
            "this is a NEM document, no module of MLIR",
            "`nacre nem to-mlir` makes one",
        )
        return InputError([MLR02.at(source.span(0, min(1, source.size)), message, help=help_)])
    at = min(max(start, 0), len(source.text))
    first = reason.strip().partition("\n")[0][:_LONGEST_REASON]
    message = f"this is no module of MLIR: {_lower(first)}"
    span = source.span(at, min(at + 1, len(source.text)))
    return InputError([MLR02.at(span, message, help=_remedy(first))])


def _is_program(source: Source) -> bool:
    """Whether a text that is no module is a document of NEM, given by mistake."""
    from nacre.nem.syntax.parser import parse

    return bool(source.text.strip()) and parse(source).is_valid


def _refuse_values(source: Source, uses: Mapping[str, int], reason: str) -> InputError | None:
    """Values that nothing defines, each where it is used first; None for another reason."""
    if not reason.startswith("values used but not defined"):
        return None
    help_ = "define it before, as the result of an operation"
    found = []
    for name, start in islice(uses.items(), MAX_DIAGNOSTICS):
        span = source.span(start, min(start + len(name) + 1, len(source.text)))
        found.append(MLR02.at(span, f"nothing defines {backquote('%' + name)}", help=help_))
    return InputError(found)


def _remedy(reason: str) -> str:
    if reason.endswith(" is not registered"):
        return "operations are those of `builtin` and `nem`: `nacre nem irdl` lists them"
    if reason.endswith("nested too deeply"):
        return "give parts of it names, with `nem.const` or `nem.let`"
    if reason.endswith("have aliases"):
        return "write out what it stands for"
    return "write operations in MLIR's generic form, as `nacre nem to-mlir` does"


def _lower(reason: str) -> str:
    """A reason in the words of xDSL, as our messages are written."""
    if reason.startswith("Operation ") and reason.endswith(" is not registered"):
        name = reason.removeprefix("Operation ").removesuffix(" is not registered")
        return f"there is no operation {backquote(name)}"
    reason = reason.replace("after {first_char}", "after its mark")  # which xDSL forgets to fill in
    return reason[:1].lower() + reason[1:].rstrip(".!")
