"""`nacre nac`: files of NAC made, looked at, verified, run, compared and taken apart."""

from __future__ import annotations

import click

from nacre.cli.nac.build import build
from nacre.cli.nac.convert import convert
from nacre.cli.nac.extract import extract
from nacre.cli.nac.genome import genome, transplant
from nacre.cli.nac.run import run
from nacre.cli.nac.show import compare, diff, dis, info, verify


@click.group()
def nac() -> None:
    """Work with files of NAC, the binary format for networks.

    Exit status: 0 no errors, 1 errors in the file or its inputs, 2 wrong usage.
    """


for _verb in (build, info, verify, dis, run, convert, extract, diff, compare, genome, transplant):
    nac.add_command(_verb)
