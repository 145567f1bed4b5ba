"""Plans that come with the package, as text; each says what it asks for and what it returns."""

from __future__ import annotations

from importlib.resources import files

from nacre.nac.mep.assembler import assemble

_SUFFIX = ".mep"


def plan_names() -> tuple[str, ...]:
    """The names of the plans."""
    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def plan_text(name: str) -> str:
    """The text of a plan; KeyError has the names where there is none."""
    if name not in plan_names():
        raise KeyError(f"there is no plan {name!r}, only {', '.join(plan_names())}")
    return (files(__name__) / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def shipped_plan(name: str) -> bytes:
    """A plan, assembled."""
    return assemble(plan_text(name), f"{name}{_SUFFIX}")
