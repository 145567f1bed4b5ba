"""Looking names up: every use of a name finds its declaration, or the right diagnostic."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

from nacre.base.diagnostics import Diagnostic, Edit, Fix, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import item_removal_fix, removal_fix, respelling_fix
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.base.suggest import did_you_mean
from nacre.nem.model.folding import CONST, Context
from nacre.nem.model.program import Region
from nacre.nem.model.symbols import Kind, Scope, Symbol, collision_rule
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.spec.rules.constants import CST03, CST04, CST15
from nacre.nem.spec.rules.names import NAM01, NAM03, NAM04, NAM06, TOK01
from nacre.nem.syntax.ast import NameRef, Node

# Comparing a name with every other is slow in a large program, and nobody reads that many hints.
_MOST_SUGGESTIONS = 100
_MOST_SUGGESTED = 1000
_MOST_BETWEEN = 200  # characters between a token and the word that it belongs to


@dataclass(slots=True)
class Names:
    """The scope at hand, the names of loops that have ended, and what was found."""

    source: Source
    scope: Scope = field(default_factory=Scope)
    ended: dict[str, Symbol] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    defining: str | None = None  # the constant whose value is being resolved

    def report(
        self,
        rule: Rule,
        node: Node,
        message: str,
        *,
        help: str | None = None,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Record a diagnostic at a node."""
        if len(self.findings) <= MAX_DIAGNOSTICS:
            span = self.source.span(node.start, node.end)
            self.findings.append(rule.at(span, message, help=help, related=related, fix=fix))

    def declaration_note(
        self, symbol: Symbol, message: str = "declared here"
    ) -> tuple[Related, ...]:
        """The place of a declaration, for a diagnostic."""
        span = self.source.span(symbol.node.start, symbol.node.end)
        return (Related(span, f"`{symbol.name}` is {message}"),)

    def declare(self, symbol: Symbol) -> None:
        """Add a name to the scope at hand; the first declaration of a name wins."""
        scope = self.scope
        scope.upcoming.pop(symbol.name, None)
        old = scope.find(symbol.name)
        if old is None:
            scope.names[symbol.name] = symbol
            return
        if "unknown" in (symbol.kind, old.kind):
            return
        same_scope = symbol.name in scope.names
        word = symbol.description.removeprefix("a ")
        if symbol.kind == old.kind:
            message = f"{word} {backquote(symbol.name)} is declared twice"
            outside = ", the first time outside this loop"
        else:
            message = f"{word} {backquote(symbol.name)} has the name of {old.description}"
            outside = " outside this loop"
        self.report(
            collision_rule(symbol, old, same_scope),
            symbol.node,
            message if same_scope else message + outside,
            help="give one of them another name",
            related=self.declaration_note(old, "declared first here"),
        )
        if symbol.kind == "loop":  # inside its loop it means itself, or every use would go wrong
            scope.names[symbol.name] = symbol

    def lets(self) -> list[Symbol]:
        """The `let`s that can be used here, as many as are worth suggesting."""
        symbols = (s for c in self.scope.chain() for s in c.names.values() if s.kind == "let")
        return list(islice(symbols, _MOST_SUGGESTED))

    def begin_loop(self) -> None:
        """Enter a loop's body."""
        self.scope = Scope(self.scope)

    def end_loop(self) -> None:
        """Leave a loop's body; its names are remembered for messages."""
        self.ended.update(self.scope.names)
        if self.scope.parent is not None:
            self.scope = self.scope.parent

    def value_symbol(self, node: NameRef, context: Context) -> Symbol | None:
        """The constant, loop variable or `let` that an expression names."""
        symbol = self.scope.find(node.name)
        if symbol is None:
            self._unknown_in_expression(node, context)
            return None
        if symbol.kind == "unknown":
            return None
        allowed = symbol.kind == "const" or (
            context is not CONST and symbol.kind in ("let", "loop")
        )
        if allowed:
            return symbol
        message = f"{backquote(node.name)} is {symbol.description}; {context.what} needs an integer"
        self.report(context.wrong_kind_rule, node, message, related=self.declaration_note(symbol))
        return None

    def _unknown_in_expression(self, node: NameRef, context: Context) -> None:
        name = node.name
        if name == self.defining:
            self.report(CST04, node, f"constant {backquote(name)} is used in its own value")
            return
        later = self.scope.find_upcoming(name)
        ended = self.ended.get(name)
        # A constant inside a loop has been reported; where it stands is the mistake.
        if _is(later, "unknown") or _is(ended, "const"):
            return
        if later is not None and later.kind == "const":
            self.report(CST03, node, f"constant {backquote(name)} is declared further down",
                        help="move its declaration up",
                        related=self.declaration_note(later))  # fmt: skip
        elif later is not None and context is CONST:
            self.report(context.wrong_kind_rule, node,
                        f"{backquote(name)} is {later.description}; a constant needs an integer",
                        related=self.declaration_note(later))  # fmt: skip
        elif ended is not None and ended.kind == "loop":
            self.report(NAM04, node, f"loop variable {backquote(name)} is used outside its loop",
                        related=self.declaration_note(ended))  # fmt: skip
        else:
            self.report(CST15, node, f"unknown name {backquote(name)} in an expression",
                        help=self._nearest_help(name, ("const", "let", "loop")),
                        fix=self._respelling_fix(node, ("const", "let", "loop")))  # fmt: skip

    def buffer(self, node: NameRef) -> Symbol | None:
        """The buffer that a region names."""
        return self._of_kind(node, ("buffer",), "a buffer")

    def operand(self, node: NameRef) -> Symbol | None:
        """The region or `let` that an operand names."""
        symbol = self._of_kind(node, ("region", "let"), "a region")
        if symbol is not None and symbol.kind == "let" and _is_scalar(symbol):
            self.report(NAM03, node, f"`let` {backquote(node.name)} is not a region",
                        related=self.declaration_note(symbol))  # fmt: skip
            return None
        return symbol

    def token(self, node: NameRef, task_token: NameRef | None = None) -> Symbol | None:
        """The token that `deps` or `wait` names; `task_token` is that of the task itself."""
        symbol = self.scope.find(node.name)
        if symbol is None:
            later = self.scope.find_upcoming(node.name)
            ended = self.ended.get(node.name)
            if task_token is not None and task_token.name == node.name and later is not None:
                self.report(TOK01, node, f"task {backquote(node.name)} waits for itself",
                            help="take it out: a task can only wait for a task above it",
                            related=self.declaration_note(later, "produced here"))  # fmt: skip
                return None
            if later is not None and later.kind == "token":
                self.report(TOK01, node, f"token {backquote(node.name)} is produced further down",
                            help="a task can only wait for a task above it",
                            related=self.declaration_note(later, "produced here"))  # fmt: skip
                return None
            if ended is not None and ended.kind == "token":
                self.report(NAM06, node,
                            f"token {backquote(node.name)} belongs to a loop that has ended",
                            help="`endloop` waits for all iterations; leave the token out",
                            related=self.declaration_note(ended, "produced here"),
                            fix=_token_removal_fix(self._span(node)))  # fmt: skip
                return None
        return self._of_kind(node, ("token",), "a token")

    def _of_kind(self, node: NameRef, kinds: tuple[Kind, ...], what: str) -> Symbol | None:
        symbol = self._through_aliases(self.scope.find(node.name))
        if symbol is None:
            self._unknown(node, kinds, what)
            return None
        if symbol.kind == "unknown":
            return None
        if symbol.kind in kinds:
            return symbol
        message = f"{backquote(node.name)} is {symbol.description}, not {what}"
        self.report(NAM03, node, message, related=self.declaration_note(symbol))
        return None

    @staticmethod
    def _through_aliases(symbol: Symbol | None) -> Symbol | None:
        while symbol is not None and symbol.kind == "let" and isinstance(symbol.value, Symbol):
            symbol = symbol.value
        return symbol

    def _unknown(self, node: NameRef, kinds: tuple[Kind, ...], what: str) -> None:
        later = self.scope.find_upcoming(node.name)
        ended = self.ended.get(node.name)
        # A buffer inside a loop has been reported; where it stands is the mistake.
        if "unknown" in (later and later.kind, ended and ended.kind) or _is(ended, "buffer"):
            return
        if later is not None:
            self.report(NAM01, node, f"{backquote(node.name)} is declared further down",
                        help="move its declaration up",
                        related=self.declaration_note(later))  # fmt: skip
        elif ended is not None:
            self.report(NAM01, node, f"{backquote(node.name)} belongs to a loop that has ended",
                        related=self.declaration_note(ended))  # fmt: skip
        else:
            self.report(NAM01, node, f"unknown name {backquote(node.name)}; {what} is needed here",
                        help=self._nearest_help(node.name, kinds),
                        fix=self._respelling_fix(node, kinds))  # fmt: skip

    def _nearest_help(self, name: str, kinds: tuple[Kind, ...]) -> str | None:
        if len(self.findings) > _MOST_SUGGESTIONS:
            return None
        return did_you_mean(name, islice(self.scope.visible_names(*kinds), _MOST_SUGGESTED))

    def _respelling_fix(self, node: NameRef, kinds: tuple[Kind, ...]) -> Fix | None:
        if len(self.findings) > _MOST_SUGGESTIONS:
            return None
        known = list(islice(self.scope.visible_names(*kinds), _MOST_SUGGESTED))
        return respelling_fix(self._span(node), node.name, known, is_user_chosen=True)

    def _span(self, node: Node) -> Span:
        return self.source.span(node.start, node.end)


def _token_removal_fix(span: Span) -> Fix | None:
    """Take a token out of `deps` or `wait`, and these with it where it is the only one."""
    source, text = span.source, span.source.text
    begin, behind = max(0, span.start - _MOST_BETWEEN), text[span.end :][:_MOST_BETWEEN]
    opened = re.search(r"(?:(,\s*)?\bdeps\s*=\s*\[|\bwait\s*\()\s*$", text[begin : span.start])
    closed = re.match(r"\s*[\])]", behind)
    if opened is None or closed is None:
        return item_removal_fix(span)
    whole = source.span(begin + opened.start(), span.end + closed.end())
    if opened[1] is None:
        return removal_fix(whole)
    return Fix("take `deps` out", (Edit(whole, ""),))


def _is(symbol: Symbol | None, kind: Kind) -> bool:
    return symbol is not None and symbol.kind == kind


def _is_scalar(symbol: Symbol) -> bool:
    return not isinstance(symbol.value, Region | Symbol)
