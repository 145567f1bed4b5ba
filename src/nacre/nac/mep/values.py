"""What the slots of a plan hold, and how values are taken for what an instruction needs."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.rules import Rule
from nacre.core.values import Array
from nacre.nac.rules.plans import NAC91
from nacre.nac.run.memory import owner

INT64 = range(-(2**63), 2**63)
_KINDS = "biufU"  # of arrays that a plan works with: truth values, numbers, texts
_MOST_TEXT = 200  # characters of a value in a message or a template's place


class Fault(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """Why an instruction cannot be done; the machine knows where."""

    def __init__(self, rule: Rule, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.help = help


@dataclass(frozen=True, slots=True, eq=False)
class TokenizerValue:
    """A tokenizer in a slot; plans can only hand it to the instructions that use one."""

    tokenizer: Any


Number = bool | int | float
Value = None | Number | str | bytes | tuple[Any, ...] | Array | TokenizerValue


def describe(value: Value) -> str:
    """A value as a message names it."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name} with shape {list(value.shape)}"
    if isinstance(value, tuple):
        return f"a list of {len(value):,}"
    if isinstance(value, str):
        return f"a text of {len(value):,} characters"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, TokenizerValue):
        return "a tokenizer"
    return "nothing" if value is None else f"the number {value!r}"


def unfit_fault(what: str, found: Value, expected: str) -> Fault:
    """The refusal of a value of another kind."""
    return Fault(NAC91, f"{what} is {describe(found)}, expected {expected}")


def size_of(value: Value) -> int:
    """The bytes that a value keeps alive, or about that."""
    if isinstance(value, np.ndarray):
        return owner(value).nbytes
    if isinstance(value, tuple):
        return 40 * len(value)
    if isinstance(value, str):
        return 4 * len(value)
    return len(value) if isinstance(value, bytes) else 0


def is_number(value: Value) -> bool:
    """Whether a value is a number or a truth value."""
    return isinstance(value, bool | int | float)


def array(value: Value, what: str) -> Array:
    """A value as an array: floats become f32, integers i64."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool):
        return np.array(value)
    if is_number(value) or isinstance(value, tuple):
        made = np.array(value)
        return made.astype(np.int64 if made.dtype.kind in "bi" else np.float32)
    raise unfit_fault(what, value, "a tensor")


def numbers(value: Value, what: str) -> Array:
    """A value as an array of numbers."""
    made = array(value, what)
    if made.dtype.kind == "U":
        raise unfit_fault(what, value, "a tensor of numbers")
    return made


def one_number(value: Value, what: str) -> Number:
    """A value as one number."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind != "U":
        found: Number = value.reshape(()).astype(_wide(value.dtype)).item()
        return found
    raise unfit_fault(what, value, "a number")


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A type whose elements Python knows; bf16 has a kind of its own."""
    return dtype if dtype.kind in "biu" else np.dtype(np.float64)


def whole_number(value: Value, what: str, least: int = INT64[0], most: int = INT64[-1]) -> int:
    """A value as a whole number in a range."""
    found = one_number(value, what)
    if isinstance(found, float) and not found.is_integer():
        raise Fault(NAC91, f"{what} is {found!r}, expected a whole number")
    number = int(found)
    if not least <= number <= most:
        raise Fault(NAC91, f"{what} is {number:,}, expected {least:,} to {most:,}")
    return number


def text(value: Value, what: str) -> str:
    """A value that must be a text."""
    if isinstance(value, str):
        return value
    raise unfit_fault(what, value, "a text")


def truth_value(value: Value, what: str) -> bool:
    """Whether a value counts as true: a number that is not 0, something that is not empty."""
    if isinstance(value, str | bytes | tuple):
        return bool(value)
    return False if value is None else bool(one_number(value, what))


def slot_value(result: Any) -> Value:  # noqa: ANN401 - what NumPy returns
    """What an instruction made, for a slot: without axes it is a number or a text."""
    if isinstance(result, np.ndarray | np.generic) and result.ndim == 0:
        if result.dtype.kind == "U":
            return str(result)
        found: Number = np.asarray(result).astype(_wide(result.dtype)).item()
        return found
    value: Value = result
    return value


def value_from(given: object, what: str, rule: Rule) -> Value:
    """What comes from outside, as a value that plans work with."""
    if given is None or isinstance(given, bool | float | str | bytes | np.ndarray):
        return _check_array(given, what, rule) if isinstance(given, np.ndarray) else given
    if isinstance(given, int):
        if given not in INT64:
            raise Fault(rule, f"{what} is an integer of more than 64 bits")
        return given
    if isinstance(given, list | tuple) and all(type(v) is int and v in INT64 for v in given):
        return tuple(given)
    try:
        made = np.asarray(given)
    except Exception as error:
        name = type(given).__name__
        raise Fault(rule, f"{what} is a {name}, which is no array: {brief_error(error)}") from None
    return _check_array(made, what, rule)


def _check_array(array: Array, what: str, rule: Rule) -> Value:
    # The floats that NumPy does not know itself have kind V, and a name.
    is_known = array.dtype.kind in _KINDS or array.dtype.name in ("bfloat16", "float16")
    if not is_known or not array.dtype.isnative:
        raise Fault(rule, f"{what} is an array of {array.dtype.name}, expected numbers or texts")
    if array.dtype.kind == "u" and array.size and int(array.max()) not in INT64:
        raise Fault(rule, f"{what} has {int(array.max())}, an integer of more than 64 bits")
    return slot_value(array)


def ids_of(given: object, what: str, rule: Rule) -> tuple[int, ...]:
    """Ids as a tokenizer gives them: integers, or something that has them as `ids`."""
    found = getattr(given, "ids", given)
    try:
        made = tuple([operator.index(one) for one in found])  # type: ignore[attr-defined]
    except Exception:
        name = type(found).__name__
        raise Fault(rule, f"{what} gave a {name}, expected a list of ids") from None
    if any(one not in INT64 for one in made):
        raise Fault(rule, f"{what} gave an id of more than 64 bits")
    return made


def display_text(value: Value, what: str) -> str:
    """A value as text: long arrays and lists are cut in the middle."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return str(
            np.array2string(value, threshold=100, edgeitems=3, precision=8, max_line_width=100)
        )
    if isinstance(value, tuple):
        shown = [repr(one) for one in (value if len(value) <= 100 else value[:100])]
        return f"[{', '.join(shown)}{', ...' if len(value) > 100 else ''}]"
    if isinstance(value, TokenizerValue):
        raise unfit_fault(what, value, "a text or numbers")
    if isinstance(value, bytes):
        raise unfit_fault(what, value, "a text or numbers")
    return str(value)


def brief_error(error: BaseException) -> str:
    """What a failure of somebody else says, on one line and not too long."""
    said = " ".join(str(error).split())[:_MOST_TEXT]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def finite_number(value: Value, what: str) -> float:
    """A value as a finite float."""
    found = float(one_number(value, what))
    if not math.isfinite(found):
        raise Fault(NAC91, f"{what} is {found!r}, expected a finite number")
    return found
