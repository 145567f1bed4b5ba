"""Second stage: the operations, the order of axes and the precision that the device wants.

Windows have their channels last; transpositions sink until they meet and cancel, and those that are
left exchange two runs of axes each. What follows takes exactly the set of `legal.contract`.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.base.diagnostics import InputError
from nacre.compile.legal.contract import escapes
from nacre.compile.legal.escape import escape_of
from nacre.compile.legal.rounds import in_rounds, labelled, tidied
from nacre.compile.legal.tables import LAST, LATE, SETTLE, SINK
from nacre.compile.legal.types import retyped
from nacre.compile.legalise import Legal, without_labels
from nacre.compile.rules import CMP01
from nacre.core.canonical import canonicalise
from nacre.core.evaluation_plan import place


def layout(legal: Legal) -> Legal:
    """The module in the operations of the device, in its precision."""
    module = legal.module
    for forms in (SINK, LATE, SETTLE, LATE):
        module = tidied(in_rounds(module, forms))
    module = labelled(canonicalise(module))
    # From here on nothing is put into canonical form: it would join what has to stay apart.
    module = in_rounds(module, LAST)
    notes, types = list(legal.notes), {"f32": "f16"} if legal.precision == "f16" else {}
    module = labelled(retyped(module, types, notes.append, finite=True))
    made = replace(legal, module=module, notes=tuple(notes), escaped=escapes(module))
    made = without_labels(made)
    _require_writable(made)
    return made


def _require_writable(legal: Legal) -> None:
    """Raise InputError with every escape that NEM cannot write, or that has types it lacks."""
    found = []
    for index, op in enumerate(legal.module.operations):
        if op.value_id not in legal.escaped:
            continue
        escape = escape_of(op)
        problem = escape if isinstance(escape, str) else None
        if problem is not None:
            source = legal.origins.get(op.value_id, op.value_id)
            message = f"`{op.opcode}` %{source} has no form in NEM: {problem}"
            found.append(CMP01.at(place(legal.module, index), message))
    if found:
        raise InputError(found)
