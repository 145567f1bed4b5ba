"""Models of transformers as `torch.onnx` exports them: past in, present out, open sizes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

Network = Any  # of transformers, which may not be installed


def export(model: Network, path: Path) -> Path:
    """A decoder in a file, with the names that Optimum gives its inputs and outputs."""
    import torch

    config = model.config
    layers = config.num_hidden_layers
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    names = [f"{{}}.{i}.{part}" for i in range(layers) for part in ("key", "value")]
    given = ["input_ids", "attention_mask", "position_ids"]
    tokens, total = {0: "batch", 1: "tokens"}, {0: "batch", 1: "total"}
    axes = {"input_ids": tokens, "attention_mask": total, "position_ids": tokens, "logits": tokens}
    past, present = ([n.format(kind) for n in names] for kind in ("past_key_values", "present"))
    axes |= {name: {0: "batch", 2: "past"} for name in past}
    axes |= {name: {0: "batch", 2: "total"} for name in present}
    rows = [torch.randn(2, heads, 5, size) for _ in past]
    ids = torch.zeros((2, 3), dtype=torch.long)
    mask = torch.ones((2, 8), dtype=torch.long)
    places = torch.arange(5, 8)[None].expand(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _with_flat_cache(model, layers), (ids, mask, places, *rows), str(path),
            input_names=[*given, *past], output_names=["logits", *present], dynamic_axes=axes,
            opset_version=18, dynamo=False,
        )  # fmt: skip
    return path


def _with_flat_cache(model: Network, layers: int) -> Network:
    """The model with its cache as tensors one by one."""
    import torch
    from transformers.cache_utils import DynamicCache

    class Flat(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, mask: Any, places: Any, *past: Any) -> Any:  # noqa: ANN401
            cache = DynamicCache([(past[2 * i], past[2 * i + 1]) for i in range(layers)])
            done = self.model(
                input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache,
                use_cache=True,
            )  # fmt: skip
            rows = [rows for layer in cache.layers for rows in (layer.keys, layer.values)]
            return done.logits, *rows

    return Flat()
