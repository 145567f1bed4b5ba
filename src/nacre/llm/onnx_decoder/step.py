"""A step of a decoder's graph: the same as `nacre.llm.model.step` makes, over the same inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.builder import Builder
from nacre.core.constants import CONSTANTS
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.rewrite.dead_code import dead_code
from nacre.llm.model.cache import cache_names, cache_shape, row_name, transpose_keys
from nacre.llm.model.masks import StepMasks
from nacre.llm.model.problems import refusal
from nacre.llm.model.step import LAST, LOGITS, POSITION, TOKENS, Step
from nacre.llm.onnx_decoder.graph import DecoderGraph
from nacre.llm.onnx_decoder.positional import PlaceTable, find_positional
from nacre.llm.onnx_decoder.split_values import Split, reshape, with_size
from nacre.llm.onnx_decoder.splitting import Splitter, Value
from nacre.llm.rules.graph import LLM30, LLM31

_INDEX = "i32"
_PRODUCTS = frozenset({"Linear", "MatMul"})
_OF_ROWS = frozenset({"BinOp", "Cast", "Neg", "Unary", "Reshape", *_PRODUCTS})


def build_graph_step(graph: DecoderGraph, context: int, tokens: int) -> Step:
    """The step that takes so many tokens over a cache of so many rows."""
    module = graph.module(context, tokens)
    return Step(_StepWriter(graph, module, context, tokens).module(), context, tokens)


class _StepWriter:
    """Writes the operations of a graph as a step."""

    def __init__(self, graph: DecoderGraph, source: Module, context: int, tokens: int) -> None:
        self._graph, self._source = graph, source
        self._context, self._tokens = context, tokens
        self._names = cache_names(graph.ports)
        self._b = b = Builder()
        ids = b.input(TOKENS, _INDEX, (tokens,))
        position = b.input(POSITION, _INDEX, (1,))
        self._last = b.input(LAST, _INDEX, (1,)) if tokens > 1 else None
        types = source.input_types
        caches = [
            b.input(name, types[port.past].dtype, cache_shape(graph.ports, name, context))
            for name, port in zip(self._names, graph.ports.caches, strict=True)
        ]
        caches = [transpose_keys(b, v, name) for v, name in zip(caches, self._names, strict=True)]
        offsets = b.constant(np.arange(tokens, dtype=np.int32))
        self._places = position if tokens == 1 else b.add("BinOp", position, offsets, op="Add")
        given = {graph.ports.tokens: ids, graph.positions: self._places}
        given |= {port.past: v for port, v in zip(graph.ports.caches, caches, strict=True)}
        self._inputs = {name: self._as_input(name, value) for name, value in given.items()}
        masks = StepMasks(b, position, self._places, context, tokens)
        parts = {self._inputs[port.past]: at for at, port in enumerate(graph.ports.caches)}
        self._splitter = Splitter(graph.name, b, parts, masks, (context, tokens))
        self._values: dict[int, Value] = {}

    def module(self) -> Module:
        """All of it."""
        graph, source, b = self._graph, self._source, self._b
        outputs = dict(zip(source.output_names, source.outputs, strict=True))
        found = find_positional(graph.name, source, graph.positions, self._context, self._tokens)
        head = self._head(outputs[graph.ports.logits])
        for op in source.operations:
            table = found.tables.get(op.value_id)
            if op.opcode == "Input":
                self._values[op.value_id] = self._inputs[str(op.attributes["name"])]
            elif table is not None:
                self._values[op.value_id] = self._rows(op, table)
            elif op.value_id in head:
                self._values[op.value_id] = self._of_last(op, head)
            else:
                operands = tuple(self._values[operand] for operand in op.operands)
                self._values[op.value_id] = self._splitter.write(op, operands)
        logits = self._logits(outputs[graph.ports.logits])
        rows = [self._new_rows(at, outputs[port.present])
                for at, port in enumerate(graph.ports.caches)]  # fmt: skip
        made = dead_code(b.module(logits, *rows))
        names = (LOGITS, *map(row_name, self._names))
        return replace(made, labels=Labels(outputs=names, source=graph.name))

    def _as_input(self, name: str, value: int) -> int:
        """One of a step's inputs as the graph takes it: as a batch of one, in its own type."""
        type_ = self._source.input_types.get(name)
        if type_ is None:
            message = f"the graph does not use its input {backquote(name)}"
            raise refusal(LLM30, self._graph.name, message)
        if self._b.type_of(value).dtype != type_.dtype:
            value = self._b.add("Cast", value, to=type_.dtype)
        return reshape(self._b, value, type_.shape)

    def _rows(self, op: CoreOperation, table: PlaceTable) -> int:
        """The rows of a table at the places of the step."""
        b, shape = self._b, op.type.shape
        rows = b.add("Gather", b.constant(table.rows, op.type.dtype), self._places)
        others = (*shape[: table.axis], *shape[table.axis + 1 :])
        order = list(range(1, len(shape)))
        order.insert(table.axis, 0)
        apart = reshape(b, rows, (self._tokens, *others))
        if all(size == 1 for size in shape[: table.axis]):
            return reshape(b, apart, shape)
        return b.add("Transpose", apart, permutation=tuple(order))

    # Logits of one token alone

    def _head(self, logits: int) -> dict[int, int]:
        """What comes of rows alone from the product that gives logits on, by its one operand.

        So the product is of one row, where others are not asked for.
        """
        found: dict[int, int] = {}
        if self._last is None:
            return found
        uses = [o for op in self._source.operations for o in op.operands]
        value = logits
        while True:
            op = self._source.by_id[value]
            constants = [o for o in op.operands if self._source.by_id[o].opcode in CONSTANTS]
            of = [o for o in op.operands if o not in constants]
            is_row = len(of) == 1 and op.opcode in _OF_ROWS and self._has_rows(of[0])
            if not is_row or not self._has_rows(value) or uses.count(value) > (value != logits):
                return found
            if op.opcode in _PRODUCTS and op.operands[0] != of[0]:
                return found
            found[value] = of[0]
            if op.opcode in _PRODUCTS:
                return found
            value = of[0]

    def _has_rows(self, value: int) -> bool:
        """Whether the tokens of the step are the rows of a value."""
        shape = self._source.by_id[value].type.shape
        return len(shape) > 1 and shape[-2] == self._tokens and set(shape[:-2]) <= {1}

    def _of_last(self, op: CoreOperation, head: dict[int, int]) -> int:
        """An operation on the row of the last token."""
        b, inner = self._b, head[op.value_id]
        operands = []
        for operand in op.operands:
            value = self._values[operand]
            assert isinstance(value, int)
            is_first = operand == inner and inner not in head
            operands.append(self._row(value) if is_first else value)
        if op.opcode == "Reshape":
            shape = op.type.shape
            return reshape(b, operands[0], with_size(shape, len(shape) - 2, 1))
        return b.add(op.opcode, *operands, **op.attributes)

    def _row(self, value: int) -> int:
        """The row of the token whose logits are wanted."""
        b, shape = self._b, self._b.type_of(value).shape
        assert self._last is not None
        row = b.add("Gather", reshape(b, value, shape[-2:]), self._last)
        return reshape(b, row, with_size(shape, len(shape) - 2, 1))

    def _logits(self, output: int) -> int:
        value = self._values[output]
        shape = self._source.by_id[output].type.shape
        if isinstance(value, Split) or shape[:-1] != (1, self._tokens):
            message = f"logits are {list(shape)}, expected those of all {self._tokens:,} tokens"
            raise refusal(LLM30, self._graph.name, message, "export it without cutting them")
        if self._b.type_of(value).shape[-2] > 1:
            value = self._row(value)
        value = reshape(self._b, value, (1, shape[-1]))
        is_f32 = self._b.type_of(value).dtype == "f32"
        return value if is_f32 else self._b.add("Cast", value, to="f32")

    def _new_rows(self, at: int, output: int) -> int:
        """The new rows of a part of the cache, whose output must be that part, all of it."""
        value, port = self._values[output], self._graph.ports.caches[at]
        if not isinstance(value, Split) or value.cache != at:
            message = f"{backquote(port.present)} is not {backquote(port.past)} with rows behind it"
            raise refusal(LLM31, self._graph.name, message)
        heads, size = self._graph.ports.kv_heads, self._graph.ports.head_size
        rows = reshape(self._b, value.new, (heads, self._tokens, size))
        return transpose_keys(self._b, rows, self._names[at])
