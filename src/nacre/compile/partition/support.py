"""Whether the device has the types and the room that a model needs."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.legalise.origins import of_nodes, place_of
from nacre.compile.options import PRECISIONS, Options
from nacre.compile.partition.layers import Layer, Step, resolved
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.variants import supports
from nacre.compile.rules import CMP03


def require_types(partition: Partition, options: Options) -> None:
    """Raise InputError with every opcode that the device lacks in the types of a task."""
    legal = partition.legal
    found: dict[tuple[str, str], Diagnostic] = {}
    for layer in partition.layers:
        for number, step in enumerate(layer.steps):
            form, elem = _form(step), _elem(layer, step)
            if (form, elem) in found or supports(options.device, step.nem, elem, form):
                continue
            values = layer.makes[number : number + 1] or (layer.operations[0].value_id,)
            message = (
                f"device `{options.device.name}` has no {form} in {elem}, which "
                f"`{layer.name}`{of_nodes(legal, values)} needs"
            )
            found[form, elem] = CMP03.at(
                place_of(legal, values), message, help=_other(step.nem, form, options)
            )
    if found:
        raise InputError(list(found.values()))


def _elem(layer: Layer, step: Step) -> str:
    return step.inputs[0].elem or layer.locals[step.inputs[0].local].elem


def _form(step: Step) -> str:
    """What a device must have: an opcode, of products with or without a bias."""
    if step.nem not in ("gemm", "conv2d"):
        return f"`{step.nem}`"
    return f"`{step.nem}` with a bias" if len(step.inputs) > 2 else f"`{step.nem}` without a bias"


def _other(opcode: str, form: str, options: Options) -> str | None:
    known = [p for p in PRECISIONS if supports(options.device, opcode, p, form)]
    if known:
        return f"it has {' and '.join(known)}"
    return "`nacre devices NAME` lists what a device has; another device may have it"


def held_by_tile(layer: Layer, rows: int, columns: int) -> str:
    """What a tile of a layer holds in L1, for a message: every operand and result by its bytes."""
    size = layer.size(rows, columns)
    names = {
        number: f"operand {number}"
        for number, access in enumerate(layer.operands)
        if not access.stays
    }
    names |= {result.local: "the result" for result in layer.results}
    told = []
    for number, name in names.items():
        local = layer.locals[number]
        shape = ", ".join(map(str, resolved(local.axes, size)))
        told.append(f"{name}, {local.elem}[{shape}], {local.bytes(size)} bytes")
    return "; ".join(told)
