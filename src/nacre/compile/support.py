"""Whether the device has the types that a model needs."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.lowerings import lowering_of
from nacre.compile.options import PRECISIONS, Options
from nacre.compile.partition import Partition
from nacre.compile.rules import CMP03
from nacre.core.evaluation_plan import place
from nacre.nem.model.devices import Device


def require_types(partition: Partition, options: Options) -> None:
    """Raise InputError with every opcode that the device lacks in the precision."""
    module = partition.legal.module
    found: dict[str, Diagnostic] = {}
    for layer in partition.layers:
        for op in layer.operations:
            row = lowering_of(op)
            if (
                row is None
                or row.nem in found
                or supports(options.device, row.nem, options.precision)
            ):
                continue
            message = f"device `{options.device.name}` has no `{row.nem}` in {options.precision}"
            found[row.nem] = CMP03.at(
                place(module, module.operations.index(op)), message, help=_other(row.nem, options)
            )
    if found:
        raise InputError(list(found.values()))


def supports(device: Device, opcode: str, precision: str) -> bool:
    """Whether an opcode has a variant whose output is of a precision."""
    return any(precision in instance.id for instance in device.effective.get(opcode, ()))


def _other(opcode: str, options: Options) -> str | None:
    known = [p for p in PRECISIONS if supports(options.device, opcode, p)]
    return f"it has {' and '.join(known)}" if known else None
