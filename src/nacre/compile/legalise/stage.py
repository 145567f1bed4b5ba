"""First stage: operations brought to a few general ones, in f32 and 32-bit integers.

Weights are folded while they are still exact, whatever a model spells out is recovered, and windows
run over two axes. The second stage, `layout`, brings the result to the operations and the precision
of the device. Both results are ordinary modules of Core IR; the last one is what the plan is held
to: a run of the plan and an evaluation of it agree, for integers to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from nacre.compile.legalise.forms.tables import GENERAL_FORMS, UNIFY_NAMES, remove_idle
from nacre.compile.legalise.forms.types import NARROW, retype
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import origins_of, source_value_text
from nacre.core.canonical import canonicalise
from nacre.core.module import Labels, Module
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.passes.inference import INFERENCE, optimise
from nacre.core.passes.runner import run_passes
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.engine import apply_until_stable


def legalise(source: Module, precision: str) -> Legal:
    """The module in a few general operations, for a precision that `layout` applies.

    - floats in f32, integers of 64 bits in 32; constants that do not fit are held at the end
    - operations on constants computed
    - windows over one and three axes as windows over two
    - everything that `optimise` recovers: norms, activations, attention, folded scales
    """
    source = hoist_inputs(source)  # afterwards values keep their numbers
    module = canonicalise(source)
    kept = (*module.outputs, *(state.output for state in module.states))
    # Labels follow their values through rewrites; here they say where each comes from.
    numbers = Labels(nodes={op.value_id: str(op.value_id) for op in module.operations})
    notes: list[str] = []
    named = partial(source_value_text, source)
    general = retype(Module(module.operations, kept, labels=numbers), NARROW, notes.append, named)
    unified = apply_until_stable(general, UNIFY_NAMES)
    notes += _rounding_left_out(general, unified)
    general = optimise(unified)  # scales fold while nothing stands between
    general = remove_idle(apply_until_stable(general, GENERAL_FORMS))
    general = remove_idle(run_passes(general, INFERENCE, verify_each=False))
    return Legal(
        general,
        origins_of(general, source),
        len(module.outputs),
        tuple(notes),
        precision=precision,
        source=replace(source, labels=module.labels),  # of equal operations, one has both names
    )


def _rounding_left_out(before: Module, after: Module) -> list[str]:
    """A note where products are done in floats that found their scales at run time."""
    counts = [
        sum(op.opcode == "DynamicQuantizeScale" for op in dead_code(module).operations)
        for module in (before, after)
    ]
    count = counts[0] - counts[1]
    if not count:
        return []
    return [f"{count} tensors that the model quantises by scales of each run stay floats"]


def without_labels(legal: Legal) -> Legal:
    """The result, whose numbers for people are those of its origins."""
    assert legal.source is not None
    found = origins_of(legal.module, legal.source)
    return replace(legal, origins=found, module=replace(legal.module, labels=None))
