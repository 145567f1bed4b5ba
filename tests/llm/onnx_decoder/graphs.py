"""Small decoders as ONNX graphs, in the forms of onnxruntime-genai; and onnxruntime beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, KV_HEADS, SIZE, WIDTH, FF, VOCABULARY, PLACES = 2, 4, 2, 16, 32, 48, 29, 64
_MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Form:
    """How a decoder is written."""

    attention: str = "grouped"  # `grouped`: GroupQueryAttention; `multi`: MultiHeadAttention
    bits: int = 0  # of the weights of MatMulNBits; 0: MatMul
    window: int = -1
    cap: float = 0.0
    is_packed: bool = False  # query, key and value in one product
    interleaved: int = 0


class _Graph:
    def __init__(self, form: Form, seed: int) -> None:
        self.form, self.random = form, np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.kv_heads = HEADS if form.attention == "multi" else KV_HEADS

    def tensor(self, array: np.ndarray) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        count: int = 1,
        **attributes: Any,  # noqa: ANN401
    ) -> list[str]:
        domain = attributes.pop("domain", "")
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(
            helper.make_node(kind, list(inputs), outputs, domain=domain, **attributes)
        )
        return outputs

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        return self.node(kind, inputs, **attributes)[0]

    def product(self, x: str, rows: int, columns: int) -> str:
        weight = self.random.standard_normal((columns, rows)).astype(np.float32) * rows**-0.5 * 1.5
        if not self.form.bits:
            return self.one("MatMul", x, self.tensor(np.ascontiguousarray(weight.T)))
        block = 16
        blocks = rows // block
        packed = self.random.integers(0, 256, (columns, blocks, block // 2), np.uint8)
        scales = (0.02 + 0.1 * self.random.random((columns * blocks,))).astype(np.float32)
        return self.one(
            "MatMulNBits", x, self.tensor(packed), self.tensor(scales), domain=_MICROSOFT,
            K=rows, N=columns, bits=4, block_size=block,
        )  # fmt: skip

    def norm_weight(self) -> str:
        return self.tensor((1 + 0.2 * self.random.standard_normal(WIDTH)).astype(np.float32))


def decoder(form: Form, seed: int = 0) -> onnx.ModelProto:
    """A Llama with random weights."""
    g = _Graph(form, seed)
    embedding = g.tensor(g.random.standard_normal((VOCABULARY, WIDTH)).astype(np.float32))
    angles = np.outer(np.arange(PLACES), 10_000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2)))
    tables = [g.tensor(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    x = g.one("Gather", embedding, "input_ids")
    lengths = _lengths(g) if form.attention == "grouped" else []
    normed = g.one("SimplifiedLayerNormalization", x, g.norm_weight(), epsilon=1e-5, axis=-1)
    outputs: list[str] = []
    for layer in range(LAYERS):
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        write = _grouped if form.attention == "grouped" else _multi
        attended, *present = write(g, normed, past, tables, lengths)
        outputs += present
        added = g.product(attended, HEADS * SIZE, WIDTH)
        normed, _, _, x = _skip_norm(g, x, added)
        gate, up = (g.product(normed, WIDTH, FF) for _ in range(2))
        gated = g.one("Mul", g.one("Mul", gate, g.one("Sigmoid", gate)), up)
        normed, _, _, x = _skip_norm(g, x, g.product(gated, FF, WIDTH))
    logits = g.product(normed, WIDTH, VOCABULARY)
    return _model(g, logits, outputs)


def _skip_norm(g: _Graph, x: str, added: str) -> list[str]:
    outputs = ["", ""]
    name = f"v{len(g.nodes)}"
    found = [f"{name}_0", *outputs, f"{name}_3"]
    g.nodes.append(
        helper.make_node(
            "SkipSimplifiedLayerNormalization",
            [x, added, g.norm_weight()],
            found,
            domain=_MICROSOFT,
            epsilon=1e-5,
        )
    )
    return found


def _lengths(g: _Graph) -> list[str]:
    """What GroupQueryAttention wants to know, worked out of the mask as exporters do."""
    one, axis = g.tensor(np.array([1], np.int64)), g.tensor(np.array([1], np.int64))
    total = g.one("ReduceSum", "attention_mask", axis, keepdims=0)
    before = g.one("Cast", g.one("Sub", total, one), to=TensorProto.INT32)
    place = g.tensor(np.array(1, np.int64))
    width = g.one("Gather", g.one("Shape", "attention_mask"), place, axis=0)
    return [before, g.one("Cast", width, to=TensorProto.INT32)]


def _grouped(
    g: _Graph, x: str, past: list[str], tables: list[str], lengths: list[str]
) -> list[str]:
    sizes = (HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE)
    if g.form.is_packed:
        parts = [g.product(x, WIDTH, sum(sizes)), "", ""]
    else:
        parts = [g.product(x, WIDTH, size) for size in sizes]
    return g.node(
        "GroupQueryAttention", [*parts, *past, *lengths, *tables], 3, domain=_MICROSOFT,
        num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, local_window_size=g.form.window,
        softcap=g.form.cap, rotary_interleaved=g.form.interleaved,
    )  # fmt: skip


def _multi(g: _Graph, x: str, past: list[str], tables: list[str], _lengths: list[str]) -> list[str]:
    query, key, value = (g.product(x, WIDTH, HEADS * SIZE) for _ in range(3))
    turned = [
        g.one(
            "RotaryEmbedding", part, "position_ids", *tables, domain=_MICROSOFT,
            interleaved=g.form.interleaved, num_heads=HEADS,
        )
        for part in (query, key)
    ]  # fmt: skip
    inputs = [*turned, value, "", "", _bias(g), *past]
    return g.node("MultiHeadAttention", inputs, 3, domain=_MICROSOFT, num_heads=HEADS)


def _bias(g: _Graph) -> str:
    """What is added to scores: `[1, 1, tokens, past + tokens]`, as exporters work it out."""
    zero, one = (g.tensor(np.array(n, np.int64)) for n in (0, 1))
    total = g.one("Gather", g.one("Shape", "attention_mask"), one)
    count = g.one("Gather", g.one("Shape", "input_ids"), one)
    keys = g.one("Range", zero, total, one)
    queries = g.one("Range", g.one("Sub", total, count), total, one)
    column = g.one("Unsqueeze", queries, g.tensor(np.array([1], np.int64)))
    allowed = g.one("LessOrEqual", keys, column)
    low = g.tensor(np.array(np.finfo(np.float32).min, np.float32))
    bias = g.one("Where", allowed, g.tensor(np.array(0, np.float32)), low)
    return g.one("Unsqueeze", bias, g.tensor(np.array([0, 1], np.int64)))


def _model(g: _Graph, logits: str, presents: list[str]) -> onnx.ModelProto:
    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    cache: list[str | int | None] = ["batch", g.kv_heads, "past", SIZE]
    inputs = [helper.make_tensor_value_info("input_ids", ints, ["batch", "tokens"])]
    inputs.append(helper.make_tensor_value_info("attention_mask", ints, ["batch", "total"]))
    if g.form.attention == "multi":
        inputs.append(helper.make_tensor_value_info("position_ids", ints, ["batch", "tokens"]))
    names = [f"{{}}.{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
    inputs += [
        helper.make_tensor_value_info(n.format("past_key_values"), floats, cache) for n in names
    ]
    g.nodes.append(helper.make_node("Identity", [logits], ["logits"]))
    outputs = [helper.make_tensor_value_info("logits", floats, ["batch", "tokens", VOCABULARY])]
    for name, value in zip(names, presents, strict=True):
        given = name.format("present")
        g.nodes.append(helper.make_node("Identity", [value], [given]))
        outputs.append(helper.make_tensor_value_info(given, floats, cache))
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, g.tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


class OnnxRuntime:
    """A decoder as onnxruntime runs it: past and present, token by token."""

    def __init__(self, model: bytes | str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self.reset()

    def reset(self) -> None:
        self.position = 0
        self.past = {
            value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
            for value in self.session.get_inputs()
            if value.name.startswith("past")
        }

    def feed(self, tokens: Sequence[int]) -> np.ndarray:
        end = self.position + len(tokens)
        given = {
            "input_ids": np.array([tokens], np.int64),
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(self.position, end)[None],
        }
        wanted = {value.name for value in self.session.get_inputs()}
        feeds = {k: v for k, v in given.items() if k in wanted} | self.past
        names = [value.name for value in self.session.get_outputs()]
        made = dict(zip(names, self.session.run(names, feeds), strict=True))
        self.past = {name: made[name.replace("past_key_values", "present")] for name in self.past}
        self.position = end
        logits: np.ndarray = made["logits"][0, -1]
        return logits


def greedy(feed: Any, prompt: Sequence[int], count: int) -> list[int]:  # noqa: ANN401
    """The likeliest tokens after a prompt, by something that gives logits."""
    tokens: list[int] = []
    logits = feed(list(prompt))
    for _ in range(count):
        tokens.append(int(logits.argmax()))
        logits = feed(tokens[-1:])
    return tokens
