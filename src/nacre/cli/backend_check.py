"""`nacre backend-check`: hold a backend against nacre's own kernels, opcode by opcode."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from nacre.base.excerpt import safe
from nacre.base.suggest import did_you_mean
from nacre.cli.arrays import WrongUsage
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.options import form_option
from nacre.cli.terminal.streams import unfiltered_stream
from nacre.nem.api.conformance import Row, check_backend
from nacre.nem.api.conformance_types import tried_names
from nacre.nem.run.machine.backends import BackendError, load_backend

_MOST_TYPES = 6  # that are listed where one line stands for all types of an opcode


@click.command("backend-check")
@click.argument("name")
@click.option(
    "--opcode", "opcodes", multiple=True, metavar="OPCODE", help="Try this one; repeatable."
)
@form_option
def backend_check(name: str, opcodes: tuple[str, ...], form: str) -> int:
    """Try a backend on every opcode and type, and compare with nacre's own kernels.

    Integers must agree to the bit, floats within the ulps of docs/numerics.md. Exit status: 0
    everything that the backend supports agrees, 1 something differs or fails, 2 no such backend.
    """
    known = tried_names()
    for opcode in opcodes:
        if opcode not in known:
            hint = did_you_mean(opcode, known)
            raise click.UsageError(f"no opcode `{safe(opcode)}`{'; ' + hint if hint else ''}")
    try:
        backend = load_backend(name)
    except BackendError as error:
        raise WrongUsage(safe(str(error))) from None
    rows = list(check_backend(backend, opcodes or None))
    if form == "json":
        click.echo(json.dumps(_as_json(name, rows), indent=2))
    else:
        _print(name, rows)
    return OK if all(row.verdict.is_good for row in rows) else ERRORS_FOUND


def _print(name: str, rows: Sequence[Row]) -> None:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("opcode", no_wrap=True)
    table.add_column("types", max_width=40)
    table.add_column("cases", justify="right")
    table.add_column("verdict")
    for line in _lines(rows):
        table.add_row(*line)
    # What a backend says of itself is no markup.
    width = None if Console().is_terminal else 120
    console = Console(
        highlight=False, markup=False, emoji=False, width=width, file=unfiltered_stream()
    )
    console.print(table)
    click.echo(f"{safe(name)}: {_summary(rows)}")


def _lines(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, str]]:
    """The lines of the table: types of an opcode that came to the same share one."""
    for opcode, group in groupby(rows, key=lambda row: row.opcode):
        merged: dict[str, list[Row]] = {}
        of_opcode = list(group)
        for row in of_opcode:
            has_own_line = bool(row.verdict.detail)
            merged.setdefault(str(row.verdict if has_own_line else row.verdict.kind), []).append(
                row
            )
        for same in merged.values():
            worst = max((row.verdict for row in same), key=lambda v: (v.unit == "ulps", v.distance))
            cases = sum(row.cases for row in same)
            yield opcode, _types(same, len(of_opcode)), str(cases), str(worst)


def _types(same: Sequence[Row], all_of_opcode: int) -> str:
    if len(same) == all_of_opcode and len(same) > _MOST_TYPES:
        return f"all {len(same)} combinations"
    return "; ".join(row.types for row in same)


def _summary(rows: Sequence[Row]) -> str:
    counts = Counter(row.verdict.kind for row in rows)
    cases = sum(row.cases for row in rows)
    opcodes = len({row.opcode for row in rows})
    tried = f"{opcodes} opcodes, {len(rows)} combinations of types, {cases} cases"
    return f"{tried}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"


def _as_json(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "backend": name,
        "agrees": all(row.verdict.is_good for row in rows),
        "rows": [
            {
                "opcode": row.opcode,
                "types": row.types,
                "cases": row.cases,
                "verdict": row.verdict.kind,
                "text": str(row.verdict),
                "apart": row.verdict.distance,
                "allowed": row.verdict.allowed,
                "unit": row.verdict.unit,
            }
            for row in rows
        ],
    }
