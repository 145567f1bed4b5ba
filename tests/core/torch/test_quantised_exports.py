"""Programs that PT2E and torchao quantised, against PyTorch's own results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
decomposed = torch.ops.quantized_decomposed


def integers(seed: int, *shape: int, low: int = -127, high: int = 128) -> Any:  # noqa: ANN401
    random = np.random.default_rng(seed)
    return torch.from_numpy(random.integers(low, high, shape).astype(np.int8))


def scales(seed: int, *shape: int) -> Any:  # noqa: ANN401
    random = np.random.default_rng(seed)
    return torch.from_numpy((0.01 + 0.01 * random.random(shape)).astype(np.float32))


class Exported(torch.nn.Module):  # type: ignore[misc]
    """A convolution and a product between steps, as `convert_pt2e` leaves them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", integers(1, 8, 3, 3, 3))
        self.register_buffer("steps", scales(2, 8))
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.register_buffer("matrix", integers(3, 10, 32))
        self.bias = torch.nn.Parameter(torch.linspace(-1, 1, 8))

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        x = self.step(x, 0.03, 4)
        kernel = decomposed.dequantize_per_channel(
            self.kernel, self.steps, self.zeros, 0, -127, 127, torch.int8
        )
        y = torch.relu(torch.nn.functional.conv2d(x, kernel, self.bias, padding=1))
        y = torch.nn.functional.max_pool2d(self.step(y, 0.05, -128), 4).flatten(1)
        matrix = decomposed.dequantize_per_tensor(self.matrix, 0.01, 0, -127, 127, torch.int8)
        return self.step(torch.nn.functional.linear(y, matrix), 0.2, 3)

    def step(self, x: Any, scale: float, zero: int) -> Any:  # noqa: ANN401
        ends = (scale, zero, -128, 127, torch.int8)
        return decomposed.dequantize_per_tensor(decomposed.quantize_per_tensor(x, *ends), *ends)


@pytest.mark.heavy("PyTorch exports a network")
def test_a_network_of_pt2e_runs_on_its_own_integers() -> None:
    model = Exported().eval()
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32))
    with torch.no_grad():
        expected = model(x).numpy()
    module = from_torch(torch.export.export(model, (x,)))
    (name,) = module.input_types
    found = evaluate(module, {name: x.numpy()})[0]
    # An integer next to the middle of a step may fall on either side.
    assert np.abs(found - expected).max() <= 0.2 + 1e-5
    assert np.mean(np.abs(found - expected) > 1e-5) <= 0.1
    bundle = nacre.compile(module, "npm4k", "i8")  # no data: it brings its scales
    opcodes = {op.opcode for op in bundle.legal.operations}
    assert {"QConv", "QLinear"} <= opcodes
    assert "Conv" not in opcodes
    on_device = next(iter(bundle.run({name: x.numpy()}).values()))
    assert np.abs(on_device - expected).max() <= 0.2 + 1e-5


class Weights(torch.nn.Module):  # type: ignore[misc]
    """A product whose weights are stored integers."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        is_group = form == "group"
        low, high = (-8, 8) if is_group else (-127, 128)
        self.register_buffer("weight", integers(1, 64, 128, low=low, high=high))
        self.register_buffer("steps", scales(2, 64, 4) if is_group else scales(2, 64))
        self.register_buffer("zeros", integers(3, 64, 4, low=-3, high=4))

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        if self.form == "packed":
            return torch.ops.aten._weight_int8pack_mm(x, self.weight, self.steps)
        if self.form == "channel":
            weight = decomposed.dequantize_per_channel(
                self.weight, self.steps, None, 0, -127, 127, torch.int8
            )
        else:
            weight = decomposed.dequantize_per_channel_group(
                self.weight, self.steps, self.zeros, -8, 7, torch.int8, 32, torch.float32
            )
        return torch.nn.functional.linear(x, weight)


@pytest.mark.parametrize(
    ("form", "most"), [("packed", 64 * 130), ("channel", 64 * 130), ("group", 64 * 76)]
)
def test_weights_keep_their_integers(form: str, most: int) -> None:
    model = Weights(form).eval()
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 128)).astype(np.float32))
    with torch.no_grad():
        expected = model(x).numpy()
    module = from_torch(torch.export.export(model, (x,)))
    (name,) = module.input_types
    assert np.abs(evaluate(module, {name: x.numpy()})[0] - expected).max() < 1e-4
    precision: Any = "w4f16" if form == "group" else "w8f16"
    bundle = nacre.compile(module, "npm4k", precision)
    found = next(iter(bundle.run({name: x.numpy()}).values()))
    noise = np.sum((found - expected) ** 2) / np.sum(expected**2)
    assert -10 * np.log10(noise) > 60  # f16 alone: no weight was rounded again
    assert len(bundle.weights) <= most + 256


def test_scales_that_the_run_finds_are_refused() -> None:
    class Dynamic(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:  # noqa: ANN401
            ends = (x.abs().max() / 127, torch.tensor(0), -128, 127, torch.int8)
            return decomposed.dequantize_per_tensor(decomposed.quantize_per_tensor(x, *ends), *ends)

    with pytest.raises(InputError, match="computed when the model runs") as refused:
        from_torch(torch.export.export(Dynamic().eval(), (torch.ones(4, 64),)))
    assert {d.code for d in refused.value.diagnostics} == {"TCH01"}
