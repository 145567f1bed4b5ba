"""What a run is given, checked against what the program takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.packing import as_nibbles
from nacre.base.suggest import did_you_mean
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, array_or_none
from nacre.nac.program.interface import NacInput
from nacre.nac.rules.running import NAC44, NAC45, NAC46
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.run.specialised import element_name


def _input_help(wanted: NacInput) -> str:
    """How an input is given, and its type where the file says it."""
    name = backquote(wanted.name)[1:-1]
    way = setting(f"`--input {name}=FILE.npy`", f"`run({{{name!r}: array}})`")
    if wanted.dtype is None or wanted.shape is None:
        return f"give an array: {way}"
    return f"give {TensorType(wanted.dtype, wanted.shape)}: {way}"


def check_inputs(model: LoadedProgram, inputs: Mapping[str, Any]) -> dict[int, Array]:
    """The given arrays by instruction; InputError has all that is wrong with them."""
    if not isinstance(inputs, Mapping):
        message = f"inputs are a {type(inputs).__name__}, expected arrays by name"
        raise InputError([model.finding(0, NAC46, message)])
    findings: list[Diagnostic] = []
    ready: dict[int, Array] = {}
    for wanted in model.all_inputs:
        if wanted.name not in inputs:
            if not wanted.is_optional:
                message = f"input {backquote(wanted.name)} is missing"
                findings.append(
                    model.finding(wanted.instruction, NAC44, message, _input_help(wanted))
                )
            continue
        try:
            ready[wanted.instruction] = check_input(model, wanted, inputs[wanted.name])
        except InputError as error:
            findings += error.diagnostics
    names = {wanted.name for wanted in model.all_inputs}
    for extra in inputs:
        if extra not in names:
            hint = did_you_mean(str(extra), names)
            message = f"the program has no input {backquote(str(extra))}"
            findings.append(model.finding(0, NAC45, f"{message}{'; ' + hint if hint else ''}"))
    if findings:
        raise InputError(findings)
    return ready


def check_input(model: LoadedProgram, wanted: NacInput, given: Any) -> Array:  # noqa: ANN401
    """What is given for one input, as an array; InputError has what is wrong with it."""
    array = array_or_none(given)
    if array is not None and wanted.dtype is not None:
        array = as_nibbles(array, GRAPH_TYPES[wanted.dtype])
    problem = _problem(array, wanted)
    if isinstance(given, np.ma.MaskedArray):
        problem = "is a masked array, expected every element"
    if array is None or problem is not None:
        message = f"input {backquote(wanted.name)} {problem}"
        raise model.fault(wanted.instruction, NAC46, message)
    return np.asarray(array, order="C")


def _problem(array: Array | None, wanted: NacInput) -> str | None:
    if array is None:
        return "is no array"
    try:
        name = element_name(array.dtype)
    except Unsupported:
        return f"{_describe(array)}, which has no element type here"
    if wanted.dtype is not None and name != wanted.dtype:
        return f"{_describe(array)}, expected {GRAPH_TYPES[wanted.dtype].dtype.name}"
    if wanted.shape is not None and array.shape != wanted.shape:
        return f"{_describe(array)}, expected [{', '.join(map(str, wanted.shape))}]"
    if 0 in array.shape:
        return f"{_describe(array)}, which has no elements"
    return None


def _describe(array: Array) -> str:
    shape = ", ".join(map(str, array.shape))
    order = "" if array.dtype.isnative else " in the byte order of other machines"
    return f"is an array of {array.dtype.name}{order} with shape [{shape}]"
