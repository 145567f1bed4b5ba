"""Plans as people have them: a plan, bytes, a file of text, the name of one that comes along."""

from __future__ import annotations

from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.source import Unreadable, read_source, whole_file
from nacre.nac.format.values import Plan
from nacre.nac.mep.assembler import assemble
from nacre.nac.mep.plans import plan_names, plan_text
from nacre.nac.mep.program import read
from nacre.nac.rules.plans import NAC80

PlanSource = Plan | bytes | bytearray | memoryview | str | Path


def plan_of(source: PlanSource) -> Plan:
    """A plan; InputError says why it is none.

    Bytes are those that `assemble` gives. A text is the name of a plan that comes along, or the
    path of a file in assembly.
    """
    if isinstance(source, Plan):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return _filled(read(source), "<plan>")
    if not isinstance(source, str | Path):
        message = f"the plan is a {type(source).__name__}, expected a plan, its bytes or a path"
        raise InputError([NAC80.at(whole_file("<plan>"), message, help=_help())])
    if source in plan_names():
        return read(assemble(plan_text(str(source)), str(source)))
    text = read_source(Path(source))
    if isinstance(text, Unreadable):
        place = whole_file(str(source))
        raise InputError([NAC80.at(place, f"the plan {text.reason}", help=_help())])
    return _filled(read(assemble(text.text, str(source))), str(source))


def _filled(plan: Plan, name: str) -> Plan:
    if plan.bytecode:
        return plan
    message = "the plan has no instructions, expected one at least"
    raise InputError([NAC80.at(whole_file(name), message, help=_help())])


def _help() -> str:
    return f"write one, or take one of {', '.join(plan_names())}"
