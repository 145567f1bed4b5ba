"""Numbers of options: the digits 0 to 9, whatever verb they are given to."""

from __future__ import annotations

import pytest

from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize("text", ["\u0663", "\uff11\uff12", "1_000", " 7", "7.0", "9" * 5000, ""])
@pytest.mark.parametrize(
    "verb",
    [
        ["run", "examples/conv2d_relu.nem", "--seed"],
        ["check", "examples/conv2d_relu.nem", "--max-instances"],
        ["validate", "nothing", "--seed"],
    ],
)
def test_a_count_has_the_digits_0_to_9(capsys: Capsys, verb: list[str], text: str) -> None:
    outcome = invoke(capsys, *verb, text)
    assert outcome.status == 2
    assert "is not a whole number such as 16" in outcome.err
    assert len(outcome.err) < 1000


@pytest.mark.parametrize("text", ["\u0661", "nan", "inf", "1e999", "1_0", "0x1p3"])
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (["llm", "run", "nothing", "--temperature"], "is not a finite number such as 0.5"),
        (["estimate", "nothing", "--clock"], "is no clock"),
        (["nac", "diff", "nothing", "nothing", "--tolerance"], "is no number of 0 or more"),
    ],
)
def test_a_measure_is_finite_and_has_the_digits_0_to_9(
    capsys: Capsys, verb: list[str], words: str, text: str
) -> None:
    outcome = invoke(capsys, *verb, text)
    assert (outcome.status, words in outcome.err) == (2, True), outcome.err


def test_counts_with_a_sign_and_zeros_are_counts(capsys: Capsys) -> None:
    outcome = invoke(capsys, "check", "examples/conv2d_relu.nem", "--max-instances", "+00400")
    assert outcome.status == 0
