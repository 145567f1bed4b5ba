"""Models of PyTorch and ONNX with operations that Core IR lacks, built, saved, loaded and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nacre import nac  # noqa: E402 - where PyTorch is
from nacre.base.diagnostics import InputError  # noqa: E402
from nacre.core.torch.importer import from_torch  # noqa: E402
from nacre.nac.operations import registry  # noqa: E402
from nacre.nac.program.canonical import canonical  # noqa: E402
from nacre.nac.program.lift import lift  # noqa: E402

pytestmark = pytest.mark.full  # with a package that CI does without

Loose = Any
TOLERANCE = 5e-5  # of the largest element of an output, and of 1


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(7)
    monkeypatch.setattr(registry, "_registered", {})


class Spectral(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer of a Fourier neural operator: a product of spectra."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, 4, 2))

    def forward(self, x: Loose) -> Loose:
        spectrum = torch.fft.rfft2(x)
        mixed = spectrum * torch.view_as_complex(self.weight)
        back = torch.fft.irfft2(mixed, s=x.shape[-2:])
        return torch.relu(back), mixed.abs(), mixed.angle(), mixed.conj().real, spectrum.imag


class Sound(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A spectrogram in decibels, and the signal back."""

    def forward(self, x: Loose) -> Loose:
        window = torch.hann_window(16)
        spectra = torch.stft(x, 16, 4, window=window, return_complex=True)
        loud = 10 * torch.log10(spectra.abs().square() + 1e-3)
        return loud, torch.istft(spectra, 16, 4, window=window, length=x.shape[-1])


