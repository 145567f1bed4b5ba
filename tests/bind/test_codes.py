"""Every code of the binder: a case that brings it up, with its place, and a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.rules import RULES
from nacre.base.source import Source
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.bind.uarch.reader import read_uarch
from tests.bind.programs import PROGRAMS, checked

CODES = sorted(code for code in RULES if code.startswith("BND"))


def of_binding(
    options: BindOptions, text: str = PROGRAMS["loop"], *, has_dma: bool = True
) -> list[Diagnostic]:
    plan, device = checked(text)
    if not has_dma:
        assert device.topology is not None
        bare = replace(device.topology, per_engine={}, device_units={})
        device = replace(device, topology=bare)
    with pytest.raises(InputError) as refused:
        bind_plan(plan, "p", device, options)
    return list(refused.value.diagnostics)


def of_file(text: str) -> list[Diagnostic]:
    return list(read_uarch(Source("x.uarch", text)).diagnostics)


def of_name() -> list[Diagnostic]:
    with pytest.raises(InputError) as refused:
        load_uarch("npm5k", "npm4k")
    return list(refused.value.diagnostics)


FEW_TAGS = read_uarch(Source("x.uarch", "uarch x { tags { engine = 2 device = 2 } }")).uarch
QUEUES = read_uarch(Source("x.uarch", "uarch x { queue { depth = 2 } }")).uarch
MANY_TOKENS = "\n".join(f"t{n} = copy A {64 * n}" for n in range(17))
CASES: dict[str, Callable[[], list[Diagnostic]]] = {
    "BND01": lambda: of_binding(BindOptions(FEW_TAGS)),
    "BND02": lambda: of_binding(BindOptions(), has_dma=False),
    "BND03": lambda: of_binding(BindOptions(ddr_bytes=1024)),
    "BND04": lambda: of_binding(BindOptions(QUEUES), MANY_TOKENS),
    "BND10": lambda: of_file("uarch x { l3 { } }"),
    "BND11": lambda: of_file("uarch x { l1 { bank = 3 } }"),
    "BND12": lambda: of_file("uarch x { l1 { ports = 0 } }"),
    "BND13": of_name,
}


def test_every_code_is_shown() -> None:
    assert sorted(CASES) == CODES


@pytest.mark.parametrize("code", CODES)
def test_a_case_has_its_code_and_no_other(code: str) -> None:
    found = CASES[code]()
    assert {finding.code for finding in found} == {code}
    assert all(finding.location.line >= 1 for finding in found)


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = RULES[code]
    assert rule.spec.startswith("TCB / ")
    assert rule.summary[0].isupper()
    assert rule.summary.endswith(".")
