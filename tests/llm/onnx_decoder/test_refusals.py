"""Graphs that are no decoders, or do with their cache what cannot be computed apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nacre.base.diagnostics import InputError
from nacre.llm.sources import decoder_of, open_model

SIZE, HEADS, VOCABULARY, WIDTH = 4, 2, 7, 8
Change = Callable[[onnx.GraphProto], None]


def small_decoder() -> onnx.GraphProto:
    """A layer of attention, spelt out, and nothing else: learned positions, a causal mask."""
    random = np.random.default_rng(0)
    tensors: list[onnx.TensorProto] = []

    def constant(array: np.ndarray, name: str) -> str:
        tensors.append(numpy_helper.from_array(array, name))
        return name

    def weight(*shape: int, name: str) -> str:
        return constant(random.standard_normal(shape).astype(np.float32), name)

    def ints(*values: int, name: str) -> str:
        return constant(np.array(values, np.int64), name)

    node = helper.make_node
    nodes = [
        node("Gather", [weight(VOCABULARY, WIDTH, name="words"), "input_ids"], ["word"]),
        node("Gather", [weight(32, WIDTH, name="places"), "position_ids"], ["place"]),
        node("Add", ["word", "place"], ["x"]),
    ]
    apart = ints(0, 0, HEADS, SIZE, name="apart")
    for part in ("query", "key", "value"):
        nodes += [
            node("MatMul", ["x", weight(WIDTH, HEADS * SIZE, name=f"w_{part}")], [f"{part}_rows"]),
            node("Reshape", [f"{part}_rows", apart], [f"{part}_apart"]),
            node("Transpose", [f"{part}_apart"], [f"{part}_new"], perm=[0, 2, 1, 3]),
        ]
    one, zero = constant(np.array(1, np.int64), "one"), constant(np.array(0, np.int64), "zero")
    nodes += [
        node("Concat", ["past_key_values.0.key", "key_new"], ["present.0.key"], axis=2),
        node("Concat", ["past_key_values.0.value", "value_new"], ["present.0.value"], axis=2),
        node("Transpose", ["present.0.key"], ["turned"], perm=[0, 1, 3, 2]),
        node("MatMul", ["query_new", "turned"], ["scores"]),
        node("Shape", ["attention_mask"], ["mask_shape"]),
        node("Gather", ["mask_shape", one], ["total"]),
        node("Shape", ["input_ids"], ["ids_shape"]),
        node("Gather", ["ids_shape", one], ["count"]),
        node("Sub", ["total", "count"], ["before"]),
        node("Range", [zero, "total", one], ["keys"]),
        node("Range", ["before", "total", one], ["queries"]),
        node("Unsqueeze", ["queries", ints(1, name="axis")], ["column"]),
        node("LessOrEqual", ["keys", "column"], ["allowed"]),
        node("Where", ["allowed", constant(np.array(0, np.float32), "none"),
                       constant(np.array(-3e38, np.float32), "low")], ["mask"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1),
        node("MatMul", ["shares", "present.0.value"], ["weighed"]),
        node("Transpose", ["weighed"], ["side"], perm=[0, 2, 1, 3]),
        node("Reshape", ["side", ints(0, 0, HEADS * SIZE, name="joined")], ["rows"]),
        node("MatMul", ["rows", weight(HEADS * SIZE, VOCABULARY, name="head")], ["logits"]),
    ]  # fmt: skip
    cache: list[str | int | None] = ["batch", HEADS, "past", SIZE]
    info, int64, f32 = helper.make_tensor_value_info, TensorProto.INT64, TensorProto.FLOAT
    inputs = [info(n, int64, ["batch", "tokens"]) for n in ("input_ids", "position_ids")]
    inputs.append(info("attention_mask", int64, ["batch", "total"]))
    inputs += [info(f"past_key_values.0.{part}", f32, cache) for part in ("key", "value")]
    outputs = [info("logits", f32, ["batch", "tokens", VOCABULARY])]
    outputs += [info(f"present.0.{part}", f32, cache) for part in ("key", "value")]
    return helper.make_graph(nodes, "small", inputs, outputs, tensors)


def written(folder: Path, change: Change) -> Path:
    graph = small_decoder()
    change(graph)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def instead(output: str, *nodes: onnx.NodeProto) -> Change:
    """Other nodes in the place of the one that gives an output."""

    def change(graph: onnx.GraphProto) -> None:
        kept: list[onnx.NodeProto] = []
        for node in graph.node:
            kept += nodes if output in node.output else [node]
        del graph.node[:]
        graph.node.extend(kept)

    return change


def without(kind: str, name: str) -> Change:
    def change(graph: onnx.GraphProto) -> None:
        rows = getattr(graph, kind)
        rows.remove(next(row for row in rows if row.name == name))

    return change


def renamed(kind: str, old: str, new: str) -> Change:
    def change(graph: onnx.GraphProto) -> None:
        next(row for row in getattr(graph, kind) if row.name == old).name = new
        for node in graph.node:
            for names in (node.input, node.output):
                for at, name in enumerate(names):
                    names[at] = new if name == old else name

    return change


def sized(place: int, size: int | str) -> Change:
    def change(graph: onnx.GraphProto) -> None:
        for row in graph.input:
            if row.name.startswith("past"):
                dim = row.type.tensor_type.shape.dim[place]
                dim.Clear()
                if isinstance(size, int):
                    dim.dim_value = size
                else:
                    dim.dim_param = size

    return change


def nothing(_graph: onnx.GraphProto) -> None:
    pass


NODE = helper.make_node
# Distances between tokens and keys, as ALiBi weighs them.
DISTANCES = (
    NODE("Where", ["allowed", "none", "low"], ["hiding"]),
    NODE("Sub", ["keys", "column"], ["distance"]),
    NODE("Cast", ["distance"], ["slope"], to=TensorProto.FLOAT),
    NODE("Add", ["hiding", "slope"], ["mask"]),
)
# Places of tokens as the length of the mask has them, whatever `position_ids` says.
COUNTED = (
    NODE("Shape", ["attention_mask"], ["s0"]),
    NODE("Gather", ["s0", "one"], ["s1"]),
    NODE("Shape", ["input_ids"], ["s2"]),
    NODE("Gather", ["s2", "one"], ["s3"]),
    NODE("Sub", ["s1", "s3"], ["s4"]),
    NODE("Range", ["s4", "s1", "one"], ["s5"]),
    NODE("Gather", ["places", "s5"], ["place"]),
)
CHANGES: dict[str, tuple[Change, str, str]] = {
    "no tokens": (renamed("input", "input_ids", "ids"), "LLM30", "no input `input_ids`"),
    "no logits": (renamed("output", "logits", "scores_out"), "LLM30", "no output `logits`"),
    "another input": (renamed("input", "attention_mask", "beams"), "LLM30", "`beams`"),
    "half a cache": (without("output", "present.0.value"), "LLM30", "gives 1"),
    "heads unknown": (sized(1, "heads"), "LLM30", "known heads"),
    "heads of a giant": (sized(3, 1 << 40), "LLM30", "known heads"),
    "much of a cache": (
        lambda graph: (sized(1, 1 << 16)(graph), sized(3, 1 << 16)(graph))[0], "LLM30", "at most",
    ),
    "all cut away": (
        instead("logits", NODE("ReduceMax", ["rows"], ["logits"], keepdims=0)),
        "LLM30", "logits are",
    ),
    "no mask": (instead("masked", NODE("Identity", ["scores"], ["masked"])), "LLM31", "after them"),
    "weighed by distance": (instead("mask", *DISTANCES), "LLM31", "weighs rows"),
    "the other way round": (
        instead("present.0.key", NODE("Concat", ["key_new", "past_key_values.0.key"],
                                      ["present.0.key"], axis=2)),
        "LLM31", "`Concat`",
    ),
    "keys and values exchanged": (
        lambda graph: (
            renamed("output", "present.0.key", "present.0.other")(graph),
            renamed("output", "present.0.value", "present.0.key")(graph),
            renamed("output", "present.0.other", "present.0.value")(graph),
        )[0],
        "LLM31", "with rows behind it",
    ),
    "a cumulative sum of it": (
        instead("turned", NODE("CumSum", ["present.0.key", "zero"], ["summed"]),
                NODE("Transpose", ["summed"], ["turned"], perm=[0, 1, 3, 2])),
        "LLM31", "`CumSum`",
    ),
    "places counted by the cache": (instead("place", *COUNTED), "LLM32", "is off by"),
}  # fmt: skip


@pytest.mark.parametrize(
    "change", [nothing, instead("place", NODE("Identity", ["word"], ["place"]))]
)
def test_graphs_with_places_and_without_are_taken(change: Change, tmp_path: Path) -> None:
    decoder = decoder_of(open_model(written(tmp_path, change)))
    assert (decoder.config.layers, decoder.config.vocabulary) == (1, VOCABULARY)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    change, code, said = CHANGES[name]
    with pytest.raises(InputError) as caught:
        open_model(written(tmp_path, change))
    first = caught.value.diagnostics[0]
    assert first.code.startswith(code), first
    assert said in first.message


def test_positions_beyond_the_table_are_refused(tmp_path: Path) -> None:
    decoder = decoder_of(open_model(written(tmp_path, nothing)))
    assert decoder.runner(32, 4).feed([1, 2, 3]).shape == (VOCABULARY,)
    with pytest.raises(InputError, match="LLM06"):
        decoder.runner(33, 4)


def test_files_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, nothing)
    whole = path.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            open_model(path)
