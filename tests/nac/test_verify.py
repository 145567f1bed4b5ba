"""One code for every broken promise, all in one go, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.base.diagnostics import InputError
from nacre.base.rules import RULES
from nacre.nac import catalogue
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import NacFile, Resource
from nacre.nac.run.model import load
from nacre.nac.verify import verify
from tests.nac.broken_files import AT_MOST, BROKEN, MORE, WORDED, as_bytes
from tests.nac.files import FIXTURES, changed, headed, patched, small

catalogue.load()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_keeps_every_promise(path: Path) -> None:
    assert verify(path) == []


def test_a_sound_file_has_no_findings() -> None:
    assert verify(to_bytes(small())) == []


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_promise_has_its_code(code: str) -> None:
    found = verify(as_bytes(BROKEN[code]()))
    assert {d.code for d in found} == {code}, [str(d) for d in found]


@pytest.mark.parametrize(("name", "code", "make"), MORE, ids=[name for name, *_ in MORE])
def test_a_promise_can_be_broken_in_several_ways(name: str, code: str, make: object) -> None:
    assert callable(make)
    found = verify(as_bytes(make()))
    assert code in {d.code for d in found}, [str(d) for d in found]


@pytest.mark.parametrize(
    ("code", "message", "make"), [row[1:] for row in WORDED], ids=[row[0] for row in WORDED]
)
def test_a_finding_says_what_is_wrong(
    code: str, message: str, make: Callable[[], bytes | NacFile]
) -> None:
    (found,) = verify(as_bytes(make()))
    assert found.code == code
    assert f": {message}" in f": {found.message}"


@pytest.mark.parametrize("make", AT_MOST.values(), ids=AT_MOST)
def test_as_much_as_there_may_be_is_no_finding(make: Callable[[], NacFile]) -> None:
    assert verify(to_bytes(make())) == []


@pytest.mark.parametrize("code", BROKEN)
def test_a_finding_says_where_it_is(code: str) -> None:
    raw = as_bytes(BROKEN[code]())
    for found in verify(raw):
        assert found.data is not None
        assert 0 <= found.data["offset"] <= len(raw)
        assert found.location.line == 1
        assert found.location.column == found.data["offset"] + 1
        assert re.match(r"(instruction \d+ at|\w+,) byte [\d,]+: ", found.message)


@pytest.mark.parametrize("code", BROKEN)
def test_a_file_with_an_error_is_not_loaded(code: str) -> None:
    raw = as_bytes(BROKEN[code]())
    if RULES[code].severity != "error":
        load(raw)
        return
    with pytest.raises(InputError) as refused:
        load(raw)
    assert {d.code for d in refused.value.diagnostics} == {code}


def test_all_findings_come_at_once_in_the_order_of_the_file() -> None:
    broken = patched(patched(headed(small(), quant=7, reserved=3), 4, d=(-9,)), 1, c=(1, 55))
    broken = changed(broken, MMAP=(), RSRC=(Resource("a/b", b""),))
    found = verify(to_bytes(broken))
    assert [d.code for d in found] == ["NAC09", "NAC10", "NAC30", "NAC25", "NAC16"]
    offsets = [d.location.column for d in found]
    assert offsets == sorted(offsets)


def test_sections_that_can_be_read_are_judged_beside_one_that_cannot(tmp_path: Path) -> None:
    raw = bytearray(to_bytes(headed(small(), quant=7)))
    raw[raw.index(b"CNST") + 10] = 9
    path = tmp_path / "m.nac"
    path.write_bytes(raw)
    assert [d.code for d in verify(path)] == ["NAC09", "NAC17"]


@pytest.mark.parametrize("name", ["missing.nac", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    (found,) = verify(tmp_path / name)
    assert found.code == "NAC01"
    assert found.location.file == str(tmp_path / name)
    assert found.message in ("the file does not exist", "the file is a directory, not a file")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    import os

    if not hasattr(os, "mkfifo"):
        pytest.skip("no FIFOs on this system")
    os.mkfifo(tmp_path / "pipe.nac")
    (found,) = verify(tmp_path / "pipe.nac")
    assert found.code == "NAC01"


# What no file alone can show, and the test that does.
ELSEWHERE = {
    "NAC01": "test_a_file_that_cannot_be_read",
    "NAC40": "test_an_unknown_operation_loads_with_a_warning_and_does_not_run",
    "NAC41": "test_arguments_that_do_not_fit_are_refused_at_load",
    "NAC44": "test_inputs_are_checked",
    "NAC45": "test_inputs_are_checked",
    "NAC46": "test_inputs_are_checked",
    "NAC47": "test_a_fault_says_where_and_with_what",
    "NAC48": "test_a_run_keeps_to_its_memory",
    "NAC49": "test_what_has_no_form_is_reported_at_once",
}
# From 50 on are codes of the tokenizer and of plans, which have tests of their own.
NAC_RULES = {
    code: rule for code, rule in RULES.items() if rule.language == "NAC" and code < "NAC50"
}


def test_every_code_is_shown() -> None:
    assert sorted(NAC_RULES) == [f"NAC{number:02}" for number in range(1, len(NAC_RULES) + 1)]
    tests = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    assert set(NAC_RULES) == BROKEN.keys() | ELSEWHERE.keys()
    assert [name for name in ELSEWHERE.values() if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("code", sorted(NAC_RULES))
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = NAC_RULES[code]
    assert rule.spec.startswith("NAC / ")
    assert rule.summary.endswith(".")
    assert rule.summary[0].isupper() or rule.summary[0] == "`"
