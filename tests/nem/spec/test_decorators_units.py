from __future__ import annotations

import re
from pathlib import Path

import pytest

from nacre.nem.model.builtins import builtin_file
from nacre.nem.spec import limits
from nacre.nem.spec.decorators import DECORATORS, Target
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.units import (
    DEVICE_UNITS,
    ENGINE_UNITS,
    RESOURCE_TARGETS,
    UNITS,
    Level,
    transfer_units,
)

SPEC = Path(limits.__file__).parent
DEVICES = sorted((SPEC / "devices").glob("*.nem"))
EVERY_DEVICE = pytest.mark.parametrize("path", DEVICES, ids=lambda path: path.stem)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("buffer", "debug"),
        ("region", "debug materialized readonly writeonly"),
        ("let", "debug materialized readonly writeonly"),
        ("operand", "debug materialized readonly writeonly"),
        ("task", "debug deterministic memmove profile resource seq_engine"),
        ("loop", "debug deterministic max_in_flight profile"),
    ],
)
def test_each_object_takes_these_decorators(target: Target, names: str) -> None:
    assert sorted(d.name for d in DECORATORS.values() if target in d.targets) == names.split()


def test_only_debug_and_profile_are_informational() -> None:
    informational = {d.name for d in DECORATORS.values() if d.kind == "informational"}
    assert informational == {"debug", "profile"}


@pytest.mark.parametrize(
    ("argument", "names"),
    [
        ("none", "deterministic materialized memmove readonly writeonly"),
        ("integer", "max_in_flight"),
        ("index", "seq_engine"),
        ("unit", "resource"),
        ("name", "debug profile"),
    ],
)
def test_arguments_have_these_shapes(argument: str, names: str) -> None:
    found = [d for d in DECORATORS.values() if d.argument == argument]
    assert sorted(d.name for d in found) == names.split()
    assert all((d.minimum is not None) == (argument in ("integer", "index")) for d in found)


def test_memmove_fits_transfers_alone() -> None:
    memmove = DECORATORS["memmove"]
    assert memmove.only_opcode in OPCODES
    assert memmove.fits("task", "transfer")
    assert not memmove.fits("task", "store")
    assert not memmove.fits("loop")
    assert DECORATORS["profile"].fits("task", "store")


def test_after_an_operand_only_what_concerns_memory_belongs_to_it() -> None:
    bound = {d.name for d in DECORATORS.values() if d.binds_to_operand}
    assert bound == {"materialized", "readonly", "writeonly"}
    assert all("operand" in DECORATORS[name].targets for name in bound)


def test_units_live_in_engines_or_on_the_device() -> None:
    assert ENGINE_UNITS == ("NMU", "CSTL", "DMA", "VPU", "SEQ")
    assert DEVICE_UNITS == ("sDMA", "WDM")
    assert RESOURCE_TARGETS == ("NMU", "CSTL", "DMA", "VPU")
    assert [UNITS[name].least_count for name in ("SEQ", "WDM")] == [1, 0]


@pytest.mark.parametrize(
    ("source", "destination", "units"),
    [
        ("DDR", "L2", ("sDMA",)),
        ("L2", "DDR", ("sDMA",)),
        ("DDR", "DDR", ("sDMA",)),
        ("L2", "L1", ("DMA",)),
        ("L1", "L2", ("DMA",)),
        ("L2", "L2", ("DMA",)),
        ("L1", "L1", ("DMA",)),
        ("DDR", "L1", ("sDMA", "DMA")),
        ("L1", "DDR", ("sDMA", "DMA")),
    ],
)
def test_the_levels_choose_the_units_of_a_transfer(
    source: Level, destination: Level, units: tuple[str, ...]
) -> None:
    assert transfer_units(source, destination) == units
    assert set(units) <= set(OPCODES["transfer"].eligible_units)


def test_the_defaults_without_a_device_name_every_unit() -> None:
    assert tuple(limits.DEFAULT_ENGINE_UNITS) == ENGINE_UNITS
    assert tuple(limits.DEFAULT_DEVICE_UNITS) == DEVICE_UNITS
    assert limits.DEFAULT_L1_BYTES == 1048576
    assert limits.DEFAULT_L2_BYTES == 4194304
    assert limits.DEFAULT_DDR_BYTES == 268435456


@EVERY_DEVICE
def test_a_device_file_holds_the_one_device_it_is_named_after(path: Path) -> None:
    text = path.read_text()
    ((name, parent),) = re.findall(r"^device (\w+) extends (\w+) \{$", text, re.M)
    assert name == path.stem
    assert text.startswith(f'include "{builtin_file(parent)}"\n')


@EVERY_DEVICE
def test_every_figure_and_variant_says_whether_it_is_fact_or_assumption(path: Path) -> None:
    items = [line for line in path.read_text().splitlines() if re.match(r" +[^\s}].*[^{]$", line)]
    assert items
    said = re.compile(r" +\S.*\S  # (fact|assumption|fitted)(: \S.*)?")
    assert [line for line in items if not said.fullmatch(line)] == []


@EVERY_DEVICE
def test_a_device_counts_its_units_where_they_belong(path: Path) -> None:
    text = path.read_text()
    for block, units in (("device_units", DEVICE_UNITS), ("per_engine", ENGINE_UNITS)):
        for body in re.findall(rf"{block} \{{(.*?)\}}", text, re.S):
            assert tuple(re.findall(r"^ +([A-Za-z]+) = \d+", body, re.M)) == units


@EVERY_DEVICE
def test_a_device_uses_only_the_well_known_characteristics(path: Path) -> None:
    keys = re.findall(r"^ +(\w+_macs|max_\w+) = ", path.read_text(), re.M)
    assert set(keys) <= {key for unit in UNITS.values() for key in unit.characteristics}
