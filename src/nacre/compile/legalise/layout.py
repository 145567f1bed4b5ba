"""Second stage: the operations, the order of axes and the precision that the device wants.

Windows have their channels last; transpositions sink until they meet and cancel, and those that are
left exchange two runs of axes each. What follows takes exactly the set of `legal.contract`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.contract import escapes
from nacre.compile.legalise.f16_range import notes_on_small_outputs, values_beyond_f16
from nacre.compile.legalise.forms.elementwise.near_zero import (
    EXACT_LOG1P,
    PLAIN_LOG1P,
    with_exact_curves,
)
from nacre.compile.legalise.forms.escape import escape_of
from nacre.compile.legalise.forms.masks.folding import fold_masks
from nacre.compile.legalise.forms.masks.levelling import level_masks, mask_values
from nacre.compile.legalise.forms.mixed_precision.logarithms import LogarithmChains
from nacre.compile.legalise.forms.mixed_precision.widening import widen_chains
from nacre.compile.legalise.forms.movement.gather import FROM_FRONT
from nacre.compile.legalise.forms.tables import (
    DEVICE_FORMS,
    PLACE_TRANSPOSES,
    SINK_ADDED_TRANSPOSES,
    SINK_TRANSPOSES,
    SPLIT_TRANSPOSES,
    remove_idle,
)
from nacre.compile.legalise.forms.types import retype
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import (
    legal_operation_text,
    place_of,
    source_operation_text,
    source_value_text,
)
from nacre.compile.legalise.stage import without_labels
from nacre.compile.rules import CMP01
from nacre.core.canonical import canonicalise
from nacre.core.module import Module
from nacre.core.rewrite.engine import apply_once, apply_until_stable
from nacre.core.rewrite.labels import complete_labels

_WIDE = frozenset({"i16", "u16", "i32", "u32"})  # integers that floats of 16 bits do not hold
_MOST = GRAPH_TYPES["f16"].largest_finite
_COUNTING = frozenset({"BinOp", "Sum", "Reduce", "CumSum", "CumProd", "MatMul", "Neg"})
_HELP = "leave it to the host, before or after the model"


def layout(
    legal: Legal, lacking: frozenset[str] = frozenset(), *, has_islands: bool = False
) -> Legal:
    """The module in the operations of the device, in its precision.

    `lacking` are the opcodes that the device does not have in f32: what stays f32 in a plan of f16
    runs by name instead of them. `has_islands` says that parts will be f16 once the rest is i8.
    """
    module, is_half = legal.module, legal.precision == "f16"
    if is_half or has_islands:
        module = fold_masks(module)
    if not has_islands:
        module = complete_labels(with_exact_curves(module))
    for forms in (
        SINK_TRANSPOSES,
        PLACE_TRANSPOSES,
        DEVICE_FORMS,
        SINK_ADDED_TRANSPOSES,
        PLACE_TRANSPOSES,
        DEVICE_FORMS,
    ):
        module = remove_idle(apply_until_stable(module, forms))
    module = complete_labels(canonicalise(module))
    # From here on nothing is put into canonical form: it would join what has to stay apart.
    module = apply_until_stable(apply_once(module, FROM_FRONT), SPLIT_TRANSPOSES)
    assert legal.source is not None
    named = partial(source_value_text, legal.source)
    notes = list(legal.notes)
    types = {"f32": "f16"} if is_half else {}
    wide = left = frozenset[int]()
    if is_half or has_islands:
        module = complete_labels(level_masks(module))
    if is_half:
        beyond = values_beyond_f16(module, legal.source)
        notes += notes_on_small_outputs(module, beyond)
        far = [value in beyond.values for value in module.outputs[: legal.outputs]]
        module, wide = widen_chains(
            module, beyond.values, beyond.largest, faded=beyond.faded, alone=beyond.alone
        )
        module = complete_labels(module)
        left = frozenset(
            value for value, is_far in zip(module.outputs, far, strict=False) if is_far
        )
        wide |= mask_values(module)
    else:
        if has_islands:
            notes += _notes_on_logarithms(module)
        module = complete_labels(apply_once(module, PLAIN_LOG1P if has_islands else EXACT_LOG1P))
    module = complete_labels(
        retype(module, types, notes.append, named, finite=True, wide=wide, wide_outputs=left)
    )
    escaped = escapes(module, lacking if is_half else ())
    laid_out = replace(legal, module=module, escaped=escaped, lacking=lacking)
    laid_out = without_labels(laid_out)
    _require_writable(laid_out)
    return replace(laid_out, notes=(*dict.fromkeys(notes), *_overflow_notes(laid_out)))


def _notes_on_logarithms(module: Module) -> Iterator[str]:
    """A note where a plan of f16 would keep f32 around a logarithm, and islands of i8 have f16."""
    count = len(LogarithmChains(module).wide)
    if count:
        values = "1 value" if count == 1 else f"{count} values"
        yield (
            f"{values} around a logarithm or a reciprocal may be too small for i8, whose islands "
            "are f16: below 6e-5 digits are lost, below 6e-8 all, and data without such inputs do "
            "not show it; precision f16 keeps these values f32"
        )


def _overflow_notes(legal: Legal) -> Iterator[str]:
    """Notes on integers that may not fit what they become."""
    module, source = legal.module, legal.source
    wide = 0
    for op in module.operations:
        makers = [module.by_id[value] for value in op.operands]
        if op.opcode == "Cast" and op.type.dtype == "f16" and makers[0].type.dtype in _WIDE:
            told = legal_operation_text(legal, op)
            yield f"{told}: integers beyond {_MOST:g} become infinite in f16"
        number = next(iter(legal.origins.get(op.value_id, ())), None)
        before = source.by_id.get(number) if source is not None and number is not None else None
        is_wide = before is not None and before.type.dtype == "i64" and op.type.dtype == "i32"
        wide += is_wide and op.opcode in _COUNTING
    if wide:
        told = "1 operation is" if wide == 1 else f"{wide} operations are"
        yield f"{told} done on integers of 32 bits instead of 64: what goes beyond wraps around"


def _require_writable(legal: Legal) -> None:
    """Raise InputError with every escape that NEM cannot write, or that has types it lacks."""
    findings = []
    for op in legal.module.operations:
        if op.value_id not in legal.escaped:
            continue
        escape = escape_of(op)
        problem = escape if isinstance(escape, str) else None
        if problem is not None:
            message = f"{source_operation_text(legal, op)} has no form in NEM: {problem}"
            findings.append(CMP01.at(place_of(legal, (op.value_id,)), message, help=_HELP))
    if findings:
        raise InputError(findings)
