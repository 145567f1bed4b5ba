"""Write the tables within hand-written pages, from what the code declares.

usage: python -m tools.generate_tables [--check]

A page marks where a table stands; the lines between the two comments are written anew:

    <!-- table NAME, written by `make docs` -->
    <!-- end of table -->
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES, ElementType
from nacre.base.rules import RULES
from nacre.cli.nac.command import nac
from nacre.core import catalogue as core_catalogue
from nacre.core.specs import CLASS_WORDS, CLASSES, V1_TYPES
from nacre.kernels.numbers import real_functions
from nacre.kernels.reductions import normalization
from nacre.nac.operations.kernels import (
    complexes,
    distributions,
    factors,
    fourier,
    lu,
    matrices,
    random_numbers,
    reflections,
    signals,
)
from nacre.nac.operations.registry import our_operations
from nacre.nac.spec.header import SECTIONS
from nacre.nem.model.families import standard_families
from nacre.nem.model.target import builtin_device
from nacre.nem.spec import limits
from nacre.nem.spec.decorators import DECORATORS, Decorator
from nacre.nem.spec.grammar import CONDITIONS, GRAMMAR, TERMINALS
from nacre.nem.spec.opcodes import OPCODES, REGISTRY_VERSION
from nacre.nem.spec.units import TRANSFER_PATHS, UNITS, TransferPath
from tools.generate_opcodes import load_schema
from tools.generated import ROOT, markdown_table, write_or_check
from tools.tcb_tables import (
    render_features,
    render_fields,
    render_figures,
    render_layout,
    render_words,
)
from tools.training_tables import render_losses, render_optimisers

DOCS = ROOT / "docs"

_MARKED = re.compile(
    r"(<!-- table (?P<name>[\w-]+), written by `make docs` -->\n).*?(<!-- end of table -->)",
    re.DOTALL,
)

# Groups of Core IR's codes that are about shapes, and about element types.
_SHAPE_CODES = ("MOD12", "BIN03", "BIN04", "RED", "SHP", "IDX", "SLC", "GAT", "DOT", "MAT", "CNV")
_TYPE_CODES = ("MOD11", "MOD13", "BIN02", "CON", "GAT01", "GAT03", "MAT04", "CNV06", "RED05", "UNA")


# Limits that an author of programs may meet, and the code of what goes beyond.
_LIMITS = (
    (limits.MAX_SOURCE_BYTES, "bytes of a file", "LEX09"),
    (limits.MAX_NESTING, "parentheses and lists inside each other", "DOC20"),
    (limits.MAX_EXPRESSION_OPERATORS, "operators of one statement", "DOC20"),
    (
        limits.MAX_TERM_OPERATIONS,
        "operations with loop variables in an expression and what `let` put in",
        "DOC20",
    ),
    (limits.MAX_LOOP_DEPTH, "loops inside each other", "DOC20"),
    (limits.MAX_INCLUDED_FILES, "files that a program includes", "INC09"),
    (limits.MAX_TASK_INSTANCES, "tasks, each counted once an iteration", "LOP06"),
    (limits.MAX_ENGINES, "engines of a device", "DEV05"),
    (limits.MAX_UNITS, "units of one type on an engine, or on the device", "DEV06"),
    (limits.MAX_DIAGNOSTICS, "findings that a check shows", "DOC25"),
)


def pages() -> list[Path]:
    """The pages that have such a table."""
    found = sorted(DOCS.rglob("*.md"))
    return [page for page in found if _MARKED.search(page.read_text(encoding="utf-8"))]


def render_page(page: Path) -> str:
    """The text of a page with its tables as they should be; a name without a table fails."""
    return _MARKED.sub(
        lambda match: f"{match[1]}\n{TABLES[match['name']]()}\n{match[3]}",
        page.read_text(encoding="utf-8"),
    )


# The registry


def _fields(kind: str) -> Callable[[], str]:
    """The keys of an object of the schema: whether it must have them, and what they hold."""

    def render() -> str:
        definition = load_schema()["$defs"][kind]
        rows = (
            (
                f"`{name}`",
                "yes" if name in definition["required"] else "no",
                _value(field),
                field["description"],
            )
            for name, field in definition["properties"].items()
        )
        return markdown_table(("key", "required", "value", "meaning"), rows)

    return render


def _value(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if "$ref" in field:
        return _of_definition(field["$ref"])
    kind = field["type"]
    if kind == "array":
        return f"list of {_value(field['items'])}"
    if kind == "object":
        return f"{_value(field['additionalProperties'])} by {_value(field['propertyNames'])}"
    return " or ".join([kind] if isinstance(kind, str) else kind)


def _of_definition(reference: str) -> str:
    name = reference.rpartition("/")[2]
    return {"names": "list of names", "family": "id of a family"}.get(name, name)


def _registry_counts() -> str:
    counts = Counter((opcode.status, opcode.hardware) for opcode in OPCODES.values())
    rows = [
        (status, hardware.replace("_", " "), str(count), _some(status, hardware))
        for (status, hardware), count in counts.items()
    ]
    total = ("all", "", str(len(OPCODES)), f"registry version {REGISTRY_VERSION}")
    return markdown_table(("status", "hardware", "opcodes", "which"), [*rows, total])


def _some(status: str, hardware: str) -> str:
    names = [
        f"`{o.name}`" for o in OPCODES.values() if (o.status, o.hardware) == (status, hardware)
    ]
    return ", ".join(names) if len(names) <= 8 else "all others"


# The language


def _element_rows(types: Mapping[str, ElementType]) -> Iterator[tuple[str, ...]]:
    for element in types.values():
        yield (
            f"`{element.name}`",
            element.kind,
            str(element.bits),
            f"{element.lowest:.9g}" if element.kind == "float" else str(element.lowest),
            f"{element.highest:.9g}" if element.kind == "float" else str(element.highest),
        )


def _elements() -> str:
    columns = ("type", "kind", "bits", "least", "greatest")
    return markdown_table(columns, _element_rows(ELEMENT_TYPES))


def _units() -> str:
    rows = (
        (f"`{unit.name}`", unit.scope, "yes" if unit.is_resource_target else "no", unit.role)
        for unit in UNITS.values()
    )
    return markdown_table(("unit", "one set for each", "`@resource`", "what it does"), rows)


def _paths() -> str:
    rows = ((_ends(path), " and ".join(path.units)) for path in TRANSFER_PATHS)
    return markdown_table(("transfer", "units that are busy"), rows)


def _ends(path: TransferPath) -> str:
    levels = sorted(path.levels)
    return f"between {' and '.join(levels)}" if len(levels) > 1 else f"within {levels[0]}"


def _decorators() -> str:
    rows = (
        (f"`@{row.name}{_argument(row)}`", row.kind, _targets(row), row.summary)
        for row in DECORATORS.values()
    )
    return markdown_table(("decorator", "kind", "stands on", "meaning"), rows)


def _argument(row: Decorator) -> str:
    shown = {"none": "", "integer": "(N)", "index": "(k)", "unit": "(UNIT[k])", "name": "(name)"}
    return shown[row.argument]


def _targets(row: Decorator) -> str:
    targets = [target for target in row.targets if target != "task" or row.only_opcode is None]
    return ", ".join([*targets, *([f"`{row.only_opcode}` tasks"] if row.only_opcode else ())])


def _opcodes() -> str:
    groups: dict[str, list[str]] = {}
    for opcode in OPCODES.values():
        groups.setdefault(opcode.category, []).append(f"`{opcode.name}`")
    rows = ((category.replace("_", " "), ", ".join(names)) for category, names in groups.items())
    return markdown_table(("category", "opcodes"), rows)


def _mandatory_variants() -> str:
    baseline = builtin_device("nem_baseline_1_0")
    rows = []
    for name, family in standard_families().items():
        every = [str(id_) for id_ in family.instances]
        must = [f"`{id_}`" for id_ in every if id_ in baseline.mandatory]
        rows.append((f"`{name}`", str(len(every)), ", ".join(must) or "none"))
    return markdown_table(("family", "variants", "those that every device has"), rows)


def _ulps() -> str:
    stated = {**real_functions.ULPS, **normalization.ULPS}
    elementwise = (o.name for o in OPCODES.values() if o.category.startswith("elementwise"))
    exact = ", ".join(f"`{name}`" for name in elementwise if name not in stated)
    rows = ((f"`{name}`", str(ulps)) for name, ulps in stated.items())
    return markdown_table(("function", "ulps"), [*rows, (exact, "0.5")])


def _grammar() -> str:
    groups = []
    for title, productions in GRAMMAR.items():
        rows = ((f"`{p.name}`", f"`{p.definition}`", p.meaning) for p in productions)
        table = markdown_table(("production", "stands for", "remark"), rows)
        groups.append(f"**{title}**\n\n{table}")
    return "\n".join(groups)


def _grammar_words() -> str:
    rows = (
        (f"`{word.name}`", f"`{word.pattern}`" if word.pattern else "", word.meaning)
        for word in TERMINALS
    )
    return markdown_table(("kind", "pattern", "meaning"), rows)


def _grammar_conditions() -> str:
    rows = ((row.code, row.meaning) for row in CONDITIONS)
    return markdown_table(("code", "what must hold"), rows)


def _limits() -> str:
    rows = ((f"{most:,}", what, code) for most, what, code in _LIMITS)
    return markdown_table(("at most", "of", "else"), rows)


# Core IR


def _graph_elements() -> str:
    rows = (
        (*row, "`core-v1`, `nacre-1`" if row[0].strip("`") in V1_TYPES else "`nacre-1`")
        for row in _element_rows(GRAPH_TYPES)
    )
    return markdown_table(("type", "kind", "bits", "least", "greatest", "profiles"), rows)


def _classes() -> str:
    rows = (
        (f"`{name}`", words, ", ".join(f"`{t}`" for t in GRAPH_TYPES if t in CLASSES[name]))
        for name, words in CLASS_WORDS.items()
    )
    return markdown_table(("class", "in messages", "element types"), rows)


def _codes(chosen: tuple[str, ...]) -> Callable[[], str]:
    def render() -> str:
        core_catalogue.load()
        rows = (
            (f"`{rule.code}`", "promise" if rule.behaviour else rule.severity, rule.summary)
            for code in sorted(RULES)
            if (rule := RULES[code]).language == "Core IR" and code.startswith(chosen)
        )
        return markdown_table(("code", "kind", "when"), rows)

    return render


# NAC


def _nac_sections() -> str:
    rows = ((f"`{row.tag}`", row.title, row.layout) for row in SECTIONS.values())
    return markdown_table(("section", "what", "behind the tag"), rows)


# What the kernels of a file are for, in the order of the page.
_KERNELS = {
    fourier.__name__: "Fourier transforms",
    signals.__name__: "of short times",
    matrices.__name__: "matrices, equations, vectors",
    factors.__name__: "factors of matrices, norms",
    lu.__name__: "triangles with row exchanges",
    reflections.__name__: "reflections",
    random_numbers.__name__: "random numbers",
    distributions.__name__: "of further distributions",
    complexes.__name__: "complex numbers",
}


def _nac_operations() -> str:
    """Calls of ATen with kernels of ours."""
    calls: dict[str, set[str]] = {subject: set() for subject in _KERNELS}
    for name, operation in our_operations().items():
        subject = operation.kernel.__module__
        # Some that move complex numbers are functions of NumPy's.
        calls[subject if subject in _KERNELS else complexes.__name__].add(name.split(".")[1])
    rows = (
        (title, ", ".join(f"`{call}`" for call in sorted(calls[subject])))
        for subject, title in _KERNELS.items()
    )
    return markdown_table(("subject", "calls"), rows)


def _nac_verbs() -> str:
    commands = sorted(nac.commands.items())
    rows = ((_verb(name, c), _purpose(c), _options(c)) for name, c in commands)
    return markdown_table(("verb", "what it does", "options"), rows)


def _verb(name: str, command: click.Command) -> str:
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    return f"`{' '.join([name, *(p.metavar or p.name.upper() for p in arguments)])}`"


def _purpose(command: click.Command) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _options(command: click.Command) -> str:
    options = [p for p in command.params if isinstance(p, click.Option) and p.name != "output"]
    return ", ".join(f"`{'/'.join((*p.opts, *p.secondary_opts))}`" for p in options)


TABLES: Mapping[str, Callable[[], str]] = {
    "registry-opcode": _fields("opcode"),
    "registry-operand": _fields("operand"),
    "registry-attribute": _fields("attribute"),
    "registry-counts": _registry_counts,
    "elements": _elements,
    "units": _units,
    "paths": _paths,
    "decorators": _decorators,
    "opcodes": _opcodes,
    "mandatory-variants": _mandatory_variants,
    "ulps": _ulps,
    "limits": _limits,
    "grammar": _grammar,
    "grammar-words": _grammar_words,
    "grammar-conditions": _grammar_conditions,
    "graph-elements": _graph_elements,
    "classes": _classes,
    "shape-codes": _codes(_SHAPE_CODES),
    "type-codes": _codes(_TYPE_CODES),
    "nac-losses": render_losses,
    "nac-operations": _nac_operations,
    "nac-optimisers": render_optimisers,
    "nac-sections": _nac_sections,
    "nac-verbs": _nac_verbs,
    "tcb-fields": render_fields,
    "tcb-layout": render_layout,
    "tcb-features": render_features,
    "tcb-words": render_words,
    "uarch-figures": render_figures,
}


def main(arguments: list[str]) -> int:
    """Write the pages that are stale, or with --check only say so; the exit status."""
    texts = {page: render_page(page) for page in pages()}
    return write_or_check(texts, arguments, (__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
