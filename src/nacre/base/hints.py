"""Hints in the language of the place: options at a terminal, arguments in Python.

A text that names a setting holds both spellings until a finding is made of it; the rule then keeps
the one that the reader can use. So a help may be a constant, whoever imported it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OPEN, _BETWEEN, _CLOSE = "\ue000", "\ue001", "\ue002"  # private characters, in no text of ours
_SETTING = re.compile(f"{_OPEN}([^{_BETWEEN}]*){_BETWEEN}([^{_CLOSE}]*){_CLOSE}")
_AT_TERMINAL: ContextVar[bool] = ContextVar("at_terminal", default=False)


def setting(option: str, argument: str) -> str:
    """A part of a message or a help with two spellings: for the command line, and for Python."""
    return f"{_OPEN}{option}{_BETWEEN}{argument}{_CLOSE}"


def text_for_reader(text: str) -> str:
    """A message or a help with its settings as the reader writes them."""
    if _OPEN not in text:
        return text
    return _SETTING.sub(r"\1" if _AT_TERMINAL.get() else r"\2", text)


@contextmanager
def at_terminal() -> Iterator[None]:
    """What is found in here is read by somebody at a command line."""
    before = _AT_TERMINAL.set(True)
    try:
        yield
    finally:
        _AT_TERMINAL.reset(before)
