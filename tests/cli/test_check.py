from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nacre._version import __version__
from tests.cli.runner import Outcome, environment, invoke, nacre, nacre_here

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]

CLEAN = "buffer A : L2 (size=64)\n"
WRONG = "buffer A : L2 (size=0)\nbuffer A : L2 (size=64)\n"
WARNED = (
    "buffer X : DDR (size=64)\nbuffer L : L1 (size=64)\n"
    "a = region(L, 0, 16) elem=i8, shape=[16], layout=C\n"
    "t = transfer.async(dst=a, src=region(X, 0, 16))\n"
    "u = relu.async IN a out a deps=[t]\n"
)
INFORMED = (  # TYP18: a family that governs no opcode
    "type_family frob<T: {f16}> {\n"
    "    input: T\n"
    "    variants:\n"
    "        default: {} conformance: { MAY <f16> }\n"
    "}\n"
)


def write(folder: Path, **files: str) -> list[Path]:
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.nem"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def found(outcome: Outcome) -> list[tuple[str, str, int]]:
    """Severity, code and line of every finding of a run with `--format json`."""
    listed = json.loads(outcome.out)["diagnostics"]
    return [(d["severity"], d["code"], d["line"]) for d in listed]


@pytest.mark.parametrize(
    ("text", "status", "summary"),
    [
        (CLEAN, 0, "no problems"),
        (WRONG, 1, "2 errors"),
        (WARNED, 0, "1 warning"),
        (INFORMED, 0, "1 info"),
    ],
)
def test_the_status_says_whether_there_are_errors(
    tmp_path: Path, text: str, status: int, summary: str
) -> None:
    outcome = nacre_here("check", *write(tmp_path, f=text))
    assert (outcome.status, outcome.err) == (status, "")
    assert outcome.out.splitlines()[-1] == f"checked 1 file: {summary}"


def test_text_shows_code_message_place_source_and_help(tmp_path: Path) -> None:
    write(tmp_path, f=WRONG)
    outcome = nacre("check", "f.nem", cwd=tmp_path)
    assert outcome.out == (
        "error[BUF01]: buffer `A` has size 0, expected more than 0\n"
        " --> f.nem:1:21\n"
        "  |\n"
        "1 | buffer A : L2 (size=0)\n"
        "  |                     ^\n"
        "\n"
        "error[NAM02]: buffer `A` is declared twice\n"
        " --> f.nem:2:8\n"
        "  |\n"
        "2 | buffer A : L2 (size=64)\n"
        "  |        ^\n"
        " ::: f.nem:1:8\n"
        "  |\n"
        "1 | buffer A : L2 (size=0)\n"
        "  |        - `A` is declared first here\n"
        "  = help: give one of them another name\n"
        "\n"
        "checked 1 file: 2 errors\n"
    )


def test_json_has_exactly_the_promised_shape(tmp_path: Path) -> None:
    write(tmp_path, f=WRONG)
    outcome = nacre_here("check", "--format", "json", "f.nem", cwd=tmp_path)
    place = {"file": "f.nem", "line": 1, "column": 21, "end_line": 1, "end_column": 22}
    assert outcome.status == 1
    assert json.loads(outcome.out) == {
        "diagnostics": [
            {
                "code": "BUF01",
                "severity": "error",
                "message": "buffer `A` has size 0, expected more than 0",
                **place,
                "related": [],
                "help": None,
            },
            {
                "code": "NAM02",
                "severity": "error",
                "message": "buffer `A` is declared twice",
                **place,
                "line": 2,
                "column": 8,
                "end_line": 2,
                "end_column": 9,
                "related": [
                    {
                        "message": "`A` is declared first here",
                        **place,
                        "column": 8,
                        "end_column": 9,
                    }
                ],
                "help": "give one of them another name",
            },
        ]
    }


def test_json_of_a_clean_file_is_an_empty_list(capsys: Capsys, tmp_path: Path) -> None:
    outcome = invoke(capsys, "check", "--format", "json", *write(tmp_path, f=CLEAN))
    assert json.loads(outcome.out) == {"diagnostics": []}


