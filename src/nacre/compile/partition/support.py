"""Whether the device has the types and the room that a model needs."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import nodes_text, place_of
from nacre.compile.options import PRECISIONS, Options
from nacre.compile.partition.layers import Layer, Step, tile_shape
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.variants import supports
from nacre.compile.rules import CMP03
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.model.target import builtin_device

_MOST_NAMED = 2  # others that a message names


def require_types(partition: Partition, options: Options) -> None:
    """Raise InputError with the opcodes that the device lacks, a finding for each element type."""
    _require_elements(partition.legal)
    missing: dict[str, dict[str, _MissingOpcode]] = {}
    for layer in partition.layers:
        for number, step in enumerate(layer.steps):
            form, elem = _form(step), _elem(layer, step)
            if form in missing.get(elem, {}) or supports(options.device, step.nem, elem, form):
                continue
            values = layer.makes[number : number + 1] or (layer.operations[0].value_id,)
            missing.setdefault(elem, {})[form] = _MissingOpcode(step.nem, form, layer.name, values)
    if missing:
        each = (tuple(lacks.values()) for lacks in missing.values())
        raise InputError(
            [
                _lacking(partition.legal, elem, one, options)
                for elem, one in zip(missing, each, strict=True)
            ]
        )


def _require_elements(legal: Legal) -> None:
    """Raise InputError for the first value in floats that NEM does not have, such as `f8e4m3`."""
    for op in legal.module.operations:
        elem = op.type.dtype
        if elem not in ELEMENT_TYPES and GRAPH_TYPES[elem].kind == "float":
            node = nodes_text(legal, (op.value_id,))
            message = f"`{op.opcode}`{node} gives {elem}, which plans do not have"
            place = place_of(legal, (op.value_id,))
            raise InputError([CMP03.at(place, message, help="cast it in the model")])


@dataclass(frozen=True)
class _MissingOpcode:
    """An opcode that a device does not have in a type, and the first layer that needs it."""

    opcode: str
    form: str
    layer: str
    values: tuple[int, ...]


def _lacking(
    legal: Legal, elem: str, lacks: tuple[_MissingOpcode, ...], options: Options
) -> Diagnostic:
    """One finding for all opcodes that a device lacks in an element type."""
    first, *others = lacks
    message = (
        f"device `{options.device.name}` has no {first.form} in {elem}, which "
        f"`{first.layer}`{nodes_text(legal, first.values)} needs"
    )
    other_texts = [
        f"{x.form} for `{x.layer}`{nodes_text(legal, x.values)}" for x in others[:_MOST_NAMED]
    ]
    if other_texts:
        more = len(others) - len(other_texts)
        message += f", nor {', '.join(other_texts)}{f' and {more} more' if more else ''}"
    return CMP03.at(
        place_of(legal, first.values), message, help=_alternatives(elem, lacks, options)
    )


def _elem(layer: Layer, step: Step) -> str:
    return step.inputs[0].elem or layer.locals[step.inputs[0].local].elem


def _form(step: Step) -> str:
    """What a device must have: an opcode, of products with or without a bias."""
    if step.nem not in ("gemm", "conv2d"):
        return f"`{step.nem}`"
    return f"`{step.nem}` with a bias" if len(step.inputs) > 2 else f"`{step.nem}` without a bias"


def _alternatives(elem: str, lacks: tuple[_MissingOpcode, ...], options: Options) -> str:
    """The precisions that the device has instead, and the devices that have this one."""

    def has_all(device: Device, precision: str) -> bool:
        return all(supports(device, lack.opcode, precision, lack.form) for lack in lacks)

    precisions = [p for p in PRECISIONS if has_all(options.device, p)]
    alternatives = [f"`{options.device.name}` has {' and '.join(precisions)}"] if precisions else []
    built_in = [builtin_device(name) for name in builtin_names()]
    devices = [d.name for d in built_in if not d.is_abstract and has_all(d, elem)]
    if devices:
        names = " and ".join(f"`{name}`" for name in devices[:_MOST_NAMED])
        alternatives.append(f"{names} {'have' if len(devices) > 1 else 'has'} {elem}")
    return "; ".join(alternatives) or "`nacre devices NAME` lists what a device has"


def tile_contents(layer: Layer, rows: int, columns: int) -> str:
    """What a tile of a layer holds in L1, for a message: every operand and result by its bytes."""
    size = layer.size(rows, columns)
    names = {
        number: f"operand {number}"
        for number, access in enumerate(layer.operands)
        if not access.stays
    }
    names |= {result.local: "the result" for result in layer.results}
    parts = []
    for number, name in names.items():
        local = layer.locals[number]
        shape = ", ".join(map(str, tile_shape(local.axes, size)))
        parts.append(f"{name}, {local.elem}[{shape}], {local.bytes(size)} bytes")
    return "; ".join(parts)
