"""MiniLM, a BERT of 6 layers, in plain PyTorch, with the weights that its package carries."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def minilm(path: Path) -> Any:  # noqa: ANN401 - a module of torch, which may not be installed
    """The module: token numbers and a mask [1, length] to hidden states [1, length, 384]."""
    torch: Any = importlib.import_module("torch")
    load: Any = importlib.import_module("safetensors.torch").load_file
    config = json.loads((path.parent / "config.json").read_text())
    weights = {name: w for name, w in load(path).items() if not name.endswith("position_ids")}
    nn, size, heads = torch.nn, config["hidden_size"], config["num_attention_heads"]

    def norm() -> Any:  # noqa: ANN401
        return nn.LayerNorm(size, config["layer_norm_eps"])

    def dense(inner: int, **more: Any) -> Any:  # noqa: ANN401
        return nn.ModuleDict({"dense": nn.Linear(inner, size), **more})

    def layer() -> Any:  # noqa: ANN401
        names = ("query", "key", "value")
        own = nn.ModuleDict({name: nn.Linear(size, size) for name in names})
        wide = config["intermediate_size"]
        return nn.ModuleDict({
            "attention": nn.ModuleDict({"self": own, "output": dense(size, LayerNorm=norm())}),
            "intermediate": nn.ModuleDict({"dense": nn.Linear(size, wide)}),
            "output": dense(wide, LayerNorm=norm()),
        })  # fmt: skip

    class MiniLm(nn.Module):  # type: ignore[misc, name-defined]
        """The names of parts are those of the weights."""

        def __init__(self) -> None:
            super().__init__()
            tables = {
                "word_embeddings": config["vocab_size"],
                "position_embeddings": config["max_position_embeddings"],
                "token_type_embeddings": config["type_vocab_size"],
            }
            parts = {name: nn.Embedding(count, size) for name, count in tables.items()}
            self.embeddings = nn.ModuleDict({**parts, "LayerNorm": norm()})
            layers = nn.ModuleList(layer() for _ in range(config["num_hidden_layers"]))
            self.encoder = nn.ModuleDict({"layer": layers})
            self.pooler = dense(size)

        def forward(self, ids: Any, mask: Any) -> Any:  # noqa: ANN401
            table, length = self.embeddings, ids.shape[1]
            x = table["word_embeddings"](ids) + table["token_type_embeddings"].weight[0]
            x = table["LayerNorm"](x + table["position_embeddings"].weight[:length])
            is_seen = (mask != 0)[:, None, None, :]
            for one in self.encoder["layer"]:
                own, out = one["attention"]["self"], one["attention"]["output"]
                split = [own[name](x).unflatten(-1, (heads, -1)).transpose(1, 2) for name in own]
                found = nn.functional.scaled_dot_product_attention(*split, attn_mask=is_seen)
                joined = found.transpose(1, 2).flatten(-2)
                x = out["LayerNorm"](x + out["dense"](joined))
                wide = nn.functional.gelu(one["intermediate"]["dense"](x))
                x = one["output"]["LayerNorm"](x + one["output"]["dense"](wide))
            return x

    module = MiniLm().eval()
    module.load_state_dict(weights)
    return module


def sentence(length: int) -> tuple[Array, Array]:
    """Token numbers between the marks of a sentence, and a mask that leaves the last fifth out."""
    ids = np.random.default_rng(3).integers(1996, 30000, (1, length))
    ids[0, 0] = 101  # where a sentence begins
    mask = np.ones((1, length), np.int64)
    mask[:, length - length // 5 :] = 0
    return ids, mask
