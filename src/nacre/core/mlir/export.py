"""A module as MLIR text: `@main`, and `@initial` for the state that a module starts from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.core.evaluation.run import operation_span
from nacre.core.mlir.lowerings import LOWERINGS
from nacre.core.mlir.writer import MlirWriter, Value
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.rules.mlir import MLR01
from nacre.core.text.operations import quote
from nacre.core.unsupported import Unsupported
from nacre.core.verify import MAX_FINDINGS, verify

# What may stand in a name, but for the `$` that marks ours.
_FOREIGN = re.compile(r"[^A-Za-z0-9_.\-]")


def to_mlir(module: Module) -> str:
    """The module as MLIR text, the same for the same module.

    `@main` takes the inputs in order and returns the outputs in order, then the next value of every
    state; `@initial`, which only a module with state has, returns what the states start from.
    InputError has the findings of the verifier, or every operation that has no form (MLR01).
    """
    findings = verify(module, "nacre-1")
    if has_errors(findings):
        raise InputError(findings)
    arguments = _arguments(module)
    body = _FunctionWriter(module, arguments)
    used = _used_values(module)
    for at, op in enumerate(module.operations):
        if op.opcode != "Input" and not (_is_constant(op) and op.value_id not in used):
            body.lower(at, op)
    if body.findings:
        raise InputError(body.findings[:MAX_FINDINGS])
    results = [*module.outputs, *(state.output for state in module.states)]
    functions = [
        *_notes(module, arguments),
        *_function("main", list(arguments.values()), body.lines, body.values_of(results)),
        *_initial(module),
    ]
    return "\n".join(["module {", *(f"  {line}" for line in functions), "}", ""])


def _used_values(module: Module) -> set[int]:
    """The values that `@main` needs; a constant may be the start of a state and nothing else."""
    operands = {operand for op in module.operations for operand in op.operands}
    return {*operands, *module.outputs, *(state.output for state in module.states)}


def _is_constant(op: CoreOperation) -> bool:
    return "constant" in OPS[op.opcode].traits


class _FunctionWriter:
    """The statements of a function, and what was in the way of some."""

    def __init__(self, module: Module, arguments: dict[int, Value]) -> None:
        self._module = module
        self._values = dict(arguments)
        self.lines: list[str] = []
        self.findings: list[Diagnostic] = []

    def lower(self, at: int, op: CoreOperation) -> None:
        """One operation; where it has no form, the ones after it are looked at all the same."""
        writer = MlirWriter(op, self.values_of(op.operands))
        try:
            value, lines = writer.finish(LOWERINGS.get(op.opcode, _refuse_opcode)(writer))
        except Unsupported as reason:
            message = f"`{op.opcode}` %{op.value_id} cannot be written in MLIR: {reason}"
            self.findings.append(MLR01.at(operation_span(self._module, at), message))
            value, lines = Value(f"%{op.value_id}", op.type), []
        self._values[op.value_id] = value
        self.lines += lines

    def values_of(self, ids: Sequence[int]) -> list[Value]:
        """The values under their names in the text."""
        return [self._values[value] for value in ids]


def _refuse_opcode(writer: MlirWriter) -> Value:
    raise Unsupported("the opcode is not translated")


def _function(
    name: str, arguments: Sequence[Value], lines: Sequence[str], results: Sequence[Value]
) -> list[str]:
    given = ", ".join(f"{value.name}: {value.type_text}" for value in arguments)
    types = ", ".join(value.type_text for value in results)
    returned = ", ".join(value.name for value in results)
    return [
        f"func.func @{name}({given}) -> ({types}) {{",
        *(f"  {line}" for line in lines),
        f"  func.return {returned} : {types}",
        "}",
    ]


def _initial(module: Module) -> list[str]:
    """A function without arguments that returns what every state starts from."""
    if not module.states:
        return []
    body = _FunctionWriter(module, {})
    starts = [state.initial for state in module.states]
    for at, op in enumerate(module.operations):
        if op.value_id in starts:
            body.lower(at, op)
    return _function("initial", [], body.lines, body.values_of(starts))


def _arguments(module: Module) -> dict[int, Value]:
    """The inputs under names that MLIR can read; two that would be the same get a number."""
    arguments: dict[int, Value] = {}
    taken = set[str]()
    for op in module.inputs:
        plain = _FOREIGN.sub("_", str(op.attributes["name"]))
        plain = plain if not plain[0].isdigit() else f"_{plain}"
        name, count = plain, 1
        while name in taken:
            count += 1
            name = f"{plain}_{count}"
        taken.add(name)
        arguments[op.value_id] = Value(f"%{name}", op.type)
    return arguments


def _notes(module: Module, arguments: dict[int, Value]) -> list[str]:
    """Comments: which argument is which input where the names differ, and which keep state."""
    names = {str(op.attributes["name"]): arguments[op.value_id].name for op in module.inputs}
    lines = [
        f"// {argument} is the input {quote(name)}"
        for name, argument in names.items()
        if argument != f"%{name}"
    ]
    for at, state in enumerate(module.states, len(module.outputs)):
        lines.append(f"// {names[state.name]} keeps state: result {at} of the run before")
    return lines