def test_sarif_describes_rules_and_results(tmp_path: Path) -> None:
    write(tmp_path, f=WRONG)
    outcome = nacre_here("check", "--format", "sarif", "f.nem", cwd=tmp_path)
    log: dict[str, Any] = json.loads(outcome.out)
    assert (outcome.status, log["version"], len(log["runs"])) == (1, "2.1.0", 1)
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("nacre", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["BUF01", "NAM02"]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("BUF01", "error"),
        ("NAM02", "error"),
    ]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "f.nem"
    assert place["region"] == {"startLine": 1, "startColumn": 21, "endLine": 1, "endColumn": 22}


# Several files, standard input, files that are not there


def test_several_files_are_checked_in_order(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, b=WRONG, a=CLEAN, c=INFORMED)
    outcome = invoke(capsys, "check", "--format", "json", *paths)
    assert outcome.status == 1
    files = [d["file"] for d in json.loads(outcome.out)["diagnostics"]]
    assert files == [str(paths[0]), str(paths[0]), str(paths[2])]
    assert invoke(capsys, "check", *paths).out.endswith("checked 3 files: 2 errors, 1 info\n")


def test_a_finding_in_a_shared_include_is_shown_once(capsys: Capsys, tmp_path: Path) -> None:
    program = 'include "d.nem"\nprogram p:\n'
    paths = write(tmp_path, a=program, b=program, d="device d extends nobody {\n}\n")
    outcome = invoke(capsys, "check", "--format", "json", *paths[:2])
    assert sorted(code for _, code, _ in found(outcome)) == ["INC03", "INC03", "INH07"]


