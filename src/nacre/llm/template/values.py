"""What templates compute with: filters, tests, methods and functions, each by its name."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nacre.llm.template.limits import MAX_NUMBER, MAX_RANGE, MAX_TEXT

_MOST_INSIDE = 1 << 19

Value = Any  # texts, numbers, booleans, None, lists, dicts, `UNDEFINED`, `Namespace`


class Undefined:
    """What a name or a key without a value is: false, and nothing when written."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class Namespace:
    """Variables that loops may set for what comes behind them."""

    def __init__(self, fields: dict[str, Value]) -> None:
        self.fields = fields


class WrongTypeError(Exception):  # a way out to whoever knows the line
    """Values that something cannot be done with."""


class LimitError(Exception):  # the same
    """Values that are larger than any template needs."""


def require_bounded(value: Value) -> Value:
    """A value that is not too large."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise LimitError(f"a text has {len(value):,} characters, at most {MAX_TEXT:,} are made")
    if isinstance(value, int) and not -MAX_NUMBER <= value < MAX_NUMBER:
        raise LimitError("a number has more than 64 bits")
    return value


def written(value: Value) -> str:
    """A value as a template writes it."""
    if value is UNDEFINED:
        return ""
    if isinstance(value, Namespace):
        raise WrongTypeError("a namespace cannot be written")
    return value if isinstance(value, str) else _python_text(value)


def _python_text(value: Value) -> str:
    require_small(value)
    return str(value)


def require_small(*values: Value) -> None:
    """Refuse values that have more inside than may be looked at.

    A list of the same list twice, and so on, is small in memory and endless to write or compare.
    """
    waiting, seen = list(values), 0
    while waiting:
        value = waiting.pop()
        inner = list(value.values()) if isinstance(value, dict) else value
        seen += len(inner) if isinstance(inner, list | str) else 1
        if seen > _MOST_INSIDE:
            raise LimitError(f"a value has more than {_MOST_INSIDE:,} characters and items inside")
        waiting += inner if isinstance(inner, list) else []


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise WrongTypeError(f"found {kind_of(value)}, expected a text")
    return value


def kind_of(value: Value) -> str:
    """What a value is, in words."""
    names = {bool: "a boolean", str: "a text", int: "a number", float: "a number", list: "a list"}
    names |= {dict: "a mapping", type(None): "none", Undefined: "something undefined"}
    return names.get(type(value), "a namespace")


def _length(value: Value) -> int:
    if not isinstance(value, str | list | dict):
        raise WrongTypeError(f"{kind_of(value)} has no length")
    return len(value)


def _join(values: Value, separator: str = "") -> str:
    if not isinstance(values, list):
        raise WrongTypeError(f"{kind_of(values)} cannot be joined")
    texts = [written(value) for value in values]
    if sum(map(len, texts)) + len(_text(separator)) * len(texts) > MAX_TEXT:
        raise LimitError("a joined text is too long")
    return separator.join(texts)


def _to_json(value: Value, indent: int | None = None, **_: Value) -> str:
    if indent is not None and not 0 <= _integer(indent) <= 16:
        raise WrongTypeError("an indentation is no number from 0 to 16")
    require_small(value)
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (TypeError, ValueError, RecursionError):
        raise WrongTypeError(f"{kind_of(value)} cannot be written as JSON") from None


def _default(value: Value, other: Value = "", is_any: bool = False) -> Value:
    return other if value is UNDEFINED or (is_any and not value) else value


def _replace(text: Value, old: Value, new: Value, count: int = -1) -> str:
    whole, before, after = _text(text), _text(old), _text(new)
    if len(whole) + whole.count(before) * len(after) > MAX_TEXT:
        raise LimitError("a text with replacements is too long")
    return whole.replace(before, after, _integer(count))


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise WrongTypeError(f"found {kind_of(value)}, expected a whole number")
    return value


def _item_at(index: int) -> Callable[[Value], Value]:
    def take(value: Value) -> Value:
        if not isinstance(value, str | list):
            raise WrongTypeError(f"{kind_of(value)} has no first or last item")
        return value[index] if value else UNDEFINED

    return take


def _list(value: Value) -> list[Value]:
    if not isinstance(value, str | list | dict):
        raise WrongTypeError(f"{kind_of(value)} is no row of values")
    return list(value)


def _pairs(value: Value) -> list[Value]:
    if not isinstance(value, dict):
        raise WrongTypeError(f"{kind_of(value)} has no pairs")
    return [list(pair) for pair in value.items()]


def _selection(is_kept: bool) -> Callable[..., Value]:
    def select(values: Value, name: str, test: str = "", *rest: Value) -> list[Value]:
        if test not in ("", "equalto", "==", "eq", "defined", "none"):
            raise WrongTypeError(f"values cannot be selected by the test `{test}`")
        found = []
        for value in _list(values):
            field = value.get(name, UNDEFINED) if isinstance(value, dict) else UNDEFINED
            holds = TESTS[test](field, *rest) if test else bool(field)
            found += [value] if holds == is_kept else []
        return found

    return select


FILTERS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "trim": lambda v: _text(v).strip(),
        "upper": lambda v: _text(v).upper(),
        "lower": lambda v: _text(v).lower(),
        "title": lambda v: _text(v).title(),
        "capitalize": lambda v: _text(v).capitalize(),
        "length": _length,
        "count": _length,
        "join": _join,
        "tojson": _to_json,
        "default": _default,
        "d": _default,
        "replace": _replace,
        "first": _item_at(0),
        "last": _item_at(-1),
        "string": written,
        "safe": lambda v: v,
        "list": _list,
        "items": _pairs,
        "selectattr": _selection(True),
        "rejectattr": _selection(False),
    }
)


def is_equal(value: Value, other: Value) -> bool:
    """Whether two values are the same."""
    if isinstance(value, list | dict) or isinstance(other, list | dict):
        require_small(value, other)
    return bool(value == other)


TESTS: Mapping[str, Callable[..., bool]] = MappingProxyType(
    {
        "defined": lambda v: v is not UNDEFINED,
        "undefined": lambda v: v is UNDEFINED,
        "none": lambda v: v is None,
        "string": lambda v: isinstance(v, str),
        "mapping": lambda v: isinstance(v, dict),
        "iterable": lambda v: isinstance(v, str | list | dict),
        "sequence": lambda v: isinstance(v, str | list | dict),
        "number": lambda v: isinstance(v, int | float),
        "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
        "boolean": lambda v: isinstance(v, bool),
        "true": lambda v: v is True,
        "false": lambda v: v is False,
        "odd": lambda v: _integer(v) % 2 == 1,
        "even": lambda v: _integer(v) % 2 == 0,
        "equalto": is_equal,
        "eq": is_equal,
        "==": is_equal,
    }
)

_TEXT_METHODS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "strip": lambda t, c=None: t.strip(c if c is None else _text(c)),
        "lstrip": lambda t, c=None: t.lstrip(c if c is None else _text(c)),
        "rstrip": lambda t, c=None: t.rstrip(c if c is None else _text(c)),
        "startswith": lambda t, part: t.startswith(_text(part)),
        "endswith": lambda t, part: t.endswith(_text(part)),
        "split": lambda t, by=None, most=-1: t.split(
            by if by is None else _text(by), _integer(most)
        ),
        "upper": lambda t: t.upper(),
        "lower": lambda t: t.lower(),
        "title": lambda t: t.title(),
        "capitalize": lambda t: t.capitalize(),
        "replace": _replace,
        "count": lambda t, part: t.count(_text(part)),
        "find": lambda t, part: t.find(_text(part)),
    }
)
_MAPPING_METHODS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "items": _pairs,
        "keys": lambda m: list(m),
        "values": lambda m: list(m.values()),
        "get": lambda m, key, other=None: m.get(key, other),
    }
)


def method_of(value: Value, name: str) -> Callable[..., Value]:
    """A method of a text or a mapping."""
    methods = _TEXT_METHODS if isinstance(value, str) else _MAPPING_METHODS
    if not isinstance(value, str | dict) or name not in methods:
        raise WrongTypeError(f"{kind_of(value)} has no method `{name}` of those that are run")
    return methods[name]


class Refused(Exception):  # noqa: N818 - the template's own word
    """What a template says of messages that it does not take."""


def _raise(message: Value = "") -> Value:
    raise Refused(written(message))


def _range(*bounds: Value) -> list[int]:
    if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and bounds[2] == 0):
        raise WrongTypeError("`range` takes one to three numbers, and a step that is not 0")
    numbers = range(*map(_integer, bounds))
    if len(numbers) > MAX_RANGE:
        raise LimitError(f"a range has {len(numbers):,} numbers, at most {MAX_RANGE:,} are made")
    return list(numbers)


_DATE = re.compile(r"(?:%[aAbBdHIjmMpSyY%]|[\w ,:/.\-])*", re.ASCII)


def _now(form: Value) -> str:
    if len(_text(form)) > 100 or not _DATE.fullmatch(form):
        raise WrongTypeError("the form of a date has signs that are not known")
    return time.strftime(form)


FUNCTIONS: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "raise_exception": _raise,
        "namespace": lambda **fields: Namespace(dict(fields)),
        "dict": lambda **fields: dict(fields),
        "range": _range,
        "strftime_now": _now,
    }
)
