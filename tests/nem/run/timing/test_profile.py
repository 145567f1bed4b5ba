"""Profiles: who overrides whom, what is missing, and what cannot be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nacre.nem.model.devices import Device, default_device
from nacre.nem.run.timing.profile import ProfileError, timing_profile
from nacre.nem.run.timing.what_if import change_device
from nacre.nem.spec.figures import PARAMETERS
from neminterp import NemInterpreter
from tests.nem.run.timing.oracle_costs import DEFAULTS
from tests.nem.run.timing.sketches import Figures, Machine


def device(characteristics: Figures) -> Device:
    text = Machine(characteristics=characteristics).text() + "program p:\n"
    return NemInterpreter().load_string(text).device


def test_without_device_and_profile_the_defaults_hold() -> None:
    profile = timing_profile(default_device())
    expected = {
        (unit, key): value
        for unit, entries in DEFAULTS.items()
        for key, value in entries.items()
        if key != "burst"  # off
    }
    assert dict(profile.figures) == expected
    assert profile.lanes is None
    for key in ("burst", "bandwidth"):
        unit = "DMA" if key == "burst" else "DDR"
        assert profile.get(unit, key) is None
    assert profile.get("SEQ", "max_active_tokens") is None


def test_a_profile_overrides_the_device_which_overrides_the_defaults() -> None:
    on = device({"DMA": {"bandwidth": 16, "latency": 9}, "NMU": {"int8_macs": 100}})
    profile = timing_profile(on, {"DMA": {"bandwidth": 64}})
    assert [profile.at("DMA", "bandwidth"), profile.at("DMA", "latency")] == [64, 9]
    assert [profile.at("NMU", "int8_macs"), profile.at("NMU", "latency")] == [100, 2]
    assert profile.sources["DMA", "bandwidth"] == "profile"
    assert profile.sources["DMA", "latency"] == "device sketch"
    assert profile.sources["NMU", "latency"].startswith("sample profile")


def test_a_device_may_have_no_latency() -> None:
    # Found: a zero of the device, or of a what-if, gave way to the default.
    profile = timing_profile(device({"DMA": {"latency": 0}, "CSTL": {"store_latency": 0}}))
    assert (profile.at("DMA", "latency"), profile.at("CSTL", "store_latency")) == (0, 0)


def test_figures_of_a_device_that_the_machine_does_not_know_are_left_alone() -> None:
    profile = timing_profile(device({"NMU": {"colour": 3}, "DMA": {"int8_macs": 7}}))
    assert profile.get("NMU", "colour") is None
    assert dict(profile.figures) == dict(timing_profile(default_device()).figures)


def test_the_token_limit_comes_from_the_device_and_may_be_overridden() -> None:
    on = device({"SEQ": {"max_active_tokens": 5}})
    assert timing_profile(on).get("SEQ", "max_active_tokens") == 5
    changed = timing_profile(on, {"SEQ": {"max_active_tokens": 2}})
    assert changed.get("SEQ", "max_active_tokens") == 2


@pytest.mark.parametrize(
    ("characteristics", "bits", "is_float", "per_two_cycles"),
    [
        ({}, 8, False, 8192),  # 4096 without any key
        ({}, 16, True, 8192),
        ({}, 32, True, 4096),
        ({"NMU": {"int8_macs": 512}}, 4, False, 1024),  # missing keys fall back to int8_macs
        ({"NMU": {"int8_macs": 512}}, 16, False, 1024),
        ({"NMU": {"int8_macs": 512}}, 16, True, 1024),
        ({"NMU": {"int8_macs": 512}}, 32, True, 512),
        ({"NMU": {"int4_macs": 2048, "int8_macs": 512}}, 4, False, 4096),
        ({"NMU": {"int16_macs": 128, "int8_macs": 512}}, 16, False, 256),
        ({"NMU": {"fp16_macs": 255}}, 16, True, 510),
        ({"NMU": {"fp16_macs": 255}}, 32, True, 255),  # half of an odd rate stays exact
        ({"NMU": {"fp16_macs": 255, "mac_throughput": 10}}, 32, True, 20),  # flat
        ({"NMU": {"int4_macs": 2048, "mac_throughput": 10}}, 4, False, 20),
    ],
)
def test_rates_by_type(
    characteristics: Figures, bits: int, is_float: bool, per_two_cycles: int
) -> None:
    for profile in (
        timing_profile(device(characteristics)),
        timing_profile(default_device(), characteristics),
    ):
        assert profile.macs_per_two_cycles(bits, is_float=is_float) == per_two_cycles


def _may_be_zero(unit: str, key: str) -> bool:
    """What a calibrated device adds is off where it is 0; of the others these may be."""
    added = {(p.unit, p.key) for p in PARAMETERS if p.source == "a calibrated device"}
    return (unit, key) in added or key in ("latency", "store_latency", "burst")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("value", [0, -1, 1.0, 0.5, "32", True, None, [32], 1 << 40, float("nan")])
@pytest.mark.parametrize(("unit", "key"), [(p.unit, p.key) for p in PARAMETERS])
def test_a_figure_that_cannot_be_meant_is_refused(unit: str, key: str, value: object) -> None:
    entries: dict[str, Any] = {key: value}
    if value == 0 and value is not False and _may_be_zero(unit, key):
        assert timing_profile(default_device(), {unit: entries}).get(unit, key) == 0
        return
    with pytest.raises(ProfileError) as caught:
        timing_profile(default_device(), {unit: entries})
    assert f"`{unit}.{key}` is" in str(caught.value)
    assert "expected an integer from" in str(caught.value)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"GPU": {"latency": 1}}, "no unit `GPU`"),
        ({"sdma": {"latency": 1}}, "no unit `sdma`; did you mean `sDMA`?"),
        ({"WDM": {"sparse": 0}}, "`WDM` has no figure `sparse`"),
        ({3: {"latency": 1}}, "no unit `3`"),
        ({"DMA": 32}, "`DMA` needs keys with figures, found `32`"),
        ({"DMA": None}, "`DMA` needs keys with figures, found `None`"),
        ({"DMA": {"bandwith": 32}}, "`DMA` has no figure `bandwith`; did you mean `bandwidth`?"),
        ({"DMA": {"xyzzy": 32}}, "known are bandwidth, latency, burst"),
        ({"DMA": {"int8_macs": 32}}, "`DMA` has no figure `int8_macs`"),
        ({"DMA": {7: 32}}, "`DMA` has no figure `7`"),
        ({"NMU": {"lanes": 32}}, "`NMU.lanes` is `32`, expected two positive integers"),
        ({"NMU": {"lanes": [32]}}, "expected two positive integers"),
        ({"NMU": {"lanes": [32, 0]}}, "expected two positive integers"),
        ({"NMU": {"lanes": [32, True]}}, "expected two positive integers"),
        ({"NMU": {"lanes": "ab"}}, "expected two positive integers"),
    ],
)
def test_what_is_wrong_is_said(profile: Mapping[Any, Any], message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        timing_profile(default_device(), profile)
    assert message in str(caught.value)


def test_every_problem_is_named_at_once() -> None:
    wrong: dict[str, Any] = {
        "DMA": {"bandwidth": 0, "latency": -1, "width": 3, "burst": 1},
        "GPU": {},
        "NMU": {"lanes": [0, 0], "latency": 1.5},
        "CSTL": "fast",
    }
    with pytest.raises(ProfileError) as caught:
        timing_profile(default_device(), wrong)
    text = str(caught.value)
    named = [
        "`DMA.bandwidth`", "`DMA.latency`", "`width`", "`GPU`", "`NMU.lanes`", "`NMU.latency`",
        "`CSTL`",
    ]  # fmt: skip
    assert [name for name in named if name not in text] == []
    assert "burst" not in text.replace("known are bandwidth, latency, burst", "")


def test_lanes_are_a_pair() -> None:
    assert timing_profile(default_device(), {"NMU": {"lanes": (32, 128)}}).lanes == (32, 128)


def test_an_empty_profile_changes_nothing() -> None:
    plain = timing_profile(default_device())
    profiles: list[Figures] = [{}, {"DMA": {}}]
    for empty in profiles:
        assert dict(timing_profile(default_device(), empty).figures) == dict(plain.figures)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("NMU.int8", "did you mean `NMU.int8_macs`? figures of `NMU` are NMU.int4_macs, "),
        ("NMU.bogus", "no figure `NMU.bogus`; figures of `NMU` are NMU.int4_macs, "),
        ("bogus", "no figure `bogus`; figures are topology.num_engines, "),
    ],
)
def test_a_change_of_no_figure_says_which_there_are(key: str, hint: str) -> None:
    with pytest.raises(ProfileError) as found:
        change_device(default_device(), {key: 3})
    assert hint in str(found.value)
