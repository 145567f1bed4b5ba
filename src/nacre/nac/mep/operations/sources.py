"""What comes from the caller and from files."""

from __future__ import annotations

import math

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.values import Array
from nacre.nac.format.values import ConstantValue
from nacre.nac.mep.files import read_npy
from nacre.nac.mep.images import prepare_image, read_image
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import (
    INT64,
    Fault,
    Value,
    array,
    describe,
    is_number,
    one_number,
    text,
    value_from,
)
from nacre.nac.mep.work import Work
from nacre.nac.rules.plans import NAC91, NAC96


@performs("src_user_prompt")
def src_user_prompt(work: Work, type: str, prompt: str) -> Value:
    """The caller's answer."""
    what = f"the answer to {backquote(prompt)}"
    answer = value_from(work.answer(prompt), what, NAC96)
    if isinstance(answer, np.ndarray | tuple) and type == "str":
        return answer
    if type == "str":
        return str(answer) if is_number(answer) else answer
    return _number(answer, type, what)


def _number(answer: Value, type: str, what: str) -> int | float:
    try:
        found = answer if isinstance(answer, str) else one_number(answer, what)
        number: int | float = int(found) if type == "int" else float(found)
    except (ValueError, OverflowError, Fault):
        found = number = math.nan
    is_same = isinstance(found, str) or number == found
    if not is_same or (isinstance(number, int) and number not in INT64):
        shape = backquote(answer) if isinstance(answer, str) else describe(answer)
        kind = "a whole number of 64 bits" if type == "int" else "a number"
        raise Fault(NAC96, f"{what} is {shape}, expected {kind}")
    return number


@performs("src_constant")
def src_constant(work: Work, value: ConstantValue) -> Value:
    """A constant."""
    return value


@performs("src_exec_mode")
def src_exec_mode(work: Work) -> str:
    """What the caller wants."""
    return work.surroundings.mode


@performs("res_load_datafile")
def res_load_datafile(work: Work, format: str, path: str) -> Value:
    """An array of a file."""
    return read_npy(work.surroundings.folder.view(path), path, work.budget)


@performs("res_load_dynamic")
def res_load_dynamic(work: Work, path: Value, format: str) -> Value:
    """A file that a value names, or its content."""
    if format == "npy":
        if isinstance(path, np.ndarray | tuple):
            return array(path, "the array")
        name = text(path, "the path")
        return read_npy(work.surroundings.folder.view(name), name, work.budget)
    if isinstance(path, np.ndarray):
        return _image(work, path)
    name = text(path, "the path")
    view = work.surroundings.folder.view(name)
    return prepare_image(read_image(view, name, work.budget), work.budget)


def _image(work: Work, given: Array) -> Array:
    """Pixels are made ready; floats are taken to be that already."""
    if given.dtype.kind == "f":
        return given
    pixels = given[..., None] if given.ndim == 2 else given
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or not pixels.size:
        message = f"the image is {describe(given)}, expected u8 [height, width, 3] or floats"
        raise Fault(NAC91, message)
    if pixels.shape[2] not in (1, 3, 4):
        raise Fault(NAC91, f"the image is {describe(given)}, expected 1, 3 or 4 channels")
    height, width = pixels.shape[:2]
    colours = pixels[:, :, : 1 if pixels.shape[2] == 1 else 3]
    return prepare_image(np.broadcast_to(colours, (height, width, 3)), work.budget)


@performs("res_load_array")
def res_load_array(work: Work, name: str) -> Value:
    """An array that the caller has given, or that the file carries."""
    arrays, resources = work.surroundings.arrays, work.surroundings.resources
    carried = resources.get(f"{name}.npy")
    if name not in arrays and carried is not None:
        return read_npy(memoryview(carried), f"{name}.npy", work.budget)
    if name not in arrays:
        known = [*arrays, *(one.removesuffix(".npy") for one in resources if one.endswith(".npy"))]
        message = f"there is no array {backquote(name)}"
        raise Fault(NAC96, message, did_you_mean(name, known))
    return value_from(arrays[name], f"array {backquote(name)}", NAC96)
