"""The tensors of a plan that stand for values of its model, and those values in f32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.narrowing import store_floats
from nacre.compile.legalise.native_order import leave_transposes_to_host
from nacre.compile.legalise.running import StepwiseRunner
from nacre.compile.legalise.stage import legalise
from nacre.compile.legalise.stands_for import values_by_source
from nacre.compile.partition.variants import lacking
from nacre.compile.pipeline import float_source
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.prequantised.uses import Users, first_scale_and_zero, users_of
from nacre.compile.target import request_error
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_FUSED = frozenset({"QConv", "QLinear", "QBinOp", "QPool"})
# They move integers: what these stand for is that of their operand.
_MOVES = frozenset({
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Broadcast", "Tile", "Flip",
    "MaxPool", "Pad", "Gather", "Concat", "Index",
})  # fmt: skip


@dataclass(frozen=True)
class PairedTensor:
    """A value of the legal module and the value in f32 that it stands for."""

    value: int  # in the legal module
    wanted: int  # in the float module
    source: int  # in what was legalised
    node: str  # as the model calls what makes it
    affine: Affine | None  # how integers stand for reals


@dataclass(frozen=True, eq=False)
class Pairing:
    """A plan's module beside the same in f32."""

    floats: Legal
    tensors: tuple[PairedTensor, ...]  # in the order of the legal module


def pair_tensors(bundle: CompiledModel) -> Pairing:
    """The tensors that can be compared; InputError for a bundle that does not know them."""
    if not bundle.has_reference:
        raise request_error(
            "the bundle was written without the model as it came, which noise is measured against",
            "compile it again, without `--no-reference`",
        )
    if not bundle.manifest.stands_for:
        raise request_error(
            "the bundle does not say which of its tensors stand for which of the model",
            "it comes from an older nacre: compile the model again",
        )
    floats = float_legal(bundle)
    wanted, affines = values_by_source(floats), stored_affines(bundle)
    pairs = []
    for one in bundle.manifest.stands_for:
        value, source, op = one.value, one.source, bundle.legal.by_id[one.value]
        other = wanted.get(source)
        if other is None or not _is_comparable(op, floats.module.by_id[other]):
            continue
        if op.type.element.kind == "float" or affines[value] is not None:
            node = one.node or _input_name(floats, source) or f"%{source}"
            pairs.append(PairedTensor(value, other, source, node, affines[value]))
    return Pairing(floats, tuple(pairs))


def _input_name(legal: Legal, number: int) -> str:
    """What an input is called; nothing for what is none."""
    op = None if legal.source is None else legal.source.by_id.get(number)
    return "" if op is None or op.opcode != "Input" else str(op.attributes["name"])


def float_legal(bundle: CompiledModel) -> Legal:
    """The model in the operations and the order of axes of the plan, in f32."""
    is_i8 = bundle.manifest.precision == "i8"
    legal = legalise(float_source(bundle.source, bundle.manifest.precision).module, "f32")
    device = bundle.runnable_program.device
    legal = layout(legal, lacking(device, "f32") if is_i8 else frozenset(), has_islands=is_i8)
    ports = (*bundle.manifest.inputs, *bundle.manifest.outputs)
    is_native = any(port.axes is not None for port in ports)
    return leave_transposes_to_host(legal) if is_native else legal


def _is_comparable(op: CoreOperation, wanted: CoreOperation) -> bool:
    """Whether two operations compute the same elements: numbers, in one order."""
    is_float = wanted.type.element.kind == "float"
    return is_float and op.type.shape == wanted.type.shape and constant_array(op) is None


# How integers stand for reals


def stored_affines(bundle: CompiledModel) -> dict[int, Affine | None]:
    """For each value of the legal module how it stands for reals; None for floats and the rest."""
    module, users = bundle.legal, users_of(bundle.legal)
    ports = {port.name: port for port in bundle.manifest.inputs}
    outputs = dict(zip(module.outputs, bundle.manifest.outputs, strict=True))
    found: dict[int, Affine | None] = {}
    for op in module.operations:
        if op.type.dtype != "i8":
            found[op.value_id] = None
            continue
        port = ports.get(str(op.attributes.get("name"))) if op.opcode == "Input" else None
        port = port or outputs.get(op.value_id)
        if port is not None and port.scale is not None:
            found[op.value_id] = Affine(port.scale, port.zero or 0)
        else:
            found[op.value_id] = _affine_of(module, users, op, found)
    return found


def _affine_of(
    module: Module, users: Users, op: CoreOperation, known: Mapping[int, Affine | None]
) -> Affine | None:
    """By what makes the integers, else by what reads them."""
    if op.opcode in _FUSED:
        return Affine(float(str(op.attributes["y_scale"])), int(str(op.attributes["y_zero"])))
    if op.opcode == "Quantize":
        scale, *zeros = (constant_array(module.by_id[o]) for o in op.operands[1:])
        zero = zeros[0] if zeros else np.zeros((), np.int64)
        if scale is not None and zero is not None and scale.size == zero.size == 1:
            return Affine(float(scale.flat[0]), int(zero.flat[0]))
        return None
    if op.opcode in _MOVES and known.get(op.operands[0]) is not None:
        return known[op.operands[0]]
    read = first_scale_and_zero(module, users, op.value_id)
    return None if read is None else Affine(*read)


# Values


def to_storage(pair: PairedTensor, op: CoreOperation, reals: Array) -> Array:
    """Reals as the plan stores them."""
    if pair.affine is not None:
        return pair.affine.quantise(reals)
    return store_floats(reals, op.type.element)


def to_reals(pair: PairedTensor, stored: Array) -> Array:
    """What the plan stores as reals in f32."""
    return np.asarray(stored, np.float32) if pair.affine is None else pair.affine.real(stored)


def wanted_values(pairing: Pairing, arrays: Mapping[str, Array]) -> dict[int, Array]:
    """What the model makes in f32, by the numbers of the source."""
    sources = {pair.wanted: pair.source for pair in pairing.tensors}
    axes = pairing.floats.input_axes
    turned = {name: arrays[name].transpose(order) for name, order in axes.items()}
    made = run_values(pairing.floats.module, {**arrays, **turned})
    return {sources[value]: array for value, array in made if value in sources}


def run_values(module: Module, arrays: Mapping[str, Array]) -> Iterator[tuple[int, Array]]:
    """Every value of a module, one by one."""
    types = module.input_types
    given = {name: _as_input(array, types[name].dtype) for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        yield from StepwiseRunner(module).run(given)


def _as_input(array: Array, dtype: str) -> Array:
    element = GRAPH_TYPES[dtype]
    if element.kind == "float":
        return store_floats(array, element)
    return np.asarray(array).astype(element.dtype)


def plan_values(bundle: CompiledModel, arrays: Mapping[str, Array]) -> Iterator[tuple[int, Array]]:
    """Every value of the legal module, which the plan equals."""
    given = {port.name: port.to_memory(arrays[port.name]) for port in bundle.manifest.inputs}
    with np.errstate(all="ignore"):
        yield from StepwiseRunner(bundle.legal).run(given)
