"""Signs of a template between values, and items of values: nothing of Python's own is reached."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from nacre.llm.template.limits import MAX_TEXT
from nacre.llm.template.values import (
    UNDEFINED,
    LimitError,
    Namespace,
    Value,
    WrongTypeError,
    is_equal,
    kind_of,
    require_small,
    written,
)

_Work = Callable[..., Value]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float)


def _numbers(work: Callable[[float, float], float]) -> _Work:
    def compute(a: Value, b: Value) -> Value:
        if not _is_number(a) or not _is_number(b):
            raise WrongTypeError(f"found {kind_of(a)} and {kind_of(b)}, expected numbers")
        try:
            return work(a, b)
        except (ZeroDivisionError, OverflowError):
            raise WrongTypeError("a number is divided by 0, or too large") from None

    return compute


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, str) and isinstance(b, str):
        return _concatenate(a, b)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) + len(b) > MAX_TEXT:
            raise LimitError("a list is too long")
        return a + b
    if _is_number(a) and _is_number(b):
        return a + b
    raise WrongTypeError(f"{kind_of(a)} and {kind_of(b)} cannot be added")


def _concatenate(a: str, b: str) -> str:
    if len(a) + len(b) > MAX_TEXT:
        raise LimitError(f"a text has {len(a) + len(b):,} characters")
    return a + b


def _ordering(work: Callable[[Value, Value], bool]) -> _Work:
    def compare(a: Value, b: Value) -> bool:
        both_text = isinstance(a, str) and isinstance(b, str)
        if not both_text and not (_is_number(a) and _is_number(b)):
            raise WrongTypeError(f"{kind_of(a)} and {kind_of(b)} have no order")
        return work(a, b)

    return compare


def _contains(a: Value, b: Value) -> bool:
    if isinstance(b, str):
        if not isinstance(a, str):
            raise WrongTypeError(f"{kind_of(a)} is in no text")
        return a in b
    if isinstance(b, dict):
        return isinstance(a, str | int | float | None) and a in b
    if isinstance(b, list):
        require_small(a, b)
        return a in b
    if b is UNDEFINED:
        return False
    raise WrongTypeError(f"nothing is in {kind_of(b)}")


def _negative(a: Value) -> Value:
    if not _is_number(a):
        raise WrongTypeError(f"found {kind_of(a)}, expected a number")
    return -a


OPERATORS: Mapping[str, _Work] = MappingProxyType(
    {
        "+": _add,
        "-": _numbers(operator.sub),
        "*": _numbers(operator.mul),
        "/": _numbers(operator.truediv),
        "//": _numbers(operator.floordiv),
        "%": _numbers(operator.mod),
        "~": lambda a, b: _concatenate(written(a), written(b)),
        "==": is_equal,
        "!=": lambda a, b: not is_equal(a, b),
        "<": _ordering(operator.lt),
        "<=": _ordering(operator.le),
        ">": _ordering(operator.gt),
        ">=": _ordering(operator.ge),
        "in": _contains,
        "not in": lambda a, b: not _contains(a, b),
        "negative": _negative,
    }
)


def item_of(owner: Value, key: Value) -> Value:
    """`owner[key]`; what is not there is undefined."""
    if owner is UNDEFINED or owner is None:
        raise WrongTypeError(f"{kind_of(owner)} has no item {key!r}")
    if isinstance(owner, Namespace):
        return owner.fields.get(key, UNDEFINED) if isinstance(key, str) else UNDEFINED
    if isinstance(owner, dict):
        return owner.get(key, UNDEFINED) if isinstance(key, str | int | float) else UNDEFINED
    is_index = isinstance(key, int) and isinstance(owner, str | list)
    return owner[key] if is_index and -len(owner) <= key < len(owner) else UNDEFINED


def part_of(owner: Value, bounds: Sequence[Value]) -> Value:
    """`owner[start:end:step]`."""
    if not isinstance(owner, str | list):
        raise WrongTypeError(f"{kind_of(owner)} has no parts")
    if not all(bound is None or isinstance(bound, int) for bound in bounds) or bounds[2] == 0:
        raise WrongTypeError("the bounds of a part are no whole numbers, or its step is 0")
    return owner[slice(*bounds)]
