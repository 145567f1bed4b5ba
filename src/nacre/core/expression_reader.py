"""A surface expression as a list of nodes, operands before what uses them.

expression = term {("+" | "-") term}
term       = factor {("*" | "@") factor}
factor     = {"-"} (number | list | name | call | "(" expression ")")
call       = function "(" argument {"," argument} ")", argument = [name "="] value
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from msgspec import Struct

from nacre.base.diagnostics import InputError
from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.core.ops import OPS, AttributeSpec, OpSpec
from nacre.core.rules.lowering import LOW01, LOW02, LOW03, LOW04, LOW05
from nacre.core.values import Custom, Word

FUNCTIONS = {
    "relu": "Relu", "exp": "Exp", "log": "Log", "neg": "Neg", "sum": "Sum", "mean": "Mean",
    "reshape": "Reshape", "transpose": "Transpose", "matmul": "MatMul", "dot": "Dot",
    "conv2d": "Conv2d", "gather": "Gather", "slice": "Slice", "index": "Index",
    "expand_dims": "ExpandDims", "squeeze": "Squeeze",
}  # fmt: skip
# What an argument that is left out stands for; None: it follows from the rank of the operand.
_DEFAULTS: dict[tuple[str, str], Any] = {
    ("Sum", "axes"): (), ("Sum", "keepdims"): False,
    ("Mean", "axes"): (), ("Mean", "keepdims"): False,
    ("Transpose", "permutation"): None, ("Slice", "steps"): None,
    ("Conv2d", "strides"): (1, 1), ("Conv2d", "padding"): Word("Valid"),
}  # fmt: skip
_SUMS = {"+": "Add", "-": "Sub"}
_PRODUCTS = {"*": "Mul", "@": "MatMul"}

MAX_CHARACTERS = 1_000_000
MAX_NESTING = 64  # each level takes a few frames of Python's stack
_MAX_DIGITS = 40  # no element type holds more, and Python refuses thousands

_SPACES = re.compile(r"\s*", re.ASCII)
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>[-+*@()\[\],=])
      | (?P<end>$)
    )""",
    re.VERBOSE | re.ASCII,
)


class Node(Struct, frozen=True):
    """One step: an `Input` by name, a `ConstTensor` by its data, or an operation."""

    opcode: str
    operands: tuple[int, ...]
    given: dict[str, Any]
    start: int  # the place to point at: an operator, a function's name, a literal
    end: int


class _Token(Struct, frozen=True):
    kind: str
    text: str
    start: int
    end: int


def read_expression(source: Source) -> list[Node]:
    """The nodes of an expression, the result last; InputError says what cannot be read."""
    if len(source.text) > MAX_CHARACTERS:
        message = f"the expression has {len(source.text):,} characters, at most {MAX_CHARACTERS:,}"
        raise InputError([LOW05.at(source.span(0, 0), message)])
    return _Reader(source).read()


