"""The fixtures' networks in double precision, by plain NumPy."""

from __future__ import annotations

import numpy as np

from nacre.core.values import Array
from nacre.nac.run.model import NacModel


def exact_output(model: NacModel, x: Array) -> Array:
    """What a fixture computes without rounding."""
    weights = {name: model.weights[id_].astype(np.float64)
               for id_, name in model.weights.names.items()}  # fmt: skip
    given = x.astype(np.float64)
    return _mlp(weights, given) if "0.weight" in weights else _cnn(weights, given)


def _mlp(w: dict[str, Array], x: Array) -> Array:
    x = np.maximum(x @ w["0.weight"].T + w["0.bias"], 0)
    x = np.tanh(x @ w["2.weight"].T + w["2.bias"])
    return np.asarray(x @ w["4.weight"].T + w["4.bias"])


def _cnn(w: dict[str, Array], x: Array) -> Array:
    for stage in ("1", "2"):
        x = _conv(x, w[f"c{stage}.weight"], w[f"c{stage}.bias"])
        x = np.maximum(_norm(x, w, f"b{stage}"), 0)
        if stage == "1":
            n, c, height, width = x.shape
            x = x.reshape(n, c, height // 2, 2, width // 2, 2).max((3, 5))
    return np.asarray(x.mean((2, 3)) @ w["fc.weight"].T + w["fc.bias"])


def _norm(x: Array, w: dict[str, Array], name: str) -> Array:
    scale = w[f"{name}.weight"] / np.sqrt(w[f"{name}.running_var"] + 1e-5)
    shift = w[f"{name}.bias"] - w[f"{name}.running_mean"] * scale
    return np.asarray(x * scale[:, None, None] + shift[:, None, None])


def _conv(x: Array, weight: Array, bias: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.asarray(np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, None, None])
