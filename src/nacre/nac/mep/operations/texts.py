"""Texts, and what is written to streams and files."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from nacre.nac.mep.images import write_png
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.templates import fill_template
from nacre.nac.mep.values import Fault, Value, array, display_text, numbers, text, unfit_fault
from nacre.nac.mep.work import Work
from nacre.nac.rules.plans import NAC91

_ELEMENT = 512  # bytes that turning one number into text counts as


@performs("string_format")
def string_format(work: Work, template: str, values: Sequence[Value]) -> str:
    """A template with values."""
    left = (work.budget.max_bytes - work.budget.live) // 8
    made = fill_template(template, values, max(left, 0))
    work.budget.take(8 * len(made) + _ELEMENT * len(values))
    return made


@performs("serialize")
def serialize(work: Work, value: Value, format: str) -> str | bytes:
    """A value as text or bytes."""
    if format == "png":
        pixels = numbers(value, "the image")
        work.budget.take(24 * pixels.size)
        return write_png(pixels)
    if format == "text":
        return display_text(value, "the value")
    if not isinstance(value, str):
        held = value if value is None else array(value, "the value")
        work.budget.take(_ELEMENT * (1 if held is None else held.size))
        value = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise Fault(NAC91, "the value has numbers that JSON does not have") from None


@performs("sys_debug_print")
def sys_debug_print(work: Work, value: Value, message: str) -> None:
    """Write to the stream of those who look for mistakes."""
    work.write("debug", f"{message}{display_text(value, 'the value')}\n")


@performs("io_write")
def io_write(work: Work, value: Value, stream: str, path: Value, mode: str) -> None:
    """Write to a stream or a file."""
    if isinstance(value, bytes):
        if stream != "file":
            raise unfit_fault("what is written", value, "a text")
        content = value
    else:
        line = display_text(value, "what is written") + ("" if mode == "plain" else "\n")
        if stream != "file":
            work.write(stream, line)
            return
        content = line.encode()
    work.budget.take(2 * len(content))
    folder, name = work.surroundings.folder, text(path, "the path")
    folder.write(name, content, work.budget, append=mode == "append")
