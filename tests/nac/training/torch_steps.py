"""Steps of PyTorch's own optimiser beside ours, on the same data: the oracle of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.nac.training.trainer import Trainer

RATE, STEPS = 0.3, 3


def onnx_file(network: Any, given: tuple[Any, ...], folder: Path) -> Path:  # noqa: ANN401 - a module of PyTorch
    """A network as ONNX, which keeps nodes that lay weights out."""
    torch = pytest.importorskip("torch")
    path = folder / "network.onnx"
    torch.onnx.export(network, given, str(path), dynamo=False, do_constant_folding=False)
    return path


def follow(network: Any, model: nac.NacModel, given: tuple[Any, ...], target: Any) -> Trainer:  # noqa: ANN401
    """Take the same steps on both; losses and outputs have to be the same."""
    torch = pytest.importorskip("torch")
    trainer = Trainer(model)
    network.eval()
    is_classes = target.dtype == torch.int64
    measure = torch.nn.functional.cross_entropy if is_classes else torch.nn.functional.mse_loss
    loss = "cross_entropy" if is_classes else "mse"
    inputs = dict(zip(trainer.inputs, (one.numpy() for one in given), strict=True))
    trained = [one for one in network.parameters() if one.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        theirs = measure(network(*given), target)
        theirs.backward()
        optimiser.step()
        ours = trainer.step(inputs, [target.numpy()], RATE, loss=loss)
        assert ours == pytest.approx(float(theirs.detach()), rel=1e-4)
    expected = network(*given).detach().numpy()
    np.testing.assert_allclose(trainer.run(inputs)[0], expected, rtol=1e-3, atol=1e-4)
    saved = nac.load(nac.to_bytes(trainer.model().file))
    np.testing.assert_allclose(saved.run(inputs)[0], expected, rtol=1e-3, atol=1e-4)
    return trainer


def require_same(network: Any, trainer: Trainer) -> None:  # noqa: ANN401 - a module of PyTorch
    """That all that is trained is what PyTorch trains, and came to be the same."""
    used = {n: one for n, one in network.named_parameters() if one.grad is not None}
    assert set(trainer.parameters) == set(used)
    for name, tensor in used.items():
        found, expected = trainer.weights[name], tensor.detach().numpy()
        if found.shape != expected.shape:  # an exporter's node has laid it out
            found = found.T
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
