"""A decoder from ONNX: steps of any size, and the proof that they are the model's."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.stages import stage
from nacre.core.module import Module
from nacre.llm.model.cache import cache_axis, cache_names, cache_slices
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Runner, StepAbilities, text_runner
from nacre.llm.model.step import LAST, POSITION, TOKENS, Step, require_sizes
from nacre.llm.onnx_decoder.config import GraphConfig
from nacre.llm.onnx_decoder.graph import DecoderGraph
from nacre.llm.onnx_decoder.step import build_graph_step
from nacre.llm.rules.graph import LLM32

# A step of so many tokens over a cache of so many rows, of which so many are filled.
_TOKENS, _CONTEXT, _PAST = 3, 24, 10
# Of the largest number: other orders of sums differ by less, another mask or place by far more.
_TOLERANCE = {"f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}


class GraphDecoder:
    """A decoder's graph, from which steps are built."""

    abilities = StepAbilities()

    def __init__(self, graph: DecoderGraph, config: GraphConfig, weights: int, dtype: str) -> None:
        self._graph, self.config, self.name = graph, config, graph.name
        self.weights = weights  # elements of products, of the head, too
        self.cache_dtype = GRAPH_TYPES[dtype].dtype

    @property
    def cache_row(self) -> int:
        """Elements of a token's keys and values in all layers."""
        config = self.config
        return 2 * config.layers * config.kv_heads * config.head_size

    @classmethod
    def of(cls, graph: DecoderGraph, context: int) -> GraphDecoder:
        """That of a graph, for so many positions; InputError where it is not understood."""
        with stage("comparing a step with the graph"):
            rows = max(2, min(_CONTEXT, context))
            past = min(_PAST, rows - 1)
            tokens = min(_TOKENS, rows - past)
            step, whole = build_graph_step(graph, rows, tokens).module, graph.module(past, tokens)
            _require_the_same(graph, step, whole, past, tokens)
        config = GraphConfig(
            layers=graph.ports.layers,
            kv_heads=graph.ports.kv_heads,
            head_size=graph.ports.head_size,
            vocabulary=step.output_types[0].shape[-1],
            context=context,
        )
        return cls(graph, config, _weights_of(step), step.output_types[1].dtype)

    def step(
        self,
        context: int,
        chunk: int = 1,
    ) -> Step:
        """The module that takes so many tokens at once, with a cache of so many rows."""
        require_sizes(self.config, self.name, context, chunk)
        return build_graph_step(self._graph, context, chunk)

    def runner(self, context: int, chunk: int = 1) -> Runner:
        """A text that is read and goes on."""
        return text_runner(self, context, chunk)


def _weights_of(step: Module) -> int:
    """Elements of matrices that are more than looked up."""
    used = {
        operand
        for op in step.operations
        if not op.opcode.startswith("Gather")
        for operand in op.operands
    }
    constants = (op for op in step.operations if op.opcode == "ConstTensor" and op.value_id in used)
    return sum(prod(op.type.shape) for op in constants if op.type.rank > 1)


def _require_the_same(
    graph: DecoderGraph, step: Module, whole: Module, past: int, tokens: int
) -> None:
    """A step after some rows gives what the graph gives after them; InputError if it does not."""
    random, ports = np.random.default_rng(0), graph.ports
    count = step.output_types[0].shape[-1]
    ids = random.integers(0, count, tokens)
    given = {ports.tokens: ids[None], graph.positions: past + np.arange(tokens)[None]}
    ours = {TOKENS: ids.astype(np.int32), POSITION: np.array([past], np.int32)}
    if tokens > 1:
        ours[LAST] = np.array([tokens - 1], np.int32)
    names = cache_names(ports)
    for port, name in zip(ports.caches, names, strict=True):
        type_ = step.input_types[name]
        rows = random.standard_normal(type_.shape).astype(type_.element.dtype)
        ours[name] = rows
        filled = rows[cache_slices(name, 0, past)]
        given[port.past] = _transpose_keys(filled, name)[None]
    made = step.session().run(ours)
    expected = dict(zip(whole.output_names, whole.session().run(given), strict=True))
    wanted = [expected[ports.logits][:, -1]]
    new = [expected[port.present][0, :, past:] for port in ports.caches]
    wanted += [_transpose_keys(rows, name) for name, rows in zip(names, new, strict=True)]
    tolerance = _TOLERANCE.get(step.output_types[1].dtype, _TOLERANCE["f32"])
    for name, found, right in zip(step.output_names, made, wanted, strict=True):
        _require_near(graph.name, name, found, right, tolerance)


def _transpose_keys(rows: np.ndarray, cache: str) -> np.ndarray:
    """What `transpose_keys` does, of an array."""
    return rows.swapaxes(1, 2) if cache_axis(cache) == 2 else rows


def _require_near(
    name: str, output: str, found: np.ndarray, right: np.ndarray, tolerance: float
) -> None:
    wide = np.asarray(right, np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    error = float(np.abs(found - wide).max(initial=0.0))
    if not error <= tolerance * max(largest, 1e-6):
        message = (
            f"`{output}` of a step is off by {error:.3g} where the graph has up to {largest:.3g}"
        )
        raise refusal(LLM32, name, message, "the graph counts by the length of its cache")
