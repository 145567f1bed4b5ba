"""What the rules of Core IR look at, and how a rule is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from nacre.base.diagnostics import Severity
from nacre.base.rules import Rule, declare
from nacre.core.module import TensorType
from nacre.core.ops import OpSpec, Profile
from nacre.core.values import Attributes


class OperationFacts(Struct, frozen=True):
    """One use of an operation: everything about it but its place and its ids."""

    opcode: str
    spec: OpSpec
    types: tuple[TensorType, ...]  # of the operands
    attributes: Attributes
    type: TensorType  # as declared
    profile: Profile

    def ints(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; None where it is missing or something else."""
        value = self.attributes.get(name)
        is_list = isinstance(value, tuple) and all(type(item) is int for item in value)
        return value if is_list else None


Find = Callable[[OperationFacts], Iterator[str]]  # a message for each violation


class OperationRule(Struct, frozen=True):
    """A rule about single operations, and the opcodes that it is asked of; none: of all."""

    rule: Rule
    opcodes: frozenset[str]
    find: Find


_USE_RULES: list[OperationRule] = []


def operation_rule(
    code: str, name: str, clause: str, *opcodes: str, severity: Severity = "error"
) -> Callable[[Find], OperationRule]:
    """Register a function as the rule `code`; its docstring is the rule's page."""

    def register(find: Find) -> OperationRule:
        page = find.__doc__ or ""
        rule = declare(
            code, name, f"Core IR / {clause}", page, severity=severity, language="Core IR"
        )
        registered = OperationRule(rule, frozenset(opcodes), find)
        _USE_RULES.append(registered)
        return registered

    return register


def declare_behaviour(clause: str, code: str, name: str, page: str) -> Rule:
    """A promise that tests prove."""
    return declare(code, name, f"Core IR / {clause}", page, behaviour=True, language="Core IR")


def operation_rules() -> tuple[OperationRule, ...]:
    """Every rule about single operations, in the order of their declarations."""
    return tuple(_USE_RULES)
