"""`nacre nem new`: where the program goes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre import nem
from nacre.nem.api.templates.new_program import new_program
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]


def test_a_program_is_printed(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nem", "new", "mine", "--template", "gemm", "--device", "npm_lite")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == new_program("mine", "gemm", "npm_lite")


def test_a_program_is_written_where_no_file_is(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "mine.nem"
    call = ("nem", "new", "mine", "--template", "conv2d", "--device", "npm_pro", "-o", str(path))
    outcome = invoke(capsys, *call)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"wrote {path}: conv2d for npm_pro, without findings\n"
    assert nem.check(path, strict=True) == []
    path.write_text("# mine\n", encoding="utf-8")
    again = invoke(capsys, *call)
    assert (again.status, again.out) == (2, "")
    assert f"{path} is there already, with other content" in again.err
    assert path.read_text(encoding="utf-8") == "# mine\n"
    assert invoke(capsys, *call, "--force").out == outcome.out
    assert nem.check(path, strict=True) == []
    assert invoke(capsys, *call).out == outcome.out  # the same content again


def test_a_device_that_cannot_carry_it_is_refused_with_its_findings(
    capsys: Capsys, tmp_path: Path
) -> None:
    path = tmp_path / "mine.nem"
    outcome = invoke(capsys, "nem", "new", "mine", "--template", "gemm",
                     "--device", "nem_baseline_1_0", "-o", str(path))  # fmt: skip
    assert outcome.status == 1
    assert "error[DEV11]" in outcome.text
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "template", "device", "message"),
    [
        (
            "2x",
            "gemm",
            "npm_lite",
            "`2x` is no name of a program: letters, digits and _, and no digit first",
        ),
        ("x", "gem", "npm_lite", "'gem' is not one of"),
        ("x", "gemm", "npm_lit", "no device `npm_lit`; did you mean `npm_lite`?"),
    ],
)
def test_what_does_not_exist_is_wrong_usage(
    capsys: Capsys, name: str, template: str, device: str, message: str
) -> None:
    outcome = invoke(capsys, "nem", "new", name, "--template", template, "--device", device)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
