"""Templates of STRING_FORMAT: values in places, and no way from a value to anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nacre.base.excerpt import backquote
from nacre.nac.mep.values import Fault, Value, display_text, is_number, one_number
from nacre.nac.rules.plans import NAC91, NAC93

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_PLACE = re.compile(r"(\d{0,3})(?::(.*))?", re.DOTALL | re.ASCII)
# Widths and precisions of three digits: more is an attack on memory.
_FORMAT = re.compile(
    r"(?:.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?(?:\.\d{1,3})?[bdeEfFgGosxX%]?", re.DOTALL | re.ASCII
)


def fill_template(template: str, values: Sequence[Value], most: int) -> str:
    """The template with its values; Fault where it asks for more, or gets longer than `most`."""
    made: list[str] = []
    length = counted = 0
    is_counted: bool | None = None
    for match in _PART.finditer(template):
        whole, inner = match.group(), match.group(1)
        if whole in ("{{", "}}"):
            part = whole[0]
        elif inner is None:
            if whole in ("{", "}"):
                raise Fault(NAC93, f"{backquote(template)} has a `{whole}` without the other")
            part = whole
        else:
            number, form = _parse_field(inner, template)
            if is_counted not in (None, number is None):
                raise Fault(NAC93, f"{backquote(template)} has places with and without numbers")
            is_counted = number is None
            part = _value(values, counted if number is None else number, form, template)
            counted += 1
        length += len(part)
        if length > most:
            raise Fault(NAC91, f"the text has more than {most:,} characters")
        made.append(part)
    return "".join(made)


def _parse_field(inner: str, template: str) -> tuple[int | None, str]:
    found = _PLACE.fullmatch(inner)
    if found is None or not _FORMAT.fullmatch(found.group(2) or ""):
        field = backquote("{" + inner + "}")
        raise Fault(NAC93, f"{backquote(template)} has {field}, expected a number and a form")
    return (int(found.group(1)) if found.group(1) else None), found.group(2) or ""


def _value(values: Sequence[Value], number: int, form: str, template: str) -> str:
    if number >= len(values):
        message = f"{backquote(template)} asks for value {number}, there are {len(values)}"
        raise Fault(NAC93, message)
    value = values[number]
    if not form:
        return display_text(value, f"value {number}")
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind != "U":
        value = one_number(value, f"value {number}")
    if not is_number(value) and not isinstance(value, str):
        value = display_text(value, f"value {number}")
    try:
        return format(value, form)
    except ValueError as error:
        raise Fault(NAC93, f"value {number} has no form {backquote(form)}: {error}") from None
