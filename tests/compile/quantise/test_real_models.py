"""Trained networks on integers, against onnxruntime on the floats that they came as."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from nacre.compile.layout import layout
from nacre.compile.legalise import legalise
from nacre.compile.quantise.quantiser import quantise
from tests.compile.quantise.networks import sqnr, stored_run
from tests.core.models.real_models import REAL_MODELS, RealModel
from tools.fetch_models import Unavailable

# The least signal over noise, some dB below what was measured on these very inputs.
LEAST = {
    "ppocr-cls": 28.0, "ppocr-det": 15.0, "ppocr-rec": 15.0, "nudenet": 30.0,
    "silero-ifless": 20.0, "magika": 30.0,
}  # fmt: skip
_SMALL = ("ppocr-cls", "silero-ifless")
_BY_NAME = {model.name: model for model in REAL_MODELS}


def inputs(model: RealModel, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: make(random, shape) for name, (shape, make) in model.inputs.items()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in _SMALL else [pytest.mark.full]) for n in LEAST],
)
def test_outputs_keep_their_signal(name: str) -> None:
    model = _BY_NAME[name]
    try:
        module = model.module()
    except Unavailable as reason:
        pytest.skip(str(reason))
    legal = layout(legalise(module, "f32"))
    made = quantise(legal, [inputs(model, seed) for seed in range(4)], source=module)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path), options)
    given = inputs(model, 100)
    expected = session.run(None, {**given, **model.constants})
    for port, wanted, found in zip(made.outputs, expected, stored_run(made, given), strict=True):
        kept = sqnr(wanted, found)
        assert kept >= LEAST[name]
