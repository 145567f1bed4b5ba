"""How a picture becomes an input of a model: a small file declares it, in TOML.

Files come from strangers: what is read is bounded, and every figure is looked at.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Source, Span, Unreadable, read_bytes
from nacre.base.suggest import did_you_mean
from nacre.compile.labelled.metrics import data_error
from nacre.compile.rules import CMP15

_MOST_TEXT = 1 << 16  # bytes of the file
_MOST_SIDE = 8192
_LONGEST = 60  # of a value that a message quotes
_EXAMPLE = 'an example: `input = "x"`, `size = [224, 224]`, `channels = "rgb"`'
_PLACE_OF_MISTAKE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", re.ASCII)
Resize = Literal["stretch", "cover", "fit"]
Channels = Literal["rgb", "bgr", "gray"]
Layout = Literal["nchw", "nhwc"]


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes an input: `(pixel * scale - mean) / deviation`, pixels up to 255."""

    input: str
    size: tuple[int, int]  # height, width
    resize: Resize = "stretch"
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)
    fill: int = 0  # what surrounds a picture that is fitted
    labels: tuple[str, ...] = field(default=())  # folders in the order of classes


def read_preprocessing(path: Path) -> Preprocessing:
    """What a file declares; InputError says everything that is wrong with it."""
    raw = read_bytes(path, limit=_MOST_TEXT)
    if isinstance(raw, Unreadable):
        raise data_error(f"it {raw.reason}", file=str(path))
    try:
        source = Source(str(path), raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise data_error(f"it is no text: {error}", _EXAMPLE, str(path)) from None
    given = _parse(source)
    found = [CMP15.at(_place(source, p.key), p.message, help=p.help) for p in _problems(given)]
    if found:
        raise InputError(found)
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}
    for name in ("mean", "deviation"):
        if isinstance(values.get(name), int | float):
            values[name] = (values[name],)
    return Preprocessing(**values)


def _parse(source: Source) -> Mapping[str, Any]:
    """The values of a text; a mistake of its form is at the line where the parser stopped."""
    try:
        return tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
        message = str(error)
        stopped = _PLACE_OF_MISTAKE.search(message)
        span, reason = source.span(0, 0), message
        if stopped is not None:
            reason = message[: stopped.start()]
            span = _position(source, stopped[1], stopped[2])
    raise InputError([CMP15.at(span, f"it is no TOML: {reason}", help=_EXAMPLE)])


def _position(source: Source, line: str | None, column: str | None) -> Span:
    """Where the parser stopped: at the end without a line."""
    at = source.size
    if line is not None and column is not None:
        ends_of_lines = [0, *(found.end() for found in re.finditer("\n", source.text))]
        at = min(ends_of_lines[int(line) - 1] + int(column) - 1, source.size)
    return source.span(at, at)


def _place(source: Source, key: str) -> Span:
    """The line that gives a key; the file as a whole where none does."""
    quoted = re.escape(key)
    found = re.search(rf"^[ \t]*([\"']?{quoted}[\"']?)[ \t]*=", source.text, re.MULTILINE)
    return source.span(*found.span(1)) if found else source.span(0, 0)


@dataclass(frozen=True)
class _Problem:
    key: str
    message: str
    help: str | None = None


def _problems(given: Mapping[str, Any]) -> Iterator[_Problem]:
    known = [one.name for one in fields(Preprocessing)]
    for name in given:
        if name not in known:
            help_ = did_you_mean(name, known) or f"there are {', '.join(known)}"
            yield _Problem(name, f"there is no {backquote(name)}", help_)
    for name, example in (("input", '"x"'), ("size", "[224, 224]")):
        if name not in given:
            yield _Problem(name, f"`{name}` is missing", f"add `{name} = {example}`")
    words = {"resize": get_args(Resize), "channels": get_args(Channels), "layout": get_args(Layout)}
    for name, allowed in words.items():
        if name in given and given[name] not in allowed:
            hint = did_you_mean(str(given[name]), allowed) or None
            yield _wrong(given, name, f"one of {', '.join(allowed)}", hint)
    yield from _value_problems(given)
    yield from _number_problems(given)


def _value_problems(given: Mapping[str, Any]) -> Iterator[_Problem]:
    if "input" in given and not (isinstance(given["input"], str) and given["input"]):
        yield _wrong(given, "input", "the name of an input of the model")
    size = given.get("size", [1, 1])
    if not (isinstance(size, list) and len(size) == 2 and all(map(_is_side, size))):
        yield _wrong(given, "size", f"a height and a width up to {_MOST_SIDE}")
    fill = given.get("fill", 0)
    if type(fill) is not int or not 0 <= fill <= 255:
        yield _wrong(given, "fill", "a number from 0 to 255")
    labels = given.get("labels", [])
    if not (isinstance(labels, list) and all(label and type(label) is str for label in labels)):
        yield _wrong(given, "labels", "a list of names of folders")
    elif len(set(labels)) < len(labels):
        yield _Problem("labels", "`labels` has a name twice")


def _number_problems(given: Mapping[str, Any]) -> Iterator[_Problem]:
    planes = 1 if given.get("channels") == "gray" else 3
    for name in ("scale", "mean", "deviation"):
        value = given.get(name, 1.0)
        is_list = isinstance(value, list) and name != "scale"
        numbers = value if is_list else [value]
        if not all(map(_is_number, numbers)) or len(numbers) not in (1, planes):
            several = f", or {planes} of them" if name != "scale" and planes > 1 else ""
            yield _wrong(given, name, f"a number that f32 holds{several}")
        elif name == "deviation" and not all(map(np.float32, numbers)):
            yield _Problem(name, "`deviation` has a 0, and pixels are divided by it")


def _wrong(given: Mapping[str, Any], name: str, expected: str, help: str | None = None) -> _Problem:
    text = repr(given[name])
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return _Problem(name, f"`{name}` is {short}, expected {expected}", help)


def _is_side(side: object) -> bool:
    return type(side) is int and 0 < side <= _MOST_SIDE


def _is_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return abs(number) <= float(np.finfo(np.float32).max)