class _Reader:
    """Reads by recursive descent; chains of operators are loops, nesting is bounded."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = self._split()
        self._at = 0
        self._depth = 0
        self._nodes: list[Node] = []
        self._variables: dict[str, int] = {}

    def read(self) -> list[Node]:
        """The whole text."""
        self._expression()
        if self._token.kind != "end":
            self._fail(LOW01, f"expected an operator or the end, found {self._token_text()}")
        return self._nodes

    def _split(self) -> list[_Token]:
        text, at, tokens = self._source.text, 0, list[_Token]()
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(text, at)
            if match is None:
                at = _SPACES.match(text, at).end()  # type: ignore[union-attr]  # it always matches
                message = f"expected an expression, found {_character_text(text[at])}"
                raise InputError([LOW01.at(self._source.span(at, at + 1), message)])
            kind = match.lastgroup or "end"
            tokens.append(_Token(kind, match[kind], *match.span(kind)))
            at = match.end()
        return tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._token
        self._at += token.kind != "end"
        return token

    def _is_at(self, *marks: str) -> bool:
        return self._token.kind == "mark" and self._token.text in marks

    def _expect(self, mark: str, *others: str) -> None:
        """Take a mark; `others` could have stood there as well."""
        if not self._is_at(mark):
            wanted = " or ".join(f"`{one}`" for one in (mark, *others))
            self._fail(LOW01, f"expected {wanted}, found {self._token_text()}")
        self._take()

    def _token_text(self) -> str:
        return "the end" if self._token.kind == "end" else backquote(self._token.text)

    def _fail(
        self, rule: Rule, message: str, token: _Token | None = None, help: str | None = None
    ) -> NoReturn:
        place = token or self._token
        raise InputError([rule.at(self._source.span(place.start, place.end), message, help=help)])

    def _node(self, opcode: str, operands: tuple[int, ...], token: _Token, **given: Any) -> int:  # noqa: ANN401
        self._nodes.append(Node(opcode, operands, given, token.start, token.end))
        return len(self._nodes) - 1

    def _enter_level(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._fail(LOW05, f"more than {MAX_NESTING} levels inside each other")

    def _expression(self) -> int:
        self._enter_level()
        left = self._term()
        while self._is_at(*_SUMS):
            token = self._take()
            operands = (left, self._term())
            left = self._node("BinOp", operands, token, op=Word(_SUMS[token.text]))
        self._depth -= 1
        return left

    def _term(self) -> int:
        left = self._factor()
        while self._is_at(*_PRODUCTS):
            token = self._take()
            operands = (left, self._factor())
            if token.text == "@":
                left = self._node("MatMul", operands, token)
            else:
                left = self._node("BinOp", operands, token, op=Word("Mul"))
        return left

    def _factor(self) -> int:
        signs = []
        while self._is_at("-"):
            signs.append(self._take())
        # The sign before a number is part of it: the least integer has no positive counterpart.
        if signs and self._token.kind == "number":
            sign = signs.pop()
            number = self._take()
            whole = _Token("number", number.text, sign.start, number.end)
            value = self._node("ConstTensor", (), whole, data=-self._number(number))
        else:
            value = self._atom()
        for sign in reversed(signs):
            value = self._node("Neg", (value,), sign)
        return value

    def _atom(self) -> int:
        token = self._token
        if token.kind == "number":
            return self._node("ConstTensor", (), self._take(), data=self._number(token))
        if token.kind == "name":
            self._take()
            return self._call(token) if self._is_at("(") else self._variable(token)
        if self._is_at("["):
            data = self._numbers()
            whole = _Token("list", "", token.start, self._tokens[self._at - 1].end)
            return self._node("ConstTensor", (), whole, data=data)
        if not self._is_at("("):
            self._fail(LOW01, f"expected a name, a number or `(`, found {self._token_text()}")
        self._take()
        value = self._expression()
        self._expect(")")
        return value

    def _variable(self, token: _Token) -> int:
        if token.text not in self._variables:
            self._variables[token.text] = self._node("Input", (), token, name=token.text)
        return self._variables[token.text]

    def _call(self, name: _Token) -> int:
        opcode = FUNCTIONS.get(name.text)
        if opcode is None:
            help = did_you_mean(name.text, FUNCTIONS)
            self._fail(LOW02, f"no function {backquote(name.text)}", name, help)
        spec, operands, given = OPS[opcode], list[int](), dict[str, Any]()
        self._expect("(")
        while not self._is_at(")"):
            self._argument(name, spec, operands, given)
            if not self._is_at(")"):
                self._expect(",", ")")
        self._take()
        if len(operands) < len(spec.operands):
            count, wanted = len(operands), len(spec.operands)
            self._fail(LOW03, f"`{name.text}` has {count} operands, expected {wanted}", name)
        for attribute in spec.attributes:
            self._fill_default(name, opcode, attribute.name, given)
        return self._node(opcode, tuple(operands), name, **given)

    def _argument(
        self, name: _Token, spec: OpSpec, operands: list[int], given: dict[str, Any]
    ) -> None:
        """One argument: operands first, then attributes in order or by name."""
        token, following = self._token, self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.kind == "name" and following.text == "=":
            attribute = spec.attribute(token.text)
            if attribute is None:
                help = did_you_mean(token.text, [a.name for a in spec.attributes])
                message = f"`{name.text}` has no argument {backquote(token.text)}"
                self._fail(LOW03, message, token, help)
            if token.text in given:
                self._fail(LOW03, f"argument `{token.text}` is given twice", token)
            self._at += 2
            given[attribute.name] = self._value(attribute)
        elif len(operands) < len(spec.operands):
            operands.append(self._expression())
        elif len(given) < len(spec.attributes) and spec.attributes[len(given)].name not in given:
            attribute = spec.attributes[len(given)]
            given[attribute.name] = self._value(attribute)
        else:
            most = len(spec.operands) + len(spec.attributes)
            self._fail(LOW03, f"`{name.text}` takes at most {most} arguments")

    def _fill_default(
        self, name: _Token, opcode: str, argument: str, given: dict[str, Any]
    ) -> None:
        if argument in given:
            return
        if (opcode, argument) not in _DEFAULTS:
            self._fail(LOW03, f"`{name.text}` lacks the argument `{argument}`", name)
        given[argument] = _DEFAULTS[opcode, argument]

    def _value(self, spec: AttributeSpec) -> Any:  # noqa: ANN401 - whatever the attribute holds
        token = self._token
        if spec.kind == "bool" and token.text in ("true", "false"):
            return self._take().text == "true"
        if spec.kind == "padding" and token.text in ("Valid", "Same"):
            return Word(self._take().text)
        if spec.kind in ("ints", "padding") and self._is_at("["):
            numbers = self._numbers()
            if spec.kind == "ints" and all(type(item) is int for item in numbers):
                return numbers
            if spec.kind == "padding" and _is_pads(numbers):
                return Custom(numbers)
        elif spec.kind == "ints" and (token.kind == "number" or self._is_at("-")):
            numbers = self._numbers()
            if type(numbers) is int:
                return (numbers,)
        end = max(token.end, self._tokens[self._at - 1].end)
        text = self._source.text[token.start : end]
        shown = backquote(text) if text else "missing"
        place = _Token("value", "", token.start, end)
        self._fail(LOW03, f"argument `{spec.name}` is {shown}, {_EXPECTED[spec.kind]}", place)

    def _numbers(self) -> Any:  # noqa: ANN401 - a number, or tuples of them
        """A number with its sign, or a list of numbers or of lists as long as each other."""
        if not self._is_at("["):
            sign = -1 if self._is_at("-") else 1
            self._at += sign < 0
            token = self._token
            if token.kind != "number":
                self._fail(LOW01, f"expected a number, found {self._token_text()}")
            return sign * self._number(self._take())
        self._enter_level()
        self._take()
        items: list[Any] = []
        while not self._is_at("]"):
            items.append(self._numbers())
            if not self._is_at("]"):
                self._expect(",", "]")
        self._take()
        self._depth -= 1
        return tuple(items)

    def _number(self, token: _Token) -> int | float:
        if not is_digits(token.text):
            value = float(token.text)
            if math.isinf(value):
                self._fail(LOW04, f"{backquote(token.text)} is beyond every type", token)
            return value
        if len(token.text) > _MAX_DIGITS:
            self._fail(LOW04, f"an integer of {len(token.text)} digits fits no type", token)
        return int(token.text)


def _character_text(character: str) -> str:
    """A character for a message; what cannot be seen by its number."""
    return backquote(character) if character.isprintable() else f"U+{ord(character):04X}"


_EXPECTED = {
    "bool": "expected `true` or `false`",
    "ints": "expected a list of integers",
    "padding": "expected `Valid`, `Same` or `[[top, bottom], [left, right]]`",
}


def _is_pads(value: Any) -> bool:  # noqa: ANN401 - whatever was read
    return all(
        isinstance(pair, tuple) and all(type(item) is int for item in pair) for pair in value
    )
