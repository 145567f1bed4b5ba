"""Write the reference pages on rules and devices from what the code declares.

usage: python -m tools.generate_docs [--check]
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator

from nacre.base.rules import RULES, Rule
from nacre.cli.devices import size_text
from nacre.llm import catalogue as llm_catalogue
from nacre.nac import catalogue as nac_catalogue
from nacre.nem.checks import catalogue
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.model.families import governs, standard_families
from nacre.nem.model.provenance import Figure, figures
from nacre.nem.model.target import builtin_device
from nacre.nem.spec.language_sections import section_of
from nacre.nem.spec.opcodes import OPCODES
from nacre.tcb import catalogue as tcb_catalogue
from tools.generated import ROOT, markdown_table, write_or_check

REFERENCE = ROOT / "docs" / "reference"
RULES_PAGE = REFERENCE / "rules.md"
DEVICES_PAGE = REFERENCE / "devices.md"

# In the order in which a reader of a program meets them; groups that are not named come last.
GROUPS = {
    "LEX": "Characters, literals and files",
    "BYT": "Bytecode",
    "DOC": "Documents and statements",
    "CST": "Constants and expressions",
    "INC": "Includes",
    "DVD": "The device of a program",
    "DEV": "Device configurations",
    "INH": "Device inheritance",
    "NAM": "Names and scopes",
    "BUF": "Buffers and memory capacity",
    "EXT": "Regions, extents and strides",
    "QNT": "Quantisation descriptors",
    "TYP": "Type families",
    "SIG": "Opcode signatures",
    "TOK": "Tasks and tokens",
    "HAZ": "Hazards",
    "INI": "Memory that nobody wrote",
    "LOP": "Loops",
    "DEC": "Decorators",
    "PLC": "Placement",
    "RUN": "Execution",
}

RULES_HEAD = """# Rules

Generated from the rules' declarations by `make docs`: change those, not this page.

`nacre check` reports errors, warnings and infos with these codes; `nacre rule CODE` prints one
section of this page. A behaviour is a promise that tests prove; no finding carries its code.
`--strict` turns warnings into errors and adds the rules that are marked so. `--allow CODE` leaves
a code, or a whole group such as `BUF`, out.
"""

NAC_HEAD = """## NAC: files of networks

What is wrong with a `.nac` file ([the format](../nac.md)), with what it is run on, or with what it
is built of; `nacre nac verify FILE` finds all of it that a file alone can show.
"""

TCB_HEAD = """## TCB: images of task control blocks

What is wrong with the text or the file of an image ([the format](../tcb-format.md)), with the image
itself, with a run of it or the proof that it means what its program means, or with binding.
"""

CALIBRATION_HEAD = """## CAL: devices fitted to measurements

What is wrong with a table of measurements or with a fit ([calibrate.md](../calibrate.md)).
"""

LLM_HEAD = """## GGF, LLM: language models

What is wrong with a GGUF file, with the model, the tokenizer or the chat template in it
([llm.md](../llm.md)).
"""

DEVICES_HEAD = """# Built-in devices

Generated from the device files in `src/nacre/nem/spec` by `make docs`: change those, not this page.

A program names one with `include "npm_lite.nem"` and `device npm_lite`, or is checked for it with
`--device npm_lite`; `nacre devices NAME` prints one column. `nem_baseline_1_0` is abstract: it has
the variants that every device has, and no figures.
"""

FIGURES_HEAD = """## Figures

F is a fact from the language text or public product data, A is our assumption, M is fitted to
measurements. Unit counts are per
engine, those of sDMA and WDM for the device.
"""

_BASES = {"fact": "F", "assumption": "A", "fitted": "M"}

TYPES_HEAD = """## Types

