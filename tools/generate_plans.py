"""Write the reference page on the instructions of plans from their table.

usage: python -m tools.generate_plans [--check]
"""

from __future__ import annotations

import sys

from nacre.nac.mep.table import OURS, RESERVED, ROWS, Operand, Row
from tools.generated import ROOT, write_or_check

PAGE = ROOT / "docs" / "reference" / "plans.md"
EXAMPLE = ROOT / "src" / "nacre" / "nac" / "mep" / "plans" / "greedy.mep"

HEAD = """# Instructions of plans (MEP)

Generated from the table in `src/nacre/nac/mep/table.py` by `make docs`: change that, not this page.

A plan is a text of instructions, one a line, `;` starts a comment. Operands stand behind the
mnemonic, separated by commas: `%name` is a slot (256 of them; a plan gives them names), `[%a, %b]`
some slots, a bare word one of the choices, a number a model or a constant, `"..."` a text, and a
label, which stands before an instruction as `label:`, where a jump goes. `nacre nac build --plan`
takes such a text, `nacre nac dis` shows that of a file behind its program.

| number | instruction | operands | what it does |
|---|---|---|---|
"""
TAIL = """
Numbers that files in use name without saying what they do, and that are refused: {reserved}.

## An example

The plan `greedy`, which comes along:

```
{example}```
"""


def render_plans() -> str:
    """The text of the page."""
    reserved = ", ".join(f"{number:#04x}" for number in sorted(RESERVED))
    tail = TAIL.format(reserved=reserved, example=EXAMPLE.read_text())
    return HEAD + "\n".join(map(_line, ROWS)) + "\n" + tail


def _line(row: Row) -> str:
    operands = ", ".join(map(_operand, row.operands)) or "none"
    return f"| {row.opcode:#04x} | `{row.mnemonic}` | {operands} | {_meaning(row)} |"


def _meaning(row: Row) -> str:
    if row.version == OURS:
        return f"{row.meaning}; nacre's own"
    return row.meaning if row.version == "1.6" else f"{row.meaning}; since {row.version}"


def _operand(operand: Operand) -> str:
    if operand.kind != "choice":
        return f"{operand.name} ({operand.kind})"
    return f"{operand.name} ({' '.join(f'`{word}`' for word in operand.words.values())})"


def main(arguments: list[str]) -> int:
    """Write the page if it is stale, or with --check only say so; the exit status."""
    return write_or_check({PAGE: render_plans()}, arguments, (__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
