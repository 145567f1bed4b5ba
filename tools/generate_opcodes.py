"""Write the opcode table and its reference page from the registry.

usage: python -m tools.generate_opcodes [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import jsonschema
import yaml

from tools.generated import ROOT, markdown_table, write_or_check

SPEC = ROOT / "src" / "nacre" / "nem" / "spec"
REGISTRY = SPEC / "opcodes.yaml"
SCHEMA = SPEC / "schema.json"
TABLE = SPEC / "opcode_table.py"
DOCS = ROOT / "docs" / "reference" / "opcodes.md"

LINE_LENGTH = 100

Row: TypeAlias = tuple[Any, ...]

TABLE_HEAD = '''"""The rows of the opcode registry.

Generated from opcodes.yaml by `make docs`: change that file, not this one.
Row: identity, execution, typing, operands, attributes, summary.
Identity: name, category, hardware, status, traits. Execution: unit, eligible units, forms.
Typing: families, variants, bindings, quant_on, same_elem.
Operand: name, direction, required, variadic, role, (rank, min_rank, layout, elem), shape.
Attribute: name, type, required, default, (allowed, length, minimum), summary.
Operands and attributes that opcodes share are named after the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.nem.spec.opcode_rows import AttributeRow, OpcodeRow, OperandRow

# One scalar a line, as the formatter would have it, hides the rows.
# fmt: off
'''

DOCS_HEAD = """# NEM opcodes

Generated from `src/nacre/nem/spec/opcodes.yaml` by `make docs`: change that file, not this page.

Every opcode has the forms {forms}. `?` marks an optional operand or attribute, `...` an
operand that stands for one or more regions. Units stand in the order of preference. Opcodes
without a type family are checked for structure only.
"""

OPCODE_COLUMNS = (
    "opcode",
    "computes",
    "operands",
    "attributes",
    "families",
    "units",
    "status",
    "hardware",
)
OPERAND_COLUMNS = ("operand", "of", "role", "rank", "layout", "shape")


@dataclass(frozen=True, slots=True)
class Reference:
    """A value of the table that stands elsewhere under a name."""

    name: str


def load_registry() -> dict[str, Any]:
    """The registry, after the schema has accepted it."""
    registry: dict[str, Any] = yaml.safe_load(REGISTRY.read_text(encoding="utf-8"))
    jsonschema.validate(registry, load_schema(), cls=jsonschema.Draft202012Validator)
    return registry


def load_schema() -> dict[str, Any]:
    """The schema of the registry."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


def render_table() -> str:
    """The text of opcode_table.py."""
    registry = load_registry()
    names: dict[tuple[str, Row], Reference] = {}
    rows = tuple(_opcode(opcode, names) for opcode in registry["opcodes"])
    constants = (_assignment(ref.name, kind, row) for (kind, row), ref in names.items())
    parts = [TABLE_HEAD, f'REGISTRY_VERSION = "{registry["version"]}"\n', "".join(constants)]
    opcodes = "".join(_filled("    (", row, "),") + "\n" for row in rows)
    return "\n".join([*parts, f"ROWS: tuple[OpcodeRow, ...] = (\n{opcodes})\n"])


def _opcode(opcode: dict[str, Any], names: dict[tuple[str, Row], Reference]) -> Row:
    """One row; what it refers to is added to `names`."""

    def reference(kind: str, row: Row) -> Reference:
        new = Reference(f"_{opcode['name']}_{row[0]}".upper())
        return names.setdefault((kind, row), new)

    words = (opcode[key] for key in ("name", "category", "hardware", "status"))
    keys = ("families", "variants", "bindings", "quant_on", "same_elem")
    return (
        (*words, tuple(opcode.get("traits", ()))),
        (opcode["unit"], tuple(opcode["eligible_units"]), tuple(opcode["forms"])),
        tuple(_frozen(opcode.get(key, ())) for key in keys),
        tuple(reference("OperandRow", _operand(item)) for item in opcode["operands"]),
        tuple(reference("AttributeRow", _attribute(i)) for i in opcode.get("attributes", ())),
        opcode["summary"],
    )


def _frozen(names: Any) -> Row:  # noqa: ANN401 - a list of names, or a mapping to such lists
    if isinstance(names, dict):
        return tuple((key, tuple(members)) for key, members in names.items())
    return tuple(names)


def _operand(operand: dict[str, Any]) -> Row:
    limits = tuple(operand.get(key) for key in ("rank", "min_rank", "layout", "elem"))
    return (
        operand["name"],
        operand["direction"],
        operand.get("required", True),
        operand.get("variadic", False),
        operand["role"],
        limits if any(limits) else None,
        operand["shape"],
    )


def _attribute(attribute: dict[str, Any]) -> Row:
    limits = tuple(attribute.get("allowed", ())), attribute.get("length"), attribute.get("minimum")
    return (
        attribute["name"],
        attribute["type"],
        attribute.get("required", True),
        attribute.get("default"),
        limits if limits != ((), None, None) else None,
        attribute["summary"],
    )


def _assignment(name: str, kind: str, row: Row) -> str:
    return _filled(f"{name}: {kind} = (", row, ")") + "\n"


def _filled(head: str, row: Row, tail: str) -> str:
    """Head, members and tail, with a new line only where the next member would not fit."""
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    lines = [head]
    members = [f"{_flat(member)}, " for member in row[:-1]] + [_flat(row[-1]) + tail]
    for member in members:
        if len(lines[-1] + member.rstrip()) > LINE_LENGTH:
            lines.append(indent)
        lines[-1] += member
    return "\n".join(line.rstrip() for line in lines)


def _flat(value: object) -> str:
    if isinstance(value, Reference):
        return value.name
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        members = ", ".join(_flat(member) for member in value)
        return f"({members},)" if len(value) == 1 else f"({members})"
    return repr(value)


def render_docs() -> str:
    """The text of the reference page: for each category its opcodes and what their operands are."""
    registry = load_registry()
    categories = load_schema()["$defs"]["opcode"]["properties"]["category"]["enum"]
    forms = sorted({f"`.{form}`" for opcode in registry["opcodes"] for form in opcode["forms"]})
    parts = [DOCS_HEAD.format(forms=" and ".join(forms))]
    for category in categories:
        opcodes = [opcode for opcode in registry["opcodes"] if opcode["category"] == category]
        parts.append(f"## {category.replace('_', ' ').capitalize()}\n")
        parts.append(markdown_table(OPCODE_COLUMNS, (_opcode_cells(opcode) for opcode in opcodes)))
        parts.append(markdown_table(OPERAND_COLUMNS, _operand_cells(opcodes)))
    return "\n".join(parts)


def _opcode_cells(opcode: dict[str, Any]) -> tuple[str, ...]:
    families = ", ".join(f"`{family}`" for family in opcode.get("families", ())) or "none"
    if "variants" in opcode:
        families += f" (only {', '.join(opcode['variants'])})"
    return (
        f"`{opcode['name']}`",
        opcode["summary"],
        _operand_list(opcode["operands"]),
        "<br>".join(_attribute_text(item) for item in opcode.get("attributes", ())) or "none",
        families,
        ", ".join(opcode["eligible_units"]),
        opcode["status"],
        opcode["hardware"].replace("_", " "),
    )


def _operand_list(operands: list[dict[str, Any]]) -> str:
    sides = {"in": "", "out": ""}
    for direction, group in groupby(operands, key=lambda operand: str(operand["direction"])):
        sides[direction] = ", ".join(_marked(operand) for operand in group)
    return f"{sides['in']} -> {sides['out']}"


def _marked(operand: dict[str, Any]) -> str:
    mark = "..." if operand.get("variadic") else "" if operand.get("required", True) else "?"
    return f"{operand['name']}{mark}"


def _attribute_text(attribute: dict[str, Any]) -> str:
    mark = "" if attribute.get("required", True) else "?"
    text = f"`{attribute['name']}`{mark} {attribute['type']}"
    if "length" in attribute:
        text += f" of {attribute['length']}"
    if "minimum" in attribute:
        text += f", at least {attribute['minimum']}"
    if "allowed" in attribute:
        text += f", one of {', '.join(attribute['allowed'])}"
    if "default" in attribute:
        default = attribute["default"]
        text += f" = {str(default).lower() if isinstance(default, bool) else default}"
    return f"{text}: {attribute['summary']}"


def _operand_cells(opcodes: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One row for each different operand, with the opcodes that have it."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for opcode in opcodes:
        for operand in opcode["operands"]:
            owners.setdefault(_operand_rule(operand), []).append(f"`{opcode['name']}`")
    for (name, *rule), names in owners.items():
        of = "all" if len(names) == len(opcodes) > 1 else ", ".join(names)
        yield (name, of, *rule)


def _operand_rule(operand: dict[str, Any]) -> tuple[str, ...]:
    least = f"at least {operand['min_rank']}" if "min_rank" in operand else "any"
    return (
        f"`{operand['name']}`",
        operand["role"] + (f", any {operand['elem']}" if "elem" in operand else ""),
        str(operand.get("rank", least)),
        operand.get("layout", "any"),
        operand["shape"],
    )


def main(arguments: list[str]) -> int:
    """Write what is stale, or with --check only say so; the exit status."""
    texts = {TABLE: render_table(), DOCS: render_docs()}
    return write_or_check(texts, arguments, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
