"""One use of each ATen overload that a handler takes, in groups that share inputs and an export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify

torch = pytest.importorskip("torch")

Tensor = Any
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A call of an overload on the inputs of its group."""

    key: str
    call: Callable[..., Any]

    def made(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """What the call gives, as a list."""
        name, _, overload = self.key.partition(".")
        op = getattr(getattr(torch.ops.aten, name), overload)
        found = self.call(op, *inputs)
        return list(found) if isinstance(found, list | tuple) else [found]


def case(key: str, call: Callable[..., Any]) -> Case:
    return Case(key, call)


class Calls(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module that makes all calls of a group."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = cases

    def forward(self, *inputs: Tensor) -> list[list[Tensor]]:
        # Each case gets tensors of its own: what PyTorch shares between calls is not the question.
        return [case.made([x.clone() for x in inputs]) for case in self.cases]


def imported(cases: Sequence[Case], inputs: Sequence[Tensor]) -> Module:
    return from_torch(Calls(cases), tuple(inputs))


def array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().float().numpy() if is_short(tensor) else tensor.detach().numpy()
    return found


def is_short(tensor: Tensor) -> bool:
    return bool(tensor.dtype in (torch.bfloat16, torch.float16))


def check(cases: Sequence[Case], inputs: Sequence[Tensor], rtol: float = 2e-5) -> None:
    """A module of the calls gives what PyTorch gives."""
    module = imported(cases, inputs)
    assert verify(module, profile="nacre-1") == []
    given = {f"inputs_{i}": x.numpy() for i, x in enumerate(inputs)}
    found = iter(evaluate(module, given))
    for case_ in cases:
        with torch.no_grad():
            expected = case_.made(inputs)
        for part in expected:
            made = next(found)
            assert made.shape == tuple(part.shape), case_.key
            assert made.dtype == part.numpy().dtype, case_.key
            message = f"{case_.key}"
            if part.dtype.is_floating_point:
                np.testing.assert_allclose(
                    made, part.numpy(), rtol=rtol, atol=rtol, err_msg=message, equal_nan=True
                )
            else:
                np.testing.assert_array_equal(made, part.numpy(), err_msg=message)
    assert next(found, None) is None
