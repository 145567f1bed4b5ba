"""Trained models against onnxruntime and PyTorch, as imported and as optimised."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module
from nacre.core.passes.inference import optimise
from tests.core.models.minilm import minilm, sentence
from tests.core.models.real_models import REAL_MODELS, Array, Feeds, RealModel
from tools.fetch_models import Unavailable, model_path

EVERY_MODEL = pytest.mark.parametrize(
    "model",
    [
        pytest.param(m, id=m.name, marks=[pytest.mark.full] if m.is_large else [])
        for m in REAL_MODELS
    ],
)
BY_NAME = {model.name: model for model in REAL_MODELS}


def path_of(name: str) -> Path:
    """A model's file, or the test says why it is skipped."""
    try:
        return model_path(name)
    except Unavailable as reason:
        pytest.skip(str(reason))


def wanted(model: RealModel) -> list[Array]:
    """What onnxruntime gives."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path), options)
    taken = {one.name for one in session.get_inputs()}
    given: Feeds = {**model.feeds(), **model.constants}
    found: list[Array] = session.run(None, {n: a for n, a in given.items() if n in taken})
    return found


def error(found: Array, exact: Array) -> float:
    """The largest difference as a share of the largest value."""
    assert found.shape == exact.shape
    assert found.dtype == exact.dtype
    assert np.isfinite(found).all()
    wide = found.astype(np.float64)
    return float(np.abs(wide - exact).max() / max(np.abs(exact).max(), 1e-30))


@pytest.mark.heavy("trained networks")
@pytest.mark.sampled(5)
@EVERY_MODEL
def test_outputs_are_those_of_onnxruntime(model: RealModel) -> None:
    path_of(model.name)
    exact = wanted(model)
    module = model.module()
    for form in (module, optimise(module)):
        found = CoreSession(form).run(model.feeds())
        assert len(found) == len(exact)
        for mine, theirs in zip(found, exact, strict=True):
            assert error(mine, theirs) <= model.most


@pytest.mark.heavy("trained networks")
@pytest.mark.sampled(3)
@EVERY_MODEL
def test_a_session_gives_the_same_bytes_in_every_run(model: RealModel) -> None:
    path_of(model.name)
    session = CoreSession(optimise(model.module()))
    first = session.run(model.feeds())
    kept = [array.copy() for array in first]
    second = session.run(model.feeds())
    for mine, copy, again in zip(first, kept, second, strict=True):
        assert mine.tobytes() == copy.tobytes() == again.tobytes()


def test_nudenet_is_imported_within_two_seconds() -> None:
    path_of("nudenet")

    def seconds() -> float:
        start = time.process_time()
        BY_NAME["nudenet"].module()
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 2.0


BLOCKS = 3 << 20


@pytest.mark.sampled(3)
@EVERY_MODEL
def test_a_run_takes_less_than_three_times_the_model_and_its_values(model: RealModel) -> None:
    size = path_of(model.name).stat().st_size
    module = optimise(model.module())
    feeds = model.feeds()
    tracemalloc.start()
    try:
        session = CoreSession(module)
        session.run(feeds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The weights themselves were read before; what is traced is all that a run adds to them, with
    # the blocks that kernels fill and read, whatever the size of a model.
    assert size + peak < 3 * (size + session.workspace_bytes) + BLOCKS


def test_silero_follows_a_sound_through_its_state() -> None:
    path = path_of("silero-ifless")
    model = BY_NAME["silero-ifless"]
    module = model.module()
    session = onnxruntime.InferenceSession(str(path))
    ours = CoreSession(module)
    sound = BY_NAME["silero-sequence"].feeds()["input"]
    state = theirs = np.zeros((2, 1, 128), np.float32)
    for piece in sound[:12]:
        found, state = ours.run({"input": piece[None], "state": state})
        given = {"input": piece[None], "state": theirs, **model.constants}
        exact, theirs = session.run(None, given)
        assert error(state, theirs) < 2e-5
        assert abs(float(found[0, 0]) - float(exact[0, 0])) < 1e-5


@pytest.mark.full
def test_minilm_through_torch_export_gives_what_torch_gives() -> None:
    torch = pytest.importorskip("torch")
    from nacre.core.torch.importer import from_torch

    module = minilm(path_of("minilm"))
    ids, mask = sentence(64)
    given = torch.from_numpy(ids), torch.from_numpy(mask)
    with torch.no_grad():
        exact = module(*given).numpy()
    imported: Module = from_torch(module, given)
    for form in (imported, optimise(imported)):
        (found,) = CoreSession(form).run(dict(zip(form.input_types, (ids, mask), strict=True)))
        assert error(found, exact) <= 2e-6
