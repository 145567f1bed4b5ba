"""Calls that have no form in Core IR: what they give, and how their kernels are run.

The type of a result follows from the kernel's shape function where there is one, since a file may
say anything; else from the file. What a kernel gives must be of that type. Kernels of ours may
compute in another precision, which is rounded to it; from others another element type is refused,
since who registers one may have meant another operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.aten.call import Value
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.operations.operation import ArrayType, Operation, Types, types_from
from nacre.nac.operations.registry import find_operation
from nacre.nac.program.binding import Given
from nacre.nac.rules.operations import NAC40, NAC71
from nacre.nac.rules.seeds import require_seed
from nacre.nac.run.interpreter import Operands
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.spec.calls import schemas

_MOST_TEXT = 200  # characters of what a kernel says
_LINEAR = 32  # steps for an element of a kernel that goes over them a few times


@dataclass(frozen=True)
class Randomness:
    """Where random numbers come from: a seed, and how many runs there were since the start.

    Every instruction of every run has a stream of its own, so that what one draws does not depend
    on what others do, or on the order in which they are run.
    """

    seed: int = 0
    run: int = 0

    def generator(self, instruction: int) -> np.random.Generator:
        """The generator of an instruction: Philox, its key the seed."""
        counter = np.array([0, 0, instruction, self.run], np.uint64)
        return np.random.Generator(
            np.random.Philox(key=np.array([require_seed(self.seed), 0], np.uint64), counter=counter)
        )


def is_opaque(instruction: PreparedInstruction, arrays: Sequence[Any]) -> bool:
    """Whether a call is for a kernel alone: it has no form in Core IR, or is of complex numbers."""
    return instruction.opaque is not None or any(a.dtype.kind == "c" for a in arrays)


def is_selection(instruction: PreparedInstruction) -> bool:
    """Whether an instruction takes one of several results, of whatever kind."""
    return instruction.call is not None and instruction.call.name == "getitem"


def select_result(instruction: PreparedInstruction, operands: Operands) -> Any:  # noqa: ANN401
    """One of several results; Unsupported where nobody can have it."""
    (results, index), _ = _arguments(instruction, operands, operands.tensors)
    several = results if isinstance(results, tuple) else (results,)
    if not isinstance(index, int) or not -len(several) <= index < len(several):
        raise Unsupported(f"result {index} of {len(several)}")
    if several[index] is None:
        raise Unsupported(f"result {index} is one that no kernel makes")
    return several[index]


def call_types(
    instruction: PreparedInstruction, operands: Operands, operation: Operation | None
) -> Types | None:
    """The types of what a call gives; None where nothing says them."""
    declared = _declared_types(instruction)
    if operation is None or operation.shape is None:
        return declared
    args, kwargs = _arguments(instruction, operands, operands.tensors)
    try:
        found = types_from(operation.shape(*args, **kwargs), operands.tensors)
    except (Exception, SystemExit) as error:
        raise Unsupported(f"it has no shape: {_text(error)}") from None
    if declared is not None and not _agree(found, declared):
        raise Unsupported(
            f"it gives {_format_types(found)}, the file says {_format_types(declared)}"
        )
    return found


def _declared_types(instruction: PreparedInstruction) -> Types | None:
    form = instruction.opaque
    if form is None or not form.results:
        return None
    types = [None if result is None else result.array_type for result in form.results]
    return types if form.is_list else types[0]


def _agree(found: Any, declared: Any) -> bool:  # noqa: ANN401 - types, or lists of them
    if isinstance(found, list) != isinstance(declared, list):
        return False
    if not isinstance(found, list):
        return bool(found == declared)
    pairs = zip(found, declared, strict=False)
    return len(found) == len(declared) and all(d is None or f == d for f, d in pairs)


def _format_types(types: Any) -> str:  # noqa: ANN401 - types, or lists of them
    return (
        ", ".join(map(_format_types, types))
        if isinstance(types, list)
        else str(types or "anything")
    )


def needed(
    types: Types | None, arrays: Sequence[Array], operation: Operation | None
) -> tuple[int, int]:
    """The bytes that results take, and the steps to them."""
    parts = [part for part in (types if isinstance(types, list) else [types]) if part is not None]
    elements = sum(prod(part.shape) for part in parts) + sum(a.size for a in arrays)
    work = elements * _LINEAR
    if operation is not None and operation.effort == "cubic":
        work *= max((max(a.shape[-2:], default=1) for a in arrays), default=1)
    return sum(part.bytes for part in parts), work


def run_kernel(
    instruction: PreparedInstruction,
    operands: Operands,
    operation: Operation,
    types: Types | None,
    generator: np.random.Generator,
) -> Any:  # noqa: ANN401 - an array, or several
    """What a kernel gives; Unsupported where it fails, or gives something else."""
    args, kwargs = _arguments(instruction, operands, [_locked(a) for a in operands.tensors])
    if operation.random:
        kwargs["rng"] = generator
    try:
        with np.errstate(all="ignore"):
            found = operation.kernel(*args, **kwargs)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # whatever a kernel raises, even to end all
        raise Unsupported(f"its kernel refuses it: {_text(error)}") from None
    is_ours = operation.schema is not None
    if isinstance(types, ArrayType) and isinstance(found, list | tuple) and len(found) == 1:
        (found,) = found
    if isinstance(found, list | tuple):
        return _checked_list(found, types, is_ours)
    if isinstance(types, list):
        raise Unsupported(f"its kernel gives a {type(found).__name__}, expected a list")
    return _checked(found, types, is_ours)


def _checked_list(found: Sequence[Any], types: Types | None, is_ours: bool) -> list[Array | None]:
    if isinstance(types, ArrayType):
        raise Unsupported(f"its kernel gives {len(found)} results, expected {types}")
    if types is not None and len(types) != len(found):
        raise Unsupported(f"its kernel gives {len(found)} results, expected {len(types)}")
    wanted = types or [None] * len(found)
    return [
        None if part is None and type_ is None else _checked(part, type_, is_ours)
        for part, type_ in zip(found, wanted, strict=True)
    ]


def _checked(found: Any, type_: ArrayType | None, is_ours: bool) -> Array:  # noqa: ANN401
    """A result as an array of its type."""
    if not isinstance(found, np.ndarray | np.generic | bool | int | float | complex):
        raise Unsupported(f"its kernel gives a {type(found).__name__}, expected arrays")
    array = np.asarray(found)
    if type_ is None:
        return array
    if array.shape != type_.shape:
        made = ArrayType(array.dtype, array.shape)
        raise Unsupported(f"its kernel gives {made}, expected {type_}")
    # Numbers of Python have no width: one of the kind that is expected is as good as an array.
    is_wide = is_ours or not isinstance(found, np.ndarray | np.generic)
    if not (array.dtype == type_.dtype or (is_wide and _is_of_kind(array.dtype, type_.dtype))):
        made = ArrayType(array.dtype, array.shape)
        help_ = f"let the kernel give `result.astype({type_.dtype.name!r})`, if that is meant"
        raise Unsupported(f"its kernel gives {made}, expected {type_}", help_)
    cast = array.astype(type_.dtype, copy=False)
    if array.dtype.kind in "iu" and cast.dtype.kind in "iu" and (cast != array).any():
        wrong = array[cast != array].flat[0]
        raise Unsupported(f"its kernel gives {wrong}, which {type_.dtype.name} does not hold")
    return cast


def _is_of_kind(found: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """Whether a type differs from another in its precision alone."""
    if found.kind in "iu":
        return expected.kind in "iu"
    return found.kind == expected.kind or (
        found.kind != "b" and np.can_cast(found, expected, "same_kind")
    )


def _locked(array: Array) -> Array:
    """The same array for a kernel that must not write into it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _arguments(
    instruction: PreparedInstruction, operands: Operands, arrays: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a kernel: those in their places, and those that go by name."""
    prepared, form = instruction.call, instruction.opaque
    assert prepared is not None
    given = prepared.arguments(operands.arguments)
    keywords = frozenset[str]() if form is None else form.schema.keywords
    storage = {p.name for p in prepared.schema.parameters if p.is_storage}
    plain = {name: _plain(value, arrays) for name, value in given.items() if name not in storage}
    args = [value for name, value in plain.items() if name not in keywords]
    return args, {name: value for name, value in plain.items() if name in keywords}


def _plain(value: Given, arrays: Sequence[Any]) -> Any:  # noqa: ANN401 - an array or a constant
    if isinstance(value, Value):
        return arrays[value.id]
    return tuple(_plain(part, arrays) for part in value) if isinstance(value, tuple) else value


def _text(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:_MOST_TEXT]


# Programs with such calls


def unknown_calls(program: LoadedProgram, within: range | None = None) -> Mapping[str, list[int]]:
    """The instructions of operations that have no kernel, by name; of a block, or of all."""
    calls: dict[str, list[int]] = {}
    for index, instruction in enumerate(program.program):
        if instruction.opaque is not None and (within is None or index in within):
            calls.setdefault(instruction.name, []).append(index)
    return {name: users for name, users in calls.items() if find_operation(name) is None}


def unknown_findings(program: LoadedProgram) -> list[Diagnostic]:
    """A warning for each operation without a kernel; a plugin that is broken has its own."""
    try:
        unknown = unknown_calls(program)
    except InputError as error:
        return list(error.diagnostics)
    return [
        program.finding(
            users[0],
            NAC40,
            f"operation {backquote(name, 80)} is not known, and {_use_count_text(len(users))}",
            (name.startswith("aten.") and did_you_mean(name[5:], schemas())) or _how(name),
        )
        for name, users in unknown.items()
    ]


def require_kernels(program: LoadedProgram, within: range | None = None) -> None:
    """InputError where a run, or a block, would come to operations that no kernel computes."""
    findings = [
        program.finding(
            users[0],
            NAC71,
            f"no kernel is registered for {backquote(name, 80)}, {_use_count_text(len(users))}",
            _how(name),
        )
        for name, users in unknown_calls(program, within).items()
    ]
    if findings:
        raise InputError(findings)


def _how(name: str) -> str:
    shown = backquote(name, 80).strip("`")
    return f'register one: `nacre.nac.register_operation("{shown}", kernel)`'


def _use_count_text(count: int) -> str:
    return "used once" if count == 1 else f"used {count} times, here first"
