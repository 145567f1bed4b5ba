"""Architectures that people use, as files: built, verified, read again, run beside PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from nacre import nac

torch = pytest.importorskip("torch")

from tests.core.torch import test_models, test_more_models  # noqa: E402 - they need PyTorch
from tests.nac.architectures.networks import NETWORKS, Network  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]  # those of the packages

Loose = Any
MOST = 1e-4  # of the largest element


class Plain(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A network whose first output is a tensor, whatever it wraps it in."""

    def __init__(self, network: Loose) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Loose) -> Loose:
        found = self.network(*inputs)
        while not isinstance(found, torch.Tensor):
            found = next(iter(found.values())) if isinstance(found, dict) else found[0]
        return found


def settle(network: Loose, inputs: tuple[Loose, ...]) -> None:
    """Give norms the statistics of what they see, and numbers to what begins as zeros.

    With those of a fresh network signals die out, or never get through.
    """
    for parameter in network.parameters():
        if parameter.ndim > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    network.eval()
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        network(*(torch.cat([x, x + torch.randn_like(x)]) if x.ndim else x for x in inputs))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    network.eval()


def test_there_are_enough_of_them() -> None:
    of_transformers = len(test_models.MODELS) + len(test_more_models.MODELS)
    assert len(NETWORKS) + of_transformers >= 120
    assert len({(one.package, one.name) for one in NETWORKS}) == len(NETWORKS)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: f"{one.package}-{one.name}")
def test_an_architecture(network: Network) -> None:
    torch.manual_seed(3)
    made, inputs = Plain(network.make()), network.inputs()
    settle(made, inputs)
    with torch.no_grad():
        expected = made(*inputs).numpy()
    raw = nac.to_bytes(nac.build(made, example_args=inputs).file)
    assert nac.verify(raw) == []
    model = nac.load(raw)
    arrays = [x.numpy() for x in inputs]
    (found,) = model.run({one.name: x for one, x in zip(model.inputs, arrays, strict=True)})
    size = float(np.abs(expected).max())
    assert 1e-6 < size < 1e6
    error = float(np.abs(found - expected).max())
    if error > MOST * size:  # some are so long that the last bits of PyTorch's own are noise
        error = float(np.abs(found - in_doubles(made, inputs)).max())
        assert error <= 2 * float(np.abs(expected - in_doubles(made, inputs)).max())


def in_doubles(network: Loose, inputs: tuple[Loose, ...]) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        result = copy.deepcopy(network).double()(*(x.double() if x.ndim else x for x in inputs))
    array: np.ndarray[Any, Any] = result.numpy()
    return array
