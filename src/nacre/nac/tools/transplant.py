"""Weights of one program copied into another, where blocks of both fit each other.

Both programs are laid side by side, call by call; calls fit when they have the same operation and
weights of the same shapes. What is copied takes the form in which the other file stores its
weights: integers get new scales, unless both are stored alike, when the very bytes are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.values import Array
from nacre.nac.format.values import Tensor
from nacre.nac.quantise.recipes import RECIPES
from nacre.nac.run.dequantisation import dequantize
from nacre.nac.run.model import NacModel
from nacre.nac.spec.elements import DTYPE_CODES, DTYPES, FP16
from nacre.nac.tools.alignment import align
from nacre.nac.tools.difference import max_difference
from nacre.nac.tools.genome import gene
from nacre.nac.tools.opening import true_shape
from nacre.nac.training.replacement import with_tensors

_HALF = DTYPE_CODES["f16"]


@dataclass(frozen=True)
class CopiedWeight:
    """A weight that was copied: from which to which, and how far its elements moved."""

    source: str
    target: str
    shape: tuple[int, ...]
    max_change: float
    rounding: float  # the largest error that storing it made


@dataclass(frozen=True)
class SkippedWeight:
    """A weight that stays, and why."""

    target: str
    reason: str


@dataclass(frozen=True)
class Block:
    """A stretch of calls that fit; instructions of both programs, the last included."""

    source: tuple[int, int]
    target: tuple[int, int]
    operations: tuple[str, ...]


@dataclass(frozen=True)
class Transplant:
    """What was done."""

    blocks: tuple[Block, ...]
    copied: tuple[CopiedWeight, ...]
    skipped: tuple[SkippedWeight, ...]


@dataclass(frozen=True)
class _Weight:
    """A parameter: equal ones share an id, and have names of their own."""

    id: int
    name: str


@dataclass(frozen=True)
class _Call:
    """A call with the weights that it takes."""

    instruction: int
    gene: str
    weights: tuple[_Weight, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def token(self) -> object:
        return self.gene, self.shapes


def transplant(
    source: NacModel, target: NacModel, *, source_prefix: str = "", target_prefix: str = ""
) -> tuple[NacModel, Transplant]:
    """The target with weights of the source, and what was copied.

    A prefix leaves calls out whose weights have names that begin otherwise, and those without
    weights: `layers.0.` of one model goes into `layers.3.` of another. ValueError for a prefix with
    which no weight begins.
    """
    for model, prefix in ((source, source_prefix), (target, target_prefix)):
        problem = prefix_problem(model, prefix)
        if problem is not None:
            raise ValueError(problem)
    sides = list(_calls(source, source_prefix)), list(_calls(target, target_prefix))
    runs = align(*([call.token for call in side] for side in sides))
    pairs = [(sides[0][a + i], sides[1][b + i]) for a, b, n in runs for i in range(n)]
    chosen, conflicts = _match_weights(pairs)
    skipped = [SkippedWeight(weight.name, "two calls would give it") for weight in conflicts]
    tensors: dict[_Weight, Tensor] = {}
    copied: list[CopiedWeight] = []
    for into, taken in chosen.items():
        grafted = _graft(source, target, taken, into)
        if isinstance(grafted, str):
            skipped.append(SkippedWeight(into.name, grafted))
        else:
            tensors[into], row = grafted
            copied.append(row)
    known = {*chosen, *conflicts}
    for weight in _every_weight(target):
        if weight not in known and weight.name.startswith(target_prefix):
            skipped.append(SkippedWeight(weight.name, "no block of the other file fits"))
    blocks = tuple(_block(sides, run) for run in runs if _has_weights(sides, run))
    report = Transplant(blocks, tuple(copied), tuple(skipped))
    return with_tensors(target, {(w.id, w.name): tensor for w, tensor in tensors.items()}), report


def prefix_problem(model: NacModel, prefix: str) -> str | None:
    """What is wrong with a prefix of names of weights; None where some begin so."""
    names = list(model.parameter_ids)
    if any(name.startswith(prefix) for name in names) or not prefix:
        return None
    known = {name[: at + 1] for name in names for at, c in enumerate(name) if c == "."}
    hint = did_you_mean(prefix, {*known, *(one.rstrip(".") for one in known), *names})
    return f"no weight begins with {backquote(prefix)}" + (f"; {hint}" if hint else "")


def _calls(model: NacModel, prefix: str) -> Iterator[_Call]:
    file = model.file
    for index, instruction in enumerate(file.instructions):
        if instruction.is_system:
            continue
        weights = tuple(_weights(model, index))
        if prefix and not (weights and all(w.name.startswith(prefix) for w in weights)):
            continue
        shapes = tuple(true_shape(model.weights.tensor(w.id)) for w in weights)
        yield _Call(index, gene(file.name_of[instruction.op]), weights, shapes)


def _weights(model: NacModel, index: int) -> Iterator[_Weight]:
    """The parameters that a call takes, in the order of its arguments."""
    names = model.surroundings.parameters
    for offset in model.file.instructions[index].d:
        if offset and index + offset in names.loaded:
            yield _Weight(names.loaded[index + offset], names.of_load(index + offset))


def _every_weight(model: NacModel) -> list[_Weight]:
    names = model.surroundings.parameters
    loaded = [_Weight(id_, names.of_load(index)) for index, id_ in names.loaded.items()]
    used = set(names.loaded.values())
    unused = [_Weight(id_, name) for id_, name in names.stored.items() if id_ not in used]
    return list(dict.fromkeys([*loaded, *unused]))


def _match_weights(
    pairs: list[tuple[_Call, _Call]],
) -> tuple[dict[_Weight, _Weight], list[_Weight]]:
    """Which weight goes where; one that several calls share must get the same from each."""
    matches: dict[_Weight, _Weight] = {}
    conflicts: dict[_Weight, None] = {}
    for taken, into in pairs:
        for source, target in zip(taken.weights, into.weights, strict=True):
            if matches.setdefault(target, source) != source:
                conflicts[target] = None
    return {k: v for k, v in matches.items() if k not in conflicts}, list(conflicts)


def _graft(
    source: NacModel, target: NacModel, source_weight: _Weight, target_weight: _Weight
) -> tuple[Tensor, CopiedWeight] | str:
    """The new tensor of a weight; a text where it cannot be."""
    given, before = source.weights[source_weight.id], target.weights[target_weight.id]
    if given.dtype != before.dtype:
        return f"its elements are {before.dtype}, those of the other {given.dtype}"
    old, other = target.weights.tensor(target_weight.id), source.weights.tensor(source_weight.id)
    if _storage_form(old) == _storage_form(other):
        tensor = replace(other, id=target_weight.id)
    else:
        stored = _store(given, old, target.file.header.quant)
        if isinstance(stored, str):
            return stored
        tensor = stored
    after = _dequantized(tensor, before)
    row = CopiedWeight(
        source_weight.name,
        target_weight.name,
        given.shape,
        max_difference(after, before),
        max_difference(after, given),
    )
    return tensor, row


def _storage_form(tensor: Tensor) -> tuple[int, ...]:
    return tensor.dtype, tensor.quant, tensor.axis, tensor.block


def _store(array: Array, like: Tensor, header_quant: int) -> Tensor | str:
    """An array in the form of another tensor."""
    is_half = header_quant == FP16 and like.dtype == _HALF and array.dtype == np.float32
    if is_half or like.quant in RECIPES:
        if not np.isfinite(array).all():
            return "the other has elements that are not finite"
        if is_half and array.size and np.abs(array).max() > np.finfo(np.float16).max:
            return "the other has elements beyond the range of f16"
        return RECIPES[FP16 if is_half else like.quant](like.id, np.ascontiguousarray(array))
    dtype = next(code for code, name in DTYPES.items() if _numpy_name(name) == array.dtype.name)
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.isbuiltin == 1 else array
    return Tensor(like.id, dtype, array.shape, little.tobytes())


def _numpy_name(name: str) -> str:
    from nacre.base.elements import GRAPH_TYPES

    return GRAPH_TYPES[name].dtype.name


def _dequantized(tensor: Tensor, like: Array) -> Array:
    """A tensor as the program will see it."""
    return dequantize(tensor).astype(like.dtype)


Sides = tuple[list[_Call], list[_Call]]


def _has_weights(sides: Sides, run: tuple[int, int, int]) -> bool:
    start, _, length = run
    return any(call.weights for call in sides[0][start : start + length])


def _block(sides: Sides, run: tuple[int, int, int]) -> Block:
    a, b, length = run
    calls = sides[0][a : a + length], sides[1][b : b + length]
    ends = [(side[0].instruction, side[-1].instruction) for side in calls]
    return Block(ends[0], ends[1], tuple(call.gene for call in calls[0]))
