"""Calls on tensors whose types are known: their keys, what they take of a run, why they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.core.aten.call import Elements, TooLarge
from nacre.core.unsupported import Unsupported
from nacre.nac.program.binding import describe
from nacre.nac.rules.running import NAC47, NAC48, NAC52, NAC54
from nacre.nac.run.interpreter import Operands
from nacre.nac.run.limits import Limits, TooManySteps
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.memory import Memory
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.run.specialised import TypedCall, type_call

# What kernels, and handlers on arguments without sense, raise.
FAULTS = (ArithmeticError, LookupError, ValueError, TypeError, InputError)
REFUSALS = (Unsupported, TooManySteps, MemoryError)


class Budget:
    """What a run may take, and what it has taken."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.memory = Memory(limits.bytes)
        self.work = 0  # steps so far

    def spend(self, bytes_: int, work: int) -> None:
        """Ask for what a call takes before it takes anything."""
        if not self.memory.has_room(bytes_):
            raise TooLarge(bytes_)
        if self.work + work > self.limits.work:
            raise TooManySteps(work)
        self.work += work


def key_of(operands: Operands) -> tuple[object, ...]:
    """What a call is prepared for: types of tensors, and numbers as they are."""
    return tuple([
        (leaf.dtype, leaf.shape) if isinstance(leaf, np.ndarray) else (type(leaf), repr(leaf))
        for leaf in operands.leaves
    ])  # fmt: skip


def typed_call(
    instruction: PreparedInstruction, operands: Operands, memory: Memory, elements: Elements
) -> TypedCall:
    """A call for the types of its operands, made once for all that look alike."""
    prepared = instruction.call
    assert prepared is not None
    known = prepared.typed.get(key := key_of(operands))
    if known is not None:
        return known
    arguments = prepared.arguments(operands.arguments)
    try:
        typed = type_call(
            prepared.name, arguments, operands.tensors, memory.limit - memory.live, elements
        )
    except InputError as error:
        raise Unsupported("; ".join(d.message for d in error.diagnostics)) from error
    except FAULTS as error:
        raise Unsupported(f"its arguments make no sense ({error})") from error
    if not typed.is_for_elements:
        prepared.typed[key] = typed
    return typed


def refusal(
    program: LoadedProgram,
    budget: Budget,
    index: int,
    operands: Sequence[Any],
    problem: Exception,
) -> InputError:
    """Why a run cannot go on at an instruction."""
    types = ", ".join(map(format_type, operands))
    call = f"{backquote(program.program[index].name, 80)} of ({types})"
    limits = budget.limits
    if isinstance(problem, TooLarge):
        live = budget.memory.live
        if limits.bytes == program.memory_limit:
            message = (
                f"{call} needs {problem.bytes:,} bytes, {live:,} of the memory limit are taken"
            )
            least = live + problem.bytes
            option = setting(f"`--memory-limit {least}`", f"`memory_limit={least}`")
            return program.fault(index, NAC54, message, f"allow more: {option}")
        message = f"{call} needs {problem.bytes:,} bytes, {live:,} of {limits.bytes:,} are taken"
        help_ = f"if that is meant, allow more: {setting('`--max-bytes`', '`max_bytes=`')}"
        return program.fault(index, NAC48, message, help_)
    if isinstance(problem, TooManySteps):
        done = budget.work
        message = f"{call} takes {problem.work:,} steps, {done:,} of {limits.work:,} are taken"
        help_ = f"if that is meant, allow more: {setting('`--max-work`', '`max_work=`')}"
        return program.fault(index, NAC52, message, help_)
    if isinstance(problem, MemoryError):
        return program.fault(index, NAC48, f"{call} needs more memory than there is")
    remedy = problem.help if isinstance(problem, Unsupported) else None
    return program.fault(index, NAC47, f"{call}: {problem}", remedy)


def format_type(result: Any) -> str:  # noqa: ANN401 - an array, several, a number
    """A result in a message: a tensor by its type."""
    if isinstance(result, np.ndarray):
        return f"{result.dtype}[{', '.join(map(str, result.shape))}]"
    if isinstance(result, list):
        return f"[{', '.join(map(format_type, result))}]"
    return describe(result)
