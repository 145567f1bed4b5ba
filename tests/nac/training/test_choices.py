"""Gradients through `torch.cond`, beside PyTorch's: what is not taken gives nothing, no NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.nac.training.trainer import Trainer
from tests.nac.training.torch_steps import follow, require_same

torch: Any = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.heavy("PyTorch exports a network"),
    pytest.mark.filterwarnings("ignore"),
]

X = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))
CLASSES = torch.tensor([0, 1, 2, 1])
Function = Callable[[Any, Any, Any], Any]


def sides(condition: Any, true: Any, false: Any, *given: Any) -> Any:  # noqa: ANN401
    return torch.cond(condition, true, false, given)


def softmax_of_infinities(h: Any, w: Any) -> Any:  # noqa: ANN401
    z = torch.log(w)
    return torch.softmax(h / (z * z - z.sum()), -1)


def nested(x: Any, h: Any, w: Any) -> Any:  # noqa: ANN401
    def inner(h: Any, w: Any) -> Any:  # noqa: ANN401
        return sides(x.mean() > 100, lambda h, w: h / w, lambda h, w: h + w * w, h, w)

    return sides(x.sum() > 0, inner, lambda h, w: h + torch.log(w) + torch.sqrt(w), h, w)


def two(x: Any, h: Any, w: Any) -> Any:  # noqa: ANN401
    first = sides(x.sum() > 0, lambda h, w: h + w, lambda h, w: h + torch.log(w), h, w)
    return first + sides(x.mean() > -5, lambda h, w: h * w, lambda h, w: h * torch.log(w), h, w)


# The weight has a 0, of which the untaken side takes the logarithm, or by which it divides.
FUNCTIONS: dict[str, Function] = {
    "log": lambda x, h, w: sides(
        x.sum() > 0, lambda h, w: h * 2 + w, lambda h, w: h + torch.log(w), h, w
    ),
    "division": lambda x, h, w: sides(
        x.sum() < 0, lambda h, w: h / w, lambda h, w: torch.sin(h) + w, h, w
    ),
    "softmax": lambda x, h, w: sides(x.sum() > 0, lambda h, w: h + w, softmax_of_infinities, h, w),
    "nested": nested,
    "two": two,
}


class Network(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, function: Function) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.l = torch.nn.Linear(3, 3)
        self.w = torch.nn.Parameter(torch.tensor([0.0, 1.0, 2.0]))
        self.function = function

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        return self.function(x, self.l(x), self.w)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_branch_that_is_not_taken_gives_no_gradient(name: str) -> None:
    network = Network(FUNCTIONS[name]).eval()
    model = nac.build(network, example_args=(X,))
    trainer = follow(network, model, (X,), CLASSES)
    require_same(network, trainer)
    assert all(np.isfinite(array).all() for array in trainer.weights.values())


class Gated(torch.nn.Module):  # type: ignore[misc]
    """What is taken follows from a parameter, which training changes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.l = torch.nn.Linear(3, 3)
        self.w = torch.nn.Parameter(torch.tensor([0.02, 0.01, 0.01]))

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        def up(h: Any, w: Any) -> Any:  # noqa: ANN401
            return h * 3 + w * 5

        return sides(self.w.sum() > 0, up, lambda h, w: torch.sin(h) - w, self.l(x), self.w)


def test_a_condition_on_a_parameter_is_asked_in_every_step() -> None:
    network = Gated().eval()
    model = nac.build(network, example_args=(X,))
    zeros = torch.zeros(4, dtype=torch.int64)
    trainer = follow(network, model, (X,), zeros)
    require_same(network, trainer)


def test_the_side_changes_with_the_parameter() -> None:
    network = Gated().eval()
    trainer = Trainer(nac.build(network, example_args=(X,)))
    trainer.run({"x": X.numpy()})
    trainer.weights["w"] = np.array([-1, -1, -1], np.float32)
    with torch.no_grad():
        network.w.fill_(-1)
    expected = network(X).detach().numpy()
    np.testing.assert_allclose(trainer.run({"x": X.numpy()})[0], expected, rtol=1e-5)
