"""`nacre nem`, to which the files of this folder add their verbs."""

from __future__ import annotations

import click


@click.group()
def nem() -> None:
    """Start NEM programs, and bring them into other forms.

    Exit status: 0 no errors, 1 errors in the program, 2 wrong usage.
    """
