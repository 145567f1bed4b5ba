from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.grouping import by_cause
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.nem import check
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
    groups = by_cause(found)
    assert [len(g.others) for g in groups] == [4, 0]
    assert [g.first for g in groups] == [found[0], found[-1]]


def test_other_files_codes_and_helps_stay_apart() -> None:
    rule = RULES["NAM01"]
    spans = [Source(name, "abc").span(0, 1) for name in ("a", "a", "b")]
    made = [rule.at(span, "m 1", help=help_) for span, help_ in zip(spans, "xyx", strict=True)]
    assert len(by_cause(made)) == 3
