"""The verifier: every rule about a module, in a fixed order, never an exception."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import islice

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.source import Span, whole_file
from nacre.base.suggest import did_you_mean
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS, PROFILES, SHORT_FORMS, OpSpec, Profile
from nacre.core.rules import module_rules as mod
from nacre.core.rules.facts import OperationFacts, OperationRule, operation_rules
from nacre.core.rules.signature import (
    declared_type,
    dimensions_positive,
    element_type,
    is_well_formed,
    signature,
    signature_problems,
)
from nacre.core.values import kind_of
from nacre.core.verification_tables import AttributeNumbers, CanonicalSpans, TypeNumbers

# Importing one registers its rules.
RULE_MODULES = (
    "signature",
    "constants",
    "binary",
    "reductions",
    "shape_ops",
    "indexing",
    "linear",
    "unary",
    "nacre_profile",
)
MAX_FINDINGS = 1000
_LONGEST_MESSAGE = 2000  # two types of 64 axes fit

_UNKNOWN = TensorType("unknown")  # of an operation that cannot be looked at: no element type
Verdict = tuple[tuple[Rule, str], ...]
Key = tuple[str, tuple[int, ...], int, int]  # opcode, types of the operands, attributes, type


@cache
def _rules_of(opcode: str) -> tuple[OperationRule, ...]:
    """The rules about one opcode, by code: the order of imports must not show."""
    for module in RULE_MODULES:
        importlib.import_module(f"nacre.core.rules.{module}")
    return tuple(sorted((r for r in operation_rules() if opcode in r.opcodes), key=_code))


def _code(rule: OperationRule) -> str:
    return rule.rule.code


def verify(module: Module, profile: Profile = "core-v1") -> list[Diagnostic]:
    """Every violation, in the order of the operations. A module is never too broken for an answer.

    ValueError where the profile is none.
    """
    if profile not in PROFILES:
        raise ValueError(f"no profile `{profile}`, expected one of {', '.join(PROFILES)}")
    if not isinstance(module, Module):
        return [signature.rule.at(whole_file("<module>"), f"this is no module: {kind_of(module)}")]
    try:
        return list(islice(_Verifier(module, profile).findings(), MAX_FINDINGS))
    except (TypeError, AttributeError, ValueError, LookupError) as error:
        # Made by hand, of the wrong types: there may be no operations to go through.
        message = f"this is no module: {str(error)[:80]}"
        return [signature.rule.at(whole_file("<module>"), message)]


class _Verifier:
    """Goes through a module once. Uses that look alike are judged once.

    Types and attributes are numbered, so that looking up a use compares small integers.
    """

    def __init__(self, module: Module, profile: Profile) -> None:
        self._module = module
        self._profile = profile
        self._verdicts: dict[Key, Verdict] = {}
        self._types = TypeNumbers(profile)
        self._attributes = AttributeNumbers()
        self._known: dict[int, int] = {}  # the type of each value that is defined so far
        self._names: set[str] = set()
        self._last = -1
        self._is_past_inputs = False

    def findings(self) -> Iterator[Diagnostic]:
        """Every violation."""
        known = self._known
        for index, op in enumerate(self._module.operations):
            if self._is_known_to_be_sound(op):
                self._last = op.value_id
                known[op.value_id] = self._types.number(op.type)
                continue
            problem = mod.record_problem(op)
            if problem is not None:
                yield self._finding_at(signature.rule, problem, index)
                if mod.is_id(op.value_id):  # what uses it is not to blame
                    known.setdefault(op.value_id, self._types.number(_UNKNOWN))
                continue
            for rule, message in self._operation_findings(op):
                yield self._finding_at(rule, message, index)
            known.setdefault(op.value_id, self._types.number(op.type))
            self._last = max(self._last, op.value_id)
        yield from self._interface()

    def _is_known_to_be_sound(self, op: CoreOperation) -> bool:
        """The common case, decided at once: the next id, and a use that was judged before."""
        value, known = op.value_id, self._known
        if not mod.is_id(value) or value <= self._last or not self._is_past_inputs:
            return False
        try:
            types = tuple([known[o] for o in op.operands if type(o) is int])
            attributes = self._attributes.number(op.attributes)
            key = (op.opcode, types, attributes, self._types.number(op.type))
            verdict = self._verdicts.get(key)
        except (KeyError, TypeError, AttributeError):
            return False
        is_whole = type(op.operands) is tuple and len(types) == len(op.operands)
        return verdict == () and is_whole and op.opcode != "Input"

    def _operation_findings(self, op: CoreOperation) -> Iterator[tuple[Rule, str]]:
        value = op.value_id
        if value in self._known:
            yield mod.MOD02, f"%{value} is defined twice"
        elif value <= self._last:
            yield mod.MOD05, f"%{value} stands after %{self._last}: ids increase down the text"
        if op.opcode == "Input":
            yield from self._input(op)
        else:
            self._is_past_inputs = True
        types = [self._known.get(operand) for operand in op.operands]
        if None in types:
            for operand, type_ in zip(op.operands, types, strict=True):
                if type_ is None:
                    yield mod.MOD01, f"%{operand} is not defined before this operation"
        yield from self._cached_verdict(op, tuple([t for t in types if t is not None]))

    def _cached_verdict(self, op: CoreOperation, types: tuple[int, ...]) -> Verdict:
        """What is wrong with the operation itself; `types` are those of known operands."""
        number = self._types.number(op.type)
        attributes = self._attributes.number(op.attributes)
        key = (op.opcode, types, attributes, number)
        is_whole = len(types) == len(op.operands)
        # A literal is seldom repeated, and numbering one would go through all of its elements.
        is_kept = is_whole and attributes >= 0
        verdict = self._verdicts.get(key) if is_kept else None
        if verdict is None:
            verdict = self._judge(op, types, is_whole)
            if is_kept:
                self._verdicts[key] = verdict
        return verdict

    def _judge(self, op: CoreOperation, types: tuple[int, ...], is_whole: bool) -> Verdict:
        spec = OPS.get(op.opcode)
        if spec is None or not is_of_profile(spec, self._profile):
            return (unknown_opcode(op.opcode, spec),)
        if is_whole and all(map(self._types.is_sound, types)):
            given = tuple(map(self._types.type, types))
            facts = OperationFacts(op.opcode, spec, given, op.attributes, op.type, self._profile)
            return verdict_of(facts)
        # An operand was found wrong where it is defined: nothing follows from its type.
        problems = signature_problems(spec, len(op.operands), op.attributes)
        return tuple((signature.rule, message) for message in problems)

    def _input(self, op: CoreOperation) -> Iterator[tuple[Rule, str]]:
        if self._is_past_inputs:
            yield mod.MOD06, f"Input %{op.value_id} stands after an operation"
        name = op.attributes.get("name")
        if name is None:
            yield mod.MOD07, f"Input %{op.value_id} has no name"
        elif isinstance(name, str):
            problem = mod.input_name_problem(name, self._names, f"Input %{op.value_id}")
            if problem is not None:
                yield mod.MOD08, problem
            self._names.add(name)

    def _interface(self) -> Iterator[Diagnostic]:
        module = self._module
        if not module.outputs:
            yield mod.MOD03.at(self._span("outputs", 0), "the module has no output")
        for value in module.outputs:
            if not mod.is_id(value) or value not in self._known:
                message = f"output {mod.id_text(value)} is not defined"
                yield mod.MOD03.at(self._span("outputs", 0), message)
        if not module.states:
            return
        states = mod.States(module)
        for index, state in enumerate(module.states):
            if self._profile == "core-v1":
                message = "state is of `nacre-1`, not of `core-v1`"
                yield mod.MOD15.at(self._span("state", index), message)
                continue
            for message in states.problems(state):
                yield mod.MOD15.at(self._span("state", index), message)

    def _finding_at(self, rule: Rule, message: str, index: int) -> Diagnostic:
        return rule.at(self._span("operation", index), message)

    def _span(self, kind: str, index: int) -> Span:
        """Where a part stands: in the text that was read, or in the canonical text."""
        spans = self._module.source_spans
        if spans is None:
            return self._printed.span(kind, index)
        if kind == "operation" and index < len(spans.operations):
            return spans.source.span(*spans.operations[index])
        if kind == "state" and index < len(spans.states):
            return spans.source.span(*spans.states[index])
        return spans.source.span(*spans.outputs)

    @cached_property
    def _printed(self) -> CanonicalSpans:
        return CanonicalSpans(self._module)


def verdict_of(facts: OperationFacts) -> Verdict:
    """What the rules say of one use. A mistake that explains another one is said alone."""
    verdict = _verdict(signature, facts)
    if verdict:
        return verdict  # no attribute can be relied on
    element = _verdict(element_type, facts)
    shape = _verdict(dimensions_positive, facts)
    if not is_well_formed(facts.type):
        return shape  # not even the type can be shown
    specific = tuple(said for rule in _rules_of(facts.opcode) for said in _verdict(rule, facts))
    if any(rule.severity == "error" for rule, _ in specific):
        # The declared shape follows from what is wrong.
        return (*specific, *element)
    if element or shape:
        return (*specific, *element, *shape)
    return (*specific, *_verdict(declared_type, facts))


def _verdict(rule: OperationRule, facts: OperationFacts) -> Verdict:
    return tuple([(rule.rule, _shorten(message)) for message in rule.find(facts)])


def _shorten(message: str) -> str:
    """A message that ends: attributes of a hostile module may be as long as they like."""
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def is_of_profile(spec: OpSpec, profile: Profile) -> bool:
    """Whether an operation belongs to a profile."""
    return spec.profile == "core-v1" or profile != "core-v1"


def unknown_opcode(opcode: str, spec: OpSpec | None) -> tuple[Rule, str]:
    """What is said about an opcode that is none, or of another profile."""
    if spec is not None:
        return signature.rule, f"`{opcode}` is an operation of `nacre-1`, not of `core-v1`"
    if opcode in SHORT_FORMS:
        meant = f"`BinOp` with `op={opcode}`, for which it stands in text without attributes"
        return signature.rule, f"`{opcode}` is no operation, expected {meant}"
    hint = did_you_mean(opcode, OPS)
    return signature.rule, f"no operation {backquote(opcode)}{'; ' + hint if hint else ''}"