def test_a_missing_file_has_status_2_and_the_others_are_checked(tmp_path: Path) -> None:
    write(tmp_path, f=WRONG)
    outcome = nacre_here("check", "no.nem", "f.nem", "neither.nem", cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.err == "nacre: no.nem does not exist\nnacre: neither.nem does not exist\n"
    assert outcome.out.endswith("checked 1 file: 2 errors\n")


def test_a_missing_file_leaves_the_json_whole(tmp_path: Path) -> None:
    write(tmp_path, f=WRONG)
    outcome = nacre_here("check", "--format", "json", "no.nem", "f.nem", cwd=tmp_path)
    assert outcome.status == 2
    assert [code for _, code, _ in found(outcome)] == ["BUF01", "NAM02"]


def test_nothing_but_missing_files_prints_no_verdict(tmp_path: Path) -> None:
    outcome = nacre_here("check", "no.nem", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (2, "")


def test_standard_input_is_read_for_a_dash(tmp_path: Path) -> None:
    outcome = nacre_here("check", "--format", "json", "-", stdin=WRONG.encode(), cwd=tmp_path)
    assert outcome.status == 1
    assert {d["file"] for d in json.loads(outcome.out)["diagnostics"]} == {"<stdin>"}


def test_standard_input_includes_from_the_working_folder(
    capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, d='include "npm_mid.nem"\ndevice d extends npm_mid {\n}\n')
    text = 'include "d.nem"\ndevice d\nbuffer A : L1[1] (size=4)\n'
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert invoke(capsys, "check", "-").out == "checked 1 file: no problems\n"


# Options

TWO_ENGINES = "buffer A : L1[1] (size=4)\n"
DEVICE = """
include "nem_baseline_1.0.nem"
device mine extends nem_baseline_1_0 {
    topology {
        num_engines = 2
        l2_size_bytes = 4
        per_engine { NMU = 1 l1_size_bytes = 4 }
    }
}
"""


def test_a_built_in_device_is_taken_by_name(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, f=TWO_ENGINES)
    assert invoke(capsys, "check", *paths).status == 1
    assert invoke(capsys, "check", "--device", "npm_lite", *paths).status == 1
    assert invoke(capsys, "check", "--device", "npm_mid", *paths).status == 0


def test_a_device_file_is_taken_by_path(capsys: Capsys, tmp_path: Path) -> None:
    device, program = write(tmp_path, device=DEVICE, f=TWO_ENGINES)
    assert invoke(capsys, "check", "--device", device, program).status == 0
    too_much = write(tmp_path, g="buffer A : L1[1] (size=5)\n")
    outcome = invoke(capsys, "check", "--device", device, "--format", "json", *too_much)
    assert found(outcome) == [("error", "BUF07", 1)]


def test_a_device_file_with_errors_is_reported(capsys: Capsys, tmp_path: Path) -> None:
    wrong = DEVICE.replace("num_engines = 2", "num_engines = 0")
    device, program = write(tmp_path, device=wrong, f="program p:\n")
    outcome = invoke(capsys, "check", "--device", device, "--format", "json", program)
    assert outcome.status == 1
    assert found(outcome) == [("error", "DEV05", 5)]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("npm_lit", "no device `npm_lit`; did you mean `npm_lite`?"),
        ("frobnicator", "no device `frobnicator`; the built-in devices are"),
        ("nem_baseline_1_0", "device `nem_baseline_1_0` has no topology and cannot be a target"),
        ("missing.nem", "`missing.nem` does not exist"),
        ("/", "`/` is a directory, not a file"),
    ],
)
def test_an_unknown_device_is_wrong_usage(tmp_path: Path, device: str, message: str) -> None:
    outcome = nacre_here("check", "--device", device, *write(tmp_path, f=CLEAN), cwd=tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_an_option_that_replaces_the_device_is_mentioned(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, f='device "npm_lite.nem"\n' + TWO_ENGINES)
    outcome = invoke(capsys, "check", "--device", "npm_mid", "--format", "json", *paths)
    assert (outcome.status, found(outcome)) == (0, [("info", "DVD04", 1)])


def test_strict_makes_warnings_errors(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, f=WARNED)
    outcome = invoke(capsys, "check", "--strict", "--format", "json", *paths)
    assert (outcome.status, found(outcome)) == (1, [("error", "DOC21", 5)])


def test_strict_warns_of_grammar_extensions(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, f=CLEAN + "r = region(A, 0, 4, elem=i8, shape=[4], layout=C)\n")
    assert invoke(capsys, "check", *paths).status == 0
    outcome = invoke(capsys, "check", "--strict", "--format", "json", *paths)
    assert found(outcome) == [("error", "DOC22", 2)]


def test_strict_leaves_infos_alone(capsys: Capsys, tmp_path: Path) -> None:
    paths = write(tmp_path, f=INFORMED)
    outcome = invoke(capsys, "check", "--strict", "--format", "json", *paths)
    assert (outcome.status, found(outcome)) == (0, [("info", "TYP18", 1)])


@pytest.mark.parametrize(
    ("allowed", "status", "left"),
    [
        (["BUF01"], 1, ["NAM02"]),
        (["buf01"], 1, ["NAM02"]),
        (["BUF"], 1, ["NAM02"]),
        (["BUF", "NAM02"], 0, []),
        (["CST"], 1, ["BUF01", "NAM02"]),
    ],
)
def test_allow_leaves_out_codes_and_groups(
    capsys: Capsys, tmp_path: Path, allowed: list[str], status: int, left: list[str]
) -> None:
    options = [word for code in allowed for word in ("--allow", code)]
    outcome = invoke(capsys, "check", *options, "--format", "json", *write(tmp_path, f=WRONG))
    assert (outcome.status, [code for _, code, _ in found(outcome)]) == (status, left)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("BUF001", "did you mean `BUF01`?"),
        ("XYZ", "no rule or group XYZ"),
        ("", "no rule or group"),
    ],
)
def test_an_unknown_code_is_wrong_usage(
    capsys: Capsys, tmp_path: Path, code: str, message: str
) -> None:
    outcome = invoke(capsys, "check", "--allow", code, *write(tmp_path, f=CLEAN))
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_include_root_lets_includes_leave_the_project(capsys: Capsys, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/pyproject.toml").touch()
    (tmp_path / "shared").mkdir()
    write(tmp_path / "shared", d=DEVICE)
    text = 'include "../shared/d.nem"\ndevice mine\nprogram p:\n'
    program = write(tmp_path / "project", f=text)
    outcome = invoke(capsys, "check", "--format", "json", *program)
    assert found(outcome) == [("error", "INC08", 1)]
    root = tmp_path / "shared"
    assert invoke(capsys, "check", "--include-root", root, *program).status == 0


def test_an_include_root_that_is_no_folder_is_wrong_usage(capsys: Capsys, tmp_path: Path) -> None:
    (path,) = write(tmp_path, f=CLEAN)
    for root in (tmp_path / "missing", path):
        assert invoke(capsys, "check", "--include-root", root, path).status == 2


def test_max_instances_bounds_what_loops_may_expand_to(capsys: Capsys, tmp_path: Path) -> None:
    task = "transfer.sync(dst=region(B, 0, 4), src=region(A, 0, 4))"
    text = f"buffer A : DDR (size=4)\n{CLEAN.replace('A', 'B')}loop i in [0..9]:\n{task}\nendloop\n"
    paths = write(tmp_path, f=text)
    assert invoke(capsys, "check", "--max-instances", "10", *paths).status == 0
    outcome = invoke(capsys, "check", "--max-instances", "9", "--format", "json", *paths)
    assert found(outcome) == [("error", "LOP06", 3)]
    assert invoke(capsys, "check", "--max-instances", "0", *paths).status == 2


# Colour

ESCAPE = "\x1b["


def on_a_terminal(arguments: list[str | Path], env: dict[str, str]) -> str:
    """What a run prints whose standard output is a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nacre", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env=environment({"TERM": "xterm-256color", **env}),
    )
    os.close(follower)
    printed = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux: the other end was closed
            break
        if not part:
            break
        printed += part
    os.close(leader)
    process.wait(timeout=60)
    return printed.decode()


def test_a_pipe_gets_no_colour(tmp_path: Path) -> None:
    outcome = nacre("check", *write(tmp_path, f=WRONG), env={"TERM": "xterm-256color"})
    assert ESCAPE not in outcome.text


def test_a_terminal_gets_colour(tmp_path: Path) -> None:
    printed = on_a_terminal(["check", *write(tmp_path, f=WRONG)], {})
    assert f"{ESCAPE}1;31merror[BUF01]{ESCAPE}0m" in printed


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(tmp_path: Path, env: dict[str, str]) -> None:
    printed = on_a_terminal(["check", *write(tmp_path, f=WRONG)], env)
    assert "error[BUF01]: buffer `A` has size 0" in printed
    assert ESCAPE not in printed


@pytest.mark.parametrize("output", ["json", "sarif"])
def test_machine_formats_are_never_coloured(tmp_path: Path, output: str) -> None:
    paths = write(tmp_path, f=WRONG)
    printed = on_a_terminal(["check", "--format", output, *paths], {})
    assert ESCAPE not in printed
    assert json.loads(printed)


# Encodings


def test_a_terminal_of_few_characters_gets_every_finding(tmp_path: Path) -> None:
    paths = write(tmp_path, f='let s = "\u5b57"; const \u00e9 = 1\n')
    outcome = nacre("check", *paths, env={"PYTHONIOENCODING": "latin-1"})
    assert outcome.status == 1
    assert "error[LEX01]" in outcome.out
    assert "\\u5b57" in outcome.out


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("m.onnx", "nacre compile"),
        ("m.nac", "nacre compile"),
        ("m.gguf", "nacre llm build"),
        ("m.tcb", "nacre tcb verify"),
    ],
)
def test_a_file_of_another_kind_says_what_it_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, verb: str
) -> None:
    (tmp_path / name).write_bytes(b"\x89\xff\x00")
    said = invoke(capsys, "check", tmp_path / name)
    assert said.status == 1
    assert "LEX10" in said.err + said.out
    assert f"`{verb} " in said.err + said.out
