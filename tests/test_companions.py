"""The documents that the specifications refer to are there, and what they say is so."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

from nacre import core
from nacre.base.diagnostics import InputError
from nacre.base.rules import RULES
from nacre.core import catalogue as core_catalogue
from nacre.core.mlir.lowerings import LOWERINGS
from nacre.core.ops import OPS
from nacre.nem.checks import catalogue
from nacre.nem.spec.opcodes import OPCODES
from tools import generate_opcodes, generate_tables

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Each with a heading that texts link to.
COMPANIONS = {
    "contracts/opcode-registry.md": "## Versions",
    "examples.md": "## Convolution and ReLU",
    "comparison_tables.md": "## NEM and TCB",
    "nem_spec.md": "## Grammar",
    "shapes.md": "## Broadcasting",
    "types.md": "## Element types",
}
MODELS = ("ONNX", "MLIR", "NEM", "TCB")

catalogue.load()
core_catalogue.load()
for room in ("bind", "tcbcheck"):
    importlib.import_module(f"nacre.{room}.rules")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def cells(page: str, columns: int) -> list[list[str]]:
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if len(row) == columns]


@pytest.mark.parametrize(("name", "heading"), COMPANIONS.items())
def test_the_document_is_there_and_linked_from_other_pages(name: str, heading: str) -> None:
    assert f"\n{heading}\n" in text_of(name)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"(docs/{name})" in readme


@pytest.mark.parametrize("name", COMPANIONS)
def test_every_code_in_the_document_is_a_rule_or_a_group(name: str) -> None:
    named = re.findall(r"\b([A-Z]{3}\d\d)\b", text_of(name))
    assert [code for code in named if code not in RULES] == []


@pytest.mark.parametrize("page", generate_tables.pages(), ids=lambda page: page.name)
def test_the_tables_within_the_page_are_fresh(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == generate_tables.render_page(page), "run `make docs`"


def test_every_table_that_can_be_written_stands_in_a_page() -> None:
    written = "".join(page.read_text(encoding="utf-8") for page in generate_tables.pages())
    assert [name for name in generate_tables.TABLES if f"<!-- table {name}," not in written] == []


# The registry


def test_every_key_of_the_registry_has_a_meaning() -> None:
    definitions = generate_opcodes.load_schema()["$defs"]
    for kind in ("opcode", "operand", "attribute"):
        for key, field in definitions[kind]["properties"].items():
            assert field.get("description", "").endswith("."), f"{kind}: {key}"


def test_the_page_explains_every_status_trait_and_state_of_hardware() -> None:
    page = text_of("contracts/opcode-registry.md")
    fields = generate_opcodes.load_schema()["$defs"]["opcode"]["properties"]
    words = [*fields["status"]["enum"], *fields["hardware"]["enum"]]
    assert [word for word in words if f"\n| `{word}` | " not in page] == []
    assert [word for word in fields["traits"]["items"]["enum"] if f"`{word}`: " not in page] == []


def test_nothing_is_provisional_and_the_compiler_emits_no_future_opcode() -> None:
    assert {opcode.status for opcode in OPCODES.values()} == {"stable", "future"}
    future = [name for name, opcode in OPCODES.items() if opcode.status == "future"]
    sources = [path.read_text() for path in (ROOT / "src/nacre/compile").rglob("*.py")]
    assert [name for name in future if any(f'"{name}"' in source for source in sources)] == []


# The comparison


def test_the_comparison_has_every_row_and_its_sums_are_right() -> None:
    rows = cells(text_of("comparison_tables.md"), 8)[2:]
    concepts, total = rows[:-1], rows[-1]
    assert [row[0] for row in concepts] == [str(number) for number in range(1, 49)]
    assert all(row[7] for row in concepts)
    for column, model in enumerate(MODELS, start=3):
        count = Counter(row[column] for row in concepts)
        assert set(count) <= {"✓", "~", "✗"}
        assert total[column] == f"{count['✓']}✓ {count['~']}~ {count['✗']}✗", model


def test_what_the_pages_say_is_missing_is_missing() -> None:
    v1 = {name for name, op in OPS.items() if op.profile == "core-v1"}
    assert set(LOWERINGS) | {"Input"} == v1, "the pages say that MLIR has exactly `core-v1`"


# Shapes


BROADCASTS = [
    [cell.strip("`") for cell in row]
    for row in cells(text_of("shapes.md").partition("## What operations give")[0], 3)[2:]
]


@pytest.mark.parametrize(("left", "right", "result"), BROADCASTS)
def test_shapes_broadcast_as_the_table_says(left: str, right: str, result: str) -> None:
    for first, second in ((left, right), (right, left)):
        inputs = {"x": f"f32{first}", "y": f"f32{second}"}
        if result == "none":
            with pytest.raises(InputError, match="BIN03"):
                core.lower("x + y", inputs)
        else:
            made = core.lower("x + y", inputs)
            assert str(made.operations[-1].result_type) == f"tensor<f32{result}>"


@pytest.mark.parametrize(
    ("expression", "x", "result"),
    [
        ("sum(x, axes=[1])", "[3, 4, 5]", "[3, 5]"),
        ("sum(x, axes=[1], keepdims=true)", "[3, 4, 5]", "[3, 1, 5]"),
        ("transpose(x, permutation=[2, 0, 1])", "[2, 3, 4]", "[4, 2, 3]"),
        ("expand_dims(x, axes=[0, 2])", "[3, 4]", "[1, 3, 1, 4]"),
        ("squeeze(x, axes=[0, 2])", "[1, 3, 1, 4]", "[3, 4]"),
        ("slice(x, starts=[1], ends=[8], steps=[3])", "[8]", "[3]"),
    ],
)
def test_operations_give_the_shapes_of_the_table(expression: str, x: str, result: str) -> None:
    made = core.lower(expression, {"x": f"f32{x}"})
    assert str(made.operations[-1].result_type) == f"tensor<f32{result}>"
    section = text_of("shapes.md").partition("## What operations give")[2]
    assert any(f"`{x}`" in line and f"`{result}`" in line for line in section.splitlines())
