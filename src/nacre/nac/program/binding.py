"""Arguments of an instruction by the names of its schema.

Files that we write have every argument in order. Files in use leave defaults out, have keywords
behind without their names, and lists with tensors spread over several arguments: an argument goes
to the next parameter whose kind it has, and parameters between keep their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from nacre.core.aten.dtypes import DTYPE_WORDS
from nacre.core.aten.schemas import Parameter, Schema
from nacre.core.opaque.calls import PARTS
from nacre.nac.spec.elements import STORAGE_WORDS


class Ref(Struct, frozen=True, gc=False):
    """The result of an instruction."""

    index: int


class Numbers(tuple[float, ...]):
    """A list that is a constant. Many calls may share it, so that it is looked at once."""

    __slots__ = ()


class Integers(Numbers):
    """One of integers alone, which may be written as floats."""

    __slots__ = ()


def as_numbers(numbers: tuple[float, ...]) -> Numbers:
    """A list as what it is."""
    is_whole = all(isinstance(part, int) or part.is_integer() for part in numbers)
    return Integers(numbers) if is_whole else Numbers(numbers)


Given = Any  # a Ref or the value of a constant
_REFERRING = frozenset("TifnaIFb")  # kinds of what may be computed
_LENGTHS = frozenset("IF")
_SHOWN = 40  # characters of a constant in a message
# What an argument is in every model that is not being trained: another number is a keyword's.
_ALWAYS: Mapping[str, float] = {"dropout_p": 0.0}


def bind_arguments(schema: Schema, given: Sequence[Given]) -> Mapping[str, Given] | str:
    """Arguments by name, or what is wrong with them."""
    strict = _assign(schema, given, is_lenient=False)
    if not isinstance(strict, str):
        return strict
    lenient = _assign(schema, given, is_lenient=True)
    return strict if isinstance(lenient, str) else lenient


def _assign(schema: Schema, given: Sequence[Given], is_lenient: bool) -> dict[str, Given] | str:
    return _assign_rest(schema.parameters, tuple(given), 0, is_lenient)


def _assign_rest(
    parameters: Sequence[Parameter], given: Sequence[Given], at: int, is_lenient: bool
) -> dict[str, Given] | str:
    """What parameters take of the arguments from one on; a list takes as many as it may."""
    if not parameters:
        if at < len(given):
            return f"argument {at} is {describe(given[at])}, for which there is no place"
        return {}
    parameter, left = parameters[0], given[at:]
    count = _most_arguments(parameter, left, is_lenient)
    if count == 0 and not parameter.has_default and not parameter.is_list:
        next_text = "nothing" if not left else describe(left[0])
        return f"argument `{parameter.name}` is {next_text}, expected {KINDS[parameter.kind]}"
    assigned: dict[str, Given] | str = ""
    for fewer in range(count, -1 if parameter.is_list else count - 1, -1):
        assigned = _assign_rest(parameters[1:], given, at + fewer, is_lenient)
        if not isinstance(assigned, str):
            return {parameter.name: _parameter_value(parameter, left[:fewer]), **assigned}
    return assigned


def _most_arguments(parameter: Parameter, given: Sequence[Given], is_lenient: bool) -> int:
    """How many of the arguments a parameter takes at most."""
    if not given:
        return 0
    if parameter.is_list:
        fits = [_fits(parameter, item, is_lenient) for item in given]
        return fits.index(False) if False in fits else len(given)
    if not _fits(parameter, given[0], is_lenient):
        return 0
    if parameter.kind in _LENGTHS and not isinstance(given[0], tuple) and given[0] is not None:
        run = 0
        while run < len(given) and _is_size(given[run]):
            run += 1
        # Sizes that are computed are spread; a number alone is one for all axes.
        return run if any(isinstance(item, Ref) for item in given[:run]) else 1
    return 1


def _is_size(item: Given) -> bool:
    return isinstance(item, Ref) or (isinstance(item, int) and not isinstance(item, bool))


def _parameter_value(parameter: Parameter, arguments: Sequence[Given]) -> Given:
    if parameter.is_list:
        return tuple(arguments)
    if not arguments:
        return parameter.default
    if (
        parameter.kind in _LENGTHS
        and not isinstance(arguments[0], tuple)
        and arguments[0] is not None
    ):
        return tuple(arguments)
    if arguments[0] is None and not parameter.is_optional:
        return parameter.default
    return arguments[0]


def _fits(parameter: Parameter, item: Given, is_lenient: bool) -> bool:
    kind = parameter.kind
    if not is_lenient and parameter.name in _ALWAYS and item != _ALWAYS[parameter.name]:
        return False
    if kind == "T" and parameter.is_list:
        return isinstance(item, Ref) or (item is None and parameter.is_optional)
    if isinstance(item, Ref):
        return kind in _REFERRING
    if item is None:
        return parameter.is_optional or kind == "a" or (is_lenient and parameter.has_default)
    if kind == "a":
        return True
    if isinstance(item, bool):
        return kind in ("bnifT" if is_lenient else "bn")
    if isinstance(item, int):
        return kind in ("infIFTb" if is_lenient else "infI" + _tensor(parameter))
    if isinstance(item, float):
        return kind in ("nfFTib" if is_lenient else "nf" + _tensor(parameter))
    if isinstance(item, str):
        return _fits_word(kind, item)
    numbers = item if isinstance(item, Numbers) else as_numbers(item)
    return kind == "F" or (kind == "I" and isinstance(numbers, Integers))


def _tensor(parameter: Parameter) -> str:
    """Numbers stand for tensors only where one must be given."""
    return "" if parameter.is_optional else "T"


def _fits_word(kind: str, word: str) -> bool:
    if kind == "d":
        return word in DTYPE_WORDS or word in PARTS
    return kind == "s" or (kind == "k" and word.partition(":")[0] in STORAGE_WORDS)


KINDS: Mapping[str, str] = {
    "T": "a tensor", "i": "an integer", "f": "a float", "n": "a number", "b": "a truth value",
    "s": "a string", "d": "an element type", "I": "integers", "F": "floats", "k": "a word",
    "a": "anything",
}  # fmt: skip


def describe(item: Given) -> str:
    """An argument in a message."""
    if isinstance(item, Ref):
        return f"the result of instruction {item.index}"
    text = "null" if item is None else str(item[:_SHOWN] if isinstance(item, tuple | str) else item)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
