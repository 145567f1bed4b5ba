"""Real models and small ones of `transformers`: legal, with few escapes, and right."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre.compile.accuracy.measures import relative_error
from tests.compile.legalise.checking import error, legal_of, run
from tests.core.models.real_models import REAL_MODELS, RealModel
from tools.fetch_models import Unavailable

pytestmark = pytest.mark.full  # with packages that CI does without


# Beyond the first rounding of 16 bits: the first model ends in a steep sigmoid, the second
# reads characters that noise leaves undecided, the third rounds by scales that it finds in a run.
MOST = {"ppocr-det": 0.3, "ppocr-rec": 0.1, "ddddocr-int8": 0.03}
ESCAPES = {"magika": {"Clip": 1, "BinOp": 1}}  # of indices, before the table that they pick from


QUICK = frozenset({"ppocr-cls", "silero-ifless", "magika"})


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(m, id=m.name, marks=[] if m.name in QUICK else [pytest.mark.full])
        for m in REAL_MODELS
    ],
)
def test_a_real_model(model: RealModel) -> None:
    try:
        module = model.module()
    except Unavailable as reason:
        pytest.skip(str(reason))
    legal = legal_of(module, "f16")
    found = Counter(legal.module.by_id[value].opcode for value in legal.escaped)
    assert found == ESCAPES.get(model.name, {})
    feeds = model.feeds()
    for y, expected in zip(run(legal.module, feeds), run(module, feeds), strict=True):
        assert error(y, expected) <= MOST.get(model.name, 1e-2)


# Masks of words are compared and joined as integers and truth values.
TEXT_ESCAPES = {
    "bert": {"Compare": 1},
    "llama": {"Compare": 1, "BinOp": 1},
    "t5": {"Compare": 1, "Where": 1},
}


@pytest.mark.parametrize(
    "name", ["bert", "gpt2", "t5", "llama", "vit", "resnet", "convnext", "mobilenet", "whisper"]
)
def test_a_model_of_transformers(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from nacre.core.torch.importer import from_torch
    from tests.core.torch import test_models as makers

    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.manual_seed(6)
    make: Callable[[], Any] = getattr(makers, name)
    model, inputs = make()
    model.eval()
    if name == "mobilenet":  # fresh statistics let signals die out: outputs of 1e-26 prove nothing
        makers.lively(model)
    module = from_torch(model, inputs)
    feeds = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    for precision, most in (("f32", 1e-5), ("f16", 1e-2)):
        legal = legal_of(module, precision)
        found = Counter(legal.module.by_id[value].opcode for value in legal.escaped)
        levelled = {"Reduce": 1} if (name, precision) == ("t5", "f16") else {}  # the mask's rows
        assert found == {**TEXT_ESCAPES.get(name, {}), **levelled}
        assert error(run(legal.module, feeds)[0], run(module, feeds)[0]) <= most


def test_a_network_that_nobody_trained_is_right_by_its_own_scale() -> None:
    """Decision 47: its outputs are 1e-26, which f16 does not hold."""
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from nacre.core.torch.importer import from_torch
    from tests.core.torch import test_models as makers

    torch.manual_seed(6)
    model, inputs = makers.mobilenet()
    module = from_torch(model.eval(), inputs)
    feeds = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    legal = legal_of(module, "f16")
    (found,), (expected,) = run(legal.module, feeds), run(module, feeds)
    assert 0 < np.abs(expected).max() < 1e-20
    assert relative_error(found, expected) <= 1e-2
    assert any("nobody has trained" in note for note in legal.notes)
    wide = Counter(legal.module.by_id[value].opcode for value in legal.escaped)
    assert set(wide) == {"Reduce"}  # the largest element of what is divided by it
    assert wide["Reduce"] < 32  # branches that fade beside their trunk are f16
