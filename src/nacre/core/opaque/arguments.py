"""The arguments of a call that is kept by its name, as one text: a list in JSON.

Tensors stand as `{"operand": 0}`, the operands of the operation in their order; a complex
one, which Core IR holds as pairs along a last axis of 2, as `{"operand": 0, "complex": true}`. What
JSON lacks is `{"float": "inf"}`. Everything else is as it is: null, truth values, numbers, strings,
and lists of these, which hold no lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import msgspec


class Operand(msgspec.Struct, frozen=True, gc=False):
    """A tensor among the arguments, by its place among the operands."""

    place: int
    is_complex: bool = False  # it is held as pairs of real and imaginary parts


Argument = Any  # an Operand, None, a truth value, a number, a string, or a tuple of these


def encode_arguments(arguments: Sequence[Argument]) -> str:
    """Arguments as a text."""
    return msgspec.json.encode([_encode(argument) for argument in arguments]).decode()


def _encode(argument: Argument) -> Any:  # noqa: ANN401 - what JSON has
    if isinstance(argument, Operand):
        mark = {"complex": True} if argument.is_complex else {}
        return {"operand": argument.place, **mark}
    if isinstance(argument, tuple):
        return [_encode(part) for part in argument]
    if isinstance(argument, float) and not isfinite(argument):
        return {"float": str(argument)}
    return argument


def decode_arguments(text: str) -> tuple[Argument, ...]:
    """The arguments of a text; ValueError where it has none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"the arguments are no JSON: {error}") from None
    if not isinstance(found, list):
        raise ValueError("the arguments are no list")  # noqa: TRY004 - of a text
    return tuple(_decode(part, is_inside=False) for part in found)


def _decode(part: Any, is_inside: bool) -> Argument:  # noqa: ANN401 - what JSON has
    if isinstance(part, dict):
        return _decode_mark(part)
    if isinstance(part, list):
        if is_inside:
            raise ValueError("an argument is a list of lists")
        return tuple(_decode(item, is_inside=True) for item in part)
    return part


def _decode_mark(part: dict[str, Any]) -> Operand | float:
    place, mark = part.get("operand"), part.get("complex", False)
    if type(place) is int and type(mark) is bool and part.keys() <= {"operand", "complex"}:
        return Operand(place, mark)
    if part.keys() == {"float"} and part["float"] in ("inf", "-inf", "nan"):
        return float(part["float"])
    raise ValueError("an argument is neither an operand nor a constant")


def operands_among(arguments: Sequence[Argument]) -> Iterator[Operand]:
    """The tensors among arguments, in order."""
    for argument in arguments:
        if isinstance(argument, Operand):
            yield argument
        elif isinstance(argument, tuple):
            yield from operands_among(argument)
