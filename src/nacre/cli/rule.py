"""`nacre rule`: explain a rule, or list them all."""

from __future__ import annotations

import importlib
import json

import click

from nacre.base.excerpt import safe
from nacre.base.rules import RULES, Rule
from nacre.base.suggest import did_you_mean
from nacre.cli.exit_status import OK
from nacre.core import catalogue as core_catalogue
from nacre.llm import catalogue as llm_catalogue
from nacre.nac import catalogue as nac_catalogue
from nacre.nem.checks import catalogue
from nacre.nem.spec.language_sections import address_of
from nacre.tcb import catalogue as tcb_catalogue

# Rules of rooms without a catalogue.
RULE_MODULES = (
    "nacre.compile.rules",
    "nacre.calibrate.rules",
    "nacre.bind.rules",
    "nacre.bind.uarch.rules",
    "nacre.tcbcheck.rules",
)


@click.command()
@click.argument("code", required=False)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text")
def rule(code: str | None, output: str) -> int:
    """Explain the rule CODE; without one, list all rules. A group such as BUF lists its rules.

    The rules of NEM come first, then those of Core IR, of the compiler, of calibration, of NAC,
    of TCB and of language models.
    """
    catalogue.load()
    core_catalogue.load()
    nac_catalogue.load()
    tcb_catalogue.load()
    llm_catalogue.load()
    for module in RULE_MODULES:
        importlib.import_module(module)
    key = code.upper() if code else None
    if key is None:
        rules = list(RULES.values())
    else:
        rules = [r for r in RULES.values() if key in (r.code, r.group)]
    if not rules:
        hint = did_you_mean(key or "", RULES)
        raise click.UsageError(f"no rule {safe(code or '')}{'; ' + hint if hint else ''}")
    rules.sort(key=lambda r: (r.language != "NEM", r.code))
    if output == "json":
        click.echo(json.dumps([_as_json(r) for r in rules], indent=2))
    elif key in RULES:
        click.echo(page_text(rules[0]))
    else:
        for row in rules:
            click.echo(f"{row.code:6} {_kind(row):9} {row.name}")
    return OK


def page_text(row: Rule) -> str:
    """A rule's page as a terminal shows it."""
    head = f"{row.code} {row.name} ({_kind(row)})\nspec: {row.spec}\n"
    fix = f"fixable: `nacre check --fix` {row.fix}\n" if row.fix else ""
    address = address_of(row)
    language = f"language: {address}\n" if address else ""
    return f"{head}{language}{fix}\n{row.page}"


def _kind(row: Rule) -> str:
    return "behaviour" if row.behaviour else row.severity


def _as_json(row: Rule) -> dict[str, str]:
    address = address_of(row)
    return {
        "code": row.code,
        "name": row.name,
        "severity": _kind(row),
        "spec": row.spec,
        **({"language": address} if address else {}),
        "page": row.page,
        **({"fix": row.fix} if row.fix else {}),
    }
