"""Losses against classes, by naive loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from tests.core.onnx.single import Array, by_nacre, single

SHAPES = st.sampled_from([(3, 4), (2, 3, 5), (2, 3, 2, 2), (1, 5, 1, 2, 3)])


def _loss(x: Array, target: Array, weight: Array | None, ignored: int | None, how: str) -> Array:
    """The loss, element by element."""
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for at in np.ndindex(target.shape):
        kind = int(target[at])
        if kind == ignored:
            continue
        weights[at] = 1.0 if weight is None else weight[kind]
        losses[at] = -x[(at[0], kind, *at[1:])] * weights[at]
    if how == "none":
        return losses
    return np.asarray(losses.sum() if how == "sum" else losses.sum() / weights.sum())


@given(
    st.integers(0, 1 << 16),
    SHAPES,
    st.booleans(),
    st.sampled_from([None, 0, 1, -100, 77]),
    st.sampled_from(["none", "sum", "mean"]),
    st.sampled_from([12, 13, 22]),
    st.sampled_from([np.int32, np.int64]),
)
def test_losses(
    seed: int,
    dims: tuple[int, ...],
    is_weighted: bool,
    ignored: int | None,
    how: str,
    opset: int,
    kind: type,
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(dims).astype(np.float32)
    target: Array = rng.integers(0, dims[1], (dims[0], *dims[2:])).astype(kind)
    target.flat[0] = 2  # one that counts
    if ignored is not None:
        target.flat[1] = ignored
    weight = rng.uniform(0.5, 2.0, dims[1]).astype(np.float32) if is_weighted else None
    inputs = [x, target, *([weight] if weight is not None else [])]
    given_: dict[str, Any] = {"reduction": how}
    given_ |= {} if ignored is None else {"ignore_index": ignored}
    (found,) = by_nacre(single("NegativeLogLikelihoodLoss", inputs, opset, **given_), inputs)
    expected = _loss(x, target, weight, ignored, how)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)

    raw = single("SoftmaxCrossEntropyLoss", inputs, opset, 2, **given_)
    loss, logarithms = by_nacre(raw, inputs)
    wide = x.astype(np.float64)
    exact = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(logarithms, exact, 1e-4, 1e-5)
    np.testing.assert_allclose(loss, _loss(exact, target, weight, ignored, how), 1e-4, 1e-5)


def test_an_ignored_entry_may_be_infinite() -> None:
    x, target = np.array([[-np.inf, -1.0], [-2.0, -3.0]], np.float32), np.array([0, 1])
    raw = single("NegativeLogLikelihoodLoss", [x, target], 13, ignore_index=0)
    assert by_nacre(raw, [x, target])[0] == 3.0


@pytest.mark.parametrize(
    ("target", "given_", "told"),
    [
        (np.zeros((2, 2), np.int64), {}, "do not go with"),
        (np.zeros(2, np.int64), {"reduction": "most"}, "`reduction` is `most`"),
    ],
)
def test_what_is_no_loss(target: Array, given_: dict[str, Any], told: str) -> None:
    inputs = [np.zeros((2, 3), np.float32), target]
    with pytest.raises(InputError, match=told):
        by_nacre(single("NegativeLogLikelihoodLoss", inputs, 13, **given_), inputs)
