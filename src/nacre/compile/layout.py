"""Second stage: the operations, the order of axes and the precision that the device wants.

Windows have their channels last; transpositions sink until they meet and cancel, and those that are
left exchange two runs of axes each. What follows takes exactly the set of `legal.contract`.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.compile.legal.contract import escapes
from nacre.compile.legal.rounds import in_rounds, labelled
from nacre.compile.legal.tables import LAST, LATE, SETTLE, SINK
from nacre.compile.legal.types import retyped
from nacre.compile.legalise import Legal, without_labels
from nacre.core.canonical import canonicalise


def layout(legal: Legal) -> Legal:
    """The module in the operations of the device, in its precision."""
    module = legal.module
    for forms in (SINK, LATE, SETTLE, LATE):
        module = labelled(canonicalise(in_rounds(module, forms)))
    # From here on nothing is put into canonical form: it would join what has to stay apart.
    module = in_rounds(module, LAST)
    notes, types = list(legal.notes), {"f32": "f16"} if legal.precision == "f16" else {}
    module = labelled(retyped(module, types, notes.append, finite=True))
    made = replace(legal, module=module, notes=tuple(notes), escaped=escapes(module))
    return without_labels(made)
