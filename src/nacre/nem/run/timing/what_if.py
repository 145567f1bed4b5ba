"""A device with other figures: what if L1 were 2 MB, or the NMU twice as fast?"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import replace

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.nem.model.devices import Device
from nacre.nem.model.figures import figure_problems
from nacre.nem.run.timing.profile import ProfileError, as_integer, what_holds_without
from nacre.nem.spec.figures import bounds_of, figure_names, is_absent_at_zero
from nacre.nem.spec.units import DEVICE_UNITS

# Of ASCII only: without it the sign of kelvin is a `k`. More digits are beyond every bound.
_SIZE = re.compile(r"(-?[0-9]{1,18})\s*([KMG]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MEMORIES = ("l1_size_bytes", "l2_size_bytes")


def parse_changes(text: str) -> dict[str, int]:
    """`NMU.int8_macs=8192,topology.l1_size_bytes=2M` as figures; ProfileError names what is bad."""
    changes: dict[str, int] = {}
    problems = []
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        size = _SIZE.fullmatch(value)
        if not (equals and key and value):
            problems.append(f"{backquote(part.strip())} is no change; write KEY=NUMBER")
        elif size is None:
            expected = "expected a whole number, or one with K, M or G"
            problems.append(f"{backquote(key)} is {backquote(value, 40)}, {expected}")
        elif key in changes:
            problems.append(f"{backquote(key)} is given twice")
        else:
            changes[key] = int(size[1]) * _FACTORS[size[2].upper()]
    if problems:
        raise ProfileError("; ".join(dict.fromkeys(problems)))
    return changes


def absent_figures(changes: Mapping[str, int]) -> list[str]:
    """What is said of figures that are set to 0, which is the same as absent, not none at all."""
    names = [key.partition(".")[::2] for key, value in changes.items() if value == 0]
    return [
        f"{unit}.{key}=0 is as if nobody gave it: {what_holds_without(unit, key)}"
        for unit, key in names
        if is_absent_at_zero(unit, key)
    ]


def known_keys() -> list[str]:
    """Every figure that can be changed."""
    return figure_names()


def change_device(device: Device, changes: Mapping[str, int]) -> Device:
    """A device with some figures replaced; ProfileError where one is unknown or not sound."""
    if not isinstance(changes, Mapping):
        raise ProfileError("changes map figures such as `NMU.int8_macs` to integers")
    problems = [_problem(str(key), value) for key, value in changes.items()]
    if any(problems):
        raise ProfileError("; ".join(p for p in problems if p))
    changes = {str(key): operator.index(value) for key, value in changes.items()}
    characteristics = {unit: dict(entries) for unit, entries in device.characteristics.items()}
    topology = device.topology
    for key, value in changes.items():
        group, _, name = key.partition(".")
        if group != "topology":
            characteristics.setdefault(group, {})[name] = value
        elif topology is not None and name in ("num_engines", *_MEMORIES):
            topology = replace(topology, **{name: value})  # type: ignore[arg-type]
        elif topology is not None and name in DEVICE_UNITS:
            topology = replace(topology, device_units={**topology.device_units, name: value})
        elif topology is not None:
            topology = replace(topology, per_engine={**topology.per_engine, name: value})
    named = f"{device.name} with {', '.join(f'{k}={v}' for k, v in changes.items())}"
    changed = replace(device, name=named, topology=topology, characteristics=characteristics)
    if beyond := figure_problems(changed):
        raise ProfileError("; ".join(beyond))
    return changed


def _suggestion(key: str, known: list[str]) -> str:
    """The figure that was meant, and those of its unit; of all where there is no such unit."""
    group = key.partition(".")[0]
    begun = [name for name in known if name.lower().startswith(key.lower())]
    hint = f"did you mean `{begun[0]}`?" if len(begun) == 1 else did_you_mean(key, known)
    of_unit = [name for name in known if name.partition(".")[0].lower() == group.lower()]
    what = f"figures of `{of_unit[0].partition('.')[0]}`" if of_unit else "figures"
    return f"{hint + ' ' if hint else ''}{what} are {', '.join(of_unit or known)}"


def _problem(key: str, value: object) -> str | None:
    known = known_keys()
    if key not in known:
        return f"no figure {backquote(key)}; {_suggestion(key, known)}"
    group, _, name = key.partition(".")
    bounds = bounds_of(group, name)
    if bounds is None or not bounds.admit(as_integer(value)):
        return f"`{key}` is {backquote(str(value), 40)}, expected {bounds}"
    return None
