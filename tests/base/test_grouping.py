from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.grouping import group_by_cause, merge_notes
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.cli.machine import findings_text
from nacre.nem import check
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.spec.rules.running import RUN06
from tests.cli.runner import invoke


def text_with(count: int) -> str:
    lines = [f"let r{n} = region(Bf, {n}, 4)" for n in range(count)]
    return "\n".join(["buffer Buf : L2 (size=64)", *lines, "wait(nothing)", ""])


@pytest.mark.parametrize("count", [1, 2, 3, 18])
def test_many_findings_of_one_cause_are_shown_as_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, count: int
) -> None:
    path = tmp_path / "p.nem"
    path.write_text(text_with(count))
    outcome = invoke(capsys, "check", path)
    is_joined = count >= 3
    assert outcome.out.count("error[NAM01]: unknown name `Bf`") == (1 if is_joined else count)
    assert (f"and {count - 1} more like it: lines 3, 4" in outcome.out) == is_joined
    assert outcome.out.endswith(f"checked 1 file: {count + 1} errors\n")
    every = invoke(capsys, "check", "--all", path)
    assert every.out.count("error[NAM01]: unknown name `Bf`") == count
    assert invoke(capsys, "check", "--format", "json", path).out.count('"NAM01"') == count + 1


def test_the_order_of_first_findings_is_kept() -> None:
    found = check(text_with(5))
    groups = group_by_cause(found)
    assert [len(g.others) for g in groups] == [4, 0]
    assert [g.first for g in groups] == [found[0], found[-1]]


def test_other_files_codes_and_helps_stay_apart() -> None:
    rule = RULES["NAM01"]
    spans = [Source(name, "abc").span(0, 1) for name in ("a", "a", "b")]
    made = [rule.at(span, "m 1", help=help_) for span, help_ in zip(spans, "xyx", strict=True)]
    assert len(group_by_cause(made)) == 3


NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
ONE_MISTAKE = {
    "a dimension off by one": "buffer B : L1 (size=4096)\nconst N = 65\n"
    + "".join(f"let {n} = region(B, 0, 64) elem=i8, shape=[N], layout=C\n" for n in NAMES),
    "a buffer that is too small": "buffer B : L2 (size=100)\n"
    + "".join(f"let {n} = region(B, {64 * i}, 128)\n" for i, n in enumerate(NAMES)),
    "a device with fewer engines": 'device "npm_lite"\n'
    + "".join(f"buffer {n} : L1[9] (size=64)\n" for n in NAMES),
    "a load that nothing waits for": "buffer A : L2 (size=4096)\nbuffer B : L1 (size=4096)\n"
    "let X = region(B, 0, 64) elem=i8, shape=[64], layout=C\n"
    "load = transfer.async(dst=X, src=region(A, 0, 64))\n"
    + "".join(
        f"{n} = relu.async in X out region(B, {64 * i + 64}, 64) elem=i8, shape=[64], layout=C\n"
        for i, n in enumerate(NAMES)
    ),
    "a type that is named once": "buffer B : L1 (size=4096)\n"
    "let T = elem=i8, shape=[8, 8], layout=NHWC\n"
    + "".join(f"let {n} = region(B, 0, {64 + i}) type=T\n" for i, n in enumerate(NAMES)),
}


@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_one_mistake_is_one_group_whatever_the_names(mistake: str) -> None:
    found = [one for one in check(ONE_MISTAKE[mistake]) if one.severity != "info"]
    assert len(found) >= len(NAMES) - 1
    (group,) = group_by_cause(found)
    assert len(group.others) == len(found) - 1


def test_names_that_are_the_mistake_stay_apart() -> None:
    found = check("".join(f"let r{i} = region({n}, 0, 4)\n" for i, n in enumerate(NAMES)))
    assert [len(group.others) for group in group_by_cause(found)] == [0] * len(NAMES)


def test_notes_of_one_kind_are_one_line() -> None:
    notes = [
        "3 elements of constant `a` are 0 in f16",
        "a node is left out",
        "1 element of constant `b` is 0 in f16",
        "2 elements of constant `c 5` are 0 in f16",
        "2 elements of constant `c 5` are 0 in bf16",
    ]
    assert merge_notes(notes) == [
        "3 elements of constant `a` are 0 in f16 (and 2 more notes of this kind: `b`, `c 5`)",
        "a node is left out",
        "2 elements of constant `c 5` are 0 in bf16",
    ]


def test_of_many_notes_some_names_are_listed() -> None:
    (line,) = merge_notes(f"`n{index}` takes {index}.5e-3 s" for index in range(43))
    assert line == (
        "`n0` takes 0.5e-3 s (and 42 more notes of this kind: `n1`, `n2`, `n3`, `n4`, ...)"
    )


def test_two_notes_stay_two() -> None:
    assert merge_notes(["`a` is 1", "`b` is 2"]) == ["`a` is 1", "`b` is 2"]


@pytest.mark.parametrize("verb", ["run", "debug", "bind"])
def test_findings_of_one_cause_are_one_to_every_verb(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.nem"
    path.write_text(text_with(7))
    more = {"run": (), "debug": ("--batch",), "bind": ("-o", str(tmp_path / "p.tcb"))}[verb]
    shown = invoke(capsys, verb, *more, path).text
    assert shown.count("error[NAM01]: unknown name `Bf`") == 1
    assert "and 6 more like it: lines 3, 4, 5, 6, 7, 8" in shown
    assert "8 errors" in shown


def test_what_is_about_the_command_has_its_help_and_no_place() -> None:
    finding = RUN06.at(HOST, "too much", help="take less")
    assert findings_text([finding]) == "error[RUN06]: too much\n  = help: take less\n"
