"""What has no form: all of it at once, each with its place, its reason and a rewrite."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.core.aten.refusals import REFUSED, explain_refusal
from nacre.core.aten.remedies import EVAL, OTHERWISE
from nacre.core.torch import importer
from tests.core.torch.programs import Function, findings

torch = pytest.importorskip("torch")

Loose = Any
X = torch.ones(3, 4)


def test_all_nodes_are_reported_at_once() -> None:
    def function(x: Loose) -> Loose:
        a = torch.special.i0(x)
        b = torch.lgamma(a) + torch.rand(3, 4)
        return torch.nn.functional.dropout(b, 0.5, True)

    found = findings(Function(function), X)
    assert [(code, message.split(" of ")[0]) for code, message, _ in found] == [
        ("TCH01", "node `i0` (i0.default)"),
        ("TCH01", "node `lgamma` (lgamma.default)"),
        ("TCH01", "node `rand` (rand.default)"),
        ("TCH01", "node `native_dropout` (native_dropout.default)"),
    ]
    assert "(f32[3, 4]) at programs.py:" in found[0][1]
    assert found[0][1].endswith(
        ": no operation of Core IR computes this function to full precision"
    )
    assert [help_ for _, _, help_ in found] == [
        OTHERWISE, OTHERWISE, "pass the numbers as an input", EVAL,
    ]  # fmt: skip


@pytest.mark.heavy("PyTorch exports a network")
@pytest.mark.parametrize(
    ("function", "words", "rewrite"),
    [
        (lambda x: x[x > 0], "depends on elements", "torch.where"),
        (lambda x: torch.nonzero(x), "depends on elements", "torch.where"),
        (lambda x: torch.fft.fft(x).real, "complex", "cosines and sines"),
        (lambda x: torch.fft.fftn(x).real, "(_fft_c2c.default)", "cosines and sines"),
        (lambda x: torch.fft.fft2(x, s=(5, 6)).real, "(_fft_c2c.default)", "cosines and sines"),
        (lambda x: (x.to(torch.complex64) * 2).real, "(_to_copy", "imaginary parts apart"),
        (lambda x: torch.linalg.inv(x[:, :3]), "takes a matrix apart", "as a buffer"),
        (lambda x: torch.bincount(x[0].long()), "depends on elements", "torch.arange(n)"),
        (lambda x: x.view(torch.int32), "the bits of floats", "other calls"),
        (lambda x: torch.gcd(x.long(), x.long()), "a loop", "unroll"),
        (lambda x: x * x[0, 0].item(), "number of the program", "keep it a tensor"),
        (lambda x: x.index_put((x > 0,), x.flatten()), "each place", "masked_scatter"),
        (lambda x: x.repeat_interleave(x[0].long(), 1), "depends on elements", "output_size"),
        (lambda x: x.add_(1), "`xs_0` is changed in place", "buffer"),
        (lambda x: torch.bernoulli(x), "random", "as an input"),
        (lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), "batch", "eval"),
        (lambda x: torch.nn.functional.interpolate(
            x[None, None], (5, 5), mode="bilinear", antialias=True, align_corners=True),
         "`antialias` and `align_corners`", "one of them"),
        (lambda x: x[:0], "no elements", "leave the part out"),
        (lambda x: torch.view_as_complex(x.view(3, 2, 2)), "view_as_complex", "imaginary parts"),
    ],
)  # fmt: skip
def test_a_node_without_a_form(function: Loose, words: str, rewrite: str) -> None:
    found = findings(Function(function), X.clone())
    assert {code for code, _, _ in found} == {"TCH01"}
    assert words in found[0][1]
    assert rewrite in str(found[0][2])
    assert all(help_ for _, _, help_ in found)


@pytest.mark.parametrize(
    ("function", "words", "rewrite"),
    [
        (lambda x: x if x.sum() > 0 else -x, "data-dependent", "torch.where"),
        (lambda x: x * torch.equal(x, x), "aten.equal", "(a == b).all()"),
        (lambda x: x @ x, "reduction dim", "`torch.export.export(module, args)` says more"),
        (lambda x, y: x, "missing", "`example_args`"),
    ],
)
def test_a_module_that_cannot_be_exported(
    function: Loose, words: str, rewrite: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ((code, message, help_),) = findings(Function(function), X)
    assert code == "TCH04"
    assert words in message
    assert rewrite in str(help_)
    assert message.startswith("`torch.export` refuses it at ")
    assert "\n" not in message
    assert capfd.readouterr() == ("", "")


def test_a_tensor_that_is_no_buffer_is_changed() -> None:
    class Plain(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.kept = torch.zeros(3)

        def forward(self, x: Loose) -> Loose:
            self.kept.add_(x)
            return self.kept * 1

    ((code, message, help_),) = findings(Plain(), torch.ones(3))
    assert code == "TCH04"
    assert "kept is mutated" in message
    assert help_ == "keep it by `module.register_buffer(name, tensor)`"


def test_a_table_whose_rows_are_made_shorter() -> None:
    found = findings(torch.nn.Embedding(9, 3, max_norm=1.0), torch.tensor([1, 2]))
    assert "it makes rows of the table shorter" in found[0][1]
    assert "torch.renorm" in str(found[0][2])


@pytest.mark.parametrize("key", ["transformers.grouped_mm_fallback.default", "_grouped_mm.default"])
def test_products_of_experts(key: str) -> None:
    reason, rewrite = explain_refusal(key)
    assert "expert" in reason
    assert 'model.set_experts_implementation("batched_mm")' in rewrite


def test_inputs_that_have_no_type() -> None:
    found = findings(Function(lambda x, y: (x, y)), torch.ones(2, dtype=torch.complex64), X[:0])
    assert [message for _, message, _ in found] == [
        "input `xs_0`: element type complex64 is not one of Core IR's",
        "input `xs_1`: it has no elements; Core IR has no empty tensors",
    ]


def test_something_else_than_a_module() -> None:
    ((code, message, _),) = findings(3)
    assert (code, message) == ("TCH04", "found a int, expected a module, a program or a path")


def test_a_handler_that_gives_another_type_than_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"sin.default": lambda use: use.reshape(use.value("self"), (4, 3))}
    monkeypatch.setattr(importer, "handlers", lambda: wrong)
    ((code, message, help_),) = findings(Function(torch.sin), X)
    assert code == "TCH01"
    words = "it is taken to give tensor<f32[4, 3]>, and PyTorch gives tensor<f32[3, 4]>"
    assert message.endswith(f"{words}: a mistake of ours")
    assert help_ == OTHERWISE


def test_refused_overloads_exist() -> None:
    regions = {"with_effects"}
    for key in set(REFUSED) - regions:
        name, _, overload = key.partition(".")
        assert overload in getattr(torch.ops.aten, name).overloads(), key
