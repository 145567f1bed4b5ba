"""`.uarch` files: what is shipped, what is wrong, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.bind.uarch.builtin import builtin_uarchs, load_uarch
from nacre.bind.uarch.reader import read_uarch
from nacre.nem.model.builtins import builtin_names
from nacre.tcb.figures import FIGURES, figure_problem

# A file, and of every finding its code and the text that it is about.
WRONG = [
    ("", [("BND10", "")]),
    ("device x { }", [("BND10", "device")]),
    ("uarch x {", [("BND10", "")]),
    ("uarch x { } }", [("BND10", "}")]),
    ("uarch x { l3 { } }", [("BND10", "l3")]),
    ("uarch x { l1 { 3 = 4 } }", [("BND10", "3")]),
    ("uarch x { l1 { banks = } }", [("BND10", "}")]),
    ("uarch x { chain { links = [NMU_CSTLA CSTLA_CSTLB] } }", [("BND10", "CSTLA_CSTLB")]),
    ("uarch x { l1 { bank = 3 ports = 1 } }", [("BND11", "bank")]),
    ("uarch x { l1 { ports = 0 } }", [("BND12", "ports = 0")]),
    ("uarch x { l1 { banks = 9999999999999999999 } }", [("BND12", "banks = 9999999999999999999")]),
    ("uarch x { l1 { banks = 1 banks = 2 } }", [("BND12", "banks = 2")]),
    ("uarch x { l1 { banks = -3 ports = 1 } }", [("BND12", "banks = -3")]),
    ("uarch x { cstl { parts = 3 } }", [("BND12", "parts = 3")]),
    ("uarch x { l1 { banks = 1 } l1 { ports = 2 } }", [("BND12", "l1")]),
    ("uarch x { arbitration { rule = 3 } }", [("BND12", "rule = 3")]),
    ("uarch x { arbitration { rule = last } l1 { ports = 0 } }",
     [("BND12", "rule = last"), ("BND12", "ports = 0")]),
    ("uarch x { store { formats = [raw, i9] } }", [("BND12", "formats = [raw, i9]")]),
    ("uarch x { cstl { sub = 3 } }", [("BND12", "sub = 3")]),
    ("uarch x { queue_depth = 2 queue { depth = 2 } }", [("BND12", "depth = 2")]),
    ("uarch x { queue_dept = 2 }", [("BND10", "queue_dept")]),
    ("uarch x { store { formats = [raw, raw] } }", [("BND12", "formats = [raw, raw]")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_every_mistake_has_a_code_and_a_place(text: str, expected: list[tuple[str, str]]) -> None:
    found = [
        (finding.code, text[finding.span.start : finding.span.end])
        for finding in read_uarch(Source("x.uarch", text)).diagnostics
    ]
    assert found == expected


@pytest.mark.parametrize("name", builtin_uarchs())
def test_every_shipped_figure_says_what_it_rests_on(name: str) -> None:
    uarch = load_uarch(name, "npm4k")
    assert uarch.name == name
    for figure in uarch.given:
        assert figure.basis in ("fact", "assumption"), figure.key


def test_the_devices_that_have_one() -> None:
    named = set(builtin_uarchs()) - {"ideal"}
    assert named <= set(builtin_names())
    assert {"npm_lite", "npm4k", "npm8k", "npm16k", "npm32k", "npm64k", "nem_reference"} == named
    assert load_uarch("ideal", "npm4k").figures.differing == ()
    assert load_uarch(None, "npm4k").name == "npm4k"
    assert load_uarch(None, "npm_mid").name == "ideal"


def test_a_negative_figure_is_told_what_it_must_be() -> None:
    (finding,) = read_uarch(Source("x.uarch", "uarch x { l1 { banks = -3 } }")).diagnostics
    assert finding.message == "`l1.banks`: it must be at least 0"


def test_figures_may_have_the_names_of_the_public_description() -> None:
    text = "uarch x { queue_depth = 8  # assumption: short\n cstl { sub = 2 } }"
    read = read_uarch(Source("x.uarch", text))
    assert read.diagnostics == ()
    assert read.uarch.figures.differing == (("queue.depth", 8), ("cstl.parts", 2))
    assert read.uarch.given[0].reason == "short"
    (finding,) = read_uarch(Source("x.uarch", "uarch x { queue_depth = -1 }")).diagnostics
    assert finding.message == "`queue_depth`: it must be at least 0"


def test_a_device_has_that_of_the_device_that_it_extends(tmp_path: Path) -> None:
    devices = 'include "npm4k.nem"\ndevice mine extends npm4k {}\ndevice ours extends mine {}\n'
    (tmp_path / "ours.nem").write_text(devices)
    program = tmp_path / "p.nem"
    program.write_text('include "ours.nem"\ndevice ours\nprogram p:\nbuffer A : L1 (size=64)\n')
    machine = nacre.bind(program).image.machine
    assert (machine.device, machine.uarch) == ("ours", "npm4k")
    assert nacre.bind(program, "ideal").image.machine.uarch == "ideal"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.uarch"
    path.write_text("uarch mine { l1 { banks = 4  # fact: our chip\n } }")
    uarch = load_uarch(path, "npm4k")
    assert uarch.figures.count("l1.banks") == 4
    assert (uarch.given[0].basis, uarch.given[0].reason) == ("fact", "our chip")


def test_a_name_that_nobody_knows() -> None:
    with pytest.raises(InputError) as raised:
        load_uarch("npm5k", "npm4k")
    (finding,) = raised.value.diagnostics
    assert finding.code == "BND13"
    assert finding.help is not None
    assert "npm4k" in finding.help


def test_defaults_are_among_what_figures_can_be() -> None:
    for spec in FIGURES.values():
        assert figure_problem(spec, spec.default) is None, spec.key
