"""The whitepaper's programs exactly as printed.

The language text says that they are wrong; corrected copies stand in `examples/`. The errors they
must get are data here. A code that no rule has yet is an expected failure; from the day that the
rule is declared, it must be found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre import nem
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.nem.checks import catalogue
from nacre.nem.syntax.parser import parse

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parent.parent / "examples"

ERRORS = {
    # Padding of 1 keeps 16 x 16, but 14 x 14 is declared; int8 operands without quant; one slot
    # for the weights, written by every iteration while two are in flight.
    "conv2d_relu": {"SIG13", "QNT09", "HAZ05"},
    "conv2d_maxpool": {"SIG13", "QNT09", "HAZ05"},
    # f16 needs no quant, and the shapes are right; only the slot for B is shared.
    "gemm_bias_relu": {"HAZ05"},
}

catalogue.load()
PROGRAMS = sorted(FOLDER.glob("*.nem"))
EXPECTED = [
    pytest.param(
        program,
        code,
        marks=[pytest.mark.xfail(strict=True, reason=f"{code} is to come")]
        if code not in RULES
        else [],
        id=f"{program}-{code}",
    )
    for program, codes in ERRORS.items()
    for code in sorted(codes)
]


def errors_in(program: str) -> set[str]:
    found = nem.check(FOLDER / f"{program}.nem")
    return {diagnostic.code for diagnostic in found if diagnostic.severity == "error"}


def test_every_program_is_listed() -> None:
    assert {path.stem for path in PROGRAMS} == set(ERRORS)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_follows_the_grammar(path: Path) -> None:
    parsed = parse(Source(path.name, path.read_text(encoding="utf-8")))

    assert parsed.diagnostics == ()
    assert parsed.document.header is not None
    assert parsed.document.header.name.name == path.stem


@pytest.mark.parametrize("program", ERRORS)
def test_nothing_but_the_known_mistakes_is_an_error(program: str) -> None:
    assert errors_in(program) <= ERRORS[program]


@pytest.mark.parametrize(("program", "code"), EXPECTED)
def test_the_known_mistake_is_found(program: str, code: str) -> None:
    assert code in errors_in(program)


@pytest.mark.parametrize("program", ERRORS)
def test_a_corrected_copy_is_among_the_examples(program: str) -> None:
    found = nem.check(EXAMPLES / f"{program}.nem", strict=True)
    assert [d for d in found if d.severity != "info"] == []
