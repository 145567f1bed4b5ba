"""Whether what a model stores fits in DDR: each tensor before tiles are chosen, then all of them.

A tensor that no memory holds is refused before anything looks at its rows: there may be billions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from nacre.base.diagnostics import InputError
from nacre.base.hints import setting
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import model_place, nodes_text, place_of
from nacre.compile.options import Options
from nacre.compile.partition.stage import Partition, partition
from nacre.compile.partition.tensors import Tensor
from nacre.compile.placement.ports import Names, ports_of
from nacre.compile.program import Buffer
from nacre.compile.rules import CMP02, CMP05, CMP14
from nacre.compile.tiling.residency import lifetimes
from nacre.compile.tiling.spaces import ALIGN
from nacre.core.module import Module, TensorType
from nacre.nem.plan.decompression import WDM, decompression_figure
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

_MOST_NAMED = 5
_HELP = f"say how much there is: {setting('`--ddr-size`', '`ddr_bytes=`')}"
_FLOAT_BYTES = {"f16": 2, "f32": 4, "i8": 1}
_WITH_WEIGHTS = ("Linear", "MatMul", "Conv", "ConvTranspose")  # as the second operand


@dataclass(frozen=True)
class _TooLargeTensor:
    """A tensor that is larger than DDR."""

    name: str
    size: int
    type: str
    values: list[int]  # of the module, that it comes from


def require_l1(source: Module, options: Options) -> None:
    """Raise InputError where L1 is smaller than any operand: it is not worth cutting layers."""
    if options.l1_bytes < ALIGN:
        message = f"L1 has {options.l1_bytes} bytes, and no operand takes less than {ALIGN}"
        help_ = f"a device with more L1 than {options.device.name}"
        place = model_place(Legal(source, {}, len(source.outputs), source=source))
        raise InputError([CMP02.at(place, message, help=help_)])


def require_decompression(source: Module, options: Options) -> None:
    """Raise InputError where weights are to be compressed, and the device cannot."""
    device = options.device
    if options.compress is None:
        return
    forms = ("palette_entries", "sparse")
    if device.count(WDM) > 0 and any(decompression_figure(device, key) > 0 for key in forms):
        return
    what = f"`{device.name}` has no unit that decompresses weights (`{WDM}`)"
    place = model_place(Legal(source, {}, len(source.outputs), source=source))
    help_ = f"leave {setting('`--compress`', '`compress=`')} out, or take another device"
    raise InputError([CMP14.at(place, what, help=help_)])


def require_room_for_ports(source: Module, options: Options) -> None:
    """Raise InputError with every input and output of a model that is larger than all of DDR.

    Nothing comes before it: what a stage makes on the way to such a result may be as large.
    """
    wanted = {op.value_id: str(op.attributes["name"]) for op in source.inputs}
    for index, value in enumerate(source.outputs):
        wanted.setdefault(value, f"output{index}")
    names, too_large = Names(), []
    for value, name in wanted.items():
        type_, buffer = source.by_id[value].type, names.new(name)
        is_float = type_.element.kind == "float"
        size = prod(type_.shape) * (_FLOAT_BYTES[options.arithmetic] if is_float else 1)
        if size > options.ddr_bytes:
            kept = options.arithmetic if is_float else "bytes"
            type_text = _type_text(type_) + (f" as {kept}" if kept != type_.dtype else "")
            too_large.append(_TooLargeTensor(f"`{buffer}`", size, type_text, [value]))
    if not too_large:
        return
    own = {op.value_id: (op.value_id,) for op in source.operations}
    _refuse(too_large, Legal(source, own, len(source.outputs), source=source), options)


def require_room(layers: Partition, options: Options) -> None:
    """Raise InputError with every tensor of a plan that is larger than all of DDR."""
    _refuse(
        _too_large_tensors(layers, options, lambda tensor: tensor.bytes, ""), layers.legal, options
    )


def require_room_as_bytes(legal: Legal, options: Options) -> None:
    """The same of floats that are yet to become integers of 8 bits, a byte each at the least.

    Calibration evaluates the module, and would ask the host for memory that it does not have, or
    take its time before a refusal.
    """
    _require_room_for_weights(legal, options)
    # What is never stored, as a row that is repeated, may be large: only layers tell.
    if are_beyond((op.type for op in legal.module.operations), options.ddr_bytes):
        layers = partition(legal, options)
        _refuse(_too_large_tensors(layers, options, lambda t: t.elements, " as i8"), legal, options)
        if options.calibration is not None:
            _require_evaluable(legal, options)


def _require_room_for_weights(legal: Legal, options: Options) -> None:
    """Raise InputError where the weights of products alone, a byte an element, are beyond DDR."""
    by_id = legal.module.by_id
    read = {
        op.operands[1]: by_id[op.operands[1]].attributes["data"]
        for op in legal.module.operations
        if op.opcode in _WITH_WEIGHTS and by_id[op.operands[1]].opcode == "ConstTensor"
    }
    if sum(weights.array.size for weights in read.values()) <= options.ddr_bytes:
        return
    total = sum(weights.array.size for weights in set(read.values()))  # equal ones are stored once
    if total > options.ddr_bytes:
        message = f"DDR has {options.ddr_bytes} bytes, the weights alone take {total} as i8"
        raise InputError([CMP05.at(model_place(legal), message, help=_HELP)])


def _require_evaluable(legal: Legal, options: Options) -> None:
    """Raise InputError with values that no plan stores, but that calibration has to compute."""
    most = max(options.ddr_bytes, DEFAULT_DDR_BYTES)
    too_large = [
        _TooLargeTensor(f"`{op.opcode}`", op.type.size_bytes, _type_text(op.type), [op.value_id])
        for op in legal.module.operations
        if prod(op.type.shape) > most
    ]
    if too_large:
        message = f"calibration computes every value, and not one larger than {most} elements"
        help_ = "make it smaller, or ask for f16: there a view takes no memory"
        raise _refusal(too_large, legal, message, help_)


def are_beyond(types: Iterable[TensorType], ddr_bytes: int) -> bool:
    """Whether some of the types do not fit in DDR in any precision: no element is below a byte."""
    return any(prod(type_.shape) > ddr_bytes for type_ in types)


def _too_large_tensors(
    layers: Partition, options: Options, size: Callable[[Tensor], int], as_what: str
) -> list[_TooLargeTensor]:
    """Tensors that are larger than what may hold them."""
    ports, module = ports_of(layers).tensors, layers.legal.module
    # Tensors between layers may lie in L2, or stay in L1.
    inside = max(options.ddr_bytes, options.l2_bytes, options.l1_bytes)
    too_large = []
    for tensor in dict.fromkeys((*ports, *lifetimes(layers))):
        held, is_port = layers.tensors[tensor], tensor in ports
        if size(held) <= (options.ddr_bytes if is_port else inside):
            continue
        if held.constant is not None and not is_port:
            continue  # all that tiles read of constants is counted when it is packed
        maker = next((x for x in layers.layers if tensor in x.writes), None)
        name = f"`{ports[tensor]}`" if is_port else f"result of `{maker.name if maker else ''}`"
        own = module.by_id.get(tensor)
        operations = [own] if own is not None else maker.operations if maker is not None else []
        type_ = own.type if own is not None else TensorType(held.dtype, (held.elements,))
        values = [op.value_id for op in operations]
        too_large.append(_TooLargeTensor(name, size(held), _type_text(type_) + as_what, values))
    return too_large


def _type_text(type_: TensorType) -> str:
    return f"{type_.dtype}[{', '.join(map(str, type_.shape))}]"


def _refuse(too_large: list[_TooLargeTensor], legal: Legal, options: Options) -> None:
    """Raise InputError with the tensors that were found, if any."""
    if too_large:
        what = (
            "a tensor of the model takes" if len(too_large) == 1 else "each of these tensors takes"
        )
        message = f"DDR has {options.ddr_bytes} bytes, and {what} more"
        raise _refusal(too_large, legal, message, f"make it smaller, or {_HELP}")


def _refusal(too_large: list[_TooLargeTensor], legal: Legal, message: str, help: str) -> InputError:
    """The exception with the largest of what was found, at the place of the first."""
    too_large = sorted(too_large, key=lambda one: -one.size)
    listed = [
        f"{one.name} {one.size} for {one.type}{nodes_text(legal, one.values)}"
        for one in too_large[:_MOST_NAMED]
    ]
    more = len(too_large) - len(listed)
    listed += [f"{more} more"] if more else []
    span = place_of(legal, too_large[0].values)
    return InputError([CMP05.at(span, f"{message}: {', '.join(listed)}", help=help)])


def require_room_for_all(layers: Partition, buffers: Sequence[Buffer], options: Options) -> None:
    """Raise InputError where the buffers in DDR do not fit together."""
    held = [b for b in buffers if b.level == "DDR"]
    total = sum(b.size for b in held)
    if total <= options.ddr_bytes:
        return
    largest = ", ".join(f"`{b.name}` {b.size}" for b in sorted(held, key=lambda b: -b.size)[:3])
    message = f"DDR has {options.ddr_bytes} bytes, the model needs {total}: {largest}"
    raise InputError([CMP05.at(model_place(layers.legal), message, help=_HELP)])
