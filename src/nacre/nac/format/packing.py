"""Fields as bytes; a value that its field cannot hold is refused with a remedy."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.nac.rules.container import NAC15

_SPLIT = "split the model into several files"
# What makes a value smaller, by what it is.
REMEDIES = {
    "constant id": "fold constants, or split the model: ids of constants go to 32,767",
    "parameter id": "merge parameters, or split the model: ids of parameters go to 32,767",
    "operand offset": "compute the value again near its late use, or split the model: an operand"
    " lies at most 32,768 instructions back",
    "argument": "take fewer at a time, such as a concat of concats: an instruction has 255",
    "signature": "give fewer kinds of arguments: there are at most 255 signatures",
    "operation": "use fewer kinds of operations: ids go to 255",
    "instruction": "split the model: there are at most 65,535 instructions",
    "memory command": "spread the commands over neighbouring ticks: one has at most 255",
    "name": "shorten the name",
    "list": "store the list as a tensor: integers of lists have 32 bits, and a list at most 65,535",
    "dimension": "reshape the tensor: dimensions go to 4,294,967,295 and ranks to 255",
    "element type": "cast the weight before the model is built: the format has f32, f64, f16, bf16,"
    " i64, i32, i16, i8, u8 and bool",
    "length": _SPLIT,
}


def pack(layout: str, what: str, *values: int) -> bytes:
    """Numbers in a layout of `struct`; InputError where one does not fit."""
    try:
        return struct.pack(f"<{layout}", *values)
    except struct.error as error:
        shown = ", ".join(f"{value:,}" for value in values)
        message = f"{what} {shown} does not fit in its field: {error}"
        raise limit_error(what, message) from None


def limit_error(what: str, message: str) -> InputError:
    """The refusal of a value that is too large, with what helps."""
    help_ = REMEDIES.get(what, _SPLIT)
    return InputError([NAC15.at(whole_file("<nac>"), message, help=help_)])


@contextmanager
def name_place_of_refusal(place: Callable[[], str]) -> Iterator[None]:
    """Say of a refusal where in the program the value stands."""
    try:
        yield
    except InputError as refused:
        told = [replace(d, message=f"{place()}: {d.message}") for d in refused.diagnostics]
        raise InputError(told) from None


def text(value: str, layout: str, what: str) -> bytes:
    """A text behind its length."""
    raw = value.encode("utf-8")
    try:
        return struct.pack(f"<{layout}", len(raw)) + raw
    except struct.error:
        message = f"{what} of {len(raw):,} bytes is too long for its field"
        raise limit_error("name", message) from None


def numbers(layout: str, what: str, values: Sequence[int]) -> bytes:
    """A run of numbers of one kind."""
    return pack(f"{len(values)}{layout}", what, *values) if values else b""
