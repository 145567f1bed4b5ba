"""Whether the device has the types that a model needs."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.lowerings import Lowering, lowering_of
from nacre.compile.options import PRECISIONS, Options
from nacre.compile.partition import Partition
from nacre.compile.rules import CMP03
from nacre.core.evaluation_plan import place
from nacre.core.module import CoreOperation
from nacre.nem.model.devices import Device


def require_types(partition: Partition, options: Options) -> None:
    """Raise InputError with every opcode that the device lacks in the precision."""
    module = partition.legal.module
    found: dict[str, Diagnostic] = {}
    for layer in partition.layers:
        for op in layer.operations:
            row = lowering_of(op)
            if row is None:
                continue
            form = _form(op, row)
            if form in found or supports(options.device, row.nem, options.precision, form):
                continue
            message = f"device `{options.device.name}` has no {form} in {options.precision}"
            found[form] = CMP03.at(
                place(module, module.operations.index(op)),
                message,
                help=_other(row.nem, form, options),
            )
    if found:
        raise InputError(list(found.values()))


def _form(op: CoreOperation, row: Lowering) -> str:
    """What a device must have: an opcode, of products with or without a bias."""
    if row.kind not in ("linear", "window"):
        return f"`{row.nem}`"
    return f"`{row.nem}` with a bias" if len(op.operands) > 2 else f"`{row.nem}` without a bias"


def supports(device: Device, opcode: str, precision: str, form: str) -> bool:
    """Whether an opcode has a variant of a precision in a form."""
    ending = (
        ".with_bias" if "with a bias" in form else ".no_bias" if "without a bias" in form else ""
    )
    variants = (instance.id for instance in device.effective.get(opcode, ()))
    return any(precision in variant and variant.endswith(ending) for variant in variants)


def _other(opcode: str, form: str, options: Options) -> str | None:
    known = [p for p in PRECISIONS if supports(options.device, opcode, p, form)]
    return f"it has {' and '.join(known)}" if known else None
