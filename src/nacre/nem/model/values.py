"""Resolving values: lists, regions, types and quantisations, written out or named by `let`."""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.base.fixes import respelling_fix
from nacre.base.suggest import did_you_mean
from nacre.base.terms import LoopVariable, Operation
from nacre.nem.model.expressions import Expressions, describe
from nacre.nem.model.folding import REGION_BOUND, SHAPE, VALUE, Folded
from nacre.nem.model.program import Buffer, Compression, Decorator, Loop, Quant, Region, Type
from nacre.nem.spec.rules.declarations import DOC08, DOC16
from nacre.nem.spec.rules.lexical import LEX06
from nacre.nem.spec.rules.names import NAM01, NAM03
from nacre.nem.syntax import ast
from nacre.nem.syntax.ast import (
    BoolLit,
    Expr,
    FloatLit,
    IntLit,
    ListLit,
    NameRef,
    RegionExpr,
    StringLit,
    Value,
)
from nacre.nem.syntax.regions import element_respelling_fix

_T = TypeVar("_T")

_FORMS: dict[str, Literal["per_tensor", "per_channel", "per_group"]] = {
    "per_tensor": "per_tensor",
    "per_channel": "per_channel",
    "per_group": "per_group",
}

_QUANT_HELP = "write it out, or name it: `let q = per_tensor(scale=..., zero_point=...)`"
_NO_TYPE = Type(None, None, None, None, None, ast.TypeAttrs(0, 0, None, None, None, None, None))


