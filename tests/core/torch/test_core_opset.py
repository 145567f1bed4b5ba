"""The core opset of ATen: every call is taken, written by others, or refused with a rewrite."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.core.aten.catalogue import handlers
from nacre.core.aten.refusals import REFUSED, explain_refusal
from nacre.core.aten.remedies import OTHERWISE
from nacre.core.torch.decompositions.catalogue import decompositions
from nacre.core.torch.decompositions.table import PYTORCHS
from nacre.core.torch.folding import FACTORIES
from nacre.core.torch.nodes import key_of
from tests.core.torch.programs import Function, findings

torch = pytest.importorskip("torch")

Loose = Any
X, P = torch.ones(3, 4), torch.ones(1, 1, 4, 4)
# Numbers of the program, which a static shape makes known.
SIZES = {
    "sym_size.int", "sym_numel.default", "sym_stride.int", "sym_storage_offset.default",
}  # fmt: skip
# Calls that need elements of their own to be shown, and what each is refused for.
REFUSALS: dict[str, tuple[Loose, str]] = {
    "_fft_r2c.default": (lambda op, x: op(x, [1], 0, True), "complex"),
    "_fft_c2r.default": (
        lambda op, x: op(torch.ops.aten._fft_r2c.default(x, [1], 0, True), [1], 0, 4), "complex"),
    "_local_scalar_dense.default": (lambda op, x: x * op(x.sum()), "number of the program"),
    "nonzero.default": (lambda op, x: op(x), "depends on elements"),
    "rand.default": (lambda op, x: x + op([3, 4]), "random"),
    "randn.default": (lambda op, x: x + op([3, 4]), "random"),
    "randperm.default": (lambda op, x: x + op(4), "random"),
    "_adaptive_avg_pool2d_backward.default": (
        lambda op, x: op(P[..., :2, :2] * x[0, 0], P), "gradient"),
    "avg_pool2d_backward.default": (lambda op, x: op(
        P[..., :2, :2] * x[0, 0], P, [2, 2], [2, 2], [0, 0], False, True, None), "gradient"),
    "convolution_backward.default": (lambda op, x: op(
        P * x[0, 0], P, P[..., :1, :1], [1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
        [True, True, True])[0], "gradient"),
    "max_pool2d_with_indices_backward.default": (lambda op, x: op(
        P[..., :2, :2] * x[0, 0], P, [2, 2], [2, 2], [0, 0], [1, 1], False,
        torch.zeros(1, 1, 2, 2, dtype=torch.int64)), "gradient"),
}  # fmt: skip


def core_opset() -> list[Loose]:
    """Every call that PyTorch marks as one of the core."""
    found = []
    for full in torch._C._dispatch_get_all_op_names():
        space, _, key = full.partition("::")
        name, _, form = key.partition(".")
        if space == "aten":
            call = getattr(getattr(torch.ops.aten, name), form or "default")
            found += [call] if torch.Tag.core in call.tags else []
    return found


def test_every_call_of_the_core_has_an_answer() -> None:
    table = torch.export.default_decompositions()
    calls = core_opset()
    assert len(calls) > 150
    taken = {*handlers(), *decompositions(), *PYTORCHS, *FACTORIES, *SIZES}
    left = [
        call for call in calls
        if key_of(call) not in taken and call not in table and "out" not in call._overloadname
    ]  # fmt: skip
    assert {key_of(call) for call in left} <= {
        *REFUSALS, "resize_.default", "_native_batch_norm_legit.no_stats",
    }  # fmt: skip
    for call in left:
        reason, rewrite = explain_refusal(key_of(call))
        assert reason != "the operation is not known"
        assert rewrite


@pytest.mark.parametrize("key", sorted(REFUSALS))
def test_a_call_of_the_core_that_is_refused(key: str) -> None:
    name, _, form = key.partition(".")
    op = getattr(getattr(torch.ops.aten, name), form)
    call, words = REFUSALS[key]
    found = findings(Function(lambda x: call(op, x)), X)
    assert {code for code, _, _ in found} == {"TCH01"}
    assert any(words in message and " at programs.py:" in message for _, message, _ in found)
    assert all(help_ for _, _, help_ in found)


def test_families_of_calls() -> None:
    assert "complex" in explain_refusal("view_as_complex.default")[0]
    assert "matrix apart" in explain_refusal("linalg_cholesky_ex.default")[0]
    assert "sparse" in explain_refusal("to_sparse.default")[0]
    assert explain_refusal("mylib.op.default") == ("it belongs to `mylib`, not to ATen", OTHERWISE)
    assert explain_refusal("unheard.default") == ("the operation is not known", OTHERWISE)
    assert all(reason and rewrite for reason, rewrite in REFUSED.values())
