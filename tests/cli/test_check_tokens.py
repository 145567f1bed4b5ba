"""`nacre check` about tokens: safe, deadlock or unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neminterp import NemInterpreter
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]

DEVICE = """include "nem_baseline_1.0.nem"
device few extends nem_baseline_1_0 {{
    topology {{
        num_engines = 1
        l2_size_bytes = 1024
        device_units {{ sDMA = 1 }}
        per_engine {{ NMU = 1 CSTL = 1 DMA = 3 VPU = 1 SEQ = 1 l1_size_bytes = 1024 }}
    }}
    {limit}
}}
program p:
buffer A : DDR (size=64)
buffer B : L2 (size=64)
"""


def copy(token: str, place: int, deps: str = "") -> str:
    named = f", deps=[{deps}]" if deps else ""
    return f"{token} = transfer.async(dst=region(B, {place}, 8), src=region(A, {place}, 8){named})"


JOIN = [copy("a", 0), copy("b", 8), copy("c", 16, "a, b")]
APART = [copy("a", 0), copy("b", 8)]


def text(tokens: int | None, lines: list[str]) -> str:
    limit = f"unit_characteristics {{ SEQ {{ max_active_tokens = {tokens} }} }}" if tokens else ""
    return DEVICE.format(limit=limit) + "\n".join(lines) + "\n"


CASES = [
    (2, JOIN, "safe", []),
    (1, JOIN, "deadlock", ["b", "c"]),
    (1, APART, "unknown", []),  # one comes after the other, as the machine is
    (2, APART, "safe", []),
    (None, JOIN, "safe", []),
]


@pytest.mark.parametrize(("tokens", "lines", "verdict", "waiting"), CASES)
@pytest.mark.parametrize("strict", [False, True])
def test_the_verdict_stands_in_text_and_json(
    capsys: Capsys,
    tmp_path: Path,
    tokens: int | None,
    lines: list[str],
    verdict: str,
    waiting: list[str],
    strict: bool,
) -> None:
    file = tmp_path / "p.nem"
    file.write_text(text(tokens, lines))
    options = ["--strict"] if strict else []
    shown = [line for line in invoke(capsys, "check", *options, file).out.splitlines()
             if line.startswith("tokens: ")]  # fmt: skip
    if tokens is None:
        assert shown == []
    else:
        assert [line.partition(",")[0] for line in shown] == [f"tokens: {verdict}"]
    outcome = invoke(capsys, "check", *options, "--format", "json", file)
    found = json.loads(outcome.out).get("tokens", [])
    expected = [] if tokens is None else [(str(file), verdict, waiting, tokens)]
    keys = ("file", "verdict", "waiting", "limit")
    assert [tuple(one[key] for key in keys) for one in found] == expected
    interp = NemInterpreter()
    assert interp.load(file).tokens.verdict == verdict


def test_a_program_with_errors_is_unknown_and_nothing_is_said_about_it(
    capsys: Capsys, tmp_path: Path
) -> None:
    wrong, device = tmp_path / "wrong.nem", tmp_path / "device.nem"
    wrong.write_text(text(1, [*JOIN, "wait(nobody)"]))
    device.write_text('include "npm_lite.nem"\ndevice d extends npm_lite { }\n')
    outcome = invoke(capsys, "check", "--format", "json", wrong, device)
    assert list(json.loads(outcome.out)) == ["diagnostics"]
    assert NemInterpreter().load(wrong).tokens.verdict == "unknown"
    assert "tokens:" not in invoke(capsys, "check", wrong, device).out


def test_several_programs_are_told_apart(capsys: Capsys, tmp_path: Path) -> None:
    files = [tmp_path / "a.nem", tmp_path / "b.nem"]
    files[0].write_text(text(2, JOIN))
    files[1].write_text(text(1, JOIN))
    lines = invoke(capsys, "check", *files).out.splitlines()
    told = [line for line in lines if "tokens: " in line and ": tokens: " in line]
    assert [line.partition(": tokens: ")[0] for line in told] == [str(f) for f in files]
    assert "nothing can start: all 1 tokens are taken, and `b`, `c` wait" in told[1]
