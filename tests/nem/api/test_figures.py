"""Figures of devices that no machine has: refused in files, profiles, changes and values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.nem.checks.engine import named_device
from nacre.nem.model.devices import Device
from nacre.nem.spec.figures import PARAMETERS, Parameter, bounds_of
from nacre.nem.spec.units import UNITS
from neminterp import NemInterpreter

LITE = named_device("npm_lite").device
PROGRAM = """
buffer A : DDR (size=64)
buffer B : L2 (size=64)
t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
"""
HUGE = (2**31, 2**40, 2**53, 2**62, 10**9)


def with_topology(**figures: object) -> Device:
    assert LITE.topology is not None
    return replace(LITE, topology=replace(LITE.topology, **figures))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, 0, 2**40, 2**62])
def test_every_characteristic_of_a_file_is_bounded(value: int) -> None:
    units = dict.fromkeys(p.unit for p in PARAMETERS if p.unit in UNITS)
    lines, expected = [], set()
    for unit in units:
        entries = [p.key for p in PARAMETERS if p.unit == unit]
        lines.append(f"{unit} {{ {' '.join(f'{key} = {value}' for key in entries)} }}")
        for key in entries:
            bounds = bounds_of(unit, key)
            if bounds is not None and not bounds.admit(value):
                expected.add(f"`{unit}.{key}`")
    head = ['include "npm_lite.nem"', "device d extends npm_lite {", "unit_characteristics {"]
    text = "\n".join([*head, *lines, "}", "}"])
    found = nacre.nem.check(text)
    assert {d.code for d in found} == ({"DEV22"} if expected else set())
    assert {d.message.split(" ")[0] for d in found} == expected


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: f"{p.unit}.{p.key}")
def test_every_figure_of_a_profile_and_of_a_change_is_bounded(parameter: Parameter) -> None:
    unit, key = parameter.unit, parameter.key
    interp = NemInterpreter()
    program = interp.load_string(PROGRAM)
    for value in (-1, *HUGE[1:4]):
        with pytest.raises(InputError, match=f"{unit}.{key}"):
            interp.set_timing_profile({unit: {key: value}})
        with pytest.raises(InputError, match=f"{unit}.{key}"):
            interp.time(program, changes={f"{unit}.{key}": value})


@pytest.mark.parametrize("value", [-1, 0, *HUGE])
def test_every_figure_of_a_topology_is_bounded(value: int) -> None:
    devices = [with_topology(num_engines=value), with_topology(l1_size_bytes=value)]
    devices += [with_topology(per_engine={"CSTL": value, "NMU": 1})]
    for device in devices:
        topology = device.topology
        assert topology is not None
        if topology.l1_size_bytes == value and 0 < value < 2**40:
            continue
        with pytest.raises(InputError, match="expected an integer from"):
            NemInterpreter(device)
        with pytest.raises(InputError, match="expected an integer from"):
            nacre.compile("missing.onnx", device)


def test_engines_times_units_are_bounded() -> None:
    device = with_topology(num_engines=1024, per_engine={"CSTL": 65})
    with pytest.raises(InputError, match="66560, expected at most 65536"):
        NemInterpreter(device)
    interp = NemInterpreter(LITE)
    changes = {"topology.num_engines": 1024, "topology.CSTL": 65}
    with pytest.raises(InputError, match="66560"):
        interp.time(interp.load_string(PROGRAM), changes=changes)


@pytest.mark.parametrize("name", ["l1_size", "l2_size", "ddr_size"])
@pytest.mark.parametrize("value", [0, -1, 2**62, 2**70])
def test_sizes_of_memories_are_bounded(name: str, value: int) -> None:
    def run() -> None:
        interp = NemInterpreter(**{name: value})  # type: ignore[arg-type]
        interp.run(interp.load_string(PROGRAM))

    with pytest.raises(InputError) as refused:
        run()
    assert [d.code for d in refused.value.diagnostics] == ["RUN05" if value < 1 else "RUN06"]


NAMES = ("num_engines", "NMU", "CSTL", "DMA", "l1", "l2", "sDMA")
VALUES = st.one_of(st.integers(-3, 5), st.integers(-(2**65), 2**65))


@pytest.mark.fuzz
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
def test_whatever_a_topology_says_is_checked_and_timed_or_refused(figures: dict[str, int]) -> None:
    g = figures
    device = (
        'include "nem_baseline_1.0.nem"\ndevice d extends nem_baseline_1_0 { topology {\n'
        f"num_engines = {g['num_engines']} l2_size_bytes = {g['l2']}\n"
        f"device_units {{ sDMA = {g['sDMA']} }}\n"
        f"per_engine {{ NMU = {g['NMU']} CSTL = {g['CSTL']} DMA = {g['DMA']} SEQ = 1\n"
        f"l1_size_bytes = {g['l1']} }} }} }}\nprogram p:\n"
    )
    interp = NemInterpreter()
    program = interp.load_string(device + PROGRAM)
    found = [d for d in interp.validate(program) if d.severity == "error"]
    if not found:
        assert interp.time(program).cycles > 0


def test_changes_may_stand_behind_the_program() -> None:
    interp = NemInterpreter()
    program = interp.load_string(PROGRAM)
    assert interp.time(program, {}).cycles == interp.time(program).cycles
    for wrong in ("NMU", ["NMU"], 7):
        with pytest.raises(InputError, match="changes map figures"):
            interp.time(program, wrong)  # type: ignore[arg-type]
