"""Arguments of the debugger's commands."""

from __future__ import annotations

import re

from nacre.base.excerpt import backquote
from nacre.nem.run.memory.host import host_error

_MOST_LISTED = 12  # names in a line


def refuse_argument(argument: str) -> None:
    """Refuse an argument."""
    if argument:
        raise host_error(f"this command takes no argument, found {backquote(argument)}")


def require_argument(argument: str, what: str) -> str:
    """The argument, which must not be empty."""
    if not argument:
        raise host_error(f"this command needs {what}")
    return argument


def parse_number(text: str) -> int:
    """An argument as a number."""
    if re.fullmatch("-[0-9]{1,18}", text) is not None:
        raise host_error(f"found {text}, expected 0 or more")
    if re.fullmatch("[0-9]{1,18}", text) is None:
        raise host_error(f"{backquote(text)} is no number")
    return int(text)


def parse_count(argument: str) -> int:
    """How many steps an argument asks for; one where there is no argument."""
    return parse_number(argument) if argument else 1


def list_some(names: list[str]) -> str:
    """Names in a line, the rest counted."""
    listed = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{listed} and {more} more" if more > 0 else listed
