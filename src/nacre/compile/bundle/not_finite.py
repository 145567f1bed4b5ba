"""NaN and infinities at the borders of a plan: what it cannot hold, and what it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.compile.bundle.manifest import Manifest, Port
from nacre.compile.rules import CMP12, CMP13
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_LATER = "the integers of 8 bits that its layers lead to"
_LOST = "as integers, NaN becomes the real value 0, an infinity the end of the range"
_LEFT = (
    "validating the bundle with these inputs shows whether the model gives them too, and which "
    "layer loses most; inputs of smaller values, or scaled ones, may stay within f16"
)


def warn_of_lost_inputs(manifest: Manifest, arrays: Mapping[str, Array]) -> list[Diagnostic]:
    """A warning for each input of a plan on integers that has NaN or infinities."""
    warnings: list[Diagnostic] = []
    for port in manifest.inputs if manifest.precision == "i8" else ():
        nans, infinities = _count_not_finite(port, arrays[port.name])
        if port.elem == "f32":
            infinities = 0  # of a mask: they hide something, and mean what they say
        if nans or infinities:
            where = "integers of 8 bits" if port.scale is not None else _LATER
            counts_text = _describe_counts(nans, infinities, arrays[port.name])
            message = f"input {backquote(port.name)} has {counts_text}, and {where} have neither"
            warnings.append(CMP12.at(whole_file("<compile>"), message, help=_LOST))
    return warnings


def warn_of_infinite_outputs(
    manifest: Manifest, legal: Module, inputs: Mapping[str, Array], outputs: Sequence[Array]
) -> list[Diagnostic]:
    """A warning for each output that has NaN or infinities though inputs and constants do not."""
    counts = [
        _count_not_finite(port, array)
        for port, array in zip(manifest.outputs, outputs, strict=False)
    ]
    if not any(map(any, counts)):
        return []
    if any(any(_count_not_finite(port, inputs[port.name])) for port in manifest.inputs):
        return []
    if any(map(_is_infinite_constant, legal.operations)):
        return []
    warnings: list[Diagnostic] = []
    for port, array, (nans, infinities) in zip(manifest.outputs, outputs, counts, strict=False):
        if nans or infinities:
            counts_text = _describe_counts(nans, infinities, array)
            message = (
                f"output {backquote(port.name)} has {counts_text}, of inputs that are all finite"
            )
            warnings.append(CMP13.at(whole_file("<compile>"), message, help=_LEFT))
    return warnings


def _is_infinite_constant(op: CoreOperation) -> bool:
    """Whether it is a constant with NaN or infinities, which the model means."""
    if op.type.element.kind != "float":
        return False
    array = constant_array(op)
    return array is not None and not np.isfinite(array.astype(np.float32)).all()


def _count_not_finite(port: Port, array: Array) -> tuple[int, int]:
    """How many NaN and infinities there are."""
    if GRAPH_TYPES[port.dtype].kind != "float":
        return 0, 0
    wide = array.astype(np.float64)
    return int(np.isnan(wide).sum()), int(np.isinf(wide).sum())


def _describe_counts(nans: int, infinities: int, array: Array) -> str:
    return f"{nans} NaN and {infinities} infinities among {array.size} elements"
