"""Expressions of a template, by Jinja's precedence."""

from __future__ import annotations

from collections.abc import Callable

from nacre.llm.template.lexer import Token
from nacre.llm.template.limits import MAX_BEHIND, MAX_DEPTH
from nacre.llm.template.nodes import (
    Call,
    Conditional,
    Constant,
    DictLiteral,
    Expression,
    ListLiteral,
    Name,
    Operation,
    Slice,
    Subscript,
)
from nacre.llm.template.problems import TemplateProblem, limit, syntax

_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_RESERVED = {"and", "or", "not", "in", "is", "if", "else"}


class ExpressionParser:
    """Reads the words of a tag one after another."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        """The word that comes."""
        return self._tokens[self._at]

    def take(self) -> Token:
        """The word that comes; the parser stands behind it."""
        token = self.next
        if token.kind != "end":
            self._at += 1
        return token

    def try_take(self, *texts: str) -> str | None:
        """One of some signs or names, where it comes."""
        token = self.next
        if token.kind in ("sign", "name") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def expect(self, text: str) -> None:
        """A sign or a name that must come."""
        if self.try_take(text) is None:
            raise self.unexpected(f"`{text}`")

    def name(self) -> str:
        """A name that must come."""
        token = self.take()
        if token.kind != "name":
            raise syntax(token.line, f"found {_describe(token)}, expected a name")
        return token.text

    def require_end(self) -> None:
        """Refuse words that are left."""
        if self.next.kind != "end":
            raise self.unexpected("the end of the tag")

    def unexpected(self, wanted: str) -> TemplateProblem:
        """What to say of the word that comes."""
        return syntax(self.next.line, f"found {_describe(self.next)}, expected {wanted}")

    def expression(self) -> Expression:
        """A whole one."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise limit(self.next.line, f"an expression lies more than {MAX_DEPTH} deep")
        value = self._disjunction()
        while self.try_take("if"):
            line = self.next.line
            condition = self._disjunction()
            otherwise = self.expression() if self.try_take("else") else None
            value = Conditional(condition, value, otherwise, line)
        self._depth -= 1
        return value

    def without_choice(self) -> Expression:
        """An expression that an `if` behind it does not belong to."""
        return self._disjunction()

    def listed(self) -> Expression:
        """Expressions with commas between them, which are a tuple then."""
        line = self.next.line
        first = self.expression()
        items = [first]
        while self.try_take(","):
            items.append(self.expression())
        return first if len(items) == 1 else ListLiteral(tuple(items), line)

    def _left_to_right(self, signs: tuple[str, ...], inner: Callable[[], Expression]) -> Expression:
        """Operations of one precedence, the left ones first."""
        value = inner()
        while (sign := self.try_take(*signs)) is not None:
            value = Operation(sign, (value, inner()), self.next.line)
        return value

    def _disjunction(self) -> Expression:
        return self._left_to_right(("or",), self._conjunction)

    def _conjunction(self) -> Expression:
        return self._left_to_right(("and",), self._negation)

    def _negation(self) -> Expression:
        count = 0
        while self.try_take("not"):
            count += 1
        value = self._comparison()
        for _ in range(min(count, 2) if count % 2 == 0 else 1):
            value = Operation("not", (value,), self.next.line)
        return value

    def _comparison(self) -> Expression:
        """One comparison; several in a row hold together."""
        left, found = self._sum(), list[Expression]()
        while True:
            sign = self.try_take(*_COMPARISONS, "in")
            if sign is None and self.next.text == "not" and self._tokens[self._at + 1].text == "in":
                self._at += 2
                sign = "not in"
            if sign is None:
                break
            right = self._sum()
            found.append(Operation(sign, (left, right), self.next.line))
            left = right
        whole = found[0] if found else left
        for more in found[1:]:
            whole = Operation("and", (whole, more), self.next.line)
        return whole

    def _sum(self) -> Expression:
        return self._left_to_right(("+", "-"), self._concatenation)

    def _concatenation(self) -> Expression:
        return self._left_to_right(("~",), self._product)

    def _product(self) -> Expression:
        return self._left_to_right(("*", "/", "//", "%"), self._signed_value)

    def _signed_value(self) -> Expression:
        signs = []
        while (sign := self.try_take("-", "+")) is not None:
            signs.append(sign)
        value = self._postfix(self._primary())
        if signs.count("-") % 2:
            value = Operation("negative", (value,), self.next.line)
        return self._filters_behind(value)

    def _primary(self) -> Expression:
        token = self.take()
        if token.kind == "string":
            text = token.text
            while self.next.kind == "string":  # texts beside each other are one
                text += self.take().text
            return Constant(text, token.line)
        if token.kind in ("integer", "float"):
            return _number(token)
        if token.kind == "name" and token.text not in _RESERVED:
            is_word = token.text in _WORDS
            return (
                Constant(_WORDS[token.text], token.line)
                if is_word
                else Name(token.text, token.line)
            )
        if token.kind == "sign" and token.text in ("(", "[", "{"):
            return {"(": self._group, "[": self._list, "{": self._mapping}[token.text](token.line)
        raise syntax(token.line, f"found {_describe(token)}, expected a value")

    def _group(self, line: int) -> Expression:
        if self.try_take(")"):
            return ListLiteral((), line)
        value = self.listed()
        self.expect(")")
        return value

    def _list(self, line: int) -> Expression:
        items: list[Expression] = []
        while not self.try_take("]"):
            items.append(self.expression())
            if not self.try_take(","):
                self.expect("]")
                break
        return ListLiteral(tuple(items), line)

    def _mapping(self, line: int) -> Expression:
        pairs: list[tuple[Expression, Expression]] = []
        while not self.try_take("}"):
            key = self.expression()
            self.expect(":")
            pairs.append((key, self.expression()))
            if not self.try_take(","):
                self.expect("}")
                break
        return DictLiteral(tuple(pairs), line)

    def _postfix(self, value: Expression) -> Expression:
        """Fields, items, parts and calls behind a value."""
        for _ in range(MAX_BEHIND):
            line = self.next.line
            if self.try_take("."):
                name = self.name()
                if self.try_take("("):
                    arguments, named = self._arguments()
                    value = Call("method", name, (value, *arguments), named, line)
                else:
                    value = Subscript(value, Constant(name, line), line)
            elif self.try_take("["):
                value = self._item(value, line)
            elif self.next.text == "(" and self.next.kind == "sign":
                value = self._call(value, line)
            else:
                return value
        raise limit(self.next.line, f"a value has more than {MAX_BEHIND} items behind it")

    def _call(self, value: Expression, line: int) -> Expression:
        if not isinstance(value, Name):
            raise syntax(line, "only functions by their names are called")
        self.expect("(")
        arguments, named = self._arguments()
        return Call("function", value.name, arguments, named, line)

    def _item(self, value: Expression, line: int) -> Expression:
        bounds: list[Expression | None] = []
        is_part = False
        while True:
            at_bound = self.next.text not in (":", "]") or self.next.kind != "sign"
            bounds.append(self.expression() if at_bound else None)
            if not self.try_take(":"):
                break
            is_part = True
        self.expect("]")
        if not is_part and bounds[0] is not None:
            return Subscript(value, bounds[0], line)
        if not is_part or len(bounds) > 3:
            raise syntax(line, "an item has no key, or a part more than three bounds")
        start, end, step = (*bounds, None, None)[:3]
        return Slice(value, (start, end, step), line)

    def _arguments(self) -> tuple[tuple[Expression, ...], tuple[tuple[str, Expression], ...]]:
        """Arguments up to the closing bracket, which is taken."""
        arguments: list[Expression] = []
        named: list[tuple[str, Expression]] = []
        while not self.try_take(")"):
            following = self._tokens[self._at + 1] if self.next.kind == "name" else self.next
            if self.next.kind == "name" and following.text == "=" and following.kind == "sign":
                name = self.name()
                self.expect("=")
                named.append((name, self.expression()))
            else:
                arguments.append(self.expression())
            if not self.try_take(","):
                self.expect(")")
                break
        return tuple(arguments), tuple(named)

    def _filters_behind(self, value: Expression) -> Expression:
        """Filters and tests behind a value."""
        for _ in range(MAX_BEHIND):
            line = self.next.line
            if self.try_take("|"):
                name = self.name()
                arguments, named = self._arguments() if self.try_take("(") else ((), ())
                value = self._postfix(Call("filter", name, (value, *arguments), named, line))
            elif self.try_take("is"):
                value = self._test(value, line)
            else:
                return value
        raise limit(self.next.line, f"a value has more than {MAX_BEHIND} filters behind it")

    def _test(self, value: Expression, line: int) -> Expression:
        is_negated = self.try_take("not") is not None
        name = self.name()
        arguments = self._arguments()[0] if self.try_take("(") else ()
        if name in ("equalto", "eq", "sameas") and not arguments:
            arguments = (self._postfix(self._primary()),)
        made = Call("test", name, (value, *arguments), (), line)
        return Operation("not", (made,), line) if is_negated else made


def _number(token: Token) -> Constant:
    if token.kind == "float":
        return Constant(float(token.text), token.line)
    if len(token.text) > 18:
        raise limit(token.line, f"a number has {len(token.text):,} digits")
    return Constant(int(token.text), token.line)


def _describe(token: Token) -> str:
    return "the end of the tag" if token.kind == "end" else f"`{token.text[:20]}`"
