"""Which layer of a plan loses most, and what would help.

The legalised module is run twice, in f32 and in the plan's precision, side by side: a layer loses
what its result is worse than what goes into it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf, isnan, log10, nan
from typing import TYPE_CHECKING

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.accuracy.measures import SQNR_DB
from nacre.compile.bundle.clipped_layers import find_most_clipped
from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.narrowing import store_floats
from nacre.compile.legalise.origins import source_operation_text
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.legalise.stage import legalise
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

if TYPE_CHECKING:
    from nacre.compile.bundle.compiled_model import CompiledModel

_HALF = GRAPH_TYPES["f16"]
_LEAST_NORMAL = 2.0**-14  # below it f16 has fewer digits
_EXACT = 66.0  # dB that f16 has at most: what rounds once loses nothing
_OF_HALVES = frozenset({"Linear", "Conv", "Gather", "GatherAxis"})
_WIDER = "f32, on a device that has it (`nem_reference`)"
_AT_HOST = "leaving that part of the model to the host"


@dataclass(frozen=True)
class LostLayer:
    """A layer, what is left of it and of its operands in dB, why, and what would help.

    What is left is NaN where nobody has measured it.
    """

    layer: str
    before: float
    after: float
    cause: str
    remedy: str

    def __str__(self) -> str:
        ratios = (
            ""
            if isnan(self.after)
            else f", from {_ratio_text(self.before)} to {_ratio_text(self.after)}"
        )
        return f"{self.layer} loses most{ratios}: {self.cause}; what would help: {self.remedy}"


def _ratio_text(ratio: float) -> str:
    if ratio == -inf:
        return "no number at all"
    return f"{ratio:.1f} dB" if ratio < _EXACT else "all that f16 has"


def find_worst_layer(bundle: CompiledModel, arrays: Mapping[str, Array]) -> LostLayer | None:
    """The layer of a plan that loses most; None where none can be told."""
    if bundle.manifest.precision == "i8":
        by_range = None if _misses_at_home(bundle) else _find_lost_by_range(bundle, arrays)
        return by_range or _find_lost_on_data(bundle)
    wide, narrow = (layout(legalise(bundle.source, kind)) for kind in ("f32", "f16"))
    if bundle.manifest.precision != "f16":
        return None
    pairs = _matching_values(wide, narrow)
    return _worst(narrow, _compare_operations(wide.module, narrow.module, pairs, arrays))


def _find_lost_by_range(bundle: CompiledModel, arrays: Mapping[str, Array]) -> LostLayer | None:
    """Inputs that calibration did not see the like of: no layer in floats would help."""
    clipped = find_most_clipped(bundle, arrays)
    if clipped is None:
        return None
    cause = (
        f"{100 * clipped.share:.0f} % of its elements are held at an end of 8 bits, "
        "for the calibration data has nothing like these inputs"
    )
    remedy = "calibration data that has such inputs, or f16"
    return LostLayer(f"`{clipped.layer}`", nan, nan, cause, remedy)


def _misses_at_home(bundle: CompiledModel) -> bool:
    """Whether a layer is lost on the calibration data: then it is not the data that is missing."""
    least = bundle.manifest.accuracy_db or SQNR_DB
    return any(loss.sqnr < least for loss in bundle.manifest.losses)


def _find_lost_on_data(bundle: CompiledModel) -> LostLayer | None:
    asked = bundle.manifest.precision_map
    known = [loss for loss in bundle.manifest.losses if not _is_float(loss.layer, asked)]
    if not known:
        return None
    worst = min(known, key=lambda loss: loss.sqnr)
    if worst.elem != "i8":
        cause = f"it is {worst.elem} already, and amplifies the rounding of what goes into it"
        wider = "f16, which takes logarithms in f32" if worst.opcode == "Log" else _WIDER
        remedy = f"{wider}, or {_AT_HOST}"
    else:
        cause = "256 steps do not hold what it makes, on the calibration data"
        remedy = f"`{worst.layer}=f16` in a precision map, data nearer to these inputs, or f16"
    return LostLayer(f"`{worst.layer}`", _EXACT, worst.sqnr, cause, remedy)


def _is_float(layer: str, asked: Mapping[str, str]) -> bool:
    """Whether a precision map keeps a layer as floats already; the last that names it counts."""
    named = [kind for pattern, kind in asked.items() if fnmatchcase(layer, pattern)]
    return named[-1:] == ["f16"]


def _matching_values(wide: Legal, narrow: Legal) -> dict[int, int]:
    """Values of both modules that stand for each other, the narrow one's first.

    They come from the same operations of the model; rows that are scaled have no other.
    """
    waiting: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for op in reversed(wide.module.operations):
        waiting[_key(wide, op)].append(op.value_id)
    matches = {}
    for op in narrow.module.operations:
        others = waiting.get(_key(narrow, op))
        if _is_compared(op) and not _is_scaled(narrow.module, op) and others:
            matches[op.value_id] = others.pop()
    return matches


def _key(legal: Legal, op: CoreOperation) -> tuple[object, ...]:
    return (legal.origins.get(op.value_id), op.opcode, op.attributes.get("op"), op.type.shape)


def _is_scaled(module: Module, op: CoreOperation) -> bool:
    """Whether an operation takes halves of something, or what is divided by its largest."""
    if op.opcode not in _OF_HALVES:
        return False
    x = module.by_id[op.operands[0]]
    parts = [module.by_id[value] for value in x.operands] if x.opcode == "Concat" else [x]
    return any(part.opcode == "Cast" for part in parts)


def _is_compared(op: CoreOperation) -> bool:
    return op.opcode not in ("Cast", "Input") and "constant" not in OPS[op.opcode].traits


@dataclass(frozen=True, eq=False)
class _OperationLoss:
    op: CoreOperation
    before: float
    after: float
    cause: str

    @property
    def lost(self) -> float:
        return self.before - max(self.after, -_EXACT)


def _compare_operations(
    wide: Module, narrow: Module, pairs: Mapping[int, int], arrays: Mapping[str, Array]
) -> Iterator[_OperationLoss]:
    """Every operation on floats, with what it gets and what it leaves."""
    references = _run(wide, arrays)
    ratios: dict[int, float] = {}
    for value, array in _run(narrow, arrays).items():
        op = narrow.by_id[value]
        before = min((ratios.get(o, _EXACT) for o in op.operands), default=_EXACT)
        ratios[value] = before
        if value in pairs and array.dtype.kind not in "iub":
            wanted = references[pairs[value]].astype(np.float64)
            actual = array.astype(np.float64)
            ratios[value] = after = _ratio(actual, wanted)
            yield _OperationLoss(op, before, after, _explain_loss(actual, wanted))


def _run(module: Module, arrays: Mapping[str, Array]) -> dict[int, Array]:
    types = module.input_types
    given = {name: store_floats(array, types[name].element) for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        return dict(StepwiseRunner(module).run(given))


def _ratio(found: Array, wanted: Array) -> float:
    is_number = np.isfinite(wanted)
    if not np.isfinite(found[is_number]).all():
        return -inf
    noise = float(np.sum((found[is_number] - wanted[is_number]) ** 2))
    signal = float(np.sum(wanted[is_number] ** 2))
    if not noise:
        return _EXACT
    return min(_EXACT, 10 * log10(signal / noise)) if signal else -_EXACT


def _explain_loss(found: Array, wanted: Array) -> str:
    finite = np.abs(wanted[np.isfinite(wanted)])
    most = float(finite.max(initial=0.0))
    if most > _HALF.highest:
        return f"it reaches {most:.3g}, and f16 ends at {_HALF.highest:g}"
    if not np.isfinite(found[np.isfinite(wanted)]).all():
        return "what goes into it is too small or too large for f16"
    small = float(np.mean((finite > 0) & (finite < _LEAST_NORMAL))) if finite.size else 0.0
    if small > 0.01:
        return f"{100 * small:.0f} % of its elements lie below {_LEAST_NORMAL:.1g}, where f16 ends"
    return "it amplifies the rounding of what goes into it"


def _worst(legal: Legal, compared: Iterator[_OperationLoss]) -> LostLayer | None:
    found = max(compared, key=lambda one: one.lost, default=None)
    if found is None or found.lost <= 0:
        return None
    remedy = f"{_WIDER}, or {_AT_HOST}"
    return LostLayer(
        source_operation_text(legal, found.op), found.before, found.after, found.cause, remedy
    )
