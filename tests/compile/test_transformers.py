"""MiniLM and small models of `transformers`: compiled, and held to the module and to PyTorch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from nacre.compile.accuracy.measures import SQNR_DB, TOLERANCES, relative_error, sqnr
from nacre.compile.api import compile as compiled
from nacre.compile.bundle.bundle import Bundle
from nacre.core.module import Module
from nacre.nem.api.documents import check
from tests.core.models.minilm import minilm, sentence
from tools.fetch_models import Unavailable, model_path

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nacre.core.torch.importer import from_torch  # noqa: E402 - it needs torch
from tests.core.torch import test_models as makers  # noqa: E402

RUNS = [("npm16k", "f16"), ("npm4k", "i8"), ("npm64k", "i8")]
SMALL = ["bert", "gpt2", "t5", "llama", "vit", "resnet", "convnext", "mobilenet", "whisper"]
LENGTH = 32  # tokens
Feeds = Mapping[str, Any]


def plan_of(module: Module, feeds: Feeds, device: str, precision: Any) -> Bundle:  # noqa: ANN401
    calibration = [dict(feeds)] if precision == "i8" else None
    bundle = compiled(module, device, precision, calibration=calibration)
    assert [d for d in check(bundle.program, strict=True) if d.severity != "info"] == []
    return bundle


def require_right(bundle: Bundle, feeds: Feeds, expected: list[Any], precision: str) -> None:
    """By the legalised module, and by what PyTorch computes."""
    validation = bundle.validate(dict(feeds))
    assert validation.first_difference is None, str(validation)
    for found, wanted in zip(bundle.run(dict(feeds)).values(), expected, strict=False):
        if precision == "i8":
            assert sqnr(np.asarray(found), wanted) >= SQNR_DB
        else:
            assert relative_error(np.asarray(found), wanted) <= TOLERANCES[precision]


def outputs_of(made: Any) -> list[Any]:  # noqa: ANN401 - what a module of torch gives
    first = made if isinstance(made, torch.Tensor) else made[0]
    return [first.detach().numpy()]


@pytest.mark.full
@pytest.mark.parametrize(("device", "precision"), RUNS)
def test_minilm(device: str, precision: str) -> None:
    try:
        path = model_path("minilm")
    except Unavailable as reason:
        pytest.skip(str(reason))
    network, (ids, mask) = minilm(path), sentence(LENGTH)
    given = torch.from_numpy(ids), torch.from_numpy(mask)
    module = from_torch(network, given)
    feeds = dict(zip(module.input_types, (ids, mask), strict=True))
    bundle = plan_of(module, feeds, device, precision)
    require_right(bundle, feeds, outputs_of(network(*given)), precision)


@pytest.mark.full
@pytest.mark.parametrize(("device", "precision"), RUNS[:2])
@pytest.mark.parametrize("name", SMALL)
def test_a_model_of_transformers(name: str, device: str, precision: str) -> None:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.manual_seed(6)
    make: Callable[[], Any] = getattr(makers, name)
    model, inputs = make()
    model.eval()
    if name == "mobilenet":  # fresh statistics let signals die out, in so many layers
        makers.lively(model)
    module = from_torch(model, inputs)
    feeds = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    bundle = plan_of(module, feeds, device, precision)
    require_right(bundle, feeds, outputs_of(model(*inputs)), precision)
