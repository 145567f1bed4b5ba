"""The verifier: every rule about a module, in a fixed order, never an exception."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.base.suggest import did_you_mean
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS, Profile
from nacre.core.rules import module_rules as mod
from nacre.core.rules.facts import Use, UseRule, use_rules
from nacre.core.rules.signature import signature
from nacre.core.text.printer import print_module

# Importing one registers its rules, and their order is the order in which they are asked.
RULE_MODULES = ("signature",)
MAX_FINDINGS = 1000

Verdict = tuple[tuple[Rule, str], ...]
Key = tuple[str, tuple[TensorType, ...], object, TensorType]


@cache
def _rules_of(opcode: str) -> tuple[UseRule, ...]:
    for module in RULE_MODULES:
        importlib.import_module(f"nacre.core.rules.{module}")
    return tuple(r for r in use_rules() if not r.opcodes or opcode in r.opcodes)


def verify(module: Module, profile: Profile = "core-v1") -> list[Diagnostic]:
    """Every violation, in the order of the operations."""
    return list(_Verifier(module, profile).findings())


class _Verifier:
    """Goes through a module once. Uses that look alike are judged once."""

    def __init__(self, module: Module, profile: Profile) -> None:
        self._module = module
        self._profile = profile
        self._verdicts: dict[Key, Verdict] = {}
        self._places = module.places
        self._count = 0

    def findings(self) -> Iterator[Diagnostic]:
        """Every violation, at most so many."""
        types: dict[int, TensorType] = {}
        last, names, ended = -1, set[str](), False
        for index, op in enumerate(self._module.operations):
            for rule, message in self._of_operation(op, types, last, ended, names):
                yield self._at(rule, message, index)
                self._count += 1
                if self._count >= MAX_FINDINGS:
                    return
            ended = ended or op.opcode != "Input"
            types.setdefault(op.value_id, op.type)
            last = max(last, op.value_id)
        yield from self._interface(types)

    def _of_operation(
        self,
        op: CoreOperation,
        types: dict[int, TensorType],
        last: int,
        ended: bool,
        names: set[str],
    ) -> Iterator[tuple[Rule, str]]:
        if op.value_id in types:
            yield mod.MOD02, f"%{op.value_id} is defined twice"
        elif op.value_id <= last:
            yield mod.MOD05, f"%{op.value_id} stands after %{last}: ids increase down the text"
        if op.opcode == "Input":
            yield from _input(op, ended, names)
        operands = [types.get(operand) for operand in op.operands]
        for operand, type_ in zip(op.operands, operands, strict=True):
            if type_ is None:
                yield mod.MOD01, f"%{operand} is not defined before this operation"
        known = tuple(t for t in operands if t is not None)
        if len(known) == len(operands):
            yield from self._use(op, known)

    def _use(self, op: CoreOperation, types: tuple[TensorType, ...]) -> Verdict:
        spec = OPS.get(op.opcode)
        if spec is None or (spec.profile != self._profile and self._profile == "core-v1"):
            return (_unknown_opcode(op.opcode, spec is not None),)
        is_literal = "data" in op.attributes
        key = (op.opcode, types, op.attributes, op.type)
        found = None if is_literal else self._verdicts.get(key)
        if found is None:
            use = Use(op.opcode, spec, types, op.attributes, op.type, self._profile)
            found = judged(use)
            if not is_literal:
                self._verdicts[key] = found
        return found

    def _interface(self, types: dict[int, TensorType]) -> Iterator[Diagnostic]:
        module = self._module
        span = self._span("outputs", 0)
        if not module.outputs:
            yield mod.MOD03.at(span, "the module has no output")
        for value in module.outputs:
            if value not in types:
                yield mod.MOD03.at(span, f"output %{value} is not defined")
        for index, state in enumerate(module.states):
            for message in _state_problems(module, state.name, state.output, state.initial):
                yield mod.MOD15.at(self._span("state", index), message)

    def _at(self, rule: Rule, message: str, index: int) -> Diagnostic:
        return rule.at(self._span("operation", index), message)

    def _span(self, kind: str, index: int) -> Span:
        """Where a part stands: in the text that was read, or in the canonical text."""
        places = self._places
        if places is None:
            return _printed_span(self._module, kind, index)
        if kind == "operation" and index < len(places.spans):
            return places.source.span(*places.spans[index])
        if kind == "state" and index < len(places.states):
            return places.source.span(*places.states[index])
        return places.source.span(*places.outputs)


def judged(use: Use) -> Verdict:
    """What the rules say of one use; a wrong signature is all that can be said."""
    found = [(signature.rule, message) for message in signature.find(use)]
    if found:
        return tuple(found)
    rules = [r for r in _rules_of(use.opcode) if r is not signature]
    specific = [(r.rule, m) for r in rules if r.opcodes for m in r.find(use)]
    general = [(r.rule, m) for r in rules if not r.opcodes for m in r.find(use)]
    # The declared type follows from the rest: where that is wrong, it says nothing new.
    if specific:
        general = [(rule, m) for rule, m in general if rule.code != "MOD11"]
    return (*specific, *general)


def _unknown_opcode(opcode: str, is_elsewhere: bool) -> tuple[Rule, str]:
    if is_elsewhere:
        return signature.rule, f"`{opcode}` is an operation of `nacre-1`, not of `core-v1`"
    hint = did_you_mean(opcode, OPS)
    return signature.rule, f"no operation `{opcode}`{'; ' + hint if hint else ''}"


def _input(op: CoreOperation, ended: bool, names: set[str]) -> Iterator[tuple[Rule, str]]:
    if ended:
        yield mod.MOD06, f"Input %{op.value_id} stands after an operation"
    name = op.attributes.get("name")
    if name is None:
        yield mod.MOD07, f"Input %{op.value_id} has no name"
    elif name == "":
        yield mod.MOD08, f"the name of Input %{op.value_id} is empty"
    elif isinstance(name, str) and name in names:
        yield mod.MOD08, f"two Inputs are named `{name}`"
    elif isinstance(name, str):
        names.add(name)


def _state_problems(module: Module, name: str, output: int, initial: int) -> Iterator[str]:
    inputs = module.input_types
    type_ = inputs.get(name)
    if type_ is None:
        yield f"state `{name}` is no Input"
    for value, what in ((output, "output"), (initial, "initial value")):
        op = module.by_id.get(value)
        if op is None:
            yield f"the {what} %{value} of state `{name}` is not defined"
        elif type_ is not None and op.type != type_:
            yield f"the {what} of state `{name}` has type {op.type}, expected {type_}"


def _printed_span(module: Module, kind: str, index: int) -> Span:
    lines = print_module(module).split("\n")
    line = index if kind == "operation" else len(module.operations)
    if kind == "state":
        line += 1 + index
    start = sum(len(text) + 1 for text in lines[:line])
    source = Source("<module>", "\n".join(lines))
    return source.span(start, start + len(lines[line]))