class Values(Expressions):
    """Resolves values of every kind in the scope that `names` stands in."""

    def value(self, node: Value) -> object:
        """Any value: a number, term, string, boolean, tuple, Region, or the Symbol of an alias."""
        if isinstance(node, IntLit | StringLit | BoolLit):
            return node.value
        if isinstance(node, ListLit):
            return tuple([self.value(item) for item in node.items])
        if isinstance(node, FloatLit):
            return float(node.text) if node.is_well_formed else None
        if isinstance(node, RegionExpr):
            return self.region(node)
        if isinstance(node, NameRef):
            alias = self._names.scope.find(node.name)
            if alias is not None and alias.kind not in ("const", "loop"):
                return alias.value if alias.kind == "let" and alias.value is not None else alias
        return self.resolve(node, VALUE)

    def region(
        self,
        node: RegionExpr,
        name: str | None = None,
        decorators: tuple[Decorator, ...] = (),
        loops: tuple[Loop, ...] = (),
    ) -> Region:
        """A region with its buffer looked up and its expressions resolved."""
        symbol = self._names.buffer(node.buffer)
        buffer = symbol.value if symbol is not None else None
        offset = self.resolve(node.offset, REGION_BOUND)
        extent = self.resolve(node.extent, REGION_BOUND)
        compressed, plain = None, node.type
        if isinstance(plain, ast.Compressed):
            compressed, plain = plain, plain.plain
        type_ = _NO_TYPE if plain is None else self.type_of(plain)
        if plain is not None and (compressed is not None or type_.node is not plain):
            # Findings about a named type point at its declaration.
            node = msgspec.structs.replace(node, type=type_.node)
        return Region(
            name,
            buffer if isinstance(buffer, Buffer) else None,
            offset,
            extent,
            type_.elem,
            type_.shape,
            type_.layout,
            type_.strides,
            type_.quant,
            decorators,
            loops,
            node,
            _compression(compressed) if compressed is not None else None,
        )

    def type_of(self, node: ast.TypeAttrs) -> Type:
        """Type attributes that are written out, or that a `let` named."""
        quant = self._named_quant(node.quant) if node.quant is not None else None
        if node.name is not None:
            return self._named_type(node, node.name, quant)
        return Type(
            self._element(node.elem) if node.elem is not None else None,
            self._dimensions(node.shape),
            node.layout.name if node.layout is not None else None,
            self._dimensions(node.strides),
            quant,
            node,
        )

    def _named_type(self, node: ast.TypeAttrs, name: NameRef, quant: Quant | None) -> Type:
        named = self._named_value(name, Type, "a type", (), _type_help(name))
        if named is None:
            return Type(None, None, None, None, quant, node)
        if node.quant is None:
            return named
        if named.node.quant is not None:
            message = f"`quant` is given twice: type {backquote(name.name)} has one"
            self._names.report(DOC08, node.quant, message,
                               help="take one of them out")  # fmt: skip
            return named
        whole = msgspec.structs.replace(named.node, quant=node.quant)
        return Type(named.elem, named.shape, named.layout, named.strides, quant, whole)

    def _dimensions(self, node: ListLit | NameRef | None) -> tuple[Folded, ...] | None:
        if node is None:
            return None
        if isinstance(node, ListLit):
            return tuple([self._dimension(item) for item in node.items])
        value = self.value(node)
        if isinstance(value, tuple):
            return tuple(self._list_item(node, item) for item in value)
        if value is not None:
            message = f"{backquote(node.name)} is not a list; a shape or strides need one"
            self._names.report(NAM03, node, message)
        return None

    def _list_item(self, node: NameRef, item: object) -> Folded:
        """A dimension from a list that a name stands for."""
        if isinstance(item, int | LoopVariable | Operation) and not isinstance(item, bool):
            return item
        name = backquote(node.name)
        if isinstance(item, float):
            self._names.report(LEX06, node, f"a shape needs integers, but {name} holds {item}")
        elif item is not None:
            message = f"a shape needs integers, but {name} holds something else"
            self._names.report(NAM03, node, message)
        return None

    def _dimension(self, node: Value) -> Folded:
        if isinstance(node, IntLit):
            return node.value
        if isinstance(node, Expr):
            return self.resolve(node, SHAPE)
        self._names.report(NAM03, node, f"a dimension is an integer, found {describe(node)}")
        return None

    def _element(self, node: NameRef) -> str | None:
        """An element type: one of the language's, or what a `let` named."""
        if node.name in ELEMENT_TYPES:
            return node.name
        symbol = self._names.scope.find(node.name)
        if symbol is not None and symbol.kind == "unknown":
            return None
        value = symbol.value if symbol is not None else None
        if symbol is not None and symbol.kind == "let" and _is_element(value):
            return str(value)
        related = () if symbol is None else self._names.declaration_note(symbol)
        lets = [one.name for one in self._names.lets() if _is_element(one.value)]
        help_ = did_you_mean(node.name, [*ELEMENT_TYPES, *lets])
        listed = f"the element types are {', '.join(ELEMENT_TYPES)}"
        if isinstance(value, Type):
            help_, lets = f"write `type={node.name}`: it names a whole type", [node.name]
        message = f"{backquote(node.name)} is not an element type"
        span = self._names.source.span(node.start, node.end)
        self._names.report(DOC16, node, message, help=help_ if lets else listed, related=related,
                           fix=element_respelling_fix(span, node.name, lets))  # fmt: skip
        return None

    def _named_quant(self, node: ast.Quant | NameRef) -> Quant | None:
        """A quantisation that is written out, or that a `let` named."""
        if isinstance(node, ast.Quant):
            return self.quant(node)
        return self._named_value(node, Quant, "a quantisation", tuple(_FORMS), _QUANT_HELP)

    def _named_value(
        self, node: NameRef, kind: type[_T], what: str, others: tuple[str, ...], help_: str
    ) -> _T | None:
        """What a `let` stands for, where it must be a type or a quantisation."""
        symbol = self._names.scope.find(node.name)
        if symbol is not None and symbol.kind == "unknown":
            return None
        if symbol is not None and isinstance(symbol.value, kind):
            return symbol.value
        if symbol is None:
            lets = [one.name for one in self._names.lets() if isinstance(one.value, kind)]
            message = f"unknown name {backquote(node.name)}; {what} is needed here"
            span = self._names.source.span(node.start, node.end)
            fix = respelling_fix(span, node.name, lets, is_user_chosen=True)
            self._names.report(NAM01, node, message,
                               help=did_you_mean(node.name, [*lets, *others]) or help_,
                               fix=fix)  # fmt: skip
            return None
        message = f"{backquote(node.name)} is {symbol.description}, not {what}"
        self._names.report(NAM03, node, message, help=help_,
                           related=self._names.declaration_note(symbol))  # fmt: skip
        return None

    def quant(self, node: ast.Quant) -> Quant:
        """A quantisation descriptor with its values resolved."""
        values = []
        for value in (node.scales, node.zero_points):
            resolved = self.value(value) if value is not None else None
            if resolved is None or isinstance(resolved, tuple):
                values.append(resolved)
            else:
                values.append((resolved,))
        return Quant(
            _FORMS[node.form],
            node.axis.value if node.axis is not None else None,
            node.group_size.value if node.group_size is not None else None,
            values[0],
            values[1],
            node,
        )


def _compression(node: ast.Compressed) -> Compression:
    return Compression(
        "sparse" if node.form == "sparse" else "palette",
        node.bits.value if node.bits is not None else None,
        node.tables.value if node.tables is not None else 1,
        node,
    )


def _is_element(value: object) -> bool:
    return isinstance(value, str) and value in ELEMENT_TYPES


def _type_help(name: NameRef) -> str:
    if name.name in ELEMENT_TYPES:
        return f"`type=` takes a whole type; write `elem={name.name}, shape=[...], layout=...`"
    return f"write it out, or name it: `let {name.name} = elem=..., shape=[...], layout=...`"
