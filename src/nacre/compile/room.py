"""Whether what a model stores fits in DDR: each tensor before tiles are chosen, then all of them.

A tensor that no memory holds is refused before anything looks at its rows: there may be billions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from nacre.base.diagnostics import InputError
from nacre.compile.legalise import Legal
from nacre.compile.options import Options
from nacre.compile.origins import model_place, of_nodes, place_of
from nacre.compile.partition import Partition, partition
from nacre.compile.ports import ports_of
from nacre.compile.program import Buffer
from nacre.compile.residency import lifetimes
from nacre.compile.rules import CMP05
from nacre.compile.tensors import Tensor
from nacre.core.module import TensorType

_MOST_NAMED = 5
_HELP = "say how much there is: `--ddr-size`, or `ddr_bytes` from Python"


def require_room(layers: Partition, options: Options) -> None:
    """Raise InputError with the tensors of a plan of which each is larger than all of DDR."""
    _require_each(layers, options, lambda tensor: tensor.bytes, "")


def require_room_as_bytes(legal: Legal, options: Options) -> None:
    """The same of floats that are yet to become integers of 8 bits, a byte each at the least.

    Calibration evaluates the module, and would ask the host for memory that it does not have.
    """
    # What is never stored, as a repeated row, may be large: only layers tell.
    if are_beyond((op.type for op in legal.module.operations), options.ddr_bytes):
        layers = partition(legal, options)
        _require_each(layers, options, lambda tensor: tensor.elements, " as i8")


def are_beyond(types: Iterable[TensorType], ddr_bytes: int) -> bool:
    """Whether some of the types do not fit in DDR in any precision: no element is below a byte."""
    return any(prod(type_.shape) > ddr_bytes for type_ in types)


def _require_each(
    layers: Partition, options: Options, size: Callable[[Tensor], int], as_what: str
) -> None:
    ports = ports_of(layers).tensors
    # Tensors between layers may lie in L2, or stay in L1.
    within = max(options.ddr_bytes, options.l2_bytes, options.l1_bytes)
    stored = {t: options.ddr_bytes if t in ports else within for t in (*ports, *lifetimes(layers))}
    sizes = {
        tensor: size(layers.tensors[tensor])
        for tensor in stored
        if tensor in ports or layers.tensors[tensor].constant is None
    }
    large = sorted((t for t in sizes if sizes[t] > stored[t]), key=lambda t: -sizes[t])
    if not large:
        return
    told = [
        f"{_name(layers, ports, tensor)} {sizes[tensor]} for {_type(layers, tensor)}{as_what}"
        f"{of_nodes(layers.legal, _values(layers, tensor))}"
        for tensor in large[:_MOST_NAMED]
    ]
    if len(large) > _MOST_NAMED:
        told.append(f"and {len(large) - _MOST_NAMED} more")
    each = "one tensor of the model takes" if len(large) == 1 else "each of these tensors takes"
    message = f"DDR has {options.ddr_bytes} bytes, and {each} more than that: {', '.join(told)}"
    span = place_of(layers.legal, _values(layers, large[0]))
    raise InputError([CMP05.at(span, message, help=f"make them smaller, or {_HELP}")])


def _name(layers: Partition, ports: Mapping[int, str], tensor: int) -> str:
    """The buffer of an input or an output; of what lies between layers, who makes it."""
    if tensor in ports:
        return f"`{ports[tensor]}`"
    return next((f"result of `{x.name}`" for x in layers.layers if tensor in x.writes), "tensor")


def _type(layers: Partition, tensor: int) -> str:
    """The type of a tensor; of what is no value of the module, one axis for all."""
    held, op = layers.tensors[tensor], layers.legal.module.by_id.get(tensor)
    shape = (held.elements,) if op is None else op.type.shape
    return f"{held.dtype}[{', '.join(map(str, shape))}]"


def _values(layers: Partition, tensor: int) -> list[int]:
    """A tensor's own value; what is no value of the model is made for those of a layer."""
    if tensor in layers.legal.module.by_id:
        return [tensor]
    maker = next((x for x in layers.layers if tensor in x.writes), None)
    return [] if maker is None else [op.value_id for op in maker.operations]


def require_room_for_all(layers: Partition, buffers: Sequence[Buffer], options: Options) -> None:
    """Raise InputError where the buffers in DDR do not fit together."""
    held = [b for b in buffers if b.level == "DDR"]
    total = sum(b.size for b in held)
    if total <= options.ddr_bytes:
        return
    largest = ", ".join(f"`{b.name}` {b.size}" for b in sorted(held, key=lambda b: -b.size)[:3])
    message = f"DDR has {options.ddr_bytes} bytes, the model needs {total}: {largest}"
    raise InputError([CMP05.at(model_place(layers.legal), message, help=_HELP)])