class Algebra(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Systems of equations."""

    def forward(self, x: Loose) -> Loose:
        a = x @ x.mT + torch.eye(5)
        q, r = torch.linalg.qr(a)
        sign, log = torch.linalg.slogdet(a)
        solved = torch.linalg.solve(a, x)
        low = torch.linalg.cholesky(a)
        values, _ = torch.linalg.eigh(a)
        return (
            q @ r, sign * log, solved, low, values, torch.linalg.svdvals(x), torch.linalg.det(a),
            torch.linalg.pinv(x), torch.linalg.matrix_norm(x), torch.linalg.norm(x, 2),
            torch.linalg.matrix_power(a / 10, 3), torch.linalg.vecdot(x, x),
            torch.linalg.cross(x[:, :3], x[:, 1:4]), torch.linalg.inv(a),
            torch.linalg.solve_triangular(low, x, upper=False),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "shape"), [(Spectral(), (2, 6, 6)), (Sound(), (2, 64)), (Algebra(), (5, 4))]
)
def test_a_model_runs_as_pytorch_runs_it(
    module: Loose, shape: tuple[int, ...], tmp_path: Path
) -> None:
    x = torch.randn(*shape)
    path = tmp_path / "m.nac"
    nac.save(nac.build(module, example_args=(x,)), path)
    assert nac.verify(path) == []
    model = nac.load(path)
    with torch.no_grad():
        expected = module(x)
    name = model.inputs[0].name
    for limit in (None, 1 << 20):
        found = nac.load(path, memory_limit=limit).run({name: x.numpy()})
        for ours, theirs in zip(found, expected, strict=True):
            scale = float(theirs.abs().max().clamp(min=1))
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=TOLERANCE * scale)
    module_ = lift(model)
    assert lift(nac.build(module_)) == canonical(module_)
    assert nac.to_bytes(nac.build(model).file) == nac.to_bytes(model.file)


def test_other_verbs_refuse_it_as_before() -> None:
    with pytest.raises(InputError, match="complex") as refused:
        from_torch(Spectral(), (torch.randn(2, 6, 6),))
    assert {d.code for d in refused.value.diagnostics} == {"TCH01"}


class Noisy(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Dropout in training, and noise."""

    def forward(self, x: Loose) -> Loose:
        y = torch.nn.functional.dropout(x, 0.25, training=True)
        return y, x + torch.randn_like(x), torch.rand(3), torch.randint(0, 9, (4,)), (
            torch.bernoulli(torch.full((5,), 0.5)), torch.randperm(6),
            torch.multinomial(x.softmax(-1), 2), torch.empty(3).uniform_(1, 2),
            torch.normal(x, 1.0))  # fmt: skip


def test_random_numbers_of_a_model(tmp_path: Path) -> None:
    x = torch.randn(50, 40)
    path = tmp_path / "m.nac"
    nac.save(nac.build(Noisy(), example_args=(x,)), path)
    assert nac.verify(path) == []
    model = nac.load(path)
    found = model.run({"x": x.numpy()}, seed=3)
    assert abs((found[0] == 0).mean() - 0.25) < 0.05
    kept = found[0] != 0
    np.testing.assert_allclose(found[0][kept], x.numpy()[kept] / 0.75, rtol=1e-6)
    assert abs((found[1] - x.numpy()).std() - 1) < 0.1
    assert sorted(found[5].tolist()) == list(range(6))
    assert found[7].min() >= 1
    for one, two in zip(found, nac.load(path).run({"x": x.numpy()}, seed=3), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(found[2], model.run({"x": x.numpy()}, seed=4)[2])


class ComplexOutput(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Loose) -> Loose:
        return torch.fft.fft(x)


class ComplexSum(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Loose) -> Loose:
        return torch.fft.fft(x).cumsum(0).abs()


class Nonzero(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Loose) -> Loose:
        return torch.special.zeta(x[x > 0], torch.tensor(2.0))


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (ComplexOutput(), "output `0` is complex"),
        (ComplexSum(), "complex numbers, which Core IR lacks"),
        (Nonzero(), "depends on elements"),
    ],
)
def test_what_cannot_be_kept_is_refused(module: Loose, told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        nac.build(module, example_args=(torch.randn(4),))
    assert {d.code for d in refused.value.diagnostics} == {"TCH01"}


def test_an_operation_of_a_library_of_ones_own(tmp_path: Path) -> None:
    library = torch.library.Library("nacretest", "DEF")
    library.define(
        "gate(Tensor x, Tensor[] parts, float beta, *, str mode, int[] dims) -> Tensor[]"
    )

    def gate(x: Loose, parts: Loose, beta: float, *, mode: str, dims: Loose) -> Loose:
        return [x * beta + sum(parts), x.sum(dims)]

    library.impl("gate", gate, "CompositeExplicitAutograd")
    library.impl("gate", gate, "Meta")

    class Gated(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Loose) -> Loose:
            one, two = torch.ops.nacretest.gate(x, [x, x + 1], 0.5, mode="a", dims=[0])
            return torch.relu(one), -two

    x = torch.randn(3, 4)
    told: list[Loose] = []
    nac.save(nac.build(Gated(), example_args=(x,), warn=told.append), tmp_path / "m.nac")
    assert [d.code for d in told] == ["NAC40"]
    seen: list[Loose] = []

    def kernel(x: Loose, parts: Loose, beta: float, *, mode: str, dims: Loose) -> Loose:
        seen.append((len(parts), beta, mode, dims))
        return [x * np.float32(beta) + sum(parts), x.sum(dims)]

    nac.register_operation("nacretest.gate.default", kernel)
    found = nac.load(tmp_path / "m.nac").run({"x": x.numpy()})
    for ours, theirs in zip(found, Gated()(x), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6, atol=1e-6)
    assert seen == [(2, 0.5, "a", (0,))]


def onnx_model(**types: Loose) -> Loose:
    onnx = pytest.importorskip("onnx")
    helper, float_ = onnx.helper, onnx.TensorProto.FLOAT
    bias = onnx.numpy_helper.from_array(np.ones(3, np.float32), "bias")
    table = onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32), "table")
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(
            "Gate", ["r", "", "bias"], ["g", "h"], name="gate", domain="com.acme", alpha=0.5,
            axes=[0, 1], mode="fast", table=table,
        ),
        helper.make_node("Neg", ["g"], ["y"]),
    ]  # fmt: skip
    info = [helper.make_tensor_value_info(name, float_, shape) for name, shape in types.items()]
    graph = helper.make_graph(
        nodes, "m", [helper.make_tensor_value_info("x", float_, ["N", 3])],
        [helper.make_tensor_value_info("y", float_, ["N", 3]),
         helper.make_tensor_value_info("h", float_, [3])],
        [bias], value_info=info,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_a_node_of_another_domain(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(onnx_model(g=["N", 3]).SerializeToString())
    model = nac.build(tmp_path / "m.onnx", shapes={"x": (2, 3)})
    nac.save(model, tmp_path / "m.nac")
    assert [d.code for d in nac.verify(tmp_path / "m.nac")] == ["NAC40"]

    def kernel(x: Loose, skipped: Loose, bias: Loose, **named: Loose) -> Loose:
        assert skipped is None
        table = named.pop("table")
        assert named == {"alpha": 0.5, "axes": (0, 1), "mode": "fast"}
        return [x * np.float32(0.5) + bias + table, bias]

    nac.register_operation("com.acme::Gate", kernel)
    x = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    y, h = nac.load(tmp_path / "m.nac").run({"x": x})
    np.testing.assert_array_equal(y, -(np.maximum(x, 0) / 2 + 1 + np.arange(3)))
    np.testing.assert_array_equal(h, np.ones(3))


@pytest.mark.parametrize(
    ("types", "told"),
    [({}, "type of its result `g`"), ({"g": ["M", 3]}, r"its shape is \[M, 3\]")],
)
def test_a_node_without_a_type_is_refused(types: Loose, told: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(onnx_model(**types).SerializeToString())
    with pytest.raises(InputError, match=told) as refused:
        nac.build(tmp_path / "m.onnx", shapes={"x": (2, 3)})
    assert [d.code for d in refused.value.diagnostics] == ["ONX01"]
    assert "value_info" in str(refused.value.diagnostics[0].help)


class Scaled(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Sums of complex numbers, the second times a factor."""

    def forward(self, x: Loose) -> Loose:
        spectrum = torch.fft.fft(x)
        less = torch.sub(spectrum, x, alpha=2).real
        return less + torch.add(spectrum, spectrum, alpha=3).imag


def test_sums_with_a_factor() -> None:
    x = torch.randn(3, 8)
    model = nac.build(Scaled(), example_args=(x,))
    assert nac.verify(nac.to_bytes(model.file)) == []
    (found,) = model.run({model.inputs[0].name: x.numpy()})
    np.testing.assert_allclose(found, Scaled()(x).numpy(), rtol=TOLERANCE, atol=TOLERANCE)