M: the variant is mandatory on the device, E: it is an extension. A blank: a program for the device
cannot use it.
"""


def render_rules() -> str:
    """The text of the page on rules."""
    catalogue.load()
    groups = _by_group()
    parts = [RULES_HEAD, _index(rule for rules in groups.values() for rule in rules)]
    for group, rules in groups.items():
        parts.append(f"## {_title(group)}\n")
        parts += [_section(rule) for rule in rules]
    nac_catalogue.load()
    nac = [RULES[code] for code in sorted(RULES) if RULES[code].language == "NAC"]
    parts += [NAC_HEAD, _index(nac), *(_section(rule) for rule in nac)]
    tcb_catalogue.load()
    for module in ("nacre.bind.rules", "nacre.bind.uarch.rules", "nacre.tcbcheck.rules"):
        importlib.import_module(module)
    tcb = [RULES[code] for code in sorted(RULES) if RULES[code].language == "TCB"]
    parts += [TCB_HEAD, _index(tcb), *(_section(rule) for rule in tcb)]
    importlib.import_module("nacre.calibrate.rules")
    calibration = [RULES[c] for c in sorted(RULES) if RULES[c].language == "Calibration"]
    parts += [CALIBRATION_HEAD, _index(calibration), *(_section(rule) for rule in calibration)]
    llm_catalogue.load()
    llm = [RULES[code] for code in sorted(RULES) if RULES[code].language == "LLM"]
    parts += [LLM_HEAD, _index(llm), *(_section(rule) for rule in llm)]
    return "\n".join(parts)


def _by_group() -> dict[str, list[Rule]]:
    ordered = [RULES[code] for code in sorted(RULES) if RULES[code].language == "NEM"]
    order = [*GROUPS, *sorted({rule.group for rule in ordered} - GROUPS.keys())]
    groups = {group: [rule for rule in ordered if rule.group == group] for group in order}
    return {group: rules for group, rules in groups.items() if rules}


def _title(group: str) -> str:
    return f"{group}: {GROUPS[group].lower()}" if group in GROUPS else group


def _index(rules: Iterable[Rule]) -> str:
    rows = (
        (f"[{rule.code}](#{_anchor(rule)})", rule.name, _standing(rule), rule.summary)
        for rule in rules
    )
    return markdown_table(("code", "name", "severity", "when"), rows)


def _anchor(rule: Rule) -> str:
    return f"{rule.code} {rule.name}".lower().replace(" ", "-")


def _standing(rule: Rule) -> str:
    if rule.behaviour:
        return "behaviour"
    return f"{rule.severity}, with `--strict`" if rule.strict_only else rule.severity


def _section(rule: Rule) -> str:
    head = f"### {rule.code} {rule.name}\n\n{_standing(rule).capitalize()}. Clause: {rule.spec}.\n"
    section = section_of(rule)
    link = (
        f"Language: [{section.replace('-', ' ')}](../language.md#{section}).\n" if section else ""
    )
    fix = f"\nFixable: `nacre check --fix` {rule.fix}.\n" if rule.fix else ""
    return f"{head}{link}{fix}\n{_markdown(rule.page)}"


def _markdown(page: str) -> str:
    """A page with its indented blocks fenced, so that they show as programs."""
    lines: list[str] = []
    is_open = False
    for line in [*page.splitlines(), "."]:
        is_indented = line.startswith("    ")
        if is_indented and not is_open:
            lines.append("```nem")
            is_open = True
        elif is_open and line and not is_indented:
            while not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            is_open = False
        lines.append(line.removeprefix("    "))
    lines.pop()
    return "\n".join(lines).rstrip() + "\n"


def render_devices() -> str:
    """The text of the page on devices."""
    abstract, *names = builtin_names()
    devices = [builtin_device(name) for name in (abstract, *sorted(names, key=_by_size))]
    concrete = [device for device in devices if not device.is_abstract]
    table = {device.name: {row.name: row for row in figures(device)} for device in concrete}
    return "\n".join(
        [
            DEVICES_HEAD,
            FIGURES_HEAD,
            markdown_table(("figure", *table), _figure_rows(table)),
            "What the assumptions rest on:\n",
            "".join(_reasons(table)),
            TYPES_HEAD,
            markdown_table(
                ("variant", *(device.name for device in devices)), _variant_rows(devices)
            ),
            "Which opcodes the families govern:\n",
            markdown_table(("family", "opcodes"), _family_rows()),
        ]
    )


def _by_size(name: str) -> list[tuple[int, str]]:
    """A key that puts `npm8k` before `npm16k`."""
    return [(int(digits or 0), word) for word, digits in re.findall(r"(\D+)(\d*)", name)]


def _figure_rows(table: dict[str, dict[str, Figure]]) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys(name for rows in table.values() for name in rows):
        yield (f"`{name}`", *(_figure(rows.get(name)) for rows in table.values()))


def _figure(row: Figure | None) -> str:
    if row is None:
        return ""
    value = size_text(row.value) if row.name.endswith("_bytes") else str(row.value)
    return f"{value} {_BASES.get(row.basis, '')}".rstrip()


def _reasons(table: dict[str, dict[str, Figure]]) -> Iterator[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for device, rows in table.items():
        for row in rows.values():
            if row.basis == "assumption" and row.reason and not row.name.endswith("_bytes"):
                reasons.setdefault((row.name, row.reason), []).append(device)
    for (name, reason), devices in reasons.items():
        yield f"- `{name}` of {', '.join(devices)}: {reason}\n"


def _variant_rows(devices: list[Device]) -> Iterator[tuple[str, ...]]:
    for family in standard_families().values():
        for id_ in family.instances:
            yield (f"`{id_}`", *(_mark(id_, device) for device in devices))


def _mark(id_: str, device: Device) -> str:
    if id_ in device.mandatory:
        return "M"
    return "E" if id_ in device.extended else ""


def _family_rows() -> Iterator[tuple[str, str]]:
    for name in standard_families():
        governed = [f"`{opcode.name}`" for opcode in OPCODES.values() if governs(name, opcode)]
        yield f"`{name}`", ", ".join(governed)


def main(arguments: list[str]) -> int:
    """Write what is stale, or with --check only say so; the exit status."""
    texts = {RULES_PAGE: render_rules(), DEVICES_PAGE: render_devices()}
    return write_or_check(texts, arguments, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
