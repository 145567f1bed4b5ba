"""`grad`: reverse mode over a module, once back through its operations.

The gradient by an input is that of the sum of all elements of all float outputs. State is what it
was at the start of a run: nothing goes back into the run before, unless the input that holds it is
asked for by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from nacre.base.diagnostics import Diagnostic, InputError, InternalError, has_errors
from nacre.base.excerpt import backquote
from nacre.base.suggest import Suggestions
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.run import operation_span
from nacre.core.gradients.choices import ALWAYS, conditions_of, find_needs, mask
from nacre.core.gradients.site import GradientSite
from nacre.core.gradients.table import REFUSED, rule_of, rules_of
from nacre.core.gradients.writer import NoGradient, Value, Writer
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.passes.renumber import renumber
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rules.gradients import GRD01, GRD02, GRD03
from nacre.core.rules.module_rules import MOST_ID
from nacre.core.values import kind_of
from nacre.core.verify import MAX_FINDINGS, verify

_ROOM = 10**9  # ids that a gradient may take; none is as long as that


def grad(module: Module, wrt: Iterable[str]) -> Module:
    """A module with the same outputs, then the gradient by each named input, in that order.

    Each gradient has the type of its input. The ids of operations stay, unless they leave no room
    for those of the gradient, which follow. A module that is not canonical is made so first.
    InputError has the findings of the verifier, or names that are no float input, or every
    operation that has no gradient.
    """
    names = _list_of_names(wrt)
    canonical = canonicalise(module, verify_each=False)
    homes = _source_positions(module)
    if max(op.value_id for op in canonical.operations) >= MOST_ID - _ROOM:
        ids = {op.value_id: at for at, op in enumerate(canonical.operations)}
        canonical = renumber(canonical, ids)
        homes = {ids[value]: at for value, at in homes.items() if value in ids}
    named = _inputs_by_name(module, canonical, names)
    back = _BackwardWalk(canonical, named, homes, module)
    with_gradients = back.module()
    findings = verify(with_gradients, "nacre-1")
    if has_errors(findings):
        raise InternalError(f"the gradient is no valid module: {findings[0]}")
    return with_gradients


def _list_of_names(wrt: Iterable[str]) -> tuple[str, ...]:
    """The names that are asked for; TypeError for what is no list of them."""
    if isinstance(wrt, str):
        raise TypeError(f"`wrt` is the string {wrt!r}, expected a list of names, such as [{wrt!r}]")
    if not isinstance(wrt, Iterable):
        raise TypeError(f"`wrt` is {kind_of(wrt)}, expected a list of names of inputs")
    names = tuple(wrt)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a name in `wrt` is {kind_of(name)}, expected a string")
    return names


def _source_positions(module: Module) -> dict[int, int]:
    """Where the operation of each value stood in the module that was given, for messages."""
    # Hoisting renumbers, and moves nothing but inputs.
    order = sorted(range(len(module)), key=lambda at: module.operations[at].opcode != "Input")
    return {op.value_id: at for op, at in zip(hoist_inputs(module), order, strict=True)}


def _inputs_by_name(module: Module, canonical: Module, wrt: Iterable[str]) -> list[CoreOperation]:
    """The inputs of these names; InputError for all that are none, or no floats."""
    known = {str(op.attributes["name"]): op for op in canonical.inputs}
    homes = {
        str(op.attributes.get("name")): at
        for at, op in enumerate(module.operations)
        if op.opcode == "Input"
    }
    findings: list[Diagnostic] = []
    hints = Suggestions(known)
    for name in wrt:
        op = known.get(name)
        if op is None:
            message = f"the module has no input {backquote(name)} to take a gradient by"
            findings.append(GRD02.at(operation_span(module, 0), f"{message}{hints.suffix(name)}"))
        elif not _is_float(op.type):
            message = f"input {backquote(name)} is {op.type}, expected floats to take a gradient by"
            findings.append(GRD03.at(operation_span(module, homes[name]), message))
    if findings:
        raise InputError(findings[:MAX_FINDINGS])
    return [known[name] for name in wrt]


def _is_float(type_: TensorType) -> bool:
    return type_.element.kind == "float"


def _dependent_values(module: Module, named: Iterable[CoreOperation]) -> set[int]:
    """The values that a gradient passes on the way from the named inputs.

    What is refused passes all of its operands on, integers too, so that everything refused behind
    it is found as well.
    """
    dependent = {op.value_id for op in named}
    types = {op.value_id: op.type for op in module.operations}
    for op in module.operations:
        passed = [
            types[operand] for operand in _differentiable_operands(op) if operand in dependent
        ]
        if passed and (
            op.opcode in REFUSED or _is_float(op.type) or not all(map(_is_float, passed))
        ):
            dependent.add(op.value_id)
    return dependent


def _differentiable_operands(op: CoreOperation) -> Sequence[int]:
    """The operands through which a gradient passes."""
    rules = rules_of(op)
    if rules is None:
        return op.operands
    return [o for at, o in enumerate(op.operands) if rule_of(rules, at) is not None]


def _needed_values(module: Module, varying: set[int]) -> set[int]:
    """Of these values, the ones that a float output depends on."""
    types = module.by_id
    found = {value for value in module.outputs if _is_float(types[value].type)} & varying
    for op in reversed(module.operations):
        if op.value_id in found:
            found.update(operand for operand in _differentiable_operands(op) if operand in varying)
    return found


class _BackwardWalk:
    """The walk from the outputs to the inputs."""

    def __init__(
        self, module: Module, named: list[CoreOperation], homes: dict[int, int], given: Module
    ) -> None:
        self._module = module
        self._named = named
        self._homes, self._given = homes, given
        self._active = _needed_values(module, _dependent_values(module, named))
        self._needs = find_needs(module, self._active)
        self._writer = Writer(module, not has_errors(verify(module, "core-v1")))
        self._parts: dict[int, list[Value]] = {}  # of the gradient by each value
        self._findings: list[Diagnostic] = []

    def module(self) -> Module:
        """The module with its gradients."""
        self._refuse()
        for value in self._module.outputs:
            if value in self._active:
                seed = self._writer.scalar(1.0, self._module.by_id[value].type.dtype)
                self._parts.setdefault(value, []).append(seed)
        for op in reversed(self._module.operations):
            if op.opcode != "Input" and op.value_id in self._active:
                self._add_operand_gradients(op)
        if self._findings:
            raise InputError(self._findings[:MAX_FINDINGS])
        gradients = tuple(self._gradient(op) for op in self._named)
        operations = (*self._module.operations, *self._writer.operations)
        outputs = (*self._module.outputs, *gradients)
        module = replace(self._module, operations=operations, outputs=outputs, source_spans=None)
        # A seed that met another number is not needed any more.
        return dead_code(module)

    def _refuse(self) -> None:
        refused = [
            op
            for op in self._module.operations
            if op.opcode in REFUSED and op.value_id in self._active
        ]
        if refused:
            refusals = [self._refusal(op, REFUSED[op.opcode]) for op in refused[:MAX_FINDINGS]]
            raise InputError(refusals)

    def _refusal(self, op: CoreOperation, reason: str) -> Diagnostic:
        message = f"`{op.opcode}` %{op.value_id} has no gradient: {reason}"
        return GRD01.at(operation_span(self._given, self._homes[op.value_id]), message)

    def _add_operand_gradients(self, op: CoreOperation) -> None:
        """Add the gradients by an operation's operands to what they have."""
        rules = rules_of(op)
        assert rules is not None  # what is refused was found before
        compact_g = self._total(op.value_id)
        values = tuple([self._value(operand) for operand in op.operands])
        attributes = OPS[op.opcode].with_defaults(op.attributes)
        shared: dict[str, Any] = {}
        for index, operand in enumerate(op.operands):
            rule = rule_of(rules, index) if operand in self._active else None
            if rule is None:
                continue
            y = self._value(op.value_id)
            site = GradientSite(self._writer, op, attributes, values, y, compact_g, index, shared)
            try:
                gradient = self._leave_branch(op.value_id, operand, rule(site))
                self._parts.setdefault(operand, []).append(gradient)
            except NoGradient as reason:
                self._findings.append(self._refusal(op, str(reason)))

    def _leave_branch(self, value: int, operand: int, gradient: Value) -> Value:
        """A gradient by an operand, which is 0 where the value is of a branch that is not taken."""
        need = self._needs.get(value, ALWAYS)
        is_input = self._module.by_id[operand].opcode == "Input"
        if need == (ALWAYS if is_input else self._needs.get(operand, ALWAYS)):
            return gradient
        conditions = {condition: self._value(condition) for condition in conditions_of(need)}
        return mask(gradient, need, conditions)

    def _value(self, value: int) -> Value:
        return Value(self._writer, value, self._module.by_id[value].type)

    def _total(self, value: int) -> Value:
        """The gradient by a value: what all of its uses give, in the order of the walk."""
        type_ = self._module.by_id[value].type
        parts = self._parts.pop(value, None) or [self._writer.scalar(0.0, type_.dtype)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _gradient(self, op: CoreOperation) -> int:
        found = self._parts.get(op.value_id)
        total = self._total(op.value_id)
        if found is not None:
            self._parts[op.value_id] = [total]  # the same name may be given twice
        return self._writer.broadcast_to(total, op.type.shape).id
