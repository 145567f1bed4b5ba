"""A step of one token that keeps its cache: what a file of NAC can run again and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import Labels, Module
from nacre.llm.model.cache import cache_axis, cache_names
from nacre.llm.model.config import Config
from nacre.llm.model.layers import DecoderWeights
from nacre.llm.model.step import LOGITS, POSITION, TOKENS, Step
from nacre.llm.nac_file.names import address_of, weight_names

_SOURCE = "language model"
_ID = "i64"  # what plans of NAC make of numbers


def stateful_module(step: Step, config: Config, weights: DecoderWeights) -> Module:
    """The step with caches as state: an id `[1, 1]` and its place `[1]` to logits `[1, 1, tokens]`.

    The new rows go to the place in the caches; all others stay.
    """
    b, ids = Builder(), dict[int, int]()
    inputs = {op.attributes["name"]: op for op in step.module.operations if op.opcode == "Input"}
    token, place = b.input(TOKENS, _ID, (1, 1)), b.input(POSITION, _ID, (1,))
    caches = cache_names(config)
    for name in caches:
        ids[inputs[name].value_id] = b.input(name, "f32", inputs[name].type.shape)
    flat = b.add("Reshape", token, new_shape=(1,))
    ids[inputs[TOKENS].value_id] = b.add("Cast", flat, to=inputs[TOKENS].type.dtype)
    at = ids[inputs[POSITION].value_id] = b.add("Cast", place, to=inputs[POSITION].type.dtype)
    for op in step.module.operations:
        if op.opcode != "Input":
            ids[op.value_id] = b.copy(op, tuple(ids[operand] for operand in op.operands))
    here = b.add("Reshape", at, new_shape=(1, 1, 1))
    is_new = {
        axis: b.add("Compare", b.constant(_row_indices(step.context, axis)), here, op="Eq")
        for axis in sorted({cache_axis(name) for name in caches})
    }
    logits, *rows = (ids[output] for output in step.module.outputs)
    initial: dict[tuple[int, ...], int] = {}
    for name, row in zip(caches, rows, strict=True):
        cache = ids[inputs[name].value_id]
        shape = b.type_of(cache).shape
        if shape not in initial:
            initial[shape] = b.constant(np.zeros(shape, np.float32), copy=False)
        b.state(name, b.add("Where", is_new[cache_axis(name)], row, cache), initial[shape])
    size = b.type_of(logits).shape[-1]
    made = b.module(b.add("Reshape", logits, new_shape=(1, 1, size)))
    labels = Labels(outputs=(LOGITS,), parameters=_parameters(made, weights), source=_SOURCE)
    return replace(made, labels=labels)


def _row_indices(count: int, axis: int) -> npt.NDArray[np.int32]:
    """The rows of a cache, counted along an axis."""
    shape = tuple(count if n == axis else 1 for n in range(3))
    return np.arange(count, dtype=np.int32).reshape(shape)


def _parameters(module: Module, weights: DecoderWeights) -> dict[int, tuple[str, ...]]:
    """The constants that are weights, with their names."""
    names = weight_names(weights)
    found: dict[int, tuple[str, ...]] = {}
    for op in module.operations:
        array = constant_array(op)
        name = None if array is None else names.get(address_of(array))
        if name is not None:
            found[op.value_id] = (name,)
    return found
