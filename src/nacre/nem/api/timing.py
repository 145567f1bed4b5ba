"""Timing a program: profiles from callers and files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nacre.base.diagnostics import InputError
from nacre.base.source import Unreadable, read_bytes
from nacre.nem.model.devices import Device, default_device
from nacre.nem.plan.plan import Plan
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import Figures, ProfileError, timing_profile
from nacre.nem.run.timing.resources import NoUnitError
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.text import summary
from nacre.nem.run.timing.timeline import time_steps
from nacre.nem.spec.rules.running import RUN11

__all__ = ["Figures", "figures_error", "read_profile", "time_plan"]

# A profile has a few dozen figures; anything larger is no profile.
_MAX_PROFILE_BYTES = 1 << 20


def read_profile(profile: Figures | str | Path | None) -> Figures | None:
    """A profile from a mapping or a file, its figures looked at; InputError says what is wrong."""
    if profile is None:
        return None
    figures: object = _read_file(Path(profile)) if isinstance(profile, str | Path) else profile
    if not isinstance(figures, Mapping):
        raise figures_error("a timing profile maps units to figures")
    try:
        timing_profile(default_device(), figures)
    except ProfileError as error:
        raise figures_error(str(error)) from None
    return figures


def _read_file(path: Path) -> object:
    raw = read_bytes(path, limit=_MAX_PROFILE_BYTES)
    if isinstance(raw, Unreadable):
        if raw.kind == "too large":
            raise figures_error(f"`{path}` {raw.reason}: this is no timing profile")
        raise host_error(f"cannot read `{path}`: it {raw.reason}")
    try:
        text = raw.decode()
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise figures_error(f"`{path}` is no timing profile: {error}") from None


def time_plan(
    plan: Plan,
    device: Device,
    profile: Figures | None = None,
    changes: Mapping[str, int] = MappingProxyType({}),
    *,
    whole: bool = False,
) -> TimedResult:
    """Time a plan on a device; `changes` are figures that the device owes to a what-if.

    `whole` works everything out now, for a plan of which some of it may have no answer.
    """
    try:
        figures = timing_profile(device, _without_changed(profile, changes))
        result = TimedResult(time_steps(number_steps(plan), device, figures))
    except (ProfileError, NoUnitError) as error:
        raise figures_error(str(error)) from None
    if whole:
        result.as_json()
        summary(result)
    return result


def _without_changed(profile: Figures | None, changes: Mapping[str, int]) -> Figures:
    """A profile without the figures that a change replaces: what is asked for last holds."""
    return {
        unit: {key: v for key, v in entries.items() if f"{unit}.{key}" not in changes}
        for unit, entries in (profile or {}).items()
    }


def figures_error(message: str) -> InputError:
    """What is wrong with the figures of a profile or of a what-if."""
    return InputError([RUN11.at(HOST, message)])
