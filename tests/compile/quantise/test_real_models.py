"""Trained networks on integers, against onnxruntime on the floats that they came as."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.stage import legalise
from nacre.compile.quantise.quantiser import quantise
from tests.compile.quantise.networks import sqnr, stored_run
from tests.core.models.real_models import REAL_MODELS, RealModel
from tools.fetch_models import Unavailable

LEAST = 15.0  # dB of every output, on inputs that calibration did not see
SAMPLES = 12
UNSEEN = (300, 301, 302)
NAMES = ("ppocr-cls", "ppocr-det", "ppocr-rec", "nudenet", "silero-ifless", "magika")
_SMALL = ("ppocr-cls", "silero-ifless")
_BY_NAME = {model.name: model for model in REAL_MODELS}


def inputs(model: RealModel, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: make(random, shape) for name, (shape, make) in model.inputs.items()}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in _SMALL else [pytest.mark.full]


@pytest.mark.full
@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in NAMES])
def test_outputs_keep_their_signal(name: str) -> None:
    model = _BY_NAME[name]
    try:
        module = model.module()
    except Unavailable as reason:
        pytest.skip(str(reason))
    legal = layout(legalise(module, "f32"))
    made = quantise(legal, [inputs(model, seed) for seed in range(SAMPLES)], source=module)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path), options)
    for seed in UNSEEN:
        given = inputs(model, seed)
        expected = session.run(None, {**given, **model.constants})
        found = stored_run(made, given)
        for port, wanted, array in zip(made.outputs, expected, found, strict=True):
            kept = sqnr(wanted, array)
            assert kept >= LEAST, f"output `{port.name}` with input {seed}: {kept:.1f} dB"
