"""Warnings that the library gives as Python's, shown as a verb's own: by code, without a path."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

_WITH_CODE = re.compile(r"([A-Z]{3}[0-9]{2}): (.*)", re.DOTALL)


@contextmanager
def show_by_code() -> Iterator[None]:
    """Show a warning with a rule's code on standard error as diagnostics are; others as before."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning
        shown: set[str] = set()  # two parts of a verb may say the same

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            found = _WITH_CODE.fullmatch(str(message))
            if found is None or not issubclass(category, UserWarning):
                show_others(message, category, filename, lineno, file, line)
            elif str(message) not in shown:
                shown.add(str(message))
                click.echo(f"warning[{found[1]}]: {found[2]}", err=True)

        warnings.showwarning = show
        yield
