"""Second stage: the order of axes that the device wants, channels last.

Convolutions and poolings with channels first are put between two transpositions, weights are turned
at once, and transpositions sink until they meet and cancel. Those that are left stay operations.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.base.diagnostics import InputError
from nacre.compile.geometry import swap_of
from nacre.compile.legalise import Legal
from nacre.compile.rules import CMP01
from nacre.core.canonical import canonicalise
from nacre.core.evaluation_plan import place
from nacre.core.inference.pipeline import channels_last
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.ops import OPS


def layout(legal: Legal) -> Legal:
    """The module with every window operation in NHWC."""
    if not any(map(_has_channels_first, legal.module.operations)):
        return legal
    # Labels follow their values through rewrites; here they say where each comes from.
    origins = Labels(nodes={value: str(source) for value, source in legal.origins.items()})
    made = canonicalise(channels_last(replace(legal.module, labels=origins)))
    assert made.labels is not None
    _require_swaps(made)
    found = {value: int(source) for value, source in made.labels.nodes.items()}
    return replace(legal, module=replace(made, labels=None), origins=found)


def _require_swaps(module: Module) -> None:
    """Raise InputError where a transposition is left that has no form."""
    found = [
        CMP01.at(place(module, index), f"`Transpose` by {list(op.attributes['permutation'])}, "
                 "which the layout leaves over, moves more than two runs of axes")
        for index, op in enumerate(module.operations)
        if op.opcode == "Transpose"
        and swap_of(module.by_id[op.operands[0]].type.shape, op.attributes["permutation"]) is None
    ]  # fmt: skip
    if found:
        raise InputError(found)


def _has_channels_first(op: CoreOperation) -> bool:
    spec = OPS[op.opcode]
    return spec.attribute("layout") is not None and spec.filled(op.attributes)["layout"] == "NCHW"
