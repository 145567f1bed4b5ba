"""Programs as text: one line an instruction, with what happens to memory beside it; plans.

v3 = aten.linear.default(v0, v1, v2)   FORWARD -> 4
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nacre.nac.format.values import Command, ConstantValue, Instruction
from nacre.nac.genome.graph import graph_of
from nacre.nac.genome.matching import Occurrence, named_ends, recognise
from nacre.nac.program.interface import operation_table
from nacre.nac.program.operation_calls import OperationCall
from nacre.nac.spec.elements import DTYPES, QUANTIZATIONS
from nacre.nac.spec.instructions import (
    ACTIONS,
    BRANCH,
    CONTROL_FLOW,
    CONVERGENCE,
    INPUT,
    LIFTED,
    OUTPUT,
    PARAMETER,
    STATE,
    SYSTEM,
    TRAINING_ACTIONS,
    USER,
)
from nacre.nac.tools.opening import OpenedFile, true_shape, type_text

_SHOWN_ELEMENTS = 16  # a longer list is shown by its ends
_SHOWN_CHARACTERS = 120
_NAMES = {code: action.name for code, action in {**ACTIONS, **TRAINING_ACTIONS}.items()}


@dataclass(frozen=True)
class Line:
    """An instruction as text; `target` is empty where it gives no value."""

    index: int
    name: str
    arguments: tuple[str, ...]
    commands: tuple[Command, ...]
    has_value: bool = True

    @property
    def text(self) -> str:
        """`v3 = aten.relu.default(v2)`, or `return v3`."""
        if not self.has_value:
            return " ".join([self.name, ", ".join(self.arguments)]).rstrip()
        return f"v{self.index} = {self.name}({', '.join(self.arguments)})"

    @property
    def schedule(self) -> str:
        """`FREE -> 26,  SAVE_RESULT -> 43`, in the order of the file."""
        return ",  ".join(f"{action_name(c.action)} -> {c.target}" for c in self.commands)


def action_name(code: int) -> str:
    """The name of a memory command."""
    return _NAMES.get(code, f"ACTION_{code}")


def lines_of(opened: OpenedFile) -> Iterator[Line]:
    """Every instruction; what the file does not define is shown by its number."""
    commands = {tick.tick: tick.commands for tick in opened.file.schedule}
    for index, instruction in enumerate(opened.file.instructions):
        name, arguments, has_value = _describe(opened, index, instruction)
        yield Line(index, name, arguments, commands.get(index, ()), has_value)


def listing(opened: OpenedFile, *, with_schedule: bool = False) -> str:
    """The whole program, a line an instruction; where a known pattern ends, its name.

    Calls that are known by their names alone have the types of their results beside them.
    """
    made = []
    ends = named_ends(recognise(graph_of(opened)))
    kept = operation_table(opened.file).calls
    for line in lines_of(opened):
        is_longer = with_schedule and line.commands
        text = f"{line.text}   {line.schedule}" if is_longer else line.text
        end, call = ends.get(line.index), kept.get(line.index)
        notes = [pattern_text(end)] if end is not None else []
        notes += [f"by name: {_result_text(call)}"] if call is not None else []
        made.append(f"{text}   ; {', '.join(notes)}" if notes else text)
    return "\n".join(made)


def _result_text(call: OperationCall) -> str:
    """`f32[2, 3]`, or several."""
    types = ["-" if r is None else type_text(r.dtype, r.shape) for r in call.results]
    return f"({', '.join(types)})" if call.several else types[0]


def pattern_text(occurrence: Occurrence) -> str:
    """`Residual(v3)`."""
    taken = dict.fromkeys(f"v{index}" for index in occurrence.inputs)
    return f"{occurrence.pattern}({', '.join(taken)})"


def plan_listing(opened: OpenedFile) -> str | None:
    """The text of the plan, as assemblers read it; None where the file has none.

    InputError has what is wrong with it.
    """
    from nacre.nac.mep.disassembler import disassemble

    plan = opened.file.plan
    return disassemble(plan) if plan.bytecode or plan.constants else None


def _describe(
    opened: OpenedFile, index: int, instruction: Instruction
) -> tuple[str, tuple[str, ...], bool]:
    if not instruction.is_system:
        name = opened.file.name_of.get(instruction.op, f"op_{instruction.op}")
        return format_name(name), arguments_of(opened, index, instruction), True
    if instruction.op == OUTPUT:
        word = "yield" if instruction.variant == BRANCH else "return"
        return word, tuple(_ref(index, offset) for offset in instruction.d), False
    variants = SYSTEM.get(instruction.op, {})
    variant = variants.get(instruction.variant)
    name = variant.name if variant else f"system_{instruction.op}_{instruction.variant}"
    return name, _system_arguments(opened, index, instruction), True


def _system_arguments(opened: OpenedFile, index: int, instruction: Instruction) -> tuple[str, ...]:
    if instruction.op == INPUT:
        return _input_arguments(opened, index, instruction)
    if instruction.op == CONTROL_FLOW:
        then, other = instruction.c[1:3]
        return _ref(index, instruction.d[0]), f"true={then}", f"false={other}"
    if instruction.op == CONVERGENCE:
        end, _, *branches = instruction.d
        starts = ", ".join(str(index + offset) for offset in branches)
        given = _ref(index, instruction.c[1]) if len(instruction.c) > 1 else "?"
        return (
            given,
            f"threshold={instruction.variant}%",
            f"branches=[{starts}]",
            f"end={index + end}",
        )
    return tuple(map(str, (*instruction.c, *instruction.d)))


def _input_arguments(opened: OpenedFile, index: int, instruction: Instruction) -> tuple[str, ...]:
    named = opened.inputs.get(index)
    given = [f"name={json.dumps(named)}"] if named is not None else []
    id_ = instruction.c[1] if len(instruction.c) > 1 else 0
    if instruction.variant == USER:
        return tuple(given)
    if instruction.variant == PARAMETER:
        return _parameter(opened, index, id_)
    if instruction.variant == LIFTED:
        constant = opened.file.constant_of.get(id_)
        return (*given, f"value={value_text(constant.value) if constant else f'c{id_}'}")
    if instruction.variant == STATE:
        return (f"id={id_}", *given)
    return (*given, *map(str, instruction.c))


def _parameter(opened: OpenedFile, index: int, id_: int) -> tuple[str, ...]:
    name = opened.parameter_names.table.loads.get(index) or opened.parameters.get(id_)
    first = f"name={json.dumps(name)}" if name is not None else f"id={id_}"
    tensor = opened.tensors.get(id_)
    if tensor is None:
        return (first,)
    shown = (first, type_text(DTYPES[tensor.dtype], true_shape(tensor)))
    return (*shown, f"quant={QUANTIZATIONS[tensor.quant].name}") if tensor.quant else shown


def arguments_of(opened: OpenedFile, index: int, instruction: Instruction) -> tuple[str, ...]:
    """The arguments of a call: results by their instruction, constants by their value."""
    ids = iter(instruction.c[1:])
    arguments = []
    for offset in instruction.d:
        if offset:
            arguments.append(_ref(index, offset))
            continue
        id_ = next(ids, None)
        constant = opened.file.constant_of.get(id_) if id_ is not None else None
        arguments.append(
            value_text(constant.value) if constant else f"c{'?' if id_ is None else id_}"
        )
    return tuple(arguments)


def _ref(index: int, offset: int) -> str:
    return f"v{index + offset}"


def format_name(name: str) -> str:
    """A name as a line can hold it."""
    return name if name.isascii() and name.isprintable() else json.dumps(name)


def value_text(value: ConstantValue) -> str:
    """A constant as Python would write it; a long one by its ends."""
    if isinstance(value, str):
        shown = json.dumps(value)
        return shown if len(shown) <= _SHOWN_CHARACTERS else f'{shown[:_SHOWN_CHARACTERS]}..."'
    if isinstance(value, tuple):
        half = _SHOWN_ELEMENTS // 2
        if len(value) > _SHOWN_ELEMENTS:
            ends = (*map(_element, value[:half]), "...", *map(_element, value[-half:]))
            return f"[{', '.join(ends)}]"
        return f"[{', '.join(map(_element, value))}]"
    return repr(value)


def _element(value: float) -> str:
    """Lists hold f32: the shortest text that gives the same one."""
    return str(value) if isinstance(value, int) else str(np.float32(value))
